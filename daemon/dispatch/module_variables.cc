#include "daemon/dispatch/module_variables.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "base/elf.h"
#include "base/sizes.h"

namespace slate::daemon {
namespace {

// As sim has them: what the driver adds between variables is no more.
constexpr std::uint64_t kVariableAlign = 16;
constexpr std::uint64_t kSpaceAlign = 256;

/// A stranger's sizes may be anything.
std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b
             ? std::numeric_limits<std::uint64_t>::max()
             : a + b;
}

/// Whether the name at an offset of the table of strings begins so. Names are not looked at any
/// further: a stranger's may be as long as the image, and one for all sections.
bool name_begins(std::span<const std::byte> image, const Elf64_Shdr& strings, std::uint32_t offset,
                 std::string_view beginning) {
  if (strings.sh_offset > image.size() || offset >= image.size() - strings.sh_offset) return false;
  const auto rest = image.subspan(strings.sh_offset + offset);
  return rest.size() >= beginning.size() &&
         std::memcmp(rest.data(), beginning.data(), beginning.size()) == 0;
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
  const auto header = elf::read_at<Elf64_Ehdr>(cubin, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return 0;
  const auto section_at = [&](std::uint64_t index) {
    return elf::read_at<Elf64_Shdr>(cubin, sum(header->e_shoff, index * sizeof(Elf64_Shdr)));
  };
  const auto first = section_at(0);
  if (!first) return 0;
  // More than 65,279 sections are counted in the first one.
  const std::uint64_t count = header->e_shnum != 0 ? header->e_shnum : first->sh_size;
  const auto strings =
      section_at(header->e_shstrndx != SHN_XINDEX ? header->e_shstrndx : first->sh_link);
  if (!strings) return 0;
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 1; i < count; ++i) {
    const auto section = section_at(i);
    if (!section) break;
    // Bank 3 is the program's __constant__; the other banks are the compiler's, and small.
    const auto begins = [&](std::string_view beginning) {
      return name_begins(cubin, *strings, section->sh_name, beginning);
    };
    if (begins(".nv.global") || begins(".nv.constant3")) bytes = sum(bytes, section->sh_size);
  }
  return bytes;
}

}  // namespace slate::daemon
