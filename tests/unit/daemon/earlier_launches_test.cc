// Launches from before a second user came, and who waits for them.
#include "daemon/engine/earlier_launches.h"

#include <gtest/gtest.h>

#include "daemon/engine/stream_order.h"

namespace slate::daemon {
namespace {

using std::chrono::milliseconds;

class FakeLauncher final : public Launcher {
 public:
  std::uint64_t bare_turn() const override { return turn_; }
  void mark_unfenced() override { marked_ = launched_; }
  bool runs_marked() const override { return done_ < marked_; }

  std::uint64_t turn_ = 0, launched_ = 0, done_ = 0, marked_ = 0;
};

class EarlierLaunchesTest : public testing::Test {
 protected:
  std::vector<std::uint64_t> of_others(milliseconds at, uid_t uid = 2) {
    return earlier_.of_others(uid, begin_ + at, sessions_);
  }
  void come() { earlier_.fence_came(begin_, sessions_); }

  const std::vector<std::uint64_t> none_{}, first_{10};
  const EarlierLaunches::Time begin_{std::chrono::hours(1)};
  FakeLauncher launcher_;
  std::vector<EarlierLaunches::Session> sessions_{{.id = 10, .uid = 1, .launcher = &launcher_}};
  EarlierLaunches earlier_;
};

TEST_F(EarlierLaunchesTest, WhatWasLaunchedBeforeIsWaitedFor) {
  launcher_.launched_ = 3;
  come();
  EXPECT_EQ(of_others(milliseconds(2)), first_);
  launcher_.launched_ = 9;  // with code that nothing fences: that is allowed
  launcher_.done_ = 2;
  EXPECT_EQ(of_others(milliseconds(3)), first_);
  launcher_.done_ = 3;
  EXPECT_EQ(of_others(milliseconds(4)), none_);
}

TEST_F(EarlierLaunchesTest, ItsOwnUserDoesNotWait) {
  launcher_.launched_ = 3;
  come();
  EXPECT_EQ(of_others(milliseconds(2), 1), none_);
}

TEST_F(EarlierLaunchesTest, AThreadThatHasNothingBegunMayNotHaveSeenTheFenceYet) {
  come();
  EXPECT_EQ(of_others(milliseconds(0)), first_);
  EXPECT_EQ(of_others(EarlierLaunches::kSeen), none_);
}

TEST_F(EarlierLaunchesTest, ALaunchThatWasBegunMayBeWithoutTheFence) {
  launcher_.turn_ = 7;
  come();
  EXPECT_EQ(of_others(milliseconds(5)), first_);
  launcher_.launched_ = 1;
  EXPECT_EQ(of_others(milliseconds(6)), first_);
  launcher_.turn_ = 0;
  EXPECT_EQ(of_others(milliseconds(7)), first_) << "it runs";
  launcher_.done_ = 1;
  EXPECT_EQ(of_others(milliseconds(8)), none_);
  launcher_.turn_ = 9;
  EXPECT_EQ(of_others(milliseconds(9)), none_) << "the next launch sees the fence";
}

TEST_F(EarlierLaunchesTest, ALaunchThatWasBegunMayBeSeenAMomentLater) {
  come();
  launcher_.turn_ = 7;
  EXPECT_EQ(of_others(milliseconds(5)), first_);
  launcher_.launched_ = 1;
  launcher_.turn_ = 0;
  EXPECT_EQ(of_others(milliseconds(6)), first_) << "it runs";
  launcher_.done_ = 1;
  EXPECT_EQ(of_others(milliseconds(7)), none_);
}

TEST_F(EarlierLaunchesTest, ASessionThatHasEndedIsNotWaitedFor) {
  launcher_.launched_ = 1;
  come();
  sessions_.clear();
  EXPECT_EQ(of_others(milliseconds(5)), none_);
}

TEST(LogicalStreamTest, ALaunchThatWasRefusedIsNotWaitedFor) {
  LogicalStream stream;
  stream.launches = stream.launches_done = stream.launches_gone = 3;
  stream.expect_unfenced();
  stream.mark_unfenced();
  EXPECT_FALSE(stream.runs_marked());
  EXPECT_TRUE(stream.runs_unfenced()) << "it may be being submitted";
  stream.launches = 4;
  EXPECT_TRUE(stream.runs_marked());
  stream.launches_gone = 4;
  EXPECT_FALSE(stream.runs_marked());
}

}  // namespace
}  // namespace slate::daemon
