#include "daemon/supervisor/session_rules.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace slate::daemon {
namespace {

class SessionRulesTest : public testing::Test {
 protected:
  SessionRulesTest() {
    config_.max_weight = 4;
    config_.programs.push_back({"train", {.weight = 2, .priority = 3}});
    config_.programs.push_back({"heavy", {.weight = 9, .priority = 0}});
  }
  SessionSettings begins(const std::string& program, const AskedSettings& wishes,
                         const std::optional<KeptSettings>& kept = {}) const {
    return at_start(config_, program, user_, wishes, kept).now;
  }

  Config config_;
  const std::uint32_t user_ = ::geteuid() + 12345;
  const std::uint32_t administrator_ = ::geteuid();
};

TEST_F(SessionRulesTest, WithoutAWordASessionBeginsAsConfigured) {
  EXPECT_EQ(begins("train", {}), (SessionSettings{2, 3}));
  EXPECT_EQ(begins("other", {}), (SessionSettings{1, 0}));
}

TEST_F(SessionRulesTest, TheEnvironmentLowersPrioritiesOnly) {
  EXPECT_EQ(begins("train", {.weight = {}, .priority = -2}).priority, -2);
  EXPECT_EQ(begins("train", {.weight = {}, .priority = 9}).priority, 3);
}

TEST_F(SessionRulesTest, TheEnvironmentsWeightIsCutAtTheMost) {
  EXPECT_EQ(begins("train", {.weight = 0.5, .priority = {}}).weight, 0.5);
  EXPECT_EQ(begins("train", {.weight = 50, .priority = {}}).weight, 4);
  // What the configuration gives a program its user may have.
  EXPECT_EQ(begins("heavy", {.weight = 50, .priority = {}}).weight, 9);
}

TEST_F(SessionRulesTest, NonsenseInTheEnvironmentIsNotHeard) {
  EXPECT_EQ(begins("train", {.weight = -1, .priority = -99}), (SessionSettings{2, 3}));
}

TEST_F(SessionRulesTest, WhatIsKeptOutranksTheEnvironment) {
  EXPECT_EQ(
      begins("other", {.weight = 3, .priority = -9}, KeptSettings{.weight = 2, .priority = -1}),
      (SessionSettings{2, -1}));
  EXPECT_EQ(
      begins("other", {.weight = 3, .priority = -9}, KeptSettings{.weight = 2, .priority = {}}),
      (SessionSettings{2, -9}));
}

TEST_F(SessionRulesTest, WhatAUserHasKeptStaysWithinALimitThatWasLoweredSince) {
  EXPECT_EQ(begins("other", {}, KeptSettings{.weight = 60, .priority = 8}),
            (SessionSettings{4, 0}));
}

TEST_F(SessionRulesTest, WhatTheAdministratorKeepsIsAlsoTheMost) {
  const KeptSettings kept{.weight = 20, .priority = -3, .by_administrator = true};
  const Standing standing = at_start(config_, "other", user_, {}, kept);
  EXPECT_EQ(standing.now, (SessionSettings{20, -3}));
  EXPECT_FALSE(changed(standing, {.weight = {}, .priority = 0}, user_));
  EXPECT_TRUE(changed(standing, {.weight = 19, .priority = -4}, user_));
}

TEST_F(SessionRulesTest, AUserCannotUndoWhatTheAdministratorLowered) {
  const Standing begun = at_start(config_, "train", user_, {}, {});
  const auto lowered = changed(begun, {.weight = {}, .priority = -5}, administrator_);
  ASSERT_TRUE(lowered);
  EXPECT_EQ(changed(*lowered, {.weight = {}, .priority = 3}, user_).error().code,
            ErrorCode::kPermission);
  EXPECT_TRUE(changed(*lowered, {.weight = {}, .priority = -6}, user_));
}

TEST_F(SessionRulesTest, AUserMayGoBackToWhatHeGaveUpHimself) {
  const Standing begun = at_start(config_, "train", user_, {}, {});
  const auto lowered = changed(begun, {.weight = 0.1, .priority = -5}, user_);
  ASSERT_TRUE(lowered);
  EXPECT_EQ(changed(*lowered, {.weight = 2, .priority = 3}, user_)->now, (SessionSettings{2, 3}));
}

TEST_F(SessionRulesTest, TheAdministratorMayAnything) {
  const Standing begun = at_start(config_, "other", user_, {}, {});
  EXPECT_EQ(changed(begun, {.weight = 100, .priority = 10}, administrator_)->now,
            (SessionSettings{100, 10}));
  EXPECT_EQ(at_start(config_, "other", administrator_, {.weight = 100, .priority = 10}, {}).now,
            (SessionSettings{100, 10}));
  EXPECT_EQ(changed(begun, {.weight = 101, .priority = {}}, administrator_).error().code,
            ErrorCode::kInvalidValue);
}

}  // namespace
}  // namespace slate::daemon
