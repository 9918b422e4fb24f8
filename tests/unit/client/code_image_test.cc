#include "client/session/code_image.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/unit/client/fatbin_files.h"

namespace slate::client {
namespace {

CodeNames names_of(const std::string& ptx) {
  const auto image = image_of_code(ptx.c_str(), 90);
  EXPECT_TRUE(image);
  return names_in(*image);
}

TEST(CodeImageTest, KernelsOfPtxAreFoundAndThoseInCommentsAreNot) {
  const CodeNames names = names_of(
      ".version 8.0\n// .entry no()\n/* .entry nor() */\n.visible .entry one(\n.param .u64 p) {}\n"
      ".weak .entry\ttwo() { ret; }\n.func three() { ret; }\n.section \".entry four\"\n");
  EXPECT_EQ(names.kernels, (std::vector<std::string>{"one", "two"}));
}

TEST(CodeImageTest, ManagedVariablesAreMeasured) {
  const CodeNames names = names_of(
      ".version 8.0\n.global .attribute(.managed) .align 8 .b8 a[24] = {1};\n"
      ".visible .global .attribute(.managed) .u32 b = 5;\n"
      ".global .attribute(.managed) .align 16 .v4 .f32 c[2][3];\n.global .u32 d;\n");
  ASSERT_EQ(names.managed.size(), 3u);
  EXPECT_EQ(names.managed[0].name, "a");
  EXPECT_EQ(names.managed[0].bytes, 24u);
  EXPECT_EQ(names.managed[1].name, "b");
  EXPECT_EQ(names.managed[1].bytes, 4u);
  EXPECT_EQ(names.managed[2].bytes, 96u);
}

TEST(CodeImageTest, TextThatBreaksOffIsReadToItsEnd) {
  for (const char* const text :
       {".entry", ".attribute(.managed) .b8 x[", "/*", ".\"", ".attribute"})
    (void)names_of(text);
}

TEST(CodeImageTest, FatBinariesAreTakenAsNvccWritesThem) {
  for (const char* const file : {"plain", "zstd", "many"}) {
    const std::vector<std::byte> container = load_fatbin(file);
    const auto image = image_of_code(container.data(), 90);
    ASSERT_TRUE(image) << file;
    EXPECT_EQ(image->kind, ImageKind::kPtx);
    EXPECT_EQ(names_in(*image).kernels.size(), 1u) << file;
  }
}

TEST(CodeImageTest, TheKernelsOfACubinAreFound) {
  const std::vector<std::byte> container = load_fatbin("elf_only");
  const auto image = image_of_code(container.data(), 86);
  ASSERT_TRUE(image);
  ASSERT_EQ(image->kind, ImageKind::kElf);
  EXPECT_EQ(names_in(*image).kernels.size(), 1u);
  // And a cubin by itself, as far as its headers say.
  const auto again = image_of_code(image->bytes.data(), 86);
  ASSERT_TRUE(again);
  EXPECT_EQ(names_in(*again).kernels, names_in(*image).kernels);
}

TEST(CodeImageTest, AFileThatBreaksOffIsRefused) {
  const std::vector<std::byte> container = load_fatbin("elf_only");
  const auto cubin = image_of_code(container.data(), 86);
  ASSERT_TRUE(cubin);
  for (const auto* const whole : {&container, &cubin->bytes}) {
    for (std::size_t bytes = 0; bytes < whole->size(); bytes += 7) {
      const std::vector<std::byte> part(whole->begin(),
                                        whole->begin() + static_cast<std::ptrdiff_t>(bytes));
      EXPECT_FALSE(image_of_code(part.data(), 86, part.size())) << bytes;
    }
    EXPECT_TRUE(image_of_code(whole->data(), 86, whole->size()));
  }
}

TEST(CodeImageTest, WhatIsNoCodeIsRefused) {
  EXPECT_EQ(image_of_code(nullptr, 90).error().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(image_of_code("gibberish", 90).error().code, ErrorCode::kNoKernelImage);
}

TEST(CodeImageTest, PlainVariablesAreNamed) {
  constexpr std::string_view kText =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".global .align 4 .b8 table[16];\n.visible .const .align 8 .u64 limit;\n"
      ".visible .global .attribute(.managed) .u32 shared_with_host;\n"
      ".entry work(.param .u64 p) { .reg .u32 a; ld.global.u32 a, [table]; ret; }\n";
  const auto bytes = std::as_bytes(std::span(kText));
  const CodeNames names = names_in({ImageKind::kPtx, 80, {bytes.begin(), bytes.end()}});
  EXPECT_EQ(names.variables, (std::vector<std::string>{"table", "limit"}));
  ASSERT_EQ(names.managed.size(), 1u);
  EXPECT_EQ(names.kernels, std::vector<std::string>{"work"});
}

}  // namespace
}  // namespace slate::client
