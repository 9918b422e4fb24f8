#include "device/cuda/tensor_maps.h"

#include <fmt/core.h>

#include <cstring>

namespace slate::cuda {
namespace {

static_assert(sizeof(CUtensorMap) == sizeof(TensorMap::bytes));

/// Calls the function with what all kinds have around `middle`, which is the kind's own.
template <typename Signature, typename... Middle>
Result<TensorMap> encode(Context& context, const Entry<Signature>& function,
                         const TensorMapSpec& spec, Middle... middle) {
  if (auto there = check_present(function); !there) return std::unexpected(there.error());
  CUtensorMap made{};
  const auto done =
      context.call(function, &made, static_cast<CUtensorMapDataType>(spec.data_type), spec.rank,
                   reinterpret_cast<void*>(spec.address), spec.sizes, spec.strides, middle...,
                   static_cast<CUtensorMapSwizzle>(spec.swizzle),
                   static_cast<CUtensorMapL2promotion>(spec.l2_promotion),
                   static_cast<CUtensorMapFloatOOBfill>(spec.fill));
  if (!done) return std::unexpected(done.error());
  TensorMap map;
  std::memcpy(map.bytes, &made, sizeof(map.bytes));
  return map;
}

}  // namespace

Result<TensorMap> encode_tensor_map(Context& context, const TensorMapSpec& spec) {
  if (spec.rank == 0 || spec.rank > TensorMapSpec::kMostRank)
    return fail(ErrorCode::kInvalidValue, fmt::format("a tensor of rank {}", spec.rank));
  const Driver& driver = context.driver();
  const auto interleave = static_cast<CUtensorMapInterleave>(spec.interleave);
  switch (spec.kind) {
    case TensorMapKind::kTiled:
      return encode(context, driver.cuTensorMapEncodeTiled, spec, spec.box, spec.element_strides,
                    interleave);
    case TensorMapKind::kIm2col:
      return encode(context, driver.cuTensorMapEncodeIm2col, spec, spec.lower, spec.upper,
                    spec.channels_per_pixel, spec.pixels_per_column, spec.element_strides,
                    interleave);
    case TensorMapKind::kIm2colWide:
      return encode(context, driver.cuTensorMapEncodeIm2colWide, spec, spec.lower[0], spec.upper[0],
                    spec.channels_per_pixel, spec.pixels_per_column, spec.element_strides,
                    interleave, static_cast<CUtensorMapIm2ColWideMode>(spec.wide_mode));
  }
  return fail(ErrorCode::kInvalidValue, "a tensor map of a kind that there is not");
}

}  // namespace slate::cuda
