// Machine code and text whose variables lie in a home, also images that no compiler wrote.
#include "daemon/dispatch/variable_home.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/elf.h"
#include "daemon/dispatch/module_variables.h"
#include "tests/unit/daemon/elf_image.h"

namespace slate::daemon {
namespace {

constexpr device::Address kHome = 0x7f00'0000'0000;
constexpr std::uint32_t kGlobal = 2, kGeneric = 4;  // relocations of 64 bits

/// An image with three variables, as a compiler of CUDA 13 writes it. `counter` has no contents,
/// `table` has 16 bytes, and `weights` is a constant of 8.
class HomeImage {
 public:
  enum Section : std::uint32_t {
    kNames = 1,
    kSymbols,
    kInit,
    kConstants,
    kZeros,
    kAddresses,
    kCode,
    kRelocations,
    kOther
  };
  enum Symbol : std::uint32_t { kCounter = 1, kTable, kWeights, kKernel };

  HomeImage() {
    add_symbol("counter", kZeros, 64, 4);
    add_symbol("table", kInit, 8, 16);
    add_symbol("weights", kConstants, 8, 8);
    add_symbol("kernel", kCode, 0, 16, STT_FUNC);
  }

  void relocate(std::uint32_t target, std::uint64_t offset, std::uint32_t symbol,
                std::uint32_t type, std::int64_t addend = 0) {
    target_ = target;  // of all of them
    const Elf64_Rela entry{offset, ELF64_R_INFO(symbol, type), addend};
    relocations_.append(reinterpret_cast<const char*>(&entry),
                        has_addends_ ? sizeof(entry) : sizeof(Elf64_Rel));
  }
  void leave_addends_out() { has_addends_ = false; }
  void put(std::uint64_t offset, std::uint64_t value) {
    std::memcpy(addresses_.data() + offset, &value, sizeof(value));
  }
  void add_section(std::string name) { other_ = std::move(name); }

  std::vector<std::byte> image() {
    std::vector<test::ElfPart> parts(other_.empty() ? 8 : 9);
    const auto part = [&](std::uint32_t section) -> test::ElfPart& { return parts[section - 1]; };
    part(kInit) = {name(".nv.global.init"), std::string(8, '\0') + "0123456789abcdef", SHT_PROGBITS,
                   SHF_ALLOC | SHF_WRITE};
    part(kConstants) = {name(".nv.constant3"), "constantWEIGHTS!", SHT_PROGBITS, SHF_ALLOC};
    part(kZeros) = {name(".nv.global"), "", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, 0, 0, 4096};
    part(kAddresses) = {name(".nv.constant4"), addresses_, SHT_PROGBITS, SHF_ALLOC};
    part(kCode) = {name(".text.kernel"), std::string(16, 'x'), SHT_PROGBITS,
                   SHF_ALLOC | SHF_EXECINSTR};
    part(kRelocations) = {name(".rela.of_them"),
                          relocations_,
                          has_addends_ ? std::uint32_t{SHT_RELA} : std::uint32_t{SHT_REL},
                          0,
                          kSymbols,
                          target_};
    part(kSymbols) = {
        name(".symtab"),
        {reinterpret_cast<const char*>(symbols_.data()), symbols_.size() * sizeof(Elf64_Sym)},
        SHT_SYMTAB,
        0,
        kNames};
    if (!other_.empty()) part(kOther) = {name(other_), "abc", SHT_PROGBITS, SHF_ALLOC};
    part(kNames) = {name(".strtab"), strings_, SHT_STRTAB};
    part(kNames).bytes = strings_;
    return test::elf_image(parts);
  }

 private:
  std::uint32_t name(const std::string& text) {
    const auto offset = static_cast<std::uint32_t>(strings_.size());
    strings_ += text + '\0';
    return offset;
  }
  void add_symbol(const std::string& its_name, std::uint32_t section, std::uint64_t value,
                  std::uint64_t bytes, unsigned type = STT_OBJECT) {
    Elf64_Sym symbol{};
    symbol.st_name = name(its_name);
    symbol.st_info = ELF64_ST_INFO(STB_LOCAL, type);
    symbol.st_shndx = static_cast<std::uint16_t>(section);
    symbol.st_value = value;
    symbol.st_size = bytes;
    symbols_.push_back(symbol);
  }

