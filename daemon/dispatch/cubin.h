// Reads what machine code says of itself from the sections of a cubin (ELF). The bytes may be
// hostile: everything is checked against the image, and the time is linear in it. An image whose
// names take more than that to compare cannot be read. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace slate::daemon {

/// What one thread of a kernel needs.
struct CodeNeeds {
  std::uint32_t registers = 0;
  std::uint32_t stack_bytes = 0;  // stack, with spilled registers
};
/// Nothing for an image that has no such kernel, or cannot be read.
std::optional<CodeNeeds> needs_of(std::span<const std::byte> cubin, std::string_view kernel);

/// The initial contents of a variable in the image; empty where it has none.
std::span<std::byte> contents_of(std::span<std::byte> cubin, std::string_view variable);

}  // namespace slate::daemon
