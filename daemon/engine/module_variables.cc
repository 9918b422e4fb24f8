#include "daemon/engine/module_variables.h"

#include <algorithm>
#include <limits>

#include "base/elf.h"

namespace slate::daemon {
namespace {

// As sim has them: what the driver adds between variables is no more.
constexpr std::uint64_t kVariableAlign = 16;
constexpr std::uint64_t kSpaceAlign = 256;

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

/// A stranger's sizes may be anything.
std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b
             ? std::numeric_limits<std::uint64_t>::max()
             : a + b;
}

}  // namespace

std::uint64_t variable_bytes(const ptx::Module& module) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 60;
  std::uint64_t global = 0, constant = 0;
  for (const ptx::Variable& variable : module.variables) {
    const bool is_constant = variable.space == ptx::Space::kConst;
    if (variable.is_extern || (!is_constant && variable.space != ptx::Space::kGlobal)) continue;
    std::uint64_t& bytes = is_constant ? constant : global;
    bytes = round_up(bytes, std::max<std::uint64_t>(variable.align, kVariableAlign));
    bytes = std::min(bytes + variable.bytes, kMost);
  }
  return round_up(global, kSpaceAlign) + constant;
}

std::uint64_t variable_bytes(std::span<const std::byte> cubin) {
  std::uint64_t bytes = 0;
  for (const elf::Section& section : elf::sections_of(cubin)) {
    // Bank 3 is the program's __constant__; the other banks are the compiler's, and small.
    if (section.name.starts_with(".nv.global") || section.name.starts_with(".nv.constant3"))
      bytes = sum(bytes, section.header.sh_size);
  }
  return bytes;
}

}  // namespace slate::daemon
