#include "base/elf.h"

#include <algorithm>

namespace slate::elf {
namespace {

std::optional<Elf64_Shdr> header_at(Bytes file, const Elf64_Ehdr& header, std::uint64_t index) {
  if (header.e_shoff > file.size()) return std::nullopt;
  return read_at<Elf64_Shdr>(file.subspan(header.e_shoff), index * sizeof(Elf64_Shdr));
}

Bytes bytes_of(Bytes file, const Elf64_Shdr& section) {
  if (section.sh_type == SHT_NOBITS) return {};
  return part_of(file, section.sh_offset, section.sh_size);
}

}  // namespace

Bytes part_of(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) return {};
  return bytes.subspan(offset, size);
}

std::string_view text_at(Bytes table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  const auto* begin = reinterpret_cast<const char*>(table.data()) + offset;
  const std::size_t most = table.size() - offset;
  const std::size_t length = strnlen(begin, most);
  return length < most ? std::string_view(begin, length) : std::string_view();
}

bool is_elf(Bytes file) {
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  return header && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
         header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB;
}

std::vector<Section> sections_of(Bytes file) {
  std::vector<Section> sections;
  if (!is_elf(file)) return sections;
  const auto header = *read_at<Elf64_Ehdr>(file, 0);
  const auto first = header_at(file, header, 0);
  if (!first || header.e_shentsize != sizeof(Elf64_Shdr)) return sections;
  // More than 65,279 sections are counted in the first one.
  const std::uint64_t count = std::min<std::uint64_t>(
      header.e_shnum != 0 ? header.e_shnum : first->sh_size, file.size() / sizeof(Elf64_Shdr));
  const auto table =
      header_at(file, header, header.e_shstrndx != SHN_XINDEX ? header.e_shstrndx : first->sh_link);
  Bytes names = table ? bytes_of(file, *table) : Bytes();
  // Names may share their ends, but a table that is read again and again is nobody's.
  std::uint64_t budget = 4 * std::uint64_t{file.size()};
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto section = header_at(file, header, i);
    if (!section) break;
    const std::string_view name = text_at(names, section->sh_name);
    budget -= std::min<std::uint64_t>(budget, name.empty() ? names.size() : name.size());
    if (budget == 0) names = {};
    sections.push_back({.name = name, .header = *section, .bytes = bytes_of(file, *section)});
  }
  return sections;
}

}  // namespace slate::elf
