// What a client may hand in as code: text that is PTX, or an ELF file that stays inside itself.
#include "device/cuda/image.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

namespace slate::cuda {
namespace {

using device::ImageKind;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

ErrorCode check(ImageKind kind, const std::string& image) {
  const auto checked = checked_image(kind, bytes_of(image));
  return checked ? ErrorCode::kNone : checked.error().code;
}

TEST(ImageTest, PtxIsCopiedWithoutItsTrailingNuls) {
  const std::string text = "// comment\n.version 8.0\n";
  const auto checked = checked_image(ImageKind::kPtx, bytes_of(text + std::string(3, '\0')));
  ASSERT_TRUE(checked);
  EXPECT_EQ(*checked, text);
}

TEST(ImageTest, WhatIsNotPtxTextIsInvalidPtx) {
  EXPECT_EQ(check(ImageKind::kPtx, ""), ErrorCode::kInvalidPtx);
  EXPECT_EQ(check(ImageKind::kPtx, " \n"), ErrorCode::kInvalidPtx);
  EXPECT_EQ(check(ImageKind::kPtx, std::string(".version\0 8.0", 13)), ErrorCode::kInvalidPtx);
  EXPECT_EQ(check(ImageKind::kPtx,
                  "\x7f"
                  "ELF and no NUL"),
            ErrorCode::kInvalidPtx);
  EXPECT_EQ(check(ImageKind::kPtx, "\x50\xed\x55\xba fat binary"), ErrorCode::kInvalidPtx);
}

/// A header, 16 bytes of contents, and two section headers, the second of which describes the
/// contents.
std::string small_elf(const std::function<void(Elf64_Ehdr&, Elf64_Shdr&)>& damage = {}) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = sizeof(header) + 16;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 2;
  header.e_shstrndx = 1;
  Elf64_Shdr section{};
  section.sh_type = SHT_STRTAB;
  section.sh_offset = sizeof(header);
  section.sh_size = 16;
  if (damage) damage(header, section);
  std::string image(sizeof(header) + 16 + 2 * sizeof(section), '\0');
  std::memcpy(image.data(), &header, sizeof(header));
  std::memcpy(image.data() + sizeof(header) + 16 + sizeof(section), &section, sizeof(section));
  return image;
}

TEST(ImageTest, ACubinWhoseTablesAreInsideIsAccepted) {
  EXPECT_EQ(check(ImageKind::kCubin, small_elf()), ErrorCode::kNone);
}

TEST(ImageTest, ACubinThatReachesBeyondItsEndIsRefused) {
  const std::string whole = small_elf();
  EXPECT_EQ(check(ImageKind::kCubin, whole.substr(0, whole.size() - 1)), ErrorCode::kNoKernelImage);
  EXPECT_EQ(check(ImageKind::kCubin, whole.substr(0, 10)), ErrorCode::kNoKernelImage);
  const auto damaged = [](const std::function<void(Elf64_Ehdr&, Elf64_Shdr&)>& damage) {
    return check(ImageKind::kCubin, small_elf(damage));
  };
  using H = Elf64_Ehdr;
  using S = Elf64_Shdr;
  EXPECT_EQ(damaged([](H& h, S&) { h.e_shoff = ~0ULL - 8; }), ErrorCode::kNoKernelImage);
  EXPECT_EQ(damaged([](H& h, S&) { h.e_shnum = 3; }), ErrorCode::kNoKernelImage);
  EXPECT_EQ(damaged([](H& h, S&) { h.e_shstrndx = 2; }), ErrorCode::kNoKernelImage);
  EXPECT_EQ(damaged([](H& h, S&) { h.e_phnum = 1; }), ErrorCode::kNoKernelImage);
  EXPECT_EQ(damaged([](H& h, S&) { h.e_ident[EI_CLASS] = ELFCLASS32; }), ErrorCode::kNoKernelImage);
  EXPECT_EQ(damaged([](H&, S& s) { s.sh_size = 1 << 20; }), ErrorCode::kNoKernelImage);
  EXPECT_EQ(damaged([](H&, S& s) { s.sh_offset = ~0ULL; }), ErrorCode::kNoKernelImage);
}

TEST(ImageTest, ASectionWithoutBytesMayHaveAnySize) {
  const auto grow = [](Elf64_Ehdr&, Elf64_Shdr& section) {
    section.sh_type = SHT_NOBITS;
    section.sh_size = 1 << 20;
  };
  EXPECT_EQ(check(ImageKind::kCubin, small_elf(grow)), ErrorCode::kNone);
}

TEST(ImageTest, LaunchesFromTheDeviceAreRecognized) {
  EXPECT_TRUE(has_device_launches(bytes_of(small_elf() + ".text.__cudaCDP2LaunchDeviceV2")));
  EXPECT_TRUE(has_device_launches(bytes_of(small_elf() + "cudaLaunchDeviceV2")));
  EXPECT_FALSE(has_device_launches(bytes_of(small_elf() + ".text.kernel cudaMalloc")));
  EXPECT_FALSE(has_device_launches({}));
}

}  // namespace
}  // namespace slate::cuda
