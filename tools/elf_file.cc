#include "tools/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/unique_fd.h"

namespace slate::tools {
namespace {

using Bytes = std::span<const std::byte>;

/// A T at `offset`, if the file is long enough.
template <typename T>
std::optional<T> read_at(Bytes file, std::uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

Bytes part_of(Bytes file, std::uint64_t offset, std::uint64_t size) {
  if (offset > file.size() || file.size() - offset < size) return {};
  return file.subspan(offset, size);
}

/// The NUL-terminated text at `offset` of a string table; empty if there is none.
std::string_view text_at(Bytes table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  const auto* begin = reinterpret_cast<const char*>(table.data()) + offset;
  const std::size_t most = table.size() - offset;
  const std::size_t length = strnlen(begin, most);
  return length < most ? std::string_view(begin, length) : std::string_view();
}

/// A function that the CUDA runtime defines and only it.
bool is_runtime_symbol(std::string_view name) {
  return name == "cudaLaunchKernel" || name == "__cudaRegisterFatBinary" || name == "cudaMalloc" ||
         name.starts_with("__cudart") || name.starts_with("libcudart_static");
}

class Inspector {
 public:
  Inspector(Bytes file, const Elf64_Ehdr& header) : file_(file), header_(header) {}

  ElfFacts inspect() {
    facts_.is_elf = true;
    for (std::uint64_t i = 0; i < header_.e_shnum; ++i) {
      const auto section = section_at(i);
      if (!section) break;
      look_at(*section);
    }
    return std::move(facts_);
  }

 private:
  std::optional<Elf64_Shdr> section_at(std::uint64_t index) const {
    return read_at<Elf64_Shdr>(file_, header_.e_shoff + index * sizeof(Elf64_Shdr));
  }

  Bytes strings_of(std::uint64_t index) const {
    const auto section = section_at(index);
    if (!section || section->sh_type == SHT_NOBITS) return {};
    return part_of(file_, section->sh_offset, section->sh_size);
  }

  void look_at(const Elf64_Shdr& section) {
    const auto name = text_at(strings_of(header_.e_shstrndx), section.sh_name);
    if (name == ".nv_fatbin" || name == "__nv_relfatbin") facts_.has_fat_binary = true;
    if (section.sh_type == SHT_DYNAMIC) read_dynamic(section);
    if (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM) read_symbols(section);
  }

  void read_dynamic(const Elf64_Shdr& section) {
    const Bytes entries = part_of(file_, section.sh_offset, section.sh_size);
    const Bytes strings = strings_of(section.sh_link);
    bool rpath = false;
    bool runpath = false;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= entries.size(); at += sizeof(Elf64_Dyn)) {
      const auto entry = *read_at<Elf64_Dyn>(entries, at);
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_NEEDED) {
        facts_.needed.emplace_back(text_at(strings, entry.d_un.d_val));
      }
      rpath = rpath || entry.d_tag == DT_RPATH;
      runpath = runpath || entry.d_tag == DT_RUNPATH;
    }
    facts_.has_rpath = rpath && !runpath;
  }

  void read_symbols(const Elf64_Shdr& section) {
    const Bytes entries = part_of(file_, section.sh_offset, section.sh_size);
    const Bytes strings = strings_of(section.sh_link);
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= entries.size(); at += sizeof(Elf64_Sym)) {
      const auto symbol = *read_at<Elf64_Sym>(entries, at);
      if (symbol.st_shndx == SHN_UNDEF) continue;
      if (is_runtime_symbol(text_at(strings, symbol.st_name))) facts_.has_runtime_symbols = true;
    }
  }

  const Bytes file_;
  const Elf64_Ehdr header_;
  ElfFacts facts_;
};

}  // namespace

bool ElfFacts::needs(std::string_view library_prefix) const {
  return std::any_of(needed.begin(), needed.end(),
                     [&](const std::string& name) { return name.starts_with(library_prefix); });
}

bool ElfFacts::carries_runtime() const {
  if (needs("libcudart.so") || needs("libslate")) return false;
  return has_fat_binary || has_runtime_symbols;
}

ElfFacts inspect_elf(std::span<const std::byte> file) {
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
    return {};
  }
  // The section table must lie in the file, so that the sums below cannot wrap.
  if (header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff > file.size()) {
    ElfFacts facts;
    facts.is_elf = true;
    return facts;
  }
  return Inspector(file, *header).inspect();
}

Result<ElfFacts> inspect_elf_file(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(path);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return fail_errno(path);
  if (!S_ISREG(info.st_mode) || info.st_size == 0) return ElfFacts{};
  const auto size = static_cast<std::size_t>(info.st_size);
  void* const memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (memory == MAP_FAILED) return fail_errno(path);
  ElfFacts facts = inspect_elf({static_cast<const std::byte*>(memory), size});
  munmap(memory, size);
  return facts;
}

}  // namespace slate::tools
