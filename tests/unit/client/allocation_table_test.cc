#include "client/session/allocation_table.h"

#include <gtest/gtest.h>

namespace slate::client {
namespace {

constexpr std::uint64_t kTop = ~std::uint64_t{0};

TEST(AllocationTableTest, FindsTheRangeThatAnAddressLiesIn) {
  AllocationTable table;
  table.insert({1000, 100, 1});
  table.insert({2000, 50, 1});
  EXPECT_FALSE(table.find(999));
  EXPECT_EQ(table.find(1000)->address, 1000u);
  EXPECT_EQ(table.find(1099)->address, 1000u);
  EXPECT_FALSE(table.find(1100));
  EXPECT_EQ(table.find(2049)->address, 2000u);
  EXPECT_FALSE(table.find(2050));
  EXPECT_FALSE(table.find(0));
  EXPECT_FALSE(table.find(kTop));
}

TEST(AllocationTableTest, WhatAThreadHasFoundBeforeIsForgottenWithAnyChange) {
  AllocationTable table;
  AllocationTable other;
  table.insert({1000, 100, 1});
  for (int again = 0; again < 2; ++again) EXPECT_EQ(table.find(1050)->tag, 1u);
  EXPECT_FALSE(other.find(1050)) << "another table's range";
  table.insert({1000, 100, 2});
  EXPECT_EQ(table.find(1050)->tag, 2u);
  EXPECT_TRUE(table.erase(1000, 2));
  EXPECT_FALSE(table.find(1050));
  table.insert({1000, 100, 3});
  EXPECT_TRUE(table.find(1050));
  table.erase_all(3);
  EXPECT_FALSE(table.find(1050));
}

TEST(AllocationTableTest, NumbersEachRangeAndKeepsItsOwner) {
  AllocationTable table;
  table.insert({1000, 100, 1});
  table.set_owner(1000, 7);
  table.set_owner(1001, 8);
  const auto first = table.find(1001);
  EXPECT_EQ(first->owner, 7u);
  EXPECT_TRUE(table.erase(1000, 1));
  table.insert({1000, 100, 1});
  const auto second = table.find(1000);
  EXPECT_EQ(second->owner, 0u);
  EXPECT_GT(second->serial, first->serial);
}

TEST(AllocationTableTest, CoversOnlyWhatLiesInOneRange) {
  AllocationTable table;
  table.insert({1000, 100, 1});
  table.insert({1100, 100, 1});
  EXPECT_TRUE(table.covers(1000, 100));
  EXPECT_TRUE(table.covers(1099, 1));
  EXPECT_FALSE(table.covers(1000, 101)) << "neighbours are two allocations";
  EXPECT_FALSE(table.covers(1050, kTop)) << "a length that wraps around";
  EXPECT_FALSE(table.covers(999, 2));
}

TEST(AllocationTableTest, ErasesOnlyTheBeginOfARangeWithItsTag) {
  AllocationTable table;
  table.insert({1000, 100, 1});
  EXPECT_FALSE(table.erase(1001, 1));
  EXPECT_FALSE(table.erase(1000, 2));
  EXPECT_TRUE(table.erase(1000, 1));
  EXPECT_FALSE(table.erase(1000, 1));
  EXPECT_EQ(table.size(), 0u);
}

TEST(AllocationTableTest, ANewRangeReplacesWhatItOverlaps) {
  AllocationTable table;
  table.insert({1000, 100, 1});
  table.insert({1100, 100, 1});
  table.insert({1300, 100, 1});
  table.insert({1050, 100, 2});
  EXPECT_EQ(table.size(), 2u);
  EXPECT_FALSE(table.find(1000));
  EXPECT_EQ(table.find(1149)->tag, 2u);
  EXPECT_FALSE(table.find(1150));
  EXPECT_TRUE(table.covers(1300, 100));
}

TEST(AllocationTableTest, TouchesSeesAnyOverlap) {
  AllocationTable table;
  table.insert({1000, 100, 1});
  EXPECT_TRUE(table.touches(900, 101));
  EXPECT_FALSE(table.touches(900, 100));
  EXPECT_TRUE(table.touches(1099, 1));
  EXPECT_FALSE(table.touches(1100, 5));
  EXPECT_TRUE(table.touches(0, kTop));
}

TEST(ExtentTest, CountsFromTheFirstToTheLastByte) {
  EXPECT_EQ(extent_of(512, 100, 3), 2u * 512 + 100);
  EXPECT_EQ(extent_of(512, 100, 1), 100u);
  EXPECT_EQ(extent_of(512, 0, 3), 0u);
  EXPECT_EQ(extent_of(512, 100, 0), 0u);
}

TEST(ExtentTest, SaysNothingWhenItOverflows) {
  EXPECT_FALSE(extent_of(kTop, 1, 3));
  EXPECT_FALSE(extent_of(kTop, kTop, 2));
}

TEST(AllocationTableTest, JoinedRangesAreOneAndCanBeCut) {
  AllocationTable table;
  table.insert({900, 100, 2});
  table.join({1200, 100, 1});
  table.join({1000, 100, 1});
  EXPECT_FALSE(table.covers(1000, 300));
  table.join({1100, 100, 1});
  EXPECT_TRUE(table.covers(1000, 300));
  EXPECT_FALSE(table.covers(950, 100)) << "of another kind";
  EXPECT_EQ(table.size(), 2u);
  EXPECT_FALSE(table.cut(1100, 100, 2));
  EXPECT_FALSE(table.cut(1200, 200, 1));
  EXPECT_TRUE(table.cut(1100, 100, 1));
  EXPECT_TRUE(table.covers(1000, 100));
  EXPECT_TRUE(table.covers(1200, 100));
  EXPECT_FALSE(table.touches(1100, 100));
  EXPECT_TRUE(table.cut(1000, 100, 1));
  EXPECT_TRUE(table.cut(1200, 100, 1));
  EXPECT_EQ(table.size(), 1u);
}

}  // namespace
}  // namespace slate::client
