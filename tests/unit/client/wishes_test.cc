#include "client/session/wishes.h"

#include <gtest/gtest.h>

namespace slate::client {
namespace {

TEST(WishesTest, BothAreRead) {
  const auto wishes = parse_wishes("0.5", "-3");
  EXPECT_EQ(wishes.weight, 0.5);
  EXPECT_EQ(wishes.priority, -3);
}

TEST(WishesTest, WhatIsNotSetIsNotWished) {
  EXPECT_FALSE(parse_wishes(nullptr, nullptr).weight);
  EXPECT_FALSE(parse_wishes("", "").priority);
}

TEST(WishesTest, NonsenseCountsAsNotSet) {
  for (const char* text : {"0", "-1", "101", "nan", "inf", "1x", " 1", "x", "1,5"})
    EXPECT_FALSE(parse_wishes(text, nullptr).weight) << text;
  for (const char* text : {"11", "-11", "1.5", "x", "99999999999", "+1"})
    EXPECT_FALSE(parse_wishes(nullptr, text).priority) << text;
}

}  // namespace
}  // namespace slate::client
