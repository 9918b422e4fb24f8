// BlockingWatch and UnendedStarts on a clock of the test's.
#include "daemon/engine/blocking_watch.h"

#include <gtest/gtest.h>

#include <array>

#include "daemon/engine/unended_starts.h"

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;
using scheduler::Time;

constexpr Time at(std::chrono::milliseconds time) {
  return Time{} + 1h + time;
}

/// User 1's session with work on the device since 0 that nobody can take off.
SessionUse holder() {
  return {.session = 1,
          .uid = 1,
          .most_blocking = 1s,
          .holds_since = at(0ms),
          .placement = {.first = 0, .count = 8}};
}
/// User 2's session, whose launch waits for its turn since 100 ms.
SessionUse waiting() {
  return {.session = 2, .uid = 2, .most_blocking = 1s, .waits_since = at(100ms)};
}

TEST(BlockingWatchTest, WhoKeepsAnotherUserWaitingBeyondTheBoundIsToldOfOnce) {
  BlockingWatch watch;
  const SessionUse uses[] = {holder(), waiting()};
  EXPECT_TRUE(watch.look(at(1099ms), uses).empty());
  const auto verdicts = watch.look(at(1100ms), uses);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].session, 1u);
  EXPECT_EQ(verdicts[0].waiting, 2u);
  EXPECT_EQ(verdicts[0].waited, 1000ms);
  EXPECT_FALSE(verdicts[0].stays);
  EXPECT_TRUE(watch.look(at(1200ms), uses).empty());
}

TEST(BlockingWatchTest, ALoneUserIsNeverTouched) {
  BlockingWatch watch;
  SessionUse own = waiting();
  own.uid = 1;
  const SessionUse uses[] = {holder(), own};
  EXPECT_FALSE(BlockingWatch::is_needed(uses));
  EXPECT_TRUE(watch.look(at(1h), uses).empty()) << "his own programs are his own affair";
  const SessionUse alone[] = {holder()};
  EXPECT_FALSE(BlockingWatch::is_needed(alone));
  EXPECT_TRUE(watch.look(at(1h), alone).empty());
  EXPECT_FALSE(BlockingWatch::is_needed({}));
  const SessionUse two[] = {holder(), waiting()};
  EXPECT_TRUE(BlockingWatch::is_needed(two));
}

TEST(BlockingWatchTest, TheWaitCountsFromWhenTheWorkIsTheOldest) {
  BlockingWatch watch;
  SessionUse next = holder();
  next.holds_since = at(800ms);
  const SessionUse uses[] = {next, waiting()};
  EXPECT_TRUE(watch.look(at(1799ms), uses).empty());
  EXPECT_EQ(watch.look(at(1800ms), uses).size(), 1u);
}

TEST(BlockingWatchTest, WithoutABoundNobodyIsEnded) {
  BlockingWatch watch;
  SessionUse free = holder();
  free.most_blocking = 0ms;
  const SessionUse uses[] = {free, waiting()};
  EXPECT_TRUE(watch.look(at(1h), uses).empty());
}

TEST(BlockingWatchTest, AHigherPriorityMayKeepALowerOneWaiting) {
  BlockingWatch watch;
  SessionUse first = holder();
  first.priority = 1;
  const SessionUse uses[] = {first, waiting()};
  EXPECT_TRUE(watch.look(at(1h), uses).empty());
  SessionUse chained = waiting();
  chained.waits_for = {1};
  const SessionUse on_device[] = {first, chained};
  EXPECT_EQ(watch.look(at(1h), on_device).size(), 1u) << "its turn has come, but for that work";
}

TEST(BlockingWatchTest, WhoWaitsBehindAHigherPriorityWaitsForNobodyElse) {
  BlockingWatch watch;
  SessionUse high{.session = 3, .uid = 3, .priority = 1, .holds_since = at(200ms)};
  const SessionUse uses[] = {holder(), waiting(), high};
  EXPECT_TRUE(watch.look(at(1h), uses).empty());
}

TEST(BlockingWatchTest, NoPolicyWaitsForWorkThatLeavesRoom) {
  BlockingWatch watch;
  SessionUse small = holder();
  small.leaves_room = true;
  const SessionUse uses[] = {small, waiting()};
  EXPECT_TRUE(watch.look(at(1h), uses).empty());
  SessionUse chained = waiting();
  chained.waits_for = {1};
  const SessionUse on_device[] = {small, chained};
  EXPECT_EQ(watch.look(at(1h), on_device).size(), 1u);
}

TEST(BlockingWatchTest, OnTheDeviceOnlyThatWorkCountsForWhichALaunchWaits) {
  BlockingWatch watch;
  SessionUse chained = waiting();
  chained.waits_for = {3};
  SessionUse third = holder();
  third.session = third.uid = 3;
  const SessionUse uses[] = {holder(), chained, third};
  const auto verdicts = watch.look(at(5s), uses);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].session, 3u);
}

