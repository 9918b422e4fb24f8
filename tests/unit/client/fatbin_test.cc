#include "client/session/fatbin.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "tests/unit/client/fatbin_files.h"

namespace slate::client {
namespace {

using Bytes = std::vector<std::byte>;

Bytes load(const std::string& name) {
  return load_fatbin(name);
}

std::string text_of(const Image& image) {
  return {reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()};
}

TEST(FatbinTest, ThePtxIsTheSameHoweverItWasPacked) {
  const auto plain = choose_image(load("plain"), 90);
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->kind, ImageKind::kPtx);
  EXPECT_EQ(plain->architecture, 90u);
  const std::string text = text_of(*plain);
  EXPECT_NE(text.find(".version"), text.npos);
  EXPECT_NE(text.find(".entry _Z5scalePffi("), text.npos);
  EXPECT_EQ(text.find('\0'), text.npos) << "the padding belongs to the container";
  for (const char* name : {"lz4", "zstd", "zstd_all"}) {
    const auto packed = choose_image(load(name), 90);
    ASSERT_TRUE(packed) << name << ": " << packed.error().message;
    EXPECT_EQ(text_of(*packed), text) << name;
  }
}

TEST(FatbinTest, EachModeIsRecognised) {
  const auto packing = [](const char* name) {
    const Bytes bytes = load(name);
    const auto entries = list_entries(bytes);
    for (const FatBinaryEntry& entry : entries.value()) {
      if (entry.kind == ImageKind::kPtx) return entry.packing;
    }
    ADD_FAILURE() << "no PTX in " << name;
    return Packing::kNone;
  };
  EXPECT_EQ(packing("plain"), Packing::kNone);
  EXPECT_EQ(packing("lz4"), Packing::kLz4);
  EXPECT_EQ(packing("zstd"), Packing::kZstd);
}

TEST(FatbinTest, TheNewestPtxThatTheDeviceRunsIsChosen) {
  const Bytes many = load("many");
  EXPECT_EQ(choose_image(many, 90)->architecture, 90u);
  EXPECT_EQ(choose_image(many, 89)->architecture, 80u);
  EXPECT_EQ(choose_image(many, 100)->architecture, 100u);
  EXPECT_EQ(choose_image(many, 120)->architecture, 100u);
  EXPECT_EQ(choose_image(many, 90)->kind, ImageKind::kPtx) << "PTX is preferred to machine code";
  EXPECT_EQ(choose_image(many, 75).error().code, ErrorCode::kNoKernelImage);
}

TEST(FatbinTest, OlderPtxThanTheMachineCodeIsOnlyForADeviceThatRunsNoOther) {
  const Bytes older = load("older_ptx");
  EXPECT_EQ(choose_image(older, 90)->kind, ImageKind::kElf);
  EXPECT_EQ(choose_image(older, 90, true)->kind, ImageKind::kPtx);
  EXPECT_EQ(choose_image(older, 100)->kind, ImageKind::kPtx) << "the machine code does not fit";
  FatBinaryWrapper wrapper;
  wrapper.data = older.data();
  EXPECT_EQ(image_of_wrapper(&wrapper, 90)->kind, ImageKind::kElf);
  EXPECT_EQ(image_of_wrapper(&wrapper, 90, true)->kind, ImageKind::kPtx);
}

TEST(FatbinTest, WhatWasAssembledWithOptionsThatMatterIsTakenAsMachineCode) {
  const Bytes code = load("uncached");
  EXPECT_EQ(choose_image(code, 90)->kind, ImageKind::kElf);
  EXPECT_EQ(choose_image(code, 90, true)->kind, ImageKind::kPtx);
  EXPECT_EQ(choose_image(code, 100)->kind, ImageKind::kPtx) << "better than nothing";
  EXPECT_EQ(choose_image(load("lines"), 90)->kind, ImageKind::kPtx);
}

TEST(FatbinTest, PtxSaysItselfHowManyRegistersItMayHave) {
  for (const char* name : {"few_registers", "few_registers_apart"}) {
    const auto image = choose_image(load(name), 90);
    ASSERT_TRUE(image) << name;
    EXPECT_EQ(image->kind, ImageKind::kPtx) << name;
    EXPECT_NE(text_of(*image).find(".maxnreg 64\n"), std::string::npos) << name;
  }
  EXPECT_EQ(text_of(*choose_image(load("plain"), 90)).find(".maxnreg"), std::string::npos);
}

TEST(FatbinTest, MachineCodeServesItsMajorVersionOnly) {
  const Bytes elf = load("elf_only");
  const auto exact = choose_image(elf, 86);
  ASSERT_TRUE(exact);
  EXPECT_EQ(exact->kind, ImageKind::kElf);
  EXPECT_EQ(exact->architecture, 86u);
  constexpr std::array<std::byte, 4> kElfMagic{std::byte{0x7f}, std::byte{'E'}, std::byte{'L'},
                                               std::byte{'F'}};
  ASSERT_GT(exact->bytes.size(), kElfMagic.size());
  EXPECT_EQ(std::memcmp(exact->bytes.data(), kElfMagic.data(), kElfMagic.size()), 0);
  EXPECT_EQ(choose_image(elf, 89)->architecture, 86u);
  EXPECT_EQ(choose_image(elf, 80)->architecture, 80u);
  const auto none = choose_image(elf, 90);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNoKernelImage);
  EXPECT_NE(none.error().message.find("sm_80, sm_86"), std::string::npos) << none.error().message;
}