  std::string strings_ = std::string(1, '\0'), relocations_, other_;
  std::string addresses_ = std::string(32, '\0');
  std::vector<Elf64_Sym> symbols_ = std::vector<Elf64_Sym>(1);
  std::uint32_t target_ = kAddresses;
  bool has_addends_ = true;
};

Result<HomedCode> moved(std::span<const std::byte> image) {
  return move_home(image, kHome);
}

std::string why_it_stays(HomeImage& image) {
  const auto code = moved(image.image());
  return code ? "" : code.error().message;
}

std::uint64_t word_at(const HomedCode& code, HomeImage::Section section, std::uint64_t offset) {
  return *elf::read_at<std::uint64_t>(elf::sections_of(code.code)[section].bytes, offset);
}

std::string contents_at(const HomedCode& code, device::Address address, std::size_t bytes) {
  return {reinterpret_cast<const char*>(code.contents.data()) + (address - kHome), bytes};
}

TEST(VariableHomeTest, MachineCodeReadsTheAddressesAtHome) {
  HomeImage image;
  image.relocate(HomeImage::kAddresses, 8, HomeImage::kTable, kGlobal);
  image.relocate(HomeImage::kAddresses, 16, HomeImage::kCounter, kGeneric, 12);
  image.relocate(HomeImage::kAddresses, 0, HomeImage::kKernel, kGlobal);
  const auto original = image.image();
  const auto code = moved(original);
  ASSERT_TRUE(code) << code.error().message;
  ASSERT_EQ(code->variables.size(), 3u);
  const auto table = code->variables.at("table"), counter = code->variables.at("counter");
  EXPECT_EQ(table.bytes, 16u);
  EXPECT_EQ(counter.bytes, 4u);
  EXPECT_GT(std::min(table.base, counter.base), kHome) << "an allocation begins there";
  EXPECT_EQ(word_at(*code, HomeImage::kAddresses, 8), table.base);
  EXPECT_EQ(word_at(*code, HomeImage::kAddresses, 16), counter.base + 12);
  EXPECT_EQ(contents_at(*code, table.base, 16), "0123456789abcdef");
  EXPECT_LE(code->contents.size(), counter.base - kHome) << "zeros are not in the contents";
  EXPECT_TRUE(keeps_to(*code, {kHome, home_bytes(original, Constants::kMove)}));
  // What the driver still does, and what it does not any more.
  const auto sections = elf::sections_of(code->code);
  const auto type = [&](std::size_t entry) {
    const auto relocation = elf::read_at<Elf64_Rela>(sections[HomeImage::kRelocations].bytes,
                                                     entry * sizeof(Elf64_Rela));
    return ELF64_R_TYPE(relocation->r_info);
  };
  EXPECT_EQ(type(0), 0u);
  EXPECT_EQ(type(1), 0u);
  EXPECT_EQ(type(2), kGlobal) << "of a function";
  EXPECT_EQ(sections[HomeImage::kZeros].header.sh_size, 0u);
  EXPECT_EQ(variable_bytes(code->code), variable_bytes(original) - 4096);
}

TEST(VariableHomeTest, ConstantsAreReadFromTheirBank) {
  HomeImage image;
  image.relocate(HomeImage::kCode, 4, HomeImage::kWeights, 0x20);
  const auto code = moved(image.image());
  ASSERT_TRUE(code) << code.error().message;
  const auto weights = code->variables.at("weights");
  EXPECT_EQ(contents_at(*code, weights.base, 8), "WEIGHTS!");
  ASSERT_EQ(code->banks.size(), 1u);
  EXPECT_EQ(code->banks[0].anchor, "weights");
  EXPECT_EQ(code->banks[0].home.base + code->banks[0].offset, weights.base);
  EXPECT_EQ(code->banks[0].home.bytes, 16u);
}

TEST(VariableHomeTest, ConstantsThatStayKeepTheOthersInTheModule) {
  HomeImage image;
  EXPECT_GT(home_bytes(image.image(), Constants::kMove), 0u);
  EXPECT_EQ(home_bytes(image.image(), Constants::kStay), 0u);
}

TEST(VariableHomeTest, AVariableMayBeginWithTheAddressOfAnother) {
  HomeImage image;
  image.relocate(HomeImage::kInit, 16, HomeImage::kWeights, kGeneric, 4);
  const auto code = moved(image.image());
  ASSERT_TRUE(code) << code.error().message;
  std::uint64_t address = 0;
  std::memcpy(&address, contents_at(*code, code->variables.at("table").base + 8, 8).data(), 8);
  EXPECT_EQ(address, code->variables.at("weights").base + 4);
}

TEST(VariableHomeTest, AnAddendMayBeInPlace) {
  HomeImage image;
  image.leave_addends_out();
  image.put(8, 4);
  image.relocate(HomeImage::kAddresses, 8, HomeImage::kTable, kGlobal);
  image.relocate(HomeImage::kAddresses, 16, HomeImage::kTable, kGlobal);
  const auto code = moved(image.image());
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_EQ(word_at(*code, HomeImage::kAddresses, 8), code->variables.at("table").base + 4);
  EXPECT_EQ(word_at(*code, HomeImage::kAddresses, 16), code->variables.at("table").base);
}

TEST(VariableHomeTest, WhatIsNotUnderstoodStays) {
  HomeImage in_code, of_function, of_other_kind, twice, beyond;
  in_code.relocate(HomeImage::kCode, 4, HomeImage::kCounter, 0x38);
  EXPECT_NE(why_it_stays(in_code).find("in another way"), std::string::npos);
  of_function.relocate(HomeImage::kInit, 8, HomeImage::kKernel, kGeneric);
  EXPECT_NE(why_it_stays(of_function).find("not a variable's"), std::string::npos);
  of_other_kind.add_section(".nv.global.shiny");
  EXPECT_NE(why_it_stays(of_other_kind).find("of another kind"), std::string::npos);
  HomeImage several;
  several.add_section(".nv.constant3");
  EXPECT_EQ(home_bytes(several.image(), Constants::kMove), 0u);
  twice.add_section(".nv.capmerc.text.kernel");
  EXPECT_NE(why_it_stays(twice).find("twice"), std::string::npos);
  beyond.relocate(HomeImage::kAddresses, 28, HomeImage::kCounter, kGlobal);
  EXPECT_NE(why_it_stays(beyond), "");
}

TEST(VariableHomeTest, AnyImageIsReadWithinItsBytes) {
  std::mt19937_64 random(29);
  HomeImage whole;
  whole.relocate(HomeImage::kAddresses, 8, HomeImage::kTable, kGlobal);
  whole.relocate(HomeImage::kAddresses, 16, HomeImage::kCounter, kGeneric, 12);
  const std::vector<std::byte> good = whole.image();
  int done = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> image = good;
    for (std::uint64_t n = random() % 4; n <= 4; ++n) {
      constexpr std::uint8_t kExtremes[] = {0, 1, 0x7f, 0x80, 0xff};
      const std::uint64_t at = random() % image.size();
      image[at] =
          static_cast<std::byte>(random() % 2 == 0 ? kExtremes[random() % 5] : random() % 256);
    }
    if (random() % 8 == 0) image.resize(random() % image.size());
    const device::AddressRange home{kHome, home_bytes(image, Constants::kMove)};
    const auto code = move_home(image, kHome);
    if (!code) continue;
    ++done;
    EXPECT_EQ(code->code.size(), image.size());
    EXPECT_TRUE(keeps_to(*code, home));
  }
  EXPECT_GT(done, 1000);
}

constexpr std::string_view kText = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 counter;
.visible .global .align 8 .b8 table[24] = {1, 2, 3};
.visible .global .align 8 .u64 list[2] = {generic(counter), generic(table)+4};
.visible .const .align 4 .u32 weights[2] = {5, 6};
.visible .entry k()
{
	.reg .b32 %r<3>;
	ld.global.u32 %r1, [counter];
	ld.const.u32 %r2, [weights+4];
	st.global.u32 [table+8], %r1;
	ret;
}
)";