TEST(BlockingWatchTest, ACallThatWaitsForAllKernelsWaitsAlsoForThoseThatLeaveRoom) {
  BlockingWatch watch;
  SessionUse beside = holder();
  beside.leaves_room = true;
  SessionUse loads = {.session = 2, .uid = 2, .most_blocking = 1s};
  const SessionUse idle[] = {beside, loads};
  EXPECT_TRUE(watch.look(at(1h), idle).empty());
  loads.stalled_since = at(500ms);
  const SessionUse stalled[] = {beside, loads};
  EXPECT_TRUE(watch.look(at(1499ms), stalled).empty());
  const auto verdicts = watch.look(at(1500ms), stalled);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].session, 1u);
  // Who has such work and waits in such a call for it is no better.
  BlockingWatch another;
  beside.stalled_since = at(200ms);
  const SessionUse both[] = {beside, loads};
  EXPECT_EQ(another.look(at(1500ms), both).size(), 1u);
}

TEST(BlockingWatchTest, WhoWaitsItselfIsNotToBeBlamed) {
  BlockingWatch watch;
  SessionUse between = holder();
  between.session = between.uid = 3;
  between.waits_since = at(50ms);
  between.waits_for = {1};
  SessionUse last = waiting();
  last.waits_for = {3, 1};
  const SessionUse uses[] = {holder(), last, between};
  const auto verdicts = watch.look(at(5s), uses);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].session, 1u);
  EXPECT_EQ(verdicts[0].waiting, 3u) << "that has waited for longest";
}

TEST(BlockingWatchTest, BesideOthersOnlyKnownWorkShowsThatItDoesNotGetOn) {
  BlockingWatch watch;
  SessionUse beside{.session = 2, .uid = 2, .holds_since = at(100ms), .placement = {0, 8}};
  const auto look = [&](std::chrono::milliseconds now) {
    const SessionUse uses[] = {holder(), beside};
    return watch.look(at(now), uses).size();
  };
  EXPECT_EQ(look(1h), 0u) << "it may take that long";
  beside.expected = scheduler::Milliseconds(50);
  EXPECT_EQ(look(5099ms), 0u);
  beside.placement = {8, 8};
  EXPECT_EQ(look(5100ms), 0u) << "they have SMs of their own";
  beside.placement = {7, 2};
  beside.holds_since = at(-1ms);
  EXPECT_EQ(look(5100ms), 0u) << "it came first";
  beside.holds_since = at(100ms);
  EXPECT_EQ(look(5100ms), 1u);
}

TEST(BlockingWatchTest, WorkThatStaysAfterItsSessionsEndIsToldOfOnceMore) {
  BlockingWatch watch;
  const SessionUse uses[] = {holder(), waiting()};
  EXPECT_EQ(watch.look(at(1100ms), uses).size(), 1u);
  EXPECT_TRUE(watch.look(at(3099ms), uses).empty());
  const auto verdicts = watch.look(at(3100ms), uses);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_TRUE(verdicts[0].stays);
  EXPECT_TRUE(watch.look(at(1h), uses).empty());
  EXPECT_TRUE(watch.look(at(1h), {}).empty());
  EXPECT_EQ(watch.look(at(2h), uses).size(), 1u) << "another session of that number";
}

scheduler::RunningWork shown(const UnendedStarts& starts) {
  scheduler::RunningWork running;
  starts.show(running);
  return running;
}

TEST(UnendedStartsTest, TheOldestIsTheOldestSinceTheOneBeforeItEnded) {
  UnendedStarts starts;
  const auto first = starts.add(7, true, 1, at(0ms)), second = starts.add(8, true, 1, at(1ms));
  EXPECT_EQ(shown(starts).fixed_since, at(0ms));
  starts.end(std::array{first}, at(10ms));
  starts.add(9, true, 1, at(11ms));
  EXPECT_EQ(shown(starts).fixed_since, at(10ms));
  starts.end(std::array{second}, at(12ms));
  EXPECT_EQ(shown(starts).fixed_since, at(12ms));
  ASSERT_EQ(starts.all().size(), 1u);
  EXPECT_EQ(starts.all()[0].number, 9u);
}

TEST(UnendedStartsTest, EndsOfLaterStartsDoNotMakeAnEndlessOneYounger) {
  UnendedStarts starts;
  starts.add(1, false, 0.5, at(0ms));
  for (int i = 1; i <= 100; ++i) {
    const auto other = starts.add(2, true, 0.25, at(i * 1ms));
    EXPECT_EQ(shown(starts).fixed_filled, 0.75);
    starts.end(std::array{other}, at(i * 1ms));
  }
  EXPECT_EQ(shown(starts).fixed_since, at(0ms));
  EXPECT_TRUE(shown(starts).uncertain);
}

TEST(UnendedStartsTest, AResizableLaunchIsNotFixed) {
  UnendedStarts starts;
  const auto lane = starts.add(1, false, 1, at(0ms));
  EXPECT_TRUE(shown(starts).fixed);
  EXPECT_FALSE(shown(starts).resizable);
  starts.make_lane(lane, at(0ms));
  EXPECT_FALSE(shown(starts).fixed);
  EXPECT_FALSE(shown(starts).uncertain);
  EXPECT_TRUE(shown(starts).resizable);
  EXPECT_EQ(shown(starts).fixed_filled, 0);
  starts.add(2, true, 1, at(5ms));
  EXPECT_TRUE(shown(starts).fixed);
  EXPECT_EQ(shown(starts).fixed_since, at(5ms));
  EXPECT_FALSE(shown(starts).uncertain);
  starts.end(std::array{lane}, at(6ms));
  EXPECT_FALSE(shown(starts).resizable);
}

}  // namespace
}  // namespace slate::daemon
