// Numbers and headers of code images, as they lie in memory. Thread: any.
#pragma once

#include <cstddef>
#include <cstring>

namespace slate::client {

/// The T that lies `offset` bytes behind `from`, aligned or not. Requires: it may be read.
template <typename T>
T read_raw(const void* from, std::size_t offset = 0) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(from) + offset, sizeof(value));
  return value;
}

}  // namespace slate::client
