#include "tools/elf_file.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/elf.h"

namespace slate::tools {
namespace {

/// A small ELF file: one section of every kind that matters.
class ElfBuilder {
 public:
  ElfBuilder() { add("", SHT_NULL, {}, 0); }
  std::uint32_t add(const std::string& name, std::uint32_t type, std::string content,
                    std::uint32_t link) {
    Elf64_Shdr section{};
    section.sh_name = static_cast<std::uint32_t>(names_.size());
    names_ += name + '\0';
    section.sh_type = type;
    section.sh_link = link;
    section.sh_offset = sizeof(Elf64_Ehdr) + body_.size();
    section.sh_size = content.size();
    body_ += content;
    sections_.push_back(section);
    return static_cast<std::uint32_t>(sections_.size() - 1);
  }
  void add_dynamic(const std::vector<std::pair<std::int64_t, std::string>>& entries) {
    std::string strings(1, '\0');
    std::string table;
    for (const auto& [tag, text] : entries) {
      Elf64_Dyn entry{};
      entry.d_tag = tag;
      entry.d_un.d_val = strings.size();
      strings += text + '\0';
      table.append(reinterpret_cast<const char*>(&entry), sizeof(entry));
    }
    const auto link = add(".dynstr", SHT_STRTAB, strings, 0);
    add(".dynamic", SHT_DYNAMIC, table, link);
  }
  std::string build() {
    const auto names = add(".shstrtab", SHT_STRTAB, names_ + std::string(".shstrtab") + '\0', 0);
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<std::uint16_t>(sections_.size());
    header.e_shstrndx = static_cast<std::uint16_t>(names);
    header.e_shoff = sizeof(header) + body_.size();
    std::string file(reinterpret_cast<const char*>(&header), sizeof(header));
    file += body_;
    file.append(reinterpret_cast<const char*>(sections_.data()),
                sections_.size() * sizeof(Elf64_Shdr));
    return file;
  }

 private:
  std::string names_, body_;
  std::vector<Elf64_Shdr> sections_;
};

ElfFacts inspect(const std::string& file) {
  return inspect_elf(std::as_bytes(std::span(file.data(), file.size())));
}

TEST(ElfFileTest, AScriptIsNoElf) {
  EXPECT_FALSE(inspect("#!/bin/sh\n").is_elf);
  EXPECT_FALSE(inspect("").is_elf);
}

TEST(ElfFileTest, NeededLibrariesAreListed) {
  ElfBuilder builder;
  builder.add_dynamic({{DT_NEEDED, "libcudart.so.13"}, {DT_NEEDED, "libc.so.6"}});
  const auto facts = inspect(builder.build());
  EXPECT_EQ(facts.needed, (std::vector<std::string>{"libcudart.so.13", "libc.so.6"}));
}

TEST(ElfFileTest, OnlyAnRpathWithoutRunpathBeatsTheLibraryPath) {
  ElfBuilder rpath;
  rpath.add_dynamic({{DT_RPATH, "/opt"}});
  EXPECT_TRUE(inspect(rpath.build()).has_rpath);
  ElfBuilder both;
  both.add_dynamic({{DT_RPATH, "/opt"}, {DT_RUNPATH, "/opt"}});
  EXPECT_FALSE(inspect(both.build()).has_rpath);
}

TEST(ElfFileTest, DamagedFilesAreSurvived) {
  ElfBuilder builder;
  builder.add_dynamic({{DT_NEEDED, "libcudart.so.13"}, {DT_RPATH, "/x"}});
  const std::string whole = builder.build();
  for (std::size_t length = 0; length < whole.size(); ++length) inspect(whole.substr(0, length));
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = whole;
    for (int i = 0; i < 4; ++i) {
      damaged[random() % damaged.size()] = static_cast<char>(random() % 2 ? 0xff : random());
    }
    // Whatever it finds, it must not read outside; the sanitizer watches.
    EXPECT_LE(inspect(damaged).needed.size(), 1000u);
  }
}

TEST(ElfFileTest, OneLongNameOfManySectionsIsNotReadForEach) {
  constexpr std::uint64_t kName = 8 << 20, kSections = 60000;  // 480 GB of names
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = kSections;
  header.e_shoff = sizeof(header) + kName;
  std::vector<Elf64_Shdr> sections(kSections);
  sections[0].sh_type = SHT_STRTAB;
  sections[0].sh_offset = sizeof(header);
  sections[0].sh_size = kName;
  for (const bool ends : {true, false}) {
    std::string file(reinterpret_cast<const char*>(&header), sizeof(header));
    file.append(kName, 'x');
    if (ends) file.back() = '\0';
    file.append(reinterpret_cast<const char*>(sections.data()), kSections * sizeof(Elf64_Shdr));
    EXPECT_EQ(elf::sections_of(std::as_bytes(std::span(file))).size(), kSections);
  }
}

TEST(ElfFileTest, OnlyOneDynamicSectionIsRead) {
  ElfBuilder builder;
  builder.add_dynamic({{DT_NEEDED, "libcudart.so.13"}});
  builder.add_dynamic({{DT_NEEDED, "libother.so"}});
  EXPECT_EQ(inspect(builder.build()).needed, std::vector<std::string>{"libcudart.so.13"});
}

TEST(ElfFileTest, OurOwnExecutableIsRead) {
  const auto facts = inspect_elf_file("/proc/self/exe");
  ASSERT_TRUE(facts);
  EXPECT_TRUE(facts->is_elf);
  EXPECT_TRUE(facts->needs("libc.so"));
}

TEST(ElfFileTest, AMissingFileIsAnError) {
  EXPECT_FALSE(inspect_elf_file("/nonexistent"));
}

}  // namespace
}  // namespace slate::tools
