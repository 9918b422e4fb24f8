// Blame on a clock of the test's.
#include "daemon/supervisor/blame.h"

#include <gtest/gtest.h>

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;

constexpr Blame::Limits kLimits{.bar_after = 3, .bar = 600s};
constexpr Clock::time_point at(Clock::duration time) {
  return Clock::time_point{} + 1h + time;
}

TEST(BlameTest, AUserIsBarredAfterSoManyIncidents) {
  Blame blame;
  EXPECT_EQ(blame.count(7, "first", kLimits, at(0s)).incidents, 1u);
  EXPECT_FALSE(blame.count(7, "second", kLimits, at(60s)).barred);
  EXPECT_FALSE(blame.barred(7, at(60s)));
  const auto third = blame.count(7, "third", kLimits, at(120s));
  EXPECT_EQ(third.incidents, 3u);
  EXPECT_TRUE(third.barred);
  const auto barred = blame.barred(7, at(120s + 1ms));
  ASSERT_TRUE(barred);
  EXPECT_EQ(barred->left, 600s);
  EXPECT_EQ(bar_reason(*barred),
            "programs of uid 7 are barred for 600 s more; the last reason: third");
  EXPECT_FALSE(blame.barred(8, at(121s)));
  EXPECT_EQ(blame.all_barred(at(121s)).size(), 1u);
}

TEST(BlameTest, ABarEndsAndTheCountBeginsAnew) {
  Blame blame;
  for (int i = 0; i < 3; ++i) blame.count(7, "it", kLimits, at(0s));
  EXPECT_TRUE(blame.barred(7, at(599s)));
  EXPECT_FALSE(blame.barred(7, at(600s)));
  EXPECT_TRUE(blame.all_barred(at(600s)).empty());
  EXPECT_EQ(blame.count(7, "it", kLimits, at(601s)).incidents, 1u);
}

TEST(BlameTest, OldIncidentsDoNotCount) {
  Blame blame;
  blame.count(7, "it", kLimits, at(0s));
  blame.count(7, "it", kLimits, at(1s));
  EXPECT_EQ(blame.count(7, "it", kLimits, at(Blame::kWindow)).incidents, 2u);
}

TEST(BlameTest, AnotherSlatedGoesOnWithIt) {
  Blame before;
  for (int i = 0; i < 3; ++i) before.count(7, "it", kLimits, at(0s));
  before.count(8, "first", kLimits, at(1s));
  before.count(8, "second", kLimits, at(2s));
  Blame after;
  after.take_over(nlohmann::json::parse(before.hand_over().dump()));
  const auto barred = after.barred(7, at(10s));
  ASSERT_TRUE(barred);
  EXPECT_EQ(barred->left, 590s);
  EXPECT_EQ(barred->last, "it");
  EXPECT_FALSE(after.barred(8, at(10s)));
  EXPECT_TRUE(after.count(8, "third", kLimits, at(10s)).barred);
}

TEST(BlameTest, EachUserHasACountOfHisOwn) {
  Blame blame;
  for (std::uint32_t uid = 1; uid <= 10; ++uid)
    EXPECT_EQ(blame.count(uid, "it", kLimits, at(0s)).incidents, 1u);
}

TEST(BlameTest, WithoutALimitNobodyIsBarred) {
  Blame blame;
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(blame.count(7, "it", {.bar_after = 0, .bar = 600s}, at(0s)).barred);
  EXPECT_FALSE(blame.barred(7, at(1s)));
}

}  // namespace
}  // namespace slate::daemon
