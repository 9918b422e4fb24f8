#include "device/sim/texel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace slate::sim {
namespace {

__extension__ using Half = _Float16;

/// One channel as it is in memory, extended by its sign if its kind has one.
std::uint32_t read_channel(const ArrayFormat& format, const std::byte* at) {
  const bool is_signed = format.kind == ChannelKind::kSigned;
  const auto bits = static_cast<std::uint32_t>(read_bytes(at, format.bits / 8));
  if (is_signed && format.bits == 8) {
    return static_cast<std::uint32_t>(static_cast<std::int8_t>(bits));
  }
  if (is_signed && format.bits == 16) {
    return static_cast<std::uint32_t>(static_cast<std::int16_t>(bits));
  }
  if (format.kind == ChannelKind::kFloat && format.bits == 16) {
    const Half half = std::bit_cast<Half>(static_cast<std::uint16_t>(bits));
    return std::bit_cast<std::uint32_t>(static_cast<float>(half));
  }
  return bits;
}

float normalized(const ArrayFormat& format, std::uint32_t value) {
  const std::uint32_t most = (1u << format.bits) - 1;
  if (format.kind == ChannelKind::kUnsigned) {
    return static_cast<float>(value) / static_cast<float>(most);
  }
  const auto number = static_cast<float>(static_cast<std::int32_t>(value));
  return std::max(-1.0f, number / static_cast<float>(most >> 1));
}

/// IEC 61966-2-1.
float linear_of_srgb(float value) {
  const double v = value;
  return static_cast<float>(v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4));
}

/// The bytes of a channel that holds this value; nullopt when it cannot.
std::optional<std::uint32_t> channel_of(const ArrayFormat& format, std::uint32_t value) {
  if (format.bits == 32) return value;
  if (format.kind == ChannelKind::kFloat) {
    const auto half = static_cast<Half>(std::bit_cast<float>(value));
    if (std::bit_cast<std::uint32_t>(static_cast<float>(half)) != value) return std::nullopt;
    return std::bit_cast<std::uint16_t>(half);
  }
  const std::uint32_t mask = (1u << format.bits) - 1;
  if (format.kind == ChannelKind::kUnsigned) {
    return value <= mask ? std::optional(value) : std::nullopt;
  }
  const auto number = static_cast<std::int32_t>(value);
  const auto most = static_cast<std::int32_t>(mask >> 1);
  if (number > most || number < -most - 1) return std::nullopt;
  return value & mask;
}

template <typename T>
std::uint64_t load(const std::byte* at) {
  return __atomic_load_n(reinterpret_cast<const T*>(at), __ATOMIC_RELAXED);
}

template <typename T>
void store(std::byte* at, std::uint64_t value) {
  __atomic_store_n(reinterpret_cast<T*>(at), static_cast<T>(value), __ATOMIC_RELAXED);
}

}  // namespace

std::uint64_t read_bytes(const std::byte* at, std::uint32_t bytes) {
  switch (bytes) {
    case 1:
      return load<std::uint8_t>(at);
    case 2:
      return load<std::uint16_t>(at);
    case 4:
      return load<std::uint32_t>(at);
    default:
      return load<std::uint64_t>(at);
  }
}

void write_bytes(std::byte* at, std::uint32_t bytes, std::uint64_t value) {
  switch (bytes) {
    case 1:
      return store<std::uint8_t>(at, value);
    case 2:
      return store<std::uint16_t>(at, value);
    case 4:
      return store<std::uint32_t>(at, value);
    default:
      return store<std::uint64_t>(at, value);
  }
}

Texel read_texel(const ArrayFormat& format, const std::byte* at) {
  Texel texel{0, 0, 0, format.kind == ChannelKind::kFloat ? std::bit_cast<std::uint32_t>(1.0f) : 1};
  for (std::uint32_t i = 0; i < format.channels; ++i) {
    texel[i] = read_channel(format, at + i * (format.bits / 8));
  }
  return texel;
}

std::array<float, 4> texel_numbers(const ArrayFormat& format, const Texel& texel, bool srgb) {
  std::array<float, 4> numbers{0, 0, 0, 1};
  for (std::uint32_t i = 0; i < format.channels; ++i) {
    const bool is_float = format.kind == ChannelKind::kFloat;
    numbers[i] = is_float ? std::bit_cast<float>(texel[i]) : normalized(format, texel[i]);
    if (srgb && i < 3) numbers[i] = linear_of_srgb(numbers[i]);
  }
  return numbers;
}

bool write_texel(const ArrayFormat& format, std::byte* at, const Texel& texel) {
  std::array<std::uint32_t, 4> channels{};
  for (std::uint32_t i = 0; i < format.channels; ++i) {
    const auto channel = channel_of(format, texel[i]);
    if (!channel) return false;
    channels[i] = *channel;
  }
  for (std::uint32_t i = 0; i < format.channels; ++i) {
    write_bytes(at + i * (format.bits / 8), format.bits / 8, channels[i]);
  }
  return true;
}

}  // namespace slate::sim
