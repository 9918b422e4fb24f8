// Tensor maps: what a program says of a tensor, as 128 bytes that kernels take. Only the device
// knows how they are made, so the daemon is asked.
#include "base/tensor_map.h"

#include <algorithm>
#include <cstring>

#include "client/driver/front.h"

namespace slate::driver {
namespace {

constexpr std::size_t kMapAlign = 64;
constexpr std::uint32_t kMostRank = TensorMapSpec::kMostRank;

/// What the three kinds have in common.
struct Tensor {
  CUtensorMapDataType type;
  cuuint32_t rank;
  void* address;
  const cuuint64_t* sizes;
  const cuuint64_t* strides;
  const cuuint32_t* element_strides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
  CUtensorMapFloatOOBfill fill;
};

/// Runs `complete`, a (TensorMapSpec&) that adds what only its kind has.
template <typename Complete>
CUresult encode(CUtensorMap* map, TensorMapKind kind, const Tensor& tensor,
                const Complete& complete) noexcept {
  return with_device([&](Session& session) -> Answer {
    if (map == nullptr || reinterpret_cast<std::uintptr_t>(map) % kMapAlign != 0 ||
        tensor.rank == 0 || tensor.rank > kMostRank || tensor.sizes == nullptr ||
        (tensor.strides == nullptr && tensor.rank > 1) || tensor.element_strides == nullptr) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    TensorMapSpec spec;
    spec.kind = kind;
    spec.data_type = static_cast<std::uint32_t>(tensor.type);
    spec.rank = tensor.rank;
    spec.interleave = static_cast<std::uint32_t>(tensor.interleave);
    spec.swizzle = static_cast<std::uint32_t>(tensor.swizzle);
    spec.l2_promotion = static_cast<std::uint32_t>(tensor.promotion);
    spec.fill = static_cast<std::uint32_t>(tensor.fill);
    spec.address = address_of(tensor.address);
    std::copy_n(tensor.sizes, tensor.rank, spec.sizes);
    if (tensor.rank > 1) std::copy_n(tensor.strides, tensor.rank - 1, spec.strides);
    std::copy_n(tensor.element_strides, tensor.rank, spec.element_strides);
    complete(spec);
    const auto made = session.kernels().encode_tensor_map(spec);
    if (!made) return std::unexpected<Failure>(made.error());
    static_assert(sizeof(*map) == sizeof(made->bytes));
    std::memcpy(map, made->bytes, sizeof(*map));
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
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  if (box == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return encode(
      map, TensorMapKind::kTiled,
      {type, rank, address, sizes, strides, element_strides, interleave, swizzle, promotion, fill},
      [&](TensorMapSpec& spec) { std::copy_n(box, rank, spec.box); });
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                 void* address, const cuuint64_t* sizes, const cuuint64_t* strides,
                                 const int* lower, const int* upper, cuuint32_t channels,
                                 cuuint32_t pixels, const cuuint32_t* element_strides,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  constexpr cuuint32_t kLeastRank = 3;
  if (lower == nullptr || upper == nullptr || rank < kLeastRank) return CUDA_ERROR_INVALID_VALUE;
  return encode(
      map, TensorMapKind::kIm2col,
      {type, rank, address, sizes, strides, element_strides, interleave, swizzle, promotion, fill},
      [&](TensorMapSpec& spec) {
        std::copy_n(lower, rank - 2, spec.lower);
        std::copy_n(upper, rank - 2, spec.upper);
        spec.channels_per_pixel = channels;
        spec.pixels_per_column = pixels;
      });
}

CUresult cuTensorMapEncodeIm2colWide(
    CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
    const cuuint64_t* sizes, const cuuint64_t* strides, int lower, int upper, cuuint32_t channels,
    cuuint32_t pixels, const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
    CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
    CUtensorMapFloatOOBfill fill) {
  return encode(
      map, TensorMapKind::kIm2colWide,
      {type, rank, address, sizes, strides, element_strides, interleave, swizzle, promotion, fill},
      [&](TensorMapSpec& spec) {
        spec.lower[0] = lower;
        spec.upper[0] = upper;
        spec.channels_per_pixel = channels;
        spec.pixels_per_column = pixels;
        spec.wide_mode = static_cast<std::uint32_t>(mode);
      });
}

}  // extern "C"
