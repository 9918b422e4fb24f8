// What machine code says of itself, read from the sections of a cubin (ELF). A stranger's bytes:
// everything is checked against the image, and the time is linear in it. Pure functions, any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace slate::daemon {

/// Of one thread of a kernel.
struct CodeNeeds {
  std::uint32_t registers = 0;
  std::uint32_t stack_bytes = 0;  // with what is spilled
};
/// Nothing for an image without this kernel, or one that cannot be read.
std::optional<CodeNeeds> needs_of(std::span<const std::byte> cubin, std::string_view kernel);

/// Where the initial contents of a variable lie in the image; empty for one that has none there.
std::span<std::byte> contents_of(std::span<std::byte> cubin, std::string_view variable);

}  // namespace slate::daemon
