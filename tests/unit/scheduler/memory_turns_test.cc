#include "scheduler/memory_turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace slate::scheduler {
namespace {

using std::chrono::milliseconds;

constexpr Time kStart{std::chrono::seconds(1000)};

Time at(int ms) {
  return kStart + milliseconds(ms);
}

/// A capacity of 100 bytes, and exchanges of one byte a millisecond.
MemoryRules rules() {
  return {.capacity = 100, .bytes_per_ms = 1, .overhead = 0.05};
}

SessionMemory working(std::uint64_t session, std::uint64_t bytes, int turn, int used) {
  return {.session = session,
          .on_device = bytes,
          .movable = bytes,
          .busy = true,
          .turn = at(turn),
          .used = at(used)};
}

SessionMemory waiting(std::uint64_t session, std::uint64_t missing, int since) {
  return {.session = session, .missing = missing, .since = at(since), .used = at(since)};
}

std::vector<std::uint64_t> leaving(const MemoryDecision& decision) {
  std::vector<std::uint64_t> sessions;
  for (const MemoryLeave& leave : decision.leave) sessions.push_back(leave.session);
  return sessions;
}

TEST(MemoryTurnsTest, WithoutAWaitingSessionNobodyLeaves) {
  const auto decision = decide_memory({{working(1, 90, 0, 0)}}, rules(), at(10'000));
  EXPECT_FALSE(decision.next);
  EXPECT_TRUE(decision.leave.empty());
}

TEST(MemoryTurnsTest, WhatFitsBesideTheOthersMakesNobodyLeave) {
  const auto decision =
      decide_memory({{working(1, 60, 0, 0), waiting(2, 40, 1)}}, rules(), at(10'000));
  EXPECT_EQ(decision.next, 2u);
  EXPECT_TRUE(decision.leave.empty());
}

TEST(MemoryTurnsTest, ATurnLastsUntilItsExchangeIsWorthIt) {
  // 20 bytes more than there is room for: 20 ms, or 5 % of 400 ms.
  const std::vector<SessionMemory> sessions{working(1, 60, 0, 399), waiting(2, 60, 1)};
  const auto before = decide_memory(sessions, rules(), at(399));
  EXPECT_TRUE(before.leave.empty());
  EXPECT_EQ(before.again, at(400));
  const auto after = decide_memory(sessions, rules(), at(400));
  ASSERT_EQ(leaving(after), std::vector<std::uint64_t>{1});
  EXPECT_EQ(after.leave[0].bytes, 20u) << "no more than is needed";
}

TEST(MemoryTurnsTest, SessionsInTheirTurnsKeepTheNextOneFromHavingRoom) {
  std::vector<SessionMemory> sessions{working(1, 60, 0, 399), waiting(2, 60, 1)};
  EXPECT_EQ(decide_memory(sessions, rules(), at(399)).holders, std::vector<std::uint64_t>{1});
  EXPECT_TRUE(decide_memory(sessions, rules(), at(400)).holders.empty()) << "it leaves";
  sessions = {working(1, 40, 0, 1499), working(3, 40, 300, 1499), waiting(2, 90, 1)};
  const auto decision = decide_memory(sessions, rules(), at(1500));
  EXPECT_EQ(decision.holders, std::vector<std::uint64_t>{3}) << "of the other one the turn is over";
  EXPECT_TRUE(decision.leave.empty()) << "in vain";
}

TEST(MemoryTurnsTest, TurnsAreInProportionToWeights) {
  std::vector<SessionMemory> sessions{working(1, 60, 0, 399), waiting(2, 60, 1)};
  sessions[0].weight = 2;
  EXPECT_TRUE(decide_memory(sessions, rules(), at(799)).leave.empty());
  EXPECT_FALSE(decide_memory(sessions, rules(), at(800)).leave.empty());
}

TEST(MemoryTurnsTest, AnIdleSessionLeavesOnceItHasPausedAsLongAsTheWayOutAndBackTakes) {
  std::vector<SessionMemory> sessions{working(1, 60, 0, 100), waiting(2, 60, 100)};
  sessions[0].busy = false;
  EXPECT_TRUE(decide_memory(sessions, rules(), at(159)).leave.empty());
  EXPECT_EQ(leaving(decide_memory(sessions, rules(), at(160))), std::vector<std::uint64_t>{1});
}

TEST(MemoryTurnsTest, AShortPauseCostsNobodyHisPlaceWhereLittleIsShort) {
  std::vector<SessionMemory> sessions{working(1, 60, 95, 100), waiting(2, 1, 100)};
  sessions[0].busy = false;
  sessions[1].on_device = sessions[1].movable = 40;
  EXPECT_TRUE(decide_memory(sessions, rules(), at(110)).leave.empty());
}

TEST(MemoryTurnsTest, TheLeastRecentlyUsedOfTheIdleLeavesFirst) {
  std::vector<SessionMemory> sessions{working(1, 50, 0, 200), working(2, 50, 0, 100),
                                      waiting(3, 40, 100)};
  sessions[0].busy = sessions[1].busy = false;
  EXPECT_EQ(leaving(decide_memory(sessions, rules(), at(300))), std::vector<std::uint64_t>{2});
}

TEST(MemoryTurnsTest, OtherWaitingSessionsHoldNothingThatTheNextOneNeeds) {
  std::vector<SessionMemory> sessions{waiting(1, 60, 1), waiting(2, 60, 2)};
  sessions[0].on_device = sessions[0].movable = 40;
  sessions[1].on_device = sessions[1].movable = 40;
  const auto decision = decide_memory(sessions, rules(), at(3));
  EXPECT_EQ(decision.next, 1u) << "it waits longer";
  EXPECT_EQ(leaving(decision), std::vector<std::uint64_t>{2});
}

TEST(MemoryTurnsTest, ASessionThatHasBegunToFetchStaysTheNextOne) {
  std::vector<SessionMemory> sessions{waiting(1, 60, 1), waiting(2, 30, 2)};
  sessions[1].fetches = true;
  EXPECT_EQ(decide_memory(sessions, rules(), at(3)).next, 2u);
}

TEST(MemoryTurnsTest, WhoNeedsMoreDuringItsTurnComesBeforeThoseWithoutOne) {
  // All of session 2's memory is 60 bytes. Its turn is worth an exchange of these after 1200 ms.
  std::vector<SessionMemory> sessions{waiting(1, 60, 101), waiting(2, 30, 150)};
  sessions[1].on_device = sessions[1].movable = 30;
  sessions[1].turn = at(100);
  sessions[1].since = at(1299);
  EXPECT_EQ(decide_memory(sessions, rules(), at(1300)).next, 2u);
  sessions[1].since = at(1300);
  EXPECT_EQ(decide_memory(sessions, rules(), at(1300)).next, 1u);
}

TEST(MemoryTurnsTest, ATurnDoesNotGoOnWhileItsSessionWaits) {
  std::vector<SessionMemory> sessions{waiting(1, 60, 101), waiting(2, 30, 150)};
  sessions[1].on_device = sessions[1].movable = 30;
  sessions[1].turn = at(100);
  EXPECT_EQ(decide_memory(sessions, rules(), at(9'000)).next, 2u);
  sessions[0].since = at(-1'000);
  EXPECT_EQ(decide_memory(sessions, rules(), at(9'000)).next, 1u) << "it is old";
}

TEST(MemoryTurnsTest, OfTwoThatNeedMoreDuringTheirTurnsTheEarlierTurnComesFirst) {
  std::vector<SessionMemory> sessions{waiting(1, 60, 101), waiting(2, 60, 150)};
  sessions[0].turn = at(100);
  sessions[1].turn = at(99);
  EXPECT_EQ(decide_memory(sessions, rules(), at(200)).next, 2u);
}

TEST(MemoryTurnsTest, AHigherPriorityComesFirstAndWaitsForNoTurn) {
  std::vector<SessionMemory> sessions{working(1, 60, 0, 2), waiting(2, 60, 1), waiting(3, 60, 2)};
  sessions[2].priority = 1;
  const auto decision = decide_memory(sessions, rules(), at(3));
  EXPECT_EQ(decision.next, 3u);
  EXPECT_EQ(leaving(decision), std::vector<std::uint64_t>{1});
}

TEST(MemoryTurnsTest, ALowerPriorityMakesNobodyLeaveThatWorksUntilItIsOld) {
  std::vector<SessionMemory> sessions{working(1, 60, 0, 9'999), waiting(2, 60, 1)};
  sessions[0].priority = 1;
  EXPECT_TRUE(decide_memory(sessions, rules(), at(10'000)).leave.empty());
  EXPECT_EQ(leaving(decide_memory(sessions, rules(), at(10'001))), std::vector<std::uint64_t>{1});
}

TEST(MemoryTurnsTest, WhatTheCommandDoesNotNeedLeavesBeforeOthersThatWork) {
  std::vector<SessionMemory> sessions{working(1, 40, 0, 9'000), waiting(2, 40, 1)};
  sessions[1].on_device = sessions[1].movable = 50;
  sessions[1].spare = 30;
  const auto decision = decide_memory(sessions, rules(), at(9'000));
  ASSERT_EQ(leaving(decision), std::vector<std::uint64_t>{2});
  EXPECT_EQ(decision.leave[0].bytes, 30u);
}

TEST(MemoryTurnsTest, WhatCanNeverFitIsSaidAndTheRestIsGivenRoom) {
  std::vector<SessionMemory> sessions{working(1, 30, 0, 9'000), waiting(2, 120, 1)};
  sessions[0].movable = 20;
  const auto decision = decide_memory(sessions, rules(), at(9'000));
  EXPECT_EQ(decision.beyond, 30u) << "10 bytes stay, so that 90 can be had";
  EXPECT_EQ(leaving(decision), std::vector<std::uint64_t>{1});
}

TEST(MemoryTurnsTest, NobodyLeavesInVain) {
  std::vector<SessionMemory> sessions{working(1, 40, 0, 0), working(2, 60, 0, 100),
                                      waiting(3, 90, 90)};
  sessions[0].busy = false;  // idle; but without session 2 there is not enough room
  const auto decision = decide_memory(sessions, rules(), at(100));
  EXPECT_TRUE(decision.leave.empty());
  EXPECT_GT(decision.again, at(100));
}

/// A device whose sessions compute, pause and wait at random, moved as the policy says.
class RandomSessions {
 public:
  explicit RandomSessions(std::uint32_t seed) : random_(seed) {
    const int count = pick(2, 6);
    for (int i = 0; i < count; ++i) {
      SessionMemory session{.session = static_cast<std::uint64_t>(i) + 1};
      session.weight = pick(1, 4);
      session.priority = pick(0, 5) == 0 ? 1 : 0;
      session.used = kStart;
      sessions_.push_back(session);
      needs_.push_back(static_cast<std::uint64_t>(pick(1, 100)));
      runs_until_.push_back(kStart);
      left_.push_back(pick(1, 8));
    }
  }

  /// Whether all sessions have done their work within a bound of virtual time.
  bool end_all() {
    constexpr int kSteps = 20'000;
    for (int step = 0; step < kSteps; ++step) {
      if (std::ranges::all_of(left_, [](int left) { return left == 0; })) return true;
      act();
      move(decide_memory(sessions_, rules(), now_));
      EXPECT_LE(used(), rules().capacity);
      now_ += milliseconds(pick(1, 50));
    }
    return false;
  }

 private:
  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  std::uint64_t used() const {
    std::uint64_t sum = 0;
    for (const SessionMemory& each : sessions_) sum += each.on_device;
    return sum;
  }

  void act() {
    for (std::size_t i = 0; i < sessions_.size(); ++i) {
      SessionMemory& session = sessions_[i];
      if (session.busy && runs_until_[i] <= now_) {
        session.busy = false;
        session.used = now_;
        if (--left_[i] == 0) session.on_device = session.movable = 0;  // it ends
      }
      if (session.busy || session.missing > 0 || left_[i] == 0 || pick(0, 3) != 0) continue;
      if (session.on_device >= needs_[i]) {
        begin(i);
      } else {
        session.missing = needs_[i] - session.on_device;
        session.since = now_;
      }
    }
  }

  void begin(std::size_t i) {
    sessions_[i].busy = true;
    sessions_[i].used = now_;
    runs_until_[i] = now_ + milliseconds(pick(1, 400));
  }

  void move(const MemoryDecision& decision) {
    for (const MemoryLeave& leave : decision.leave) {
      SessionMemory& session = sessions_[leave.session - 1];
      if (session.busy) continue;  // once its work has ended
      const std::uint64_t bytes = std::min(session.on_device, leave.bytes);
      session.on_device = session.movable = session.on_device - bytes;
      if (leave.session != decision.next) session.turn.reset();
      if (session.missing > 0) session.missing += bytes;
    }
    if (!decision.next) return;
    SessionMemory& next = sessions_[*decision.next - 1];
    const std::uint64_t room = rules().capacity - used();
    const std::uint64_t taken = std::min<std::uint64_t>(next.missing, room);
    next.on_device = next.movable = next.on_device + taken;
    next.missing -= taken;
    next.fetches = taken > 0 && next.missing > 0;
    if (taken > 0 && !next.turn) next.turn = now_;
    if (next.missing > 0) return;
    next.used = now_;
    begin(*decision.next - 1);
  }

  std::mt19937 random_;
  Time now_ = kStart;
  std::vector<SessionMemory> sessions_;
  std::vector<std::uint64_t> needs_;
  std::vector<Time> runs_until_;
  std::vector<int> left_;  // commands
};

TEST(MemoryTurnsTest, TenThousandRandomProgramsAllEnd) {
  for (std::uint32_t seed = 1; seed <= 10'000; ++seed)
    ASSERT_TRUE(RandomSessions(seed).end_all()) << "seed " << seed;
}

}  // namespace
}  // namespace slate::scheduler
