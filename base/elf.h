// The sections of an ELF file that may be anything: programs, and machine code for a GPU. Every
// offset is checked, and the time is linear in the file's size. Pure functions, any thread.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace slate::elf {

using Bytes = std::span<const std::byte>;

/// A T at `offset`, if it lies in the bytes.
template <typename T>
std::optional<T> read_at(Bytes bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// Nothing if not all of it lies in the bytes.
Bytes part_of(Bytes bytes, std::uint64_t offset, std::uint64_t size);

/// The NUL-terminated text at `offset` of a string table; empty if there is none.
std::string_view text_at(Bytes table, std::uint64_t offset);

struct Section {
  std::string_view name;  // a view into the file
  Elf64_Shdr header{};
  Bytes bytes;  // none of a section that has none in the file, or not all
};

/// Whether it begins as a 64-bit little-endian ELF file does.
bool is_elf(Bytes file);

/// The sections of such a file, as many as lie in it; none of anything else.
std::vector<Section> sections_of(Bytes file);

}  // namespace slate::elf
