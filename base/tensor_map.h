// Tensor maps as plain values: what a program says of a tensor in memory, and the 128 bytes that
// kernels take for it. The numbers of types and modes are the driver's (CUtensorMapDataType and so
// on). Only the device knows how the bytes are made.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slate {

enum class TensorMapKind : std::uint32_t {
  kTiled = 0,
  kIm2col = 1,      // pixel boxes between two corners
  kIm2colWide = 2,  // likewise, along the width only
};

struct TensorMapSpec {
  static constexpr std::uint32_t kMostRank = 5;

  TensorMapKind kind = TensorMapKind::kTiled;
  std::uint32_t data_type = 0;
  std::uint32_t rank = 0;
  std::uint32_t interleave = 0;
  std::uint32_t swizzle = 0;
  std::uint32_t l2_promotion = 0;
  std::uint32_t fill = 0;  // what is read out of bounds
  std::uint32_t wide_mode = 0;
  std::uint64_t address = 0;
  std::uint64_t sizes[kMostRank] = {};        // elements; the innermost dimension first
  std::uint64_t strides[kMostRank - 1] = {};  // bytes; of all but the innermost dimension
  std::uint32_t element_strides[kMostRank] = {};
  std::uint32_t box[kMostRank] = {};  // kTiled: elements of a tile
  // The other kinds:
  std::int32_t lower[kMostRank - 2] = {}, upper[kMostRank - 2] = {};  // corners; wide: the first
  std::uint32_t channels_per_pixel = 0;
  std::uint32_t pixels_per_column = 0;
};

struct TensorMap {
  alignas(8) std::byte bytes[128] = {};
};

}  // namespace slate
