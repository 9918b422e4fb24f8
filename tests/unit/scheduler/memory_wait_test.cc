#include "scheduler/memory_wait.h"

#include <gtest/gtest.h>

#include <chrono>

namespace slate::scheduler {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

Time moment(int ms) {
  return Time(std::chrono::milliseconds(1000 + ms));
}

SessionMemory seen(const MemoryWait& wait, int ms, const MemoryWait::Holding& holding = {}) {
  return wait.memory(moment(ms), holding, false);
}

TEST(MemoryWaitTest, ASessionBeginsInItsTurn) {
  const MemoryWait wait(moment(0));
  EXPECT_FALSE(wait.begins_turn());
  EXPECT_FALSE(wait.is_waiting());
  EXPECT_EQ(seen(wait, 5).turn, moment(0));
  EXPECT_EQ(seen(wait, 5).used, moment(0));
}

TEST(MemoryWaitTest, ATurnCountsFromTheEndOfTheWaitThatBeginsIt) {
  MemoryWait wait(moment(0));
  wait.end_turn();
  EXPECT_TRUE(wait.begins_turn());
  wait.begin(moment(10), 8, 0);
  EXPECT_EQ(seen(wait, 10).turn, std::nullopt);
  wait.take(moment(20), 4);
  EXPECT_EQ(seen(wait, 20).turn, moment(20));
  wait.take(moment(30), 4);
  wait.end(moment(40), false);
  EXPECT_EQ(seen(wait, 50).turn, moment(40)) << "its memory is there now";
  wait.begin(moment(60), 8, 0);
  wait.take(moment(61), 8);
  wait.end(moment(70), false);
  EXPECT_EQ(seen(wait, 80).turn, moment(40)) << "the same turn";
}

TEST(MemoryWaitTest, ATurnDoesNotGoOnWhileTheSessionWaitsForTheTurnsOfOthers) {
  MemoryWait wait(moment(0));
  wait.begin(moment(10), 8, 0);
  wait.block(moment(12));
  wait.block(moment(30));
  wait.take(moment(35), 8);
  wait.end(moment(40), false);
  EXPECT_EQ(seen(wait, 50).turn, moment(20)) << "20 ms of the wait were for others";
  wait.begin(moment(60), 8, 0);
  wait.take(moment(61), 8);
  wait.end(moment(70), false);
  EXPECT_EQ(seen(wait, 80).turn, moment(20)) << "this wait was not";
}

TEST(MemoryWaitTest, AWaitThatWasBrokenOffKeepsItsPlaceInTheQueue) {
  MemoryWait wait(moment(0));
  wait.begin(moment(10), 8, 0);
  wait.end(moment(20), true);
  wait.begin(moment(30), 8, 0);
  EXPECT_EQ(seen(wait, 30).since, moment(10));
  wait.take(moment(40), 8);
  wait.end(moment(50), true);
  wait.begin(moment(60), 8, 0);
  EXPECT_EQ(seen(wait, 60).since, moment(60)) << "all had come";
  wait.end(moment(70), false);
  wait.begin(moment(80), 8, 0);
  EXPECT_EQ(seen(wait, 80).since, moment(80)) << "the command was given up";
}

TEST(MemoryWaitTest, WhatIsMissingShrinksAsItComes) {
  MemoryWait wait(moment(0));
  wait.begin(moment(10), 12, 5);
  EXPECT_EQ(seen(wait, 10).missing, 12u);
  EXPECT_EQ(seen(wait, 10).spare, 5u);
  EXPECT_FALSE(seen(wait, 10).fetches);
  wait.take(moment(11), 4);
  EXPECT_TRUE(seen(wait, 11).fetches);
  wait.untake(4);
  EXPECT_EQ(wait.missing(), 12u);
  wait.do_without(4);
  wait.take(moment(12), 4);
  EXPECT_FALSE(wait.arrives());
  EXPECT_FALSE(seen(wait, 12).busy);
  wait.take(moment(13), 4);
  EXPECT_TRUE(wait.arrives());
  EXPECT_TRUE(seen(wait, 14).busy) << "about to be used";
  EXPECT_EQ(seen(wait, 14).turn, moment(14));
  wait.end(moment(15), false);
  EXPECT_FALSE(wait.arrives());
  EXPECT_FALSE(seen(wait, 15).busy);
  EXPECT_EQ(seen(wait, 15).spare, 0u);
  EXPECT_EQ(seen(wait, 15).used, moment(15));
}

TEST(MemoryWaitTest, WhatLeavesIsNoLongerThere) {
  MemoryWait wait(moment(0));
  wait.begin(moment(1), 1, 6);
  const auto memory_with = [&](const MemoryWait::Holding& holding) {
    return seen(wait, 2, holding);
  };
  EXPECT_EQ(memory_with({.taken = 10}).on_device, 10u);
  EXPECT_EQ(memory_with({.taken = 10}).movable, 10u);
  const SessionMemory some = memory_with({.taken = 10, .leaving = 4, .locked = 3});
  EXPECT_EQ(some.on_device, 6u);
  EXPECT_EQ(some.movable, 3u);
  EXPECT_EQ(some.spare, 2u);
  const SessionMemory none = memory_with({.taken = 10, .leaving = 20, .locked = 3});
  EXPECT_EQ(none.on_device, 0u);
  EXPECT_EQ(none.movable, 0u);
  EXPECT_EQ(none.spare, 0u);
}

TEST(ExchangeRatesTest, TheWayOutAndTheWayBackCount) {
  ExchangeRates rates;
  for (int i = 0; i < 50; ++i) {
    rates.note(true, 400 * kMiB, 10);
    rates.note(false, 400 * kMiB, 20);
  }
  EXPECT_NEAR(rates.bytes_per_ms(), 400.0 * kMiB / 30, kMiB / 100.0);
  for (int i = 0; i < 50; ++i) rates.note(false, 400 * kMiB, 1000);
  EXPECT_NEAR(rates.bytes_per_ms(), 400.0 * kMiB / 30, kMiB / 100.0)
      << "a way back that waited counts at most twice";
}

TEST(ExchangeRatesTest, ShortMovesSayNothing) {
  ExchangeRates rates;
  const double before = rates.bytes_per_ms();
  rates.note(true, kMiB, 100);
  rates.note(false, 400 * kMiB, 0);
  EXPECT_EQ(rates.bytes_per_ms(), before);
  rates.note(true, 64 * kMiB, 100);
  EXPECT_LT(rates.bytes_per_ms(), before);
}

}  // namespace
}  // namespace slate::scheduler
