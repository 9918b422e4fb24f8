// TimeShare on a device that gives equal time slices to the engines with work on it.
#include "scheduler/time_share.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace slate::scheduler {
namespace {

constexpr Milliseconds kStep{0.05};

/// A kernel, and the pause of the program behind it.
struct Piece {
  double kernel_ms = 1, gap_ms = 0;
};
using Program = std::function<Piece()>;

Program steady(double kernel_ms, double gap_ms = 0) {
  return [=] { return Piece{kernel_ms, gap_ms}; };
}

/// An engine whose program launches one kernel after the other.
struct Engine {
  double weight = 1;
  Program program = steady(1);
  bool is_on = true;   // whether the program launches
  bool hangs = false;  // whether the engine shows nothing any more
  TimeShare share = {};
  double kernel_ms = 0, gap_ms = 0;  // what is left of the kernel, and of the gap
  double received_ms = 0, held_ms = 0;

  bool waits() const { return is_on && kernel_ms <= 0 && gap_ms <= 0; }
};

class TimeShareTest : public testing::Test {
 protected:
  Engine& add(double weight, Program program = steady(1)) {
    engines_.push_back(std::make_unique<Engine>());
    engines_.back()->weight = weight;
    engines_.back()->program = std::move(program);
    return *engines_.back();
  }
  void run(double ms) {
    const Time end = now_ + ticks(Milliseconds(ms));
    while (now_ < end) step();
  }
  /// Forgets what was received until now.
  void begin_count() {
    for (const auto& engine : engines_) engine->received_ms = engine->held_ms = 0;
  }
  void die(const Engine& engine) {
    std::erase_if(engines_, [&](const auto& each) { return each.get() == &engine; });
  }
  /// Of all time that engines have received.
  double part(const Engine& engine) const {
    double all = 0;
    for (const auto& each : engines_) all += each->received_ms;
    return engine.received_ms / all;
  }

 private:
  void step() {
    int running = 0;
    for (const auto& engine : engines_) {
      begin_next(*engine);
      running += engine->kernel_ms > 0 ? 1 : 0;
    }
    now_ += ticks(kStep);
    for (const auto& engine : engines_) {
      if (engine->share.holds()) engine->held_ms += kStep.count();
      if (engine->kernel_ms > 0) {
        engine->kernel_ms -= kStep.count() / running;
        engine->received_ms += kStep.count() / running;
        if (engine->kernel_ms <= 0) look(*engine);
      } else {
        engine->gap_ms -= kStep.count();
      }
      if (now_ >= engine->share.again()) look(*engine);
    }
  }
  void begin_next(Engine& engine) {
    if (!engine.waits()) return;
    look(engine);
    if (engine.share.holds()) return;
    const Piece piece = engine.program();
    engine.kernel_ms = piece.kernel_ms;
    engine.gap_ms = piece.gap_ms;
    look(engine);
  }
  void look(Engine& engine) {
    if (engine.hangs) return;
    std::vector<ShownTime> others;
    for (const auto& other : engines_) {
      if (other.get() != &engine) others.push_back(other->share.shown());
    }
    engine.share.update(
        now_, {.weight = engine.weight, .runs = engine.kernel_ms > 0, .waits = engine.waits()},
        others);
  }

