// Tensor maps: 128 bytes that kernels take for a tensor. Only the device's driver knows how they
// are made, so that the engine has it make them. It also checks what the program says.
#include "base/tensor_map.h"

#include <cstring>

#include "client/driver/front.h"

namespace slate::driver {
namespace {

static_assert(sizeof(CUtensorMap) == sizeof(TensorMap));
constexpr std::uint32_t kRankOfIm2col = 3;  // the least; its corners have two dimensions fewer
constexpr std::uintptr_t kAlign = 64;       // of a tensor map

/// An enum's number, which a program may have made up.
template <typename Enum>
std::uint32_t number_of(const Enum& value) {
  std::uint32_t number = 0;
  static_assert(sizeof(number) == sizeof(value));
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

/// What all kinds of tensor maps are made of.
struct Tensor {
  CUtensorMapDataType type;
  std::uint32_t rank;
  void* address;
  const cuuint64_t* sizes;
  const cuuint64_t* strides;
  const std::uint32_t* element_strides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion l2_promotion;
  CUtensorMapFloatOOBfill fill;
};

Maybe<TensorMapSpec> spec_of(TensorMapKind kind, const Tensor& tensor) {
  const std::uint32_t least = kind == TensorMapKind::kTiled ? 1 : kRankOfIm2col;
  if (tensor.rank < least || tensor.rank > TensorMapSpec::kMostRank || tensor.sizes == nullptr ||
      tensor.element_strides == nullptr || (tensor.strides == nullptr && tensor.rank > 1)) {
    return deny(CUDA_ERROR_INVALID_VALUE);
  }
  TensorMapSpec spec;
  spec.kind = kind;
  spec.data_type = number_of(tensor.type);
  spec.rank = tensor.rank;
  spec.interleave = number_of(tensor.interleave);
  spec.swizzle = number_of(tensor.swizzle);
  spec.l2_promotion = number_of(tensor.l2_promotion);
  spec.fill = number_of(tensor.fill);
  spec.address = address_of(tensor.address);
  for (std::uint32_t i = 0; i < tensor.rank; ++i) {
    spec.sizes[i] = tensor.sizes[i];
    spec.element_strides[i] = tensor.element_strides[i];
    if (i + 1 < tensor.rank) spec.strides[i] = tensor.strides[i];
  }
  return spec;
}

bool is_place(const CUtensorMap* map) {
  return map != nullptr && address_of(map) % kAlign == 0;
}

/// `complete`, a (TensorMapSpec&) -> bool, adds what the kind has of its own.
template <typename Complete>
CUresult encode(CUtensorMap* map, TensorMapKind kind, const Tensor& tensor,
                const Complete& complete) {
  return with_session([&](Session& session) -> Answer {
    auto spec = spec_of(kind, tensor);
    if (!spec) return std::unexpected(spec.error());
    if (!is_place(map) || !complete(*spec)) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto encoded = session.kernels().encode_tensor_map(*spec);
    if (!encoded) return std::unexpected<Failure>(encoded.error());
    std::memcpy(map, encoded->bytes, sizeof(*map));
    return {};
  });
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                void* address, const cuuint64_t* sizes, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* element_strides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill fill) {
  return encode(map, TensorMapKind::kTiled,
                {type, rank, address, sizes, strides, element_strides, interleave, swizzle,
                 l2_promotion, fill},
                [&](TensorMapSpec& spec) {
                  if (box == nullptr) return false;
                  std::memcpy(spec.box, box, rank * sizeof(*box));
                  return true;
                });
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                 void* address, const cuuint64_t* sizes, const cuuint64_t* strides,
                                 const int* lower, const int* upper, cuuint32_t channels_per_pixel,
                                 cuuint32_t pixels_per_column, const cuuint32_t* element_strides,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion l2_promotion,
                                 CUtensorMapFloatOOBfill fill) {
  return encode(map, TensorMapKind::kIm2col,
                {type, rank, address, sizes, strides, element_strides, interleave, swizzle,
                 l2_promotion, fill},
                [&](TensorMapSpec& spec) {
                  if (lower == nullptr || upper == nullptr) return false;
                  std::memcpy(spec.lower, lower, (rank - 2) * sizeof(*lower));
                  std::memcpy(spec.upper, upper, (rank - 2) * sizeof(*upper));
                  spec.channels_per_pixel = channels_per_pixel;
                  spec.pixels_per_column = pixels_per_column;
                  return true;
                });
}

CUresult cuTensorMapEncodeIm2colWide(
    CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
    const cuuint64_t* sizes, const cuuint64_t* strides, int lower_width, int upper_width,
    cuuint32_t channels_per_pixel, cuuint32_t pixels_per_column, const cuuint32_t* element_strides,
    CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill fill) {
  return encode(map, TensorMapKind::kIm2colWide,
                {type, rank, address, sizes, strides, element_strides, interleave, swizzle,
                 l2_promotion, fill},
                [&](TensorMapSpec& spec) {
                  spec.lower[0] = lower_width;
                  spec.upper[0] = upper_width;
                  spec.channels_per_pixel = channels_per_pixel;
                  spec.pixels_per_column = pixels_per_column;
                  spec.wide_mode = number_of(mode);
                  return true;
                });
}

}  // extern "C"
