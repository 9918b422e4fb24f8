#include "client/session/code_image.h"

#include <elf.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/elf.h"
#include "client/session/ptx_words.h"
#include "client/session/raw_bytes.h"

namespace slate::client {
namespace {

/// Where the last thing that the headers of a cubin name ends; nothing if that is not readable.
std::optional<std::size_t> elf_bytes(const std::byte* elf, std::size_t readable) {
  const auto fits = [readable](std::size_t at, std::size_t bytes) {
    return at <= readable && bytes <= readable - at;
  };
  if (!fits(0, sizeof(Elf64_Ehdr))) return std::nullopt;
  const auto header = read_raw<Elf64_Ehdr>(elf);
  const std::size_t sections = std::size_t{header.e_shnum} * sizeof(Elf64_Shdr);
  const std::size_t segments = std::size_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (!fits(header.e_shoff, sections) || !fits(header.e_phoff, segments)) return std::nullopt;
  std::size_t end = std::max({sizeof(header), static_cast<std::size_t>(header.e_shoff) + sections,
                              static_cast<std::size_t>(header.e_phoff) + segments});
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const auto section = read_raw<Elf64_Shdr>(elf, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type == SHT_NOBITS) continue;
    if (!fits(section.sh_offset, section.sh_size)) return std::nullopt;
    end = std::max<std::size_t>(end, section.sh_offset + section.sh_size);
  }
  return end;
}

/// Every kernel of a cubin has a section of its own for its parameters.
void find_kernels_of_elf(std::span<const std::byte> elf, std::vector<std::string>& kernels) {
  constexpr std::string_view kPrefix = ".nv.constant0.";
  if (elf.size() < sizeof(Elf64_Ehdr)) return;
  const auto header = read_raw<Elf64_Ehdr>(elf.data());
  const auto section_at = [&](std::size_t i, Elf64_Shdr& section) {
    const std::size_t at = header.e_shoff + i * sizeof(Elf64_Shdr);
    if (at > elf.size() || elf.size() - at < sizeof(Elf64_Shdr)) return false;
    section = read_raw<Elf64_Shdr>(elf.data(), at);
    return true;
  };
  Elf64_Shdr names{}, section{};
  if (!section_at(header.e_shstrndx, names)) return;
  for (std::size_t i = 0; i < header.e_shnum && section_at(i, section); ++i) {
    const std::size_t at = names.sh_offset + section.sh_name;
    if (at >= elf.size()) continue;
    const char* const text = reinterpret_cast<const char*>(elf.data()) + at;
    const std::string_view name(text, ::strnlen(text, elf.size() - at));
    if (name.starts_with(kPrefix)) kernels.emplace_back(name.substr(kPrefix.size()));
  }
}

std::uint64_t number_of(std::string_view word) {
  std::uint64_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

/// Bytes of ".u32" and its kind.
std::uint64_t type_bytes(std::string_view word) {
  const std::size_t digits = word.find_first_of("0123456789");
  return digits == std::string_view::npos ? 0 : number_of(word.substr(digits)) / 8;
}

/// What follows `.attribute(.managed)`: [.align N] .type name[N]...
ManagedName read_managed(PtxWords& words) {
  ManagedName managed;
  std::string_view word = words.next();
  std::uint64_t bytes = 1;
  while (word.starts_with(".")) {
    if (word == ".align") {
      (void)words.next();
    } else if (word == ".v2" || word == ".v4") {
      bytes *= number_of(word.substr(2));
    } else {
      bytes *= type_bytes(word);
    }
    word = words.next();
  }
  managed.name = word;
  for (word = words.next(); word == "["; word = words.next()) {
    bytes *= number_of(words.next());
    (void)words.next();
  }
  managed.bytes = bytes;
  return managed;
}

void find_variables_of_elf(std::span<const std::byte> image, std::vector<std::string>& variables) {
  const auto sections = elf::sections_of(image);
  for (const elf::Section& section : sections) {
    if (section.header.sh_type != SHT_SYMTAB || section.header.sh_link >= sections.size()) continue;
    const elf::Bytes strings = sections[section.header.sh_link].bytes;
    for (std::size_t at = 0; const auto symbol = elf::read_at<Elf64_Sym>(section.bytes, at);
         at += sizeof(Elf64_Sym)) {
      if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_size == 0) continue;
      const std::string_view name = elf::text_at(strings, symbol->st_name);
      // Others are the compiler's own.
      if (!name.empty() && name.front() != '$' && name.front() != '.') variables.emplace_back(name);
    }
  }
}

/// What follows `.global` or `.const`: [.align N] .type name. Empty for a managed variable.
std::string_view read_variable(PtxWords words) {
  std::string_view word = words.next();
  while (word.starts_with(".")) {
    if (word == ".attribute") return {};
    if (word == ".align") (void)words.next();
    word = words.next();
  }
  return word;
}

void find_names_of_ptx(std::string_view text, CodeNames& names) {
  PtxWords words(text);
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (word == ".entry") names.kernels.emplace_back(words.next());
    if (word == ".global" || word == ".const") {
      if (const std::string_view name = read_variable(words); !name.empty())
        names.variables.emplace_back(name);
    }
    if (word != ".attribute" || words.next() != "(" || words.next() != ".managed") continue;
    if (words.next() == ")") names.managed.push_back(read_managed(words));
  }
}

}  // namespace

