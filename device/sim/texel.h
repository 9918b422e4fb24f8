// One element of an array, between memory and registers: the formats, not the coordinates. Pure
// functions, apart from the memory that they are given. Thread: any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/array.h"

namespace slate::sim {

/// The four channels as registers of 32 bits. Signed integers are extended by their sign; floats of
/// 16 bits are made 32 wide.
using Texel = std::array<std::uint32_t, 4>;

/// Reads the element at `at`, each channel atomically. Channels that the format lacks are 0, the
/// last one 1. Requires: `at` is aligned as a channel is.
Texel read_texel(const ArrayFormat& format, const std::byte* at);

/// The channels as numbers. Integers become -1 to 1, or 0 to 1, as for cudaReadModeNormalizedFloat.
/// `srgb`: the colours of 8-bit elements become linear. Requires: floats, or 8 or 16 bits.
std::array<float, 4> texel_numbers(const ArrayFormat& format, const Texel& texel, bool srgb);

/// Writes registers to the channels that the format has. Returns false, and writes nothing, when a
/// value is none of the format's: what a GPU makes of it is not documented.
bool write_texel(const ArrayFormat& format, std::byte* at, const Texel& texel);

/// Reads or writes `bytes` bytes (1, 2, 4 or 8) at `at`, as they are.
std::uint64_t read_bytes(const std::byte* at, std::uint32_t bytes);
void write_bytes(std::byte* at, std::uint32_t bytes, std::uint64_t value);

}  // namespace slate::sim
