#include "daemon/engine/image_uploads.h"

#include <gtest/gtest.h>

#include <string_view>

namespace slate::daemon {
namespace {

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class ImageUploadsTest : public testing::Test {
 protected:
  Result<std::optional<ModuleImage>> add(std::uint32_t kind, std::uint64_t total,
                                         std::uint64_t offset, std::string_view text) {
    return uploads_.add({1, total, offset, kind, 0}, bytes(text), {});
  }
  static std::string text_of(const ModuleImage& image) {
    return {reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()};
  }

  ImageUploads uploads_;
};

TEST_F(ImageUploadsTest, TheLastChunkCompletesAnImage) {
  ASSERT_FALSE(*add(ipc::kImagePtx, 6, 0, "abc"));
  const auto image = add(ipc::kImagePtx, 6, 3, "def");
  ASSERT_TRUE(image && *image);
  EXPECT_EQ(text_of(**image), "abcdef");
  EXPECT_EQ((*image)->source, "");
  EXPECT_EQ(uploads_.count(), 0u);
}

TEST_F(ImageUploadsTest, ASourceStandsBeforeItsImage) {
  ASSERT_FALSE(*add(ipc::kImageSource, 4, 0, "te"));
  ASSERT_FALSE(*add(ipc::kImageSource, 4, 2, "xt"));
  ASSERT_FALSE(*add(ipc::kImageElf, 4, 0, "co"));
  const auto image = add(ipc::kImageElf, 4, 2, "de");
  ASSERT_TRUE(image && *image);
  EXPECT_EQ((*image)->kind, ipc::kImageElf);
  EXPECT_EQ(text_of(**image), "code");
  EXPECT_EQ((*image)->source, "text");
}

TEST_F(ImageUploadsTest, ChunksOutOfOrderAreRefused) {
  EXPECT_EQ(add(ipc::kImagePtx, 6, 3, "def").error().code, ErrorCode::kInvalidHandle);
  ASSERT_TRUE(add(ipc::kImagePtx, 6, 0, "abc"));
  EXPECT_EQ(add(ipc::kImagePtx, 6, 0, "abc").error().code, ErrorCode::kProtocol);
  EXPECT_EQ(add(ipc::kImagePtx, 6, 4, "ef").error().code, ErrorCode::kProtocol);
  EXPECT_EQ(add(ipc::kImagePtx, 7, 3, "def").error().code, ErrorCode::kProtocol);
  EXPECT_EQ(add(ipc::kImageElf, 6, 3, "def").error().code, ErrorCode::kProtocol);
  EXPECT_EQ(add(ipc::kImagePtx, 6, 3, "defg").error().code, ErrorCode::kProtocol);
  EXPECT_EQ(add(9, 6, 0, "abc").error().code, ErrorCode::kProtocol);
}

TEST_F(ImageUploadsTest, AnImageBeginsOnlyBehindAWholeSource) {
  ASSERT_TRUE(add(ipc::kImageSource, 4, 0, "te"));
  EXPECT_EQ(add(ipc::kImageElf, 4, 0, "code").error().code, ErrorCode::kProtocol);
  ASSERT_TRUE(add(ipc::kImageSource, 4, 2, "xt"));
  EXPECT_EQ(add(ipc::kImageSource, 4, 0, "text").error().code, ErrorCode::kProtocol);
}

TEST_F(ImageUploadsTest, SoMuchMayBeUnderWay) {
  constexpr std::uint64_t kHalf = ImageUploads::kMostBytes / 2;
  ASSERT_TRUE(add(ipc::kImageSource, kHalf, 0, "x"));
  const auto second = uploads_.add({2, kHalf + 1, 0, ipc::kImagePtx, 0}, bytes("x"), {});
  EXPECT_EQ(second.error().code, ErrorCode::kLimit);
  EXPECT_TRUE(uploads_.add({2, kHalf, 0, ipc::kImagePtx, 0}, bytes("x"), {}));
}

TEST_F(ImageUploadsTest, WhatTookItsImageLeavesRoom) {
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t half = ImageUploads::kMostBytes / 2;
    ASSERT_TRUE(add(ipc::kImageSource, 4, 0, "text"));
    ASSERT_TRUE(add(ipc::kImageElf, 4, 0, "code"));
    const auto large = uploads_.add({2, 2 * half, 0, ipc::kImagePtx, 0}, bytes("x"), {});
    EXPECT_TRUE(large);
    uploads_.clear();
  }
}

TEST_F(ImageUploadsTest, AModuleThatMayNotBeginIsRefused) {
  const auto refused = uploads_.add({1, 4, 0, ipc::kImagePtx, 0}, bytes("text"),
                                    fail(ErrorCode::kLimit, "too many modules"));
  EXPECT_EQ(refused.error().code, ErrorCode::kLimit);
  EXPECT_EQ(uploads_.count(), 0u);
}

}  // namespace
}  // namespace slate::daemon
