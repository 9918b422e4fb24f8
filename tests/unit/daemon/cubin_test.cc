// What machine code says of its kernels, where many names have to be read: honest ones, and names
// that an attacker has laid over one another.
#include "daemon/dispatch/cubin.h"

#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace slate::daemon {
namespace {

constexpr std::uint32_t kRegisters = 40;

/// A cubin with these symbols. It says of the last one that it needs kRegisters.
std::vector<std::byte> cubin(const std::string& strings, const std::vector<std::uint32_t>& names) {
  const std::string sections_names{"\0.strtab\0.symtab\0.nv.info\0", 26};
  std::vector<Elf64_Sym> symbols(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) symbols[i].st_name = names[i];
  std::string info{4, 0x2f, 8, 0};
  const std::uint32_t record[] = {static_cast<std::uint32_t>(symbols.size() - 1), kRegisters};
  info.append(reinterpret_cast<const char*>(record), sizeof(record));
  const std::string parts[] = {
      sections_names + strings,
      {reinterpret_cast<const char*>(symbols.data()), symbols.size() * sizeof(Elf64_Sym)},
      info};
  std::vector<Elf64_Shdr> sections(4);
  std::string image(sizeof(Elf64_Ehdr), '\0');
  for (std::size_t i = 0; i < std::size(parts); ++i) {
    sections[i + 1].sh_name = static_cast<std::uint32_t>(1 + 8 * i);
    sections[i + 1].sh_type = SHT_PROGBITS;
    sections[i + 1].sh_offset = image.size();
    sections[i + 1].sh_size = parts[i].size();
    sections[i + 1].sh_link = 1;
    image += parts[i];
  }
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_shoff = image.size();
  header.e_shnum = static_cast<std::uint16_t>(sections.size());
  header.e_shstrndx = 1;
  std::memcpy(image.data(), &header, sizeof(header));
  image.append(reinterpret_cast<const char*>(sections.data()),
               sections.size() * sizeof(Elf64_Shdr));
  const auto bytes = std::as_bytes(std::span(image));
  return {bytes.begin(), bytes.end()};
}

constexpr std::uint32_t kFirstName = 26;  // behind the sections' names

TEST(CubinTest, TheLastOfManyLongNamesIsFound) {
  std::string strings, last;
  std::vector<std::uint32_t> names;
  for (int i = 0; i < 10'000; ++i) {
    names.push_back(kFirstName + static_cast<std::uint32_t>(strings.size()));
    last = std::string(200, 'x') + fmt::format("{:05}", i);
    strings += last + '\0';
  }
  const auto needs = needs_of(cubin(strings, names), last);
  ASSERT_TRUE(needs);
  EXPECT_EQ(needs->registers, kRegisters);
}

TEST(CubinTest, NamesThatEndInOneAnotherAreFound) {
  const std::string longest = std::string(50, 'x') + "kernel";
  const auto needs =
      needs_of(cubin(longest + '\0', {kFirstName, kFirstName + 10, kFirstName + 50}), "kernel");
  ASSERT_TRUE(needs);
  EXPECT_EQ(needs->registers, kRegisters);
}

// A megabyte of these would take 10^10 comparisons of bytes for each kernel of the module.
TEST(CubinTest, OneLongNameOfManySymbolsIsNotComparedForEach) {
  constexpr std::size_t kSymbols = 20'000, kName = 512 << 10;
  const std::string kernel(kName, 'x');
  // One byte of the name differs, at its end. The last symbol has the kernel's own.
  const std::string strings = kernel.substr(1) + "y" + '\0' + kernel + '\0';
  std::vector<std::uint32_t> names(kSymbols, kFirstName);
  names.back() = kFirstName + static_cast<std::uint32_t>(kName) + 1;
  EXPECT_FALSE(needs_of(cubin(strings, names), kernel)) << "it has used up its steps";
  EXPECT_TRUE(needs_of(cubin(strings, {kFirstName, names.back()}), kernel));
}

}  // namespace
}  // namespace slate::daemon
