// What slatectl run wants to know of a program's file: is it an ELF executable, which libraries
// does it name. Reads only what it must; every offset in the
// file is checked, since it may be anything.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace slate::tools {

struct ElfFacts {
  bool is_elf = false;              // 64-bit, little-endian; everything else stays at its default
  std::vector<std::string> needed;  // DT_NEEDED, in order
  bool has_rpath = false;           // DT_RPATH without DT_RUNPATH: it beats LD_LIBRARY_PATH

  bool needs(std::string_view library_prefix) const;
};

/// Of the bytes of a file. Never fails: what is damaged is left out.
ElfFacts inspect_elf(std::span<const std::byte> file);
/// Of a file, by mapping it. kIo when it cannot be read.
Result<ElfFacts> inspect_elf_file(const std::string& path);

}  // namespace slate::tools