Result<HomedCode> moved_text(std::string text, std::uint64_t less = 0) {
  const auto module = ptx::parse(std::move(text));
  if (!module) return std::unexpected(module.error());
  const std::uint64_t bytes = home_bytes_of_text(variable_bytes(**module));
  return move_home(**module, {kHome, bytes - less});
}

TEST(VariableHomeTest, ATextNamesAddressesInPlaceOfVariables) {
  const auto code = moved_text(std::string(kText));
  ASSERT_TRUE(code) << code.error().message;
  const std::string text(reinterpret_cast<const char*>(code->code.data()), code->code.size());
  EXPECT_EQ(text.find("counter"), std::string::npos) << text;
  EXPECT_NE(text.find(".const .align 4 .u32 weights"), std::string::npos) << "its bank";
  const auto word = [&](device::Address address) {
    std::uint64_t value = 0;
    std::memcpy(&value, contents_at(*code, address, 8).data(), 8);
    return value;
  };
  const device::Address list = code->variables.at("list").base;
  EXPECT_EQ(word(list), code->variables.at("counter").base);
  EXPECT_EQ(word(list + 8), code->variables.at("table").base + 4);
  EXPECT_EQ(word(code->variables.at("table").base), 0x030201u);
  EXPECT_EQ(word(code->variables.at("weights").base), 0x6'0000'0005u);
  ASSERT_EQ(code->banks.size(), 1u);
  EXPECT_EQ(code->banks[0].anchor, "weights");
  EXPECT_EQ(code->banks[0].home.base, code->variables.at("weights").base);
}

TEST(VariableHomeTest, ATextWithoutRoomForItsVariablesStays) {
  EXPECT_FALSE(moved_text(std::string(kText), 256));
  std::string constant(kText);
  constant.replace(constant.find("{5, 6}"), 6, "{table, 6}");
  EXPECT_FALSE(moved_text(constant)) << "a constant that begins with an address";
}

TEST(VariableHomeTest, WhatIsSaidOfAHomeLiesInIt) {
  const auto code = *moved_text(std::string(kText));
  const device::AddressRange home{kHome, 1 << 20};
  EXPECT_TRUE(keeps_to(code, home));
  EXPECT_FALSE(keeps_to(code, {kHome, kAroundConstants}));
  HomedCode other = code;
  other.variables["x"] = {kHome + home.bytes - 6, 8};
  EXPECT_FALSE(keeps_to(other, home));
  other = code;
  other.banks[0].home.base = kHome - 8;
  EXPECT_FALSE(keeps_to(other, home));
  other = code;
  other.contents.resize(home.bytes + 1);
  EXPECT_FALSE(keeps_to(other, home));
}

}  // namespace
}  // namespace slate::daemon
