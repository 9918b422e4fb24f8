#include "tools/elf_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/elf.h"
#include "base/unique_fd.h"

namespace slate::tools {
namespace {

using elf::read_at;
using elf::text_at;

/// Libraries that are listed of one file. Each name may be as long as the file.
constexpr std::size_t kMostNeeded = 1000;

class Inspector {
 public:
  explicit Inspector(elf::Bytes file) : sections_(elf::sections_of(file)) {}

  ElfFacts inspect() {
    facts_.is_elf = true;
    // There is one. More, each with all of the file as its entries, would cost its square.
    const auto dynamic = std::ranges::find(sections_, std::uint32_t{SHT_DYNAMIC},
                                           [](const auto& each) { return each.header.sh_type; });
    if (dynamic != sections_.end()) read_dynamic(*dynamic);
    return std::move(facts_);
  }

 private:
  elf::Bytes strings_of(const elf::Section& section) const {
    const std::uint32_t strings = section.header.sh_link;
    return strings < sections_.size() ? sections_[strings].bytes : elf::Bytes();
  }

  void read_dynamic(const elf::Section& section) {
    const elf::Bytes entries = section.bytes;
    const elf::Bytes strings = strings_of(section);
    bool rpath = false;
    bool runpath = false;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= entries.size(); at += sizeof(Elf64_Dyn)) {
      const auto entry = *read_at<Elf64_Dyn>(entries, at);
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_NEEDED && facts_.needed.size() < kMostNeeded) {
        facts_.needed.emplace_back(text_at(strings, entry.d_un.d_val));
      }
      rpath = rpath || entry.d_tag == DT_RPATH;
      runpath = runpath || entry.d_tag == DT_RUNPATH;
    }
    facts_.has_rpath = rpath && !runpath;
  }

  const std::vector<elf::Section> sections_;
  ElfFacts facts_;
};

}  // namespace

bool ElfFacts::needs(std::string_view library_prefix) const {
  return std::any_of(needed.begin(), needed.end(),
                     [&](const std::string& name) { return name.starts_with(library_prefix); });
}

ElfFacts inspect_elf(std::span<const std::byte> file) {
  return elf::is_elf(file) ? Inspector(file).inspect() : ElfFacts{};
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
