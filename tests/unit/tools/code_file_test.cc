#include "tools/code_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "tests/unit/tools/temporary_directory.h"

namespace slate::tools {
namespace {

std::string fat_binary(const std::string& name) {
  return read_file(std::string(FATBINS) + "/" + name + ".fatbin");
}

Result<std::vector<PtxImage>> ptx_in_text(std::string_view text) {
  return ptx_in(std::as_bytes(std::span(text)));
}

TEST(CodeFileTest, PtxTextIsItsOnlyImage) {
  const std::string text = "// made by hand\n.version 9.0\n.target sm_90\n";
  const auto images = ptx_in_text(text);
  ASSERT_TRUE(images);
  ASSERT_EQ(images->size(), 1u);
  EXPECT_EQ(images->front().text, text);
  EXPECT_EQ(images->front().architecture, 0u);
}

TEST(CodeFileTest, TerminatingZerosAreNoPartOfTheText) {
  const auto images = ptx_in_text(std::string_view(".version 9.0\n\0\0", 15));
  ASSERT_TRUE(images);
  EXPECT_EQ(images->front().text, ".version 9.0\n");
}

TEST(CodeFileTest, EveryPackingIsUnpacked) {
  const auto plain = ptx_in_text(fat_binary("plain"));
  ASSERT_TRUE(plain) << plain.error().message;
  for (const char* name : {"lz4", "zstd", "zstd_all"}) {
    const auto images = ptx_in_text(fat_binary(name));
    ASSERT_TRUE(images) << name << ": " << images.error().message;
    ASSERT_EQ(images->size(), 1u) << name;
    EXPECT_EQ(images->front().text, plain->front().text) << name;
    EXPECT_EQ(images->front().architecture, 90u) << name;
  }
}

TEST(CodeFileTest, ImagesComeInTheOrderOfTheFile) {
  const auto images = ptx_in_text(fat_binary("many"));
  ASSERT_TRUE(images) << images.error().message;
  std::vector<std::uint32_t> architectures;
  for (const PtxImage& image : *images) architectures.push_back(image.architecture);
  std::ranges::sort(architectures);
  EXPECT_EQ(architectures, (std::vector<std::uint32_t>{80, 90, 100}));
  for (const PtxImage& image : *images) {
    EXPECT_NE(image.text.find(".target sm_" + std::to_string(image.architecture)),
              std::string::npos);
  }
}

TEST(CodeFileTest, FatBinariesAreFoundInsideOtherFiles) {
  std::string file(4096, 'x');
  file += fat_binary("zstd");
  file.resize((file.size() + 7) / 8 * 8, '\0');
  file += fat_binary("lz4");
  const auto images = ptx_in_text(file);
  ASSERT_TRUE(images) << images.error().message;
  EXPECT_EQ(images->size(), 2u);
}

TEST(CodeFileTest, MachineCodeAloneIsCountedInTheMessage) {
  const auto images = ptx_in_text(fat_binary("elf_only"));
  ASSERT_FALSE(images);
  EXPECT_EQ(images.error().code, ErrorCode::kNoKernelImage);
  EXPECT_EQ(images.error().message, "1 fat binaries, none with PTX");
}

TEST(CodeFileTest, WhatIsNeitherIsRefused) {
  for (const std::string_view text : {"", "hello", "\177ELF and no more"}) {
    const auto images = ptx_in_text(text);
    ASSERT_FALSE(images) << text;
    EXPECT_EQ(images.error().code, ErrorCode::kNoKernelImage);
    EXPECT_EQ(images.error().message, "neither PTX nor a fat binary");
  }
}

TEST(CodeFileTest, CutAndDamagedFatBinariesGiveAnErrorOrTheirText) {
  for (const char* name : {"plain", "lz4", "zstd", "many"}) {
    const std::string whole = fat_binary(name);
    for (std::size_t size = 0; size < whole.size(); size += 1 + size / 16) {
      const auto images = ptx_in_text(std::string_view(whole).substr(0, size));
      if (size < 16) {
        EXPECT_FALSE(images) << name << " cut to " << size;
      }
    }
    for (std::size_t at = 0; at < std::min<std::size_t>(whole.size(), 200); ++at) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
      // The allocator and the sanitizers judge: sizes may say anything now.
      static_cast<void>(ptx_in_text(damaged));
    }
  }
}

TEST(CodeFileTest, FilesThatCannotBeReadAreNamed) {
  const TemporaryDirectory directory;
  const auto missing = ptx_in_file(directory.file("nosuch"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kIo);
  EXPECT_NE(missing.error().message.find("nosuch"), std::string::npos);
  const auto other = ptx_in_file(directory.write("notes.txt", "nothing"));
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("notes.txt: neither"), std::string::npos);
}

TEST(CodeFileTest, FilesAreReadWhole) {
  const TemporaryDirectory directory;
  const auto images = ptx_in_file(directory.write("k.fatbin", fat_binary("zstd")));
  ASSERT_TRUE(images) << images.error().message;
  EXPECT_EQ(images->front().text, ptx_in_text(fat_binary("zstd"))->front().text);
}

}  // namespace
}  // namespace slate::tools