bool is_ptx_text(const void* code) {
  const unsigned char first = *static_cast<const unsigned char*>(code);
  return first == '.' || first == '/' || first <= ' ';
}

bool is_newer_ptx(std::string_view text, unsigned major, unsigned minor) {
  PtxWords words(text);
  if (words.next() != ".version") return false;
  const std::string_view version = words.next();
  const std::size_t point = std::min(version.find('.'), version.size());
  const std::uint64_t its_major = number_of(version.substr(0, point));
  const std::uint64_t its_minor = number_of(version.substr(std::min(point + 1, version.size())));
  return std::pair(its_major, its_minor) > std::pair<std::uint64_t, std::uint64_t>(major, minor);
}

bool is_wrapper(const void* code) {
  return read_raw<std::uint32_t>(code) == kWrapperMagic;
}

bool is_code(const void* code, std::size_t readable) {
  if (readable < sizeof(std::uint32_t)) return false;
  return std::memcmp(code, ELFMAG, SELFMAG) == 0 || is_ptx_text(code) ||
         read_raw<std::uint32_t>(code) == kContainerMagic ||
         (is_wrapper(code) && readable == ~std::size_t{0});
}

bool has_several_codes(const void* wrapper) {
  const auto container = container_at(read_raw<FatBinaryWrapper>(wrapper).data);
  if (!container) return false;
  const auto entries = list_entries(*container);
  if (!entries) return false;
  return std::ranges::count(*entries, ImageKind::kElf, &FatBinaryEntry::kind) > 1;
}

Result<Image> image_of_code(const void* code, std::uint32_t capability, std::size_t readable,
                            bool ptx_first) {
  if (code == nullptr) return fail(ErrorCode::kInvalidValue, "no code was given");
  const auto broken = [] {
    return fail(ErrorCode::kNoKernelImage, "code that is no fat binary, no cubin and no PTX");
  };
  const auto* const bytes = static_cast<const std::byte*>(code);
  if (readable < sizeof(std::uint32_t)) return broken();
  if (std::memcmp(code, ELFMAG, SELFMAG) == 0) {
    const auto size = elf_bytes(bytes, readable);
    if (!size) return broken();
    return Image{ImageKind::kElf, 0, {bytes, bytes + *size}};
  }
  if (is_ptx_text(code)) {
    const std::size_t size = ::strnlen(static_cast<const char*>(code), readable);
    return Image{ImageKind::kPtx, 0, {bytes, bytes + size}};
  }
  const auto magic = read_raw<std::uint32_t>(code);
  const bool is_bounded = readable != ~std::size_t{0};
  // A wrapper is a pointer, which nothing out of a file can be.
  if (magic == kWrapperMagic && !is_bounded) return image_of_wrapper(code, capability, ptx_first);
  if (magic != kContainerMagic || readable < kContainerHeaderBytes) return broken();
  const auto container = container_at(code);
  if (!container) return std::unexpected(container.error());
  if (container->size() > readable) return broken();
  return choose_image(*container, capability, ptx_first);
}

CodeNames names_in(const Image& image) {
  CodeNames names;
  if (image.kind == ImageKind::kElf) {
    find_kernels_of_elf(image.bytes, names.kernels);
    find_variables_of_elf(image.bytes, names.variables);
  } else {
    find_names_of_ptx({reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()},
                      names);
  }
  return names;
}

}  // namespace slate::client
