// Copies as values (base/copy.h): the arithmetic of boxes and places.
#include "base/copy.h"

#include <gtest/gtest.h>

namespace slate {
namespace {

constexpr std::uint64_t kHuge = std::uint64_t{1} << 40;

TEST(CopyTest, AnExtentGoesFromTheFirstToTheLastByte) {
  EXPECT_EQ(extent_of({10}, 0, 0), 10u) << "a line has no distances";
  EXPECT_EQ(extent_of({10, 3}, 16, 0), 42u);
  EXPECT_EQ(extent_of({10, 3, 2}, 16, 64), 106u);
  EXPECT_EQ(extent_of({10, 1, 2}, 0, 64), 74u);
}

TEST(CopyTest, RowsAndPlanesThatOverlapHaveNoExtent) {
  EXPECT_FALSE(extent_of({10, 2}, 9, 0));
  EXPECT_FALSE(extent_of({10, 3, 2}, 16, 41));
  EXPECT_FALSE(extent_of({1, kHuge}, kHuge, 0)) << "more than an address can count";
  EXPECT_FALSE(extent_of({1, 1, kHuge}, 0, kHuge));
  EXPECT_FALSE(packed_bytes({kHuge, kHuge}));
  EXPECT_EQ(packed_bytes({3, 4, 5}), 60u);
}

TEST(CopyTest, OnlyWhatTouchesOnBothSidesIsFlattened) {
  const Place dense = Place::on_device(0, 8, 32), apart = Place::on_device(0, 16, 64);
  const Place planes_apart = Place::on_device(0, 8, 64);
  EXPECT_EQ(flattened({8, 4}, dense, dense), (Box{32}));
  EXPECT_EQ(flattened({8, 4, 2}, dense, dense), (Box{64}));
  EXPECT_EQ(flattened({8, 4}, dense, apart), (Box{8, 4}));
  EXPECT_EQ(flattened({8, 4, 2}, apart, apart), (Box{8, 8})) << "planes touch, rows do not";
  EXPECT_EQ(flattened({8, 4, 2}, dense, planes_apart), (Box{8, 4, 2}));
}

TEST(CopyTest, APlaceWithinABoxIsBytesRowsAndPlanesFurther) {
  EXPECT_EQ(Place::on_device(1000, 16, 64).at(1, 2, 3).address, 1000u + 1 + 32 + 192);
  const Place in_array = Place::in_array(7, 2, 4, 1, 0).at(8, 1, 1);
  EXPECT_EQ(in_array.object, 7u);
  EXPECT_EQ(in_array.part, 2u);
  EXPECT_EQ(in_array.x, 12u);
  EXPECT_EQ(in_array.y, 2u);
  EXPECT_EQ(in_array.z, 1u);
}

}  // namespace
}  // namespace slate
