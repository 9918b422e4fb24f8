// How many lines of the log a user can cause.
#include "base/user_log.h"

#include <gtest/gtest.h>

namespace slate {
namespace {

using std::chrono::seconds;

constexpr LogShares::Time kNow{std::chrono::hours(1)};

TEST(LogSharesTest, AUserHasSomeLinesAMinuteAndOthersHaveTheirs) {
  LogShares shares;
  for (std::uint32_t i = 0; i < LogShares::kLinesOfUser; ++i)
    EXPECT_EQ(shares.take(1000, kNow), 0u) << i;
  EXPECT_EQ(shares.take(1000, kNow), std::nullopt);
  EXPECT_EQ(shares.take(1000, kNow + seconds(59)), std::nullopt);
  EXPECT_EQ(shares.take(1001, kNow), 0u);
}

TEST(LogSharesTest, TheNextLineSaysHowManyWereLeftOut) {
  LogShares shares;
  for (std::uint32_t i = 0; i < LogShares::kLinesOfUser + 7; ++i) (void)shares.take(1000, kNow);
  EXPECT_EQ(shares.take(1000, kNow + LogShares::kWindow), 7u);
  EXPECT_EQ(shares.take(1000, kNow + LogShares::kWindow), 0u) << "told once";
}

TEST(LogSharesTest, UsersBeyondTheMostHaveOneShareTogether) {
  LogShares shares;
  for (std::size_t uid = 0; uid < LogShares::kMostUsers; ++uid)
    EXPECT_TRUE(shares.take(static_cast<uid_t>(uid), kNow));
  std::uint32_t lines = 0;
  for (uid_t uid = 50'000; uid < 51'000; ++uid) lines += shares.take(uid, kNow) ? 1 : 0;
  EXPECT_EQ(lines, LogShares::kLinesOfUser);
  EXPECT_EQ(shares.take(7, kNow), 0u) << "those who are known keep theirs";
}

TEST(LogSharesTest, PlacesOfUsersWhoAreGoneAreFree) {
  LogShares shares;
  for (std::size_t uid = 0; uid < LogShares::kMostUsers; ++uid)
    (void)shares.take(static_cast<uid_t>(uid), kNow);
  const auto later = kNow + LogShares::kWindow;
  std::uint32_t lines = 0;
  for (uid_t uid = 50'000; uid < 50'100; ++uid) lines += shares.take(uid, later) ? 1 : 0;
  EXPECT_EQ(lines, 100u);
}

}  // namespace
}  // namespace slate
