// The bytes of variables in machine code, also in images that no compiler wrote.
#include "daemon/dispatch/module_variables.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace slate::daemon {
namespace {

/// An ELF file: header, table of sections, table of strings.
class Image {
 public:
  explicit Image(std::size_t sections, std::string strings) {
    const std::size_t table = sizeof(Elf64_Ehdr);
    const std::size_t names = table + sections * sizeof(Elf64_Shdr);
    bytes_.resize(names + strings.size());
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_shoff = table;
    header.e_shnum = sections < SHN_LORESERVE ? static_cast<std::uint16_t>(sections) : 0;
    header.e_shstrndx = 1;
    std::memcpy(bytes_.data(), &header, sizeof(header));
    std::memcpy(bytes_.data() + names, strings.data(), strings.size());
    set(0, {.sh_name = kNone, .sh_size = sections});
    set(1, {.sh_name = kNone, .sh_offset = names, .sh_size = strings.size()});
  }

  struct Section {
    std::uint32_t sh_name = kNone;
    std::uint64_t sh_offset = 0;
    std::uint64_t sh_size = 0;
  };
  void set(std::size_t index, const Section& section) {
    Elf64_Shdr header{};
    header.sh_name = section.sh_name;
    header.sh_offset = section.sh_offset;
    header.sh_size = section.sh_size;
    std::memcpy(bytes_.data() + sizeof(Elf64_Ehdr) + index * sizeof(header), &header,
                sizeof(header));
  }

  std::uint64_t variables() const { return variable_bytes(std::as_bytes(std::span(bytes_))); }

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

 private:
  std::vector<char> bytes_;
};

TEST(ModuleVariablesTest, GlobalAndConstantSectionsCount) {
  const std::string names{".text\0.nv.global.init\0.nv.constant3\0.nv.constant0\0", 50};
  Image image(6, names);
  image.set(2, {.sh_name = 0, .sh_size = 1});
  image.set(3, {.sh_name = 6, .sh_size = 20});
  image.set(4, {.sh_name = 22, .sh_size = 300});
  image.set(5, {.sh_name = 36, .sh_size = 4000});
  EXPECT_EQ(image.variables(), 320u);
}

TEST(ModuleVariablesTest, ANameThatTheImageEndsInIsNone) {
  Image image(4, ".nv.glob");
  image.set(2, {.sh_name = 0, .sh_size = 1});
  image.set(3, {.sh_name = 8, .sh_size = 1});
  EXPECT_EQ(image.variables(), 0u);
}

TEST(ModuleVariablesTest, SizesThatDoNotFitAreTheMostThereIs) {
  Image image(4, std::string(".nv.global\0", 11));
  for (std::size_t i : {2u, 3u}) image.set(i, {.sh_name = 0, .sh_size = ~std::uint64_t{0} - 1});
  EXPECT_EQ(image.variables(), ~std::uint64_t{0});
}

// With a look at all of each name this takes minutes.
TEST(ModuleVariablesTest, ALongNameOfManySectionsIsNotReadToItsEnd) {
  constexpr std::size_t kSections = 65000;
  Image image(kSections, ".nv.global" + std::string(8 << 20, 'x'));
  for (std::size_t i = 2; i < kSections; ++i) image.set(i, {.sh_name = 0, .sh_size = 1});
  EXPECT_EQ(image.variables(), kSections - 2);
}

}  // namespace
}  // namespace slate::daemon
