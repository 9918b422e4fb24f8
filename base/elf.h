// The sections of an ELF file that may hold anything: a program, or machine code for a GPU. Every
// offset is checked, and the time is linear in the file's size. Pure functions; nothing is copied.
// Thread: any.
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

/// The T at `offset`; nullopt if it does not lie in the bytes.
template <typename T>
std::optional<T> read_at(Bytes bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// The `size` bytes at `offset`; empty if not all of them lie in the bytes.
Bytes part_of(Bytes bytes, std::uint64_t offset, std::uint64_t size);

/// The NUL-terminated text at `offset` of a string table; empty if there is none.
std::string_view text_at(Bytes table, std::uint64_t offset);

/// One section; its views are valid as long as the file's bytes.
struct Section {
  std::string_view name;  // view into the file
  Elf64_Shdr header{};
  Bytes bytes;  // empty if they do not all lie in the file
};

/// Whether the bytes begin as a 64-bit little-endian ELF file does.
bool is_elf(Bytes file);

/// The sections of an ELF file, as many as lie in it; empty for anything else.
std::vector<Section> sections_of(Bytes file);

}  // namespace slate::elf
