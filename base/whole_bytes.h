// Reads and writes of a file descriptor that go on until all bytes are through. Thread: any.
#pragma once

#include <cstddef>
#include <span>

namespace slate {

/// False: the file ended before, or an error, which errno has.
bool read_all(int fd, std::span<std::byte> to);
/// False: an error, which errno has.
bool write_all(int fd, std::span<const std::byte> from);

}  // namespace slate
