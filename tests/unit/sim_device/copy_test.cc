#include "device/sim/copy.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <vector>

namespace slate::sim {
namespace {

std::vector<unsigned char> numbered(std::size_t count) {
  std::vector<unsigned char> bytes(count);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(1));
  return bytes;
}

Rows rows(std::vector<unsigned char>& bytes, std::uint64_t offset, std::uint64_t pitch) {
  return {reinterpret_cast<device::Address>(bytes.data() + offset), pitch};
}

struct Overlap {
  std::uint64_t to, to_pitch, from, from_pitch;
  Box shape;
};

TEST(CopyTest, OverlappingRowsAreCopiedAsIfThroughABuffer) {
  const Overlap kOverlaps[] = {
      {10, 8, 12, 8, {6, 10}}, {12, 8, 10, 8, {6, 10}}, {3, 8, 0, 8, {8, 10}},
      {0, 8, 3, 8, {8, 10}},   {0, 4, 1, 8, {4, 12}},   {1, 8, 0, 4, {4, 12}},
      {30, 5, 31, 3, {3, 15}}, {7, 0, 5, 0, {40, 1}},   {16, 8, 0, 8, {8, 8}},
  };
  for (const Overlap& each : kOverlaps) {
    std::vector<unsigned char> bytes = numbered(128);
    std::vector<unsigned char> wanted = bytes;
    for (std::uint64_t y = 0; y < each.shape.height; ++y) {
      for (std::uint64_t x = 0; x < each.shape.width; ++x) {
        wanted[each.to + y * each.to_pitch + x] =
            static_cast<unsigned char>(1 + each.from + y * each.from_pitch + x);
      }
    }
    copy_rows(rows(bytes, each.to, each.to_pitch), rows(bytes, each.from, each.from_pitch),
              each.shape);
    EXPECT_EQ(bytes, wanted) << each.to << " from " << each.from;
  }
}

TEST(CopyTest, FillTouchesTheRowsOnly) {
  std::vector<unsigned char> bytes(24, 0);
  fill_rows(rows(bytes, 1, 8), 7, {3, 3});
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(bytes[i], i % 8 >= 1 && i % 8 <= 3 ? 7 : 0) << i;
  }
}

TEST(CopyTest, AFillRepeatsItsValueFromEachRowsBeginningOn) {
  std::vector<unsigned char> bytes(24, 0);
  fill_rows(rows(bytes, 2, 8), FillValue(0xaabb'0102, 2), {4, 2});
  fill_rows(rows(bytes, 16, 8), FillValue(0x0403'0201, 4), {8, 1});
  const std::vector<unsigned char> expected = {0, 0, 2, 1, 2, 1, 0, 0, 0, 0, 2, 1,
                                               2, 1, 0, 0, 1, 2, 3, 4, 1, 2, 3, 4};
  EXPECT_EQ(bytes, expected);
}

TEST(CopyTest, EmptyShapeTouchesNothing) {
  copy_rows({}, {}, {0, 5});
  copy_rows({}, {}, {5, 0});
  fill_rows({}, 1, {0, 1});
  EXPECT_TRUE(check_host_rows({}, {0, 1}));
  EXPECT_TRUE(check_host_rows({}, {1, 0}));
}

TEST(CopyTest, HostRowsMustNotOverflow) {
  const Rows all{4096, ~std::uint64_t{0}};
  EXPECT_FALSE(check_host_rows(all, {16, 3}));
  EXPECT_FALSE(check_host_rows({4096, 8}, {16, 2}));
  EXPECT_FALSE(check_host_rows({0, 16}, {16, 2}));
  EXPECT_TRUE(check_host_rows({4096, 16}, {16, 2}));
}

TEST(CopyTest, DeviceRowsMustBeMappedToTheLastByte) {
  auto memory = Memory::make(kChunkBytes);
  ASSERT_TRUE(memory);
  const device::AddressRange range{*(*memory)->reserve(kChunkBytes), kChunkBytes};
  const auto code = [&](Rows each, Box shape) {
    const auto checked = check_device_rows(**memory, each, shape, ErrorCode::kIllegalAddress);
    return checked ? ErrorCode::kNone : checked.error().code;
  };
  EXPECT_EQ(code({range.base, 0}, {1, 1}), ErrorCode::kIllegalAddress);
  ASSERT_TRUE((*memory)->map(range));
  EXPECT_EQ(code({range.base, 0}, {kChunkBytes, 1}), ErrorCode::kNone);
  EXPECT_EQ(code({range.base + 1, 0}, {kChunkBytes, 1}), ErrorCode::kIllegalAddress);
  EXPECT_EQ(code({range.base, kChunkBytes / 2}, {kChunkBytes / 2, 2}), ErrorCode::kNone);
  EXPECT_EQ(code({range.base, kChunkBytes / 2}, {4, 3}), ErrorCode::kIllegalAddress);
  EXPECT_EQ(code({range.base, 2}, {4, 2}), ErrorCode::kInvalidValue);
  EXPECT_EQ(code({range.base, ~std::uint64_t{0} / 2}, {4, 5}), ErrorCode::kInvalidValue);
}

}  // namespace
}  // namespace slate::sim
