// Machine code as a compiler's ELF file holds it, put together from its sections: for tests.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace slate::test {

struct ElfPart {
  std::uint32_t name = 0;  // offset in the first part
  std::string bytes;
  std::uint32_t type = SHT_PROGBITS;
  std::uint64_t flags = 0;
  std::uint32_t link = 1;
  std::uint32_t info = 0;
  std::uint64_t size = 0;  // of a section without bytes
};

/// An ELF file of CUDA with these sections, from number 1 on. The first one has the strings.
inline std::vector<std::byte> elf_image(std::span<const ElfPart> parts) {
  std::vector<Elf64_Shdr> sections(1 + parts.size());
  std::string image(sizeof(Elf64_Ehdr), '\0');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    sections[i + 1].sh_name = parts[i].name;
    sections[i + 1].sh_type = parts[i].type;
    sections[i + 1].sh_flags = parts[i].flags;
    sections[i + 1].sh_offset = image.size();
    sections[i + 1].sh_size = parts[i].bytes.empty() ? parts[i].size : parts[i].bytes.size();
    sections[i + 1].sh_link = parts[i].link;
    sections[i + 1].sh_info = parts[i].info;
    image += parts[i].bytes;
  }
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = 190;  // CUDA
  header.e_flags = 90;     // sm_90
  header.e_shoff = image.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<std::uint16_t>(sections.size());
  header.e_shstrndx = 1;
  std::memcpy(image.data(), &header, sizeof(header));
  image.append(reinterpret_cast<const char*>(sections.data()),
               sections.size() * sizeof(Elf64_Shdr));
  const auto bytes = std::as_bytes(std::span(image));
  return {bytes.begin(), bytes.end()};
}

}  // namespace slate::test