TEST(FatbinTest, EveryTruncationIsAnError) {
  for (const char* name : {"plain", "lz4", "zstd"}) {
    const Bytes whole = load(name);
    for (std::size_t size = 0; size < whole.size(); size += size < 256 ? 1 : 97) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_FALSE(choose_image(cut, 90)) << name << " cut to " << size;
    }
  }
}

TEST(FatbinTest, FlippedBytesNeverReachOutside) {
  for (const char* name : {"plain", "lz4", "zstd"}) {
    const Bytes whole = load(name);
    for (std::size_t at = 0; at < whole.size(); at += at < 512 ? 1 : 61) {
      for (const int mask : {0x01, 0x80, 0xff}) {
        Bytes flipped = whole;
        flipped[at] ^= static_cast<std::byte>(mask);
        const auto image = choose_image(flipped, 90);
        if (image) {
          EXPECT_LE(image->bytes.size(), 1u << 30);
        }
      }
    }
  }
}

TEST(FatbinTest, AWrapperLeadsToItsContainer) {
  const Bytes bytes = load("zstd");
  FatBinaryWrapper wrapper;
  wrapper.data = bytes.data();
  const auto image = image_of_wrapper(&wrapper, 90);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->kind, ImageKind::kPtx);

  wrapper.magic = 0;
  EXPECT_FALSE(image_of_wrapper(&wrapper, 90));
  EXPECT_FALSE(image_of_wrapper(nullptr, 90));
}

TEST(FatbinTest, TheObjectsOfADeviceLinkedProgramAreLinkedAsPtx) {
  const Bytes linked = load("elf_only");
  const Bytes first = load("linked_first"), second = load("linked_second");
  const std::array<const void*, 3> objects{first.data(), second.data(), nullptr};
  FatBinaryWrapper wrapper{.version = 2, .data = linked.data(), .containers = objects.data()};
  const auto image = image_of_wrapper(&wrapper, 90);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->kind, ImageKind::kPtx);
  const std::string_view text(reinterpret_cast<const char*>(image->bytes.data()),
                              image->bytes.size());
  EXPECT_NE(text.find(".entry _Z5scalePffi"), text.npos);
  EXPECT_NE(text.find("func_retval0) helper("), text.npos);
}

TEST(FatbinTest, WithoutPtxInEveryObjectTheLinkedMachineCodeIsTaken) {
  const Bytes linked = load("elf_only");
  const Bytes first = load("linked_first");
  // One object is machine code only, and one is missing.
  for (const std::array<const void*, 3>& objects :
       {std::array<const void*, 3>{first.data(), linked.data(), nullptr},
        std::array<const void*, 3>{first.data(), nullptr, nullptr}}) {
    FatBinaryWrapper wrapper{.version = 2, .data = linked.data(), .containers = objects.data()};
    const auto image = image_of_wrapper(&wrapper, 86);
    ASSERT_TRUE(image) << image.error().message;
    EXPECT_EQ(image->kind, ImageKind::kElf);
  }
}

}  // namespace
}  // namespace slate::client
