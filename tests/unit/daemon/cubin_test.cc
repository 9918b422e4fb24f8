// What machine code says of its kernels, where many names have to be read: honest ones, and names
// that an attacker has laid over one another.
#include "daemon/dispatch/cubin.h"

#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/daemon/elf_image.h"

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
  const test::ElfPart parts[] = {
      {1, sections_names + strings},
      {9, {reinterpret_cast<const char*>(symbols.data()), symbols.size() * sizeof(Elf64_Sym)}},
      {17, info}};
  return test::elf_image(parts);
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
