// What the supervisor tells an engine of a session, and a newer slated of all sessions.
#include "daemon/supervisor/session_news.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "daemon/supervisor/engine_process.h"
#include "daemon/supervisor/session_record.h"

namespace slate::daemon {
namespace {

using nlohmann::json;

/// An engine that notes what it is told, and can be stopped meanwhile.
class SessionNewsTest : public testing::Test {
 protected:
  void stop() {
    ASSERT_EQ(::kill(engine_.pid(), SIGSTOP), 0);
    while (engine_.link().try_send({.type = LinkType::kSetSession, .session = 99}).has_value()) {
    }
  }
  void go_on() { ASSERT_EQ(::kill(engine_.pid(), SIGCONT), 0); }
  void wait_for(short events) {
    pollfd poller{engine_.link().fd(), events, 0};
    ASSERT_GT(::poll(&poller, 1, -1), 0);
  }
  /// What the engine has been told of the session.
  json told(std::uint64_t session) {
    while (!engine_.link().try_send({.type = LinkType::kStatusRequest, .number = 1})) {
      wait_for(POLLOUT);
    }
    while (true) {
      wait_for(POLLIN);
      const auto message = engine_.link().receive();
      if (!message || !*message || (*message)->header.type != LinkType::kStatusReport) continue;
      json report = json::parse((*message)->text);
      for (json& each : report["sessions"]) {
        each.erase("waits_for");  // the fake's own
        if (each["id"] == session) return each;
      }
      return {};
    }
  }

  EngineProcess engine_ = std::move(*EngineProcess::start(FAKE_ENGINE_PATH, Config{}));
};

TEST_F(SessionNewsTest, WhatFindsNoRoomIsToldOnceThereIsSome) {
  SessionRecord record;
  record.id = 7;
  record.standing.now = {3, 2};
  stop();
  record.standing_told = false;
  record.leave_untold = record.stay_untold = true;
  record.end_untold = "enough";
  tell_news(record, engine_);
  EXPECT_FALSE(record.standing_told);
  EXPECT_TRUE(record.leave_untold);
  EXPECT_TRUE(record.stay_untold);
  EXPECT_EQ(record.end_untold, "enough");
  go_on();
  while (has_news(record)) {
    wait_for(POLLOUT);
    tell_news(record, engine_);
  }
  const json expected = {{"id", 7},        {"weight", 3.0}, {"priority", 2},
                         {"leaves", true}, {"stays", true}, {"end", "enough"}};
  EXPECT_EQ(told(7), expected);
}

TEST(SessionRecordTest, ANewerSlatedGetsAllOfIt) {
  SessionRecord record;
  record.id = 7;
  record.pid = 11;
  record.uid = 12;
  record.user.weight = 2;
  record.user.memory = {true, 40};
  record.memory_limit = 1 << 20;
  record.wished_memory = 1 << 21;
  record.program = "program";
  record.max_blocking_ms = 5;
  record.standing = {{3, 2}, {4, 5}};
  record.standing_told = false;
  record.end_untold = "enough";
  record.domain = {Domain::Kind::kUser, 12};
  record.engine = 3;
  record.leave_untold = record.stay_untold = record.is_suspended = record.is_unfenced = true;
  record.was_served = true;
  record.suspected_of = ErrorCode::kIllegalAddress;
  record.since = Clock::time_point(std::chrono::nanoseconds(123));
  record.deadline = Clock::time_point(std::chrono::nanoseconds(456));
  record.losses = 2;
  record.taken_at_loss = 99;
  record.ends.socket = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  Handover handover;
  const json state = to_json(record, handover);
  (void)record.ends.socket.release();  // the other one's
  auto other = session_from(state);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(to_json(*other, handover), state);
  EXPECT_EQ(other->program, "program");
  EXPECT_EQ(other->standing.most.priority, 5);
  EXPECT_EQ(other->user.memory.value, 40u);
  EXPECT_TRUE(other->user.memory.is_percent);
  EXPECT_EQ(other->domain, record.domain);
  EXPECT_TRUE(other->stay_untold);
  EXPECT_EQ(other->deadline, record.deadline);
  EXPECT_EQ(other->taken_at_loss, 99u);
}

}  // namespace
}  // namespace slate::daemon
