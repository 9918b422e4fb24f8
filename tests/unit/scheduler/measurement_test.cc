// Measurement: what the members of a group get done, from completions and progress.
#include "scheduler/measurement.h"

#include <gtest/gtest.h>

namespace slate::scheduler {
namespace {

Time at(double ms) {
  return Time{} + std::chrono::duration_cast<Time::duration>(Milliseconds(ms));
}

/// `launches` that took `took` ms each and would have taken `alone` ms by themselves.
void add(Measurement& measurement, std::size_t member, double ended, double took, double alone,
         std::uint32_t launches = 1, bool timed = true) {
  measurement.add(member, Milliseconds(alone * launches),
                  {.placement = {},
                   .launches = launches,
                   .device_time = Milliseconds(timed ? took : 0),
                   .ended = at(ended),
                   .timed = timed});
}

TEST(MeasurementTest, ASampleOfOneKernelSaysLittleOfAProgramWithTwo) {
  Measurement measurement;
  measurement.begin(2);
  // Both launch a long kernel and a short one in turn, and a sample finds the short one each time,
  // behind the other program's long one. In truth the two are 1.25 times quicker than in turns.
  for (int i = 0; i < 10; ++i) {
    for (const std::size_t member : {0U, 1U}) {
      add(measurement, member, 1.6 * i, 0.16, 0.01);
      add(measurement, member, 1.6 * i + 1.5, 0, 0.11, 9, false);
    }
  }
  EXPECT_TRUE(measurement.covers(Milliseconds(15)));
  EXPECT_FALSE(measurement.covers(Milliseconds(16)));
  for (const double rate : measurement.rates()) EXPECT_NEAR(rate, 0.01 / 0.16, 1e-9);
  for (const double rate : measurement.throughputs()) EXPECT_NEAR(rate, 0.625, 0.05);
}

TEST(ProgressSpanTest, TasksThatNewWorkersTakeAtOnceAreNoProgress) {
  ProgressSpan span;
  const auto next = [&](double ms, std::uint64_t done, std::uint32_t count = 16) {
    return span.next({.placement = {.first = 0, .count = count},
                      .blocks_done = done,
                      .blocks = 1000,
                      .at = at(ms)});
  };
  EXPECT_EQ(next(0, 0).ms, 0);
  EXPECT_EQ(next(0.1, 60).ms, 0) << "the first tasks, handed out";
  EXPECT_EQ(next(0.6, 70).ms, 0);
  const ProgressSpan::Step step = next(1.6, 90);
  EXPECT_NEAR(step.ms, 1, 1e-6);
  EXPECT_NEAR(step.grids, 0.02, 1e-9);
  EXPECT_EQ(next(1.7, 150, 17).ms, 0) << "more workers";
  EXPECT_EQ(next(2.3, 160, 17).ms, 0);
  EXPECT_NEAR(next(3.3, 180, 17).grids, 0.02, 1e-9);
}

TEST(MeasurementTest, TheFirstBatchOnlyBeginsTheTime) {
  Measurement measurement;
  measurement.begin(1);
  add(measurement, 0, 100, 4, 2);
  EXPECT_DOUBLE_EQ(measurement.throughputs()[0], 0.5);  // nothing better is known
  add(measurement, 0, 105, 4, 2);
  EXPECT_NEAR(measurement.throughputs()[0], 0.4, 1e-6);  // with the gap
  EXPECT_DOUBLE_EQ(measurement.rates()[0], 0.5);
  measurement.begin(1);
  EXPECT_FALSE(measurement.seen(1, Milliseconds(1)));
}

TEST(MeasurementTest, OneLongLaunchIsEnough) {
  Measurement measurement;
  measurement.begin(1);
  add(measurement, 0, 20, 16, 8);
  EXPECT_TRUE(measurement.covers(Milliseconds(16)));
  EXPECT_FALSE(measurement.covers(Milliseconds(17)));
  EXPECT_TRUE(measurement.seen(2, Milliseconds(16)));
}

TEST(MeasurementTest, OfWorkThatDoesNotEndTheProgressCounts) {
  Measurement measurement;
  measurement.begin(1);
  Progress progress{.placement = {.first = 0, .count = 4}, .blocks = 1000, .at = at(1)};
  measurement.add_progress(0, progress, Milliseconds(100));
  progress.blocks_done = 20;
  progress.at = at(2);
  measurement.add_progress(0, progress, Milliseconds(100));
  progress.blocks_done = 70;
  progress.at = at(12);
  measurement.add_progress(0, progress, Milliseconds(100));
  EXPECT_TRUE(measurement.covers(Milliseconds(10)));
  EXPECT_NEAR(measurement.throughputs()[0], 0.5, 1e-9);
}

}  // namespace
}  // namespace slate::scheduler
