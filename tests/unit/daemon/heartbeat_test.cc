#include "daemon/supervisor/heartbeat.h"

#include <gtest/gtest.h>

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;

constexpr Clock::time_point kStart{};

TEST(HeartbeatTest, NobodyIsAskedBeforeTheFirstWord) {
  const Heartbeat heart(10s);
  EXPECT_FALSE(heart.should_ask(kStart + 1h));
  EXPECT_FALSE(heart.is_hung(kStart + 1h));
  EXPECT_FALSE(heart.next());
}

TEST(HeartbeatTest, ASilentEngineIsAskedOnceAndCountsAsHungInTime) {
  Heartbeat heart(10s);
  heart.heard(kStart);
  EXPECT_FALSE(heart.should_ask(kStart + 1s));
  EXPECT_EQ(heart.next(), kStart + 2s);
  ASSERT_TRUE(heart.should_ask(kStart + 2s));
  heart.asked(kStart + 3s);
  EXPECT_FALSE(heart.should_ask(kStart + 9s));
  EXPECT_EQ(heart.next(), kStart + 13s);
  EXPECT_FALSE(heart.is_hung(kStart + 12s));
  EXPECT_TRUE(heart.is_hung(kStart + 13s));
}

TEST(HeartbeatTest, AnyWordIsAnAnswer) {
  Heartbeat heart(10s);
  heart.heard(kStart);
  heart.asked(kStart + 2s);
  heart.heard(kStart + 11s);
  EXPECT_FALSE(heart.is_hung(kStart + 1min));
  EXPECT_TRUE(heart.should_ask(kStart + 1min));
}

TEST(HeartbeatTest, WithoutALimitNothingIsAsked) {
  Heartbeat heart(0s);
  heart.heard(kStart);
  EXPECT_FALSE(heart.should_ask(kStart + 1h));
  EXPECT_FALSE(heart.next());
}

}  // namespace
}  // namespace slate::daemon
