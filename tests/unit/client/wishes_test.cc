#include "client/session/wishes.h"

#include <gtest/gtest.h>

namespace slate::client {
namespace {

TEST(WishesTest, AllAreRead) {
  const auto wishes = parse_wishes("0.5", "-3", "512M");
  EXPECT_EQ(wishes.memory, 512u << 20);
  EXPECT_EQ(wishes.weight, 0.5);
  EXPECT_EQ(wishes.priority, -3);
}

TEST(WishesTest, WhatIsNotSetIsNotWished) {
  EXPECT_FALSE(parse_wishes(nullptr, nullptr, nullptr).weight);
  EXPECT_FALSE(parse_wishes(nullptr, nullptr, nullptr).memory);
  EXPECT_FALSE(parse_wishes("", "", "").priority);
  EXPECT_FALSE(parse_wishes("", "", "").memory);
}

TEST(WishesTest, NonsenseCountsAsNotSet) {
  for (const char* text : {"0", "-1", "101", "nan", "inf", "1x", " 1", "x", "1,5"})
    EXPECT_FALSE(parse_wishes(text, nullptr, nullptr).weight) << text;
  for (const char* text : {"11", "-11", "1.5", "x", "99999999999", "+1"})
    EXPECT_FALSE(parse_wishes(nullptr, text, nullptr).priority) << text;
  for (const char* text : {"0", "0G", "-1", "1.5G", "5%", "1GiB", "2g", " 1", "G", "x",
                           "99999999999T", "18446744073709551616"})
    EXPECT_FALSE(parse_wishes(nullptr, nullptr, text).memory) << text;
}

TEST(WishesTest, MemoryIsBytesOrANumberAndAUnit) {
  EXPECT_EQ(parse_wishes(nullptr, nullptr, "4096").memory, 4096u);
  EXPECT_EQ(parse_wishes(nullptr, nullptr, "3K").memory, 3072u);
  EXPECT_EQ(parse_wishes(nullptr, nullptr, "2G").memory, 2ull << 30);
  EXPECT_EQ(parse_wishes(nullptr, nullptr, "1T").memory, 1ull << 40);
}

TEST(WishesTest, NonsenseIsSaidOnStderr) {
  testing::internal::CaptureStderr();
  (void)parse_wishes(nullptr, nullptr, "all of it");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "slate: SLATE_MEMORY=all of it is not understood, and ignored\n");
}

}  // namespace
}  // namespace slate::client
