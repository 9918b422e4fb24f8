// adaptive: what counts when a candidate is tried. Driven by hand: two kernels of 5 ms, as
// workers 6, or of 1 ms.
#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "scheduler/adaptive.h"
#include "tests/unit/scheduler/gpu_model.h"

namespace slate::scheduler::test {
namespace {

class CandidatesTest : public testing::Test {
 protected:
  explicit CandidatesTest(double ms = 5) : alone_(ms) {
    for (std::size_t i = 0; i < 2; ++i) {
      kernels_[i] = profiles_.find_or_add({.name = i == 0 ? "a" : "b"});
      auto& alone = profiles_.kernel(kernels_[i]).alone;
      alone[static_cast<std::size_t>(Form::kNative)].add(alone_, 20);
      alone[static_cast<std::size_t>(Form::kWorker)].add(alone_ * 1.2, 20);
      sessions_[i].id = i + 1;
    }
  }

  void at(double ms) { now_ = Time{} + ticks(Milliseconds(1000 + ms)); }
  /// Both sessions wait for a launch, unless they run one; what is started runs from now on.
  void decide() {
    for (std::size_t i = 0; i < 2; ++i) {
      if (sessions_[i].running.launches > 0 || pauses_[i]) continue;
      sessions_[i].waiting = WaitingLaunch{.kernel = kernels_[i],
                                           .blocks = 100'000,
                                           .wave = 1056,
                                           .worker_legal = true,
                                           .since = now_};
    }
    decisions_.clear();
    policy_.decide({.now = now_, .machine = machine_, .sessions = sessions_}, decisions_);
    if (decisions_.reason == "search") score_ = decisions_.score;
    for (const Start& start : decisions_.start) {
      SessionView& session = sessions_[start.session - 1];
      session.waiting.reset();
      session.running = {.launches = 1,
                         .expected = Milliseconds(alone_),
                         .kernel = kernels_[start.session - 1],
                         .form = start.form,
                         .placement = start.placement,
                         .tag = start.tag,
                         .resizable = start.placement.blocks_per_sm != 0,
                         .started = now_};
    }
  }
  /// The session's launch has ended, and took `ms` of the device's time.
  void ends(std::size_t session, double ms) {
    SessionView& view = sessions_[session - 1];
    const RunningWork ran = view.running;
    view.running = {};
    view.idle_since = now_;
    policy_.finished({.session = session,
                      .kernel = ran.kernel,
                      .main = ran.kernel,
                      .form = ran.form,
                      .placement = ran.placement,
                      .tag = ran.tag,
                      .blocks = 100'000,
                      .device_time = Milliseconds(ms),
                      .started = ran.started,
                      .ended = now_});
  }
  /// Together each takes 1.6 times as long: the search has begun, and its first candidate, a split,
  /// is next.
  void reach_first_split() {
    at(0);
    decide();
    at(alone_ / 2);
    decide();  // short ones begin one after the other
    const double together = 1.6 * alone_;
    for (double ms = together; policy_.arrangement().sharing != Sharing::kPlaced; ms += together) {
      ASSERT_LT(ms, 100);
      at(ms);
      ends(1, together);
      decide();
      ends(2, together);
      decide();
    }
    EXPECT_NEAR(score_.value_or(0), 0.8, 1e-6);
    score_.reset();
  }

  const double alone_;
  const Machine machine_ = h200();
  ProfileTable profiles_;
  std::array<KernelId, 2> kernels_{};
  /// Whatever a search costs.
  static Settings generous() {
    Settings settings;
    settings.search_loss = 1;
    return settings;
  }
  AdaptivePolicy policy_{generous(), profiles_};
  std::array<SessionView, 2> sessions_;
  std::array<bool, 2> pauses_{};  // it brings no launch
  Time now_{};
  Decisions decisions_;
  std::optional<double> score_;  // of the newest candidate that is over
};

TEST_F(CandidatesTest, WhatOverlappedCountsWhenThereIsNothingElse) {
  reach_first_split();
  // The first one's launch is still one of all together, and takes 20 ms more.
  ASSERT_EQ(sessions_[0].running.placement, machine_.whole());
  ASSERT_NE(sessions_[1].running.placement, machine_.whole());
  at(18);
  ends(2, 10);
  decide();
  at(28);
  ends(1, 20);
  decide();
  at(30);
  ends(2, 12);  // for most of the time beside that
  decide();
  at(38);
  ends(1, 10);
  decide();
  EXPECT_FALSE(score_.has_value());  // the second one has shown nothing of the split alone
  at(90);
  decide();
  ASSERT_TRUE(score_.has_value());
  // 5 of 10 ms, and of 10 and 12: 10 of 22.
  const double fast = 0.5, slow = 10.0 / 22;
  EXPECT_NEAR(*score_, (1 / fast + 1 - slow / fast) / 2, 1e-6);
}

class ShortCandidatesTest : public CandidatesTest {
 protected:
  ShortCandidatesTest() : CandidatesTest(1) {}
};

TEST_F(ShortCandidatesTest, GapsBetweenWorkersWithAQuotaCount) {
  reach_first_split();
  // On parts of the device both are so slow that only quotas are left to try.
  for (double ms = 20; policy_.arrangement().quotas[0] == 0; ms += 6) {
    ASSERT_LT(ms, 1000);
    at(ms);
    ends(1, 6);
    ends(2, 6);
    decide();
  }
  ASSERT_EQ(policy_.arrangement().quotas[0], 4U);
  score_.reset();
  const double begin = Milliseconds(now_ - Time{}).count() - 1000;
  const auto after = [&](double ms) { at(begin + ms); };
  // They begin one after the other. Workers take 1.6 ms each, and pause for 0.4.
  after(0.5);
  decide();
  after(1.6);
  ends(1, 1.6);
  pauses_[0] = true;
  decide();
  after(1.7);
  ends(2, 1.2);
  decide();
  after(2);
  pauses_[0] = false;
  decide();
  after(2.9);
  ends(2, 1.2);
  decide();
  EXPECT_FALSE(score_.has_value());
  after(3.6);
  ends(1, 1.6);
  decide();
  ASSERT_TRUE(score_.has_value());
  const double fast = 1 / 1.2, slow = 1 / 2.0;
  EXPECT_NEAR(*score_, (1 / fast + 1 - slow / fast) / 2, 1e-6);
}

}  // namespace
}  // namespace slate::scheduler::test
