#include "daemon/supervisor/session_rules.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace slate::daemon {
namespace {

class SessionRulesTest : public testing::Test {
 protected:
  SessionRulesTest() {
    config_.max_weight = 4;
    config_.programs.push_back({"train", std::to_string(user_), {.weight = 2, .priority = 3}});
    config_.programs.push_back({"heavy", std::to_string(user_), {.weight = 9, .priority = 0}});
  }
  SessionSettings begins(const std::string& program, const AskedSettings& wishes,
                         const std::optional<KeptSettings>& kept = {}) const {
    return at_start(UserRules(config_), program, user_, wishes, kept).now;
  }

  const std::uint32_t user_ = ::geteuid() + 12345;
  const std::uint32_t administrator_ = ::geteuid();
  Config config_;
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

TEST_F(SessionRulesTest, ANameAloneRaisesNothing) {
  config_.programs.push_back({"famous", "", {.weight = 50, .priority = 9}});
  config_.programs.push_back({"batch", "", {.weight = 0.5, .priority = -5}});
  EXPECT_EQ(begins("famous", {}), (SessionSettings{1, 0}));
  EXPECT_EQ(begins("famous", {.weight = 50, .priority = 9}), (SessionSettings{4, 0}));
  EXPECT_EQ(begins("batch", {}), (SessionSettings{0.5, -5}));
  EXPECT_EQ(at_start(UserRules(config_), "famous", administrator_, {}, {}).now,
            (SessionSettings{50, 9}));
  EXPECT_EQ(at_start(UserRules(config_), "train", user_ + 1, {}, {}).now, (SessionSettings{1, 0}))
      << "another user's rule";
}

TEST_F(SessionRulesTest, AUsersTableIsBeforeHisGroups) {
  config_.max_sessions_per_user = 7;
  config_.groups.push_back({.name = "100", .weight = 2, .max_sessions = 3, .memory = {}});
  config_.groups.push_back({.name = "200", .weight = 5, .max_sessions = 0, .memory = {}});
  config_.users.push_back({.name = "1234", .weight = 9, .max_sessions = 0, .memory = {}});
  config_.users.push_back(
      {.name = "nobody-knows-me", .weight = 8, .max_sessions = 1, .memory = {}});
  const UserRules rules(config_);
  EXPECT_EQ(rules.of({1, {200, 100}}).weight, 2) << "the first table that fits";
  EXPECT_EQ(rules.max_sessions_of({1, {200, 100}}), 3u);
  EXPECT_EQ(rules.of({1, {200}}).weight, 5);
  EXPECT_EQ(rules.of({1234, {100}}).weight, 9);
  EXPECT_EQ(rules.max_sessions_of({1234, {100}}), 7u);
  EXPECT_EQ(rules.of({1, {}}).weight, 1);
}

TEST_F(SessionRulesTest, TheBoundOfBlockingIsTheUsersAndANameAloneOnlyLowersIt) {
  config_.max_blocking_ms = 1000;
  config_.groups.push_back({.name = "100", .memory = {}, .max_blocking_ms = 0});
  config_.users.push_back({.name = "1234", .memory = {}, .max_blocking_ms = 500});
  config_.programs.push_back({"long", std::to_string(user_), {}, 60'000});
  config_.programs.push_back({"famous", "", {}, 9000});
  config_.programs.push_back({"batch", "", {}, 10});
  config_.programs.push_back({"free", "", {}, 0});
  const UserRules rules(config_);
  EXPECT_EQ(rules.max_blocking_of({1, {}}, "any"), 1000);
  EXPECT_EQ(rules.max_blocking_of({1, {100}}, "any"), 0) << "no bound";
  EXPECT_EQ(rules.max_blocking_of({1234, {100}}, "any"), 500);
  EXPECT_EQ(rules.max_blocking_of({user_, {}}, "long"), 60'000);
  EXPECT_EQ(rules.max_blocking_of({user_, {}}, "train"), 1000) << "a table that does not say";
  EXPECT_EQ(rules.max_blocking_of({1, {}}, "long"), 1000) << "another user's table";
  EXPECT_EQ(rules.max_blocking_of({1, {}}, "famous"), 1000);
  EXPECT_EQ(rules.max_blocking_of({1, {}}, "free"), 1000);
  EXPECT_EQ(rules.max_blocking_of({1, {}}, "batch"), 10);
  EXPECT_EQ(rules.max_blocking_of({1, {100}}, "batch"), 10);
  EXPECT_EQ(rules.max_blocking_of({administrator_, {}}, "famous"), 9000);
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
  const Standing standing = at_start(UserRules(config_), "other", user_, {}, kept);
  EXPECT_EQ(standing.now, (SessionSettings{20, -3}));
  EXPECT_FALSE(changed(standing, {.weight = {}, .priority = 0}, user_));
  EXPECT_TRUE(changed(standing, {.weight = 19, .priority = -4}, user_));
}

TEST_F(SessionRulesTest, AUserCannotUndoWhatTheAdministratorLowered) {
  const Standing begun = at_start(UserRules(config_), "train", user_, {}, {});
  const auto lowered = changed(begun, {.weight = {}, .priority = -5}, administrator_);
  ASSERT_TRUE(lowered);
  EXPECT_EQ(changed(*lowered, {.weight = {}, .priority = 3}, user_).error().code,
            ErrorCode::kPermission);
  EXPECT_TRUE(changed(*lowered, {.weight = {}, .priority = -6}, user_));
}

TEST_F(SessionRulesTest, AUserMayGoBackToWhatHeGaveUpHimself) {
  const Standing begun = at_start(UserRules(config_), "train", user_, {}, {});
  const auto lowered = changed(begun, {.weight = 0.1, .priority = -5}, user_);
  ASSERT_TRUE(lowered);
  EXPECT_EQ(changed(*lowered, {.weight = 2, .priority = 3}, user_)->now, (SessionSettings{2, 3}));
}

TEST_F(SessionRulesTest, TheAdministratorMayAnything) {
  const Standing begun = at_start(UserRules(config_), "other", user_, {}, {});
  EXPECT_EQ(changed(begun, {.weight = 100, .priority = 10}, administrator_)->now,
            (SessionSettings{100, 10}));
  EXPECT_EQ(
      at_start(UserRules(config_), "other", administrator_, {.weight = 100, .priority = 10}, {})
          .now,
      (SessionSettings{100, 10}));
  EXPECT_EQ(changed(begun, {.weight = 101, .priority = {}}, administrator_).error().code,
            ErrorCode::kInvalidValue);
}

}  // namespace
}  // namespace slate::daemon