  std::vector<std::unique_ptr<Engine>> engines_;
  Time now_ = Time(std::chrono::seconds(1000));
};

TEST_F(TimeShareTest, WithEqualWeightsNothingIsHeld) {
  Engine& one = add(1, steady(0.3));
  Engine& other = add(1, steady(4));
  run(2000);
  EXPECT_NEAR(part(one), 0.5, 0.01);
  EXPECT_EQ(one.held_ms, 0);
  EXPECT_EQ(other.held_ms, 0);
}

TEST_F(TimeShareTest, EachGetsItsWeightsPart) {
  Engine& heavy = add(3);
  Engine& light = add(1);
  run(3000);
  EXPECT_NEAR(part(heavy), 0.75, 0.01);
  EXPECT_EQ(heavy.held_ms, 0);
  EXPECT_GT(light.held_ms, 1000);
}

TEST_F(TimeShareTest, TheScaleOfWeightsDoesNotMatter) {
  Engine& heavy = add(0.03);
  Engine& light = add(0.01);
  run(3000);
  EXPECT_NEAR(part(heavy), 0.75, 0.01);
  Engine& most = add(3);  // the others have a hundredth of its weight
  begin_count();
  run(3000);
  EXPECT_GT(part(most), 0.95);
  EXPECT_GT(light.held_ms, 2500);
}

TEST_F(TimeShareTest, ThreeEnginesHaveTheirParts) {
  Engine& one = add(1);
  Engine& other = add(1);
  Engine& twice = add(2);
  run(5000);
  EXPECT_NEAR(part(one), 0.25, 0.01);
  EXPECT_NEAR(part(other), 0.25, 0.01);
  EXPECT_NEAR(part(twice), 0.5, 0.01);
}

TEST_F(TimeShareTest, ALoneEngineIsNotHeld) {
  Engine& lone = add(1);
  Engine& idle = add(9);
  idle.is_on = false;
  run(1000);
  EXPECT_EQ(lone.held_ms, 0);
  EXPECT_NEAR(lone.received_ms, 1000, 1);
}

TEST_F(TimeShareTest, IdlingSavesNothingUp) {
  Engine& one = add(1);
  Engine& other = add(1);
  other.is_on = false;
  run(5000);
  other.is_on = true;
  begin_count();
  run(500);
  EXPECT_NEAR(part(other), 0.5, 0.02);
  EXPECT_EQ(one.held_ms, 0);
}

TEST_F(TimeShareTest, WhereNobodyIsBusyAllBeginLevel) {
  Engine& old = add(1);
  Engine& older = add(1);
  run(1000);
  old.is_on = older.is_on = false;
  run(50);
  Engine& fresh = add(1);
  run(50);
  old.is_on = true;
  begin_count();
  run(500);
  EXPECT_NEAR(part(fresh), 0.5, 0.02);
  EXPECT_EQ(old.held_ms, 0);
}

TEST_F(TimeShareTest, AnEngineIsReleasedSoonOnceTheOtherIsIdle) {
  Engine& heavy = add(50);
  Engine& light = add(1);
  run(200);
  ASSERT_TRUE(light.share.holds());
  heavy.is_on = false;
  run(5);
  begin_count();
  run(100);
  EXPECT_EQ(light.held_ms, 0);
  EXPECT_NEAR(light.received_ms, 100, 1);
}

TEST_F(TimeShareTest, AnEngineThatDiesHoldsNobody) {
  const Engine& heavy = add(50);
  Engine& light = add(1);
  run(200);
  ASSERT_TRUE(light.share.holds());
  die(heavy);
  run(2);
  begin_count();
  run(100);
  EXPECT_EQ(light.held_ms, 0);
}

TEST_F(TimeShareTest, AnEngineThatHangsHoldsNobodyForLong) {
  Engine& heavy = add(50);
  Engine& light = add(1);
  run(200);
  ASSERT_TRUE(light.share.holds());
  heavy.hangs = true;
  heavy.is_on = false;
  run(TimeShare::kSilent.count() + 5);
  begin_count();
  run(100);
  EXPECT_EQ(light.held_ms, 0);
}

TEST_F(TimeShareTest, TheTimeOfLongKernelsIsChargedAfterwards) {
  Engine& heavy = add(3, steady(0.5));
  Engine& light = add(1, steady(200));
  run(20'000);
  EXPECT_NEAR(part(heavy), 0.75, 0.03);
  EXPECT_EQ(heavy.held_ms, 0);
  EXPECT_GT(light.held_ms, 0);
}

TEST_F(TimeShareTest, WhatAVeryLongKernelHasReceivedIsForgotten) {
  int kernels = 0;
  const Engine& heavy = add(3);
  Engine& light = add(1, [&] { return Piece{++kernels == 1 ? 20'000.0 : 1.0, 0}; });
  while (kernels < 2 && !light.share.holds()) run(1);
  while (light.kernel_ms > 0) run(1);
  begin_count();
  run(4000);
  EXPECT_EQ(heavy.held_ms, 0);
  EXPECT_NEAR(light.held_ms, 3 * TimeShare::kMostLead.count(), 600);
}

TEST_F(TimeShareTest, AProgramThatWaitsForEachLaunchKeepsItsShare) {
  Engine& heavy = add(3, steady(0.5, 0.2));
  Engine& light = add(1);
  run(3000);
  // It has nothing of the gaps in which the device was kept for it. Without shares it has 0.44.
  EXPECT_GT(part(heavy), 0.6);
  EXPECT_GT(light.held_ms, 500);
}

TEST_F(TimeShareTest, AProgramThatPausesLongIsNotWaitedFor) {
  Engine& heavy = add(3, steady(0.05, 5));
  Engine& light = add(1);
  run(3000);
  EXPECT_GT(light.received_ms, 2700);
  EXPECT_NEAR(heavy.received_ms, 3000 / 5.1 * 0.05, 10);
}

TEST_F(TimeShareTest, ProgramsWithGapsOfEqualWeightAreNotHeldForLong) {
  Engine& one = add(1, steady(0.5, 0.2));
  Engine& other = add(1, steady(3));
  run(5000);
  EXPECT_LT(one.held_ms, 100);
  EXPECT_LT(other.held_ms, 100);
}

TEST_F(TimeShareTest, AChangedWeightCountsFromThenOn) {
  Engine& one = add(1);
  Engine& other = add(1);
  run(1000);
  one.weight = 4;
  begin_count();
  run(3000);
  EXPECT_NEAR(part(one), 0.8, 0.01);
  EXPECT_EQ(one.held_ms, 0);
  EXPECT_GT(other.held_ms, 1000);
}

TEST_F(TimeShareTest, TheShownPartIsThatOfTheLastSecond) {
  Engine& heavy = add(3);
  Engine& light = add(1);
  run(6000);
  EXPECT_NEAR(heavy.share.shown().part, 0.75, 0.06);
  EXPECT_NEAR(light.share.shown().part, 0.25, 0.06);
  light.is_on = false;
  run(6000);
  EXPECT_GT(heavy.share.shown().part, 0.98);
  const ShownTime& idle = light.share.shown();
  EXPECT_LT(idle.part_at(idle.at + std::chrono::seconds(6)), 0.01) << "though it writes no more";
}

TEST_F(TimeShareTest, TheClockMayGoBackBetweenThreads) {
  TimeShare share;
  const ShownTime other{.uses = true, .holds = false, .received_ms = 0, .part = 0, .at = {}};
  const Time at = Time(std::chrono::seconds(5));
  share.update(at, {.weight = 1, .runs = true, .waits = false}, std::span(&other, 1));
  share.update(at - std::chrono::seconds(1), {.weight = 1, .runs = true, .waits = false},
               std::span(&other, 1));
  EXPECT_EQ(share.shown().at, at);
  EXPECT_EQ(share.shown().received_ms, 0);
}

TEST_F(TimeShareTest, RandomProgramsThatAlwaysHaveWorkGetTheirParts) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    const auto any = [&](double from, double to) {
      return std::uniform_real_distribution(from, to)(random);
    };
    const int count = 2 + static_cast<int>(random() % 4);
    std::vector<Engine*> chosen;
    double weights = 0;
    for (int i = 0; i < count; ++i) {
      const double longest = any(0.2, 20);
      auto length = std::make_shared<std::mt19937>(random());
      chosen.push_back(&add(any(0.5, 8), [=] {
        return Piece{std::uniform_real_distribution(0.1, longest)(*length), 0};
      }));
      weights += chosen.back()->weight;
    }
    run(20'000);
    for (const Engine* const engine : chosen)
      EXPECT_NEAR(part(*engine), engine->weight / weights, 0.03) << "seed " << seed;
    for (const Engine* const engine : chosen) die(*engine);
  }
}

}  // namespace
}  // namespace slate::scheduler
