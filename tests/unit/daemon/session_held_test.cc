// What a session does with commands that wait behind a host function of its program.
#include <gtest/gtest.h>

#include <future>

#include "tests/unit/daemon/session_fixture.h"

namespace slate::daemon {
namespace {

using ipc::CommandType;

class SessionHeldTest : public SessionTest {
 protected:
  SessionHeldTest() {
    for (const std::uint64_t stream : {1u, 2u, 3u}) {
      EXPECT_TRUE(session_.post(CommandType::kStreamCreate,
                                ipc::StreamCreate{stream, ipc::kStreamNonBlocking, 0}));
    }
    EXPECT_TRUE(session_.post(CommandType::kEventCreate, ipc::EventCreate{9, 0, 0}));
  }
  void close_gate(std::uint64_t ticket, std::uint64_t stream) {
    EXPECT_TRUE(session_.post(CommandType::kHostGate, ipc::HostGate{ticket, stream}));
  }
  void open_gate(std::uint64_t ticket) {
    EXPECT_TRUE(session_.post(CommandType::kHostDone, ipc::IdCommand{ticket}));
  }
  void free(std::uint64_t address) {
    EXPECT_TRUE(session_.post(CommandType::kMemoryFree, ipc::MemoryFree{address}));
  }
  void record(std::uint64_t stream) {
    EXPECT_TRUE(session_.post(CommandType::kEventRecord, ipc::EventStream{9, stream}));
  }
  Result<void> synchronize(std::uint64_t stream) {
    return session_.call(CommandType::kSynchronize,
                         ipc::Target{ipc::TargetKind::kStream, 0, stream});
  }

  static constexpr std::uint64_t kMost = 40 << 20;  // not twice what the session may have
  TestSession session_{device_, completer_};
};

TEST_F(SessionHeldTest, AnAllocationWaitsForAFreeThatIsKept) {
  const auto first = session_.allocate(kMost);
  ASSERT_TRUE(first);
  close_gate(7, 1);
  free(*first);
  auto second = std::async([&] { return session_.allocate(kMost); });
  EXPECT_EQ(session_.async_error(), ErrorCode::kNone) << "others are served meanwhile";
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  open_gate(7);
  EXPECT_TRUE(second.get());
}

TEST_F(SessionHeldTest, AnAllocationForWhichNothingIsFreedIsRefusedAtOnce) {
  ASSERT_TRUE(session_.allocate(kMost));
  close_gate(7, 1);
  const auto second = session_.allocate(kMost);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kOutOfMemory);
  open_gate(7);
}

TEST_F(SessionHeldTest, AnAllocationForWhichTheFreesAreNotEnoughIsRefused) {
  const auto small = session_.allocate(1 << 20);
  ASSERT_TRUE(small);
  ASSERT_TRUE(session_.allocate(kMost));
  close_gate(7, 1);
  free(*small);
  auto second = std::async([&] { return session_.allocate(kMost); });
  open_gate(7);
  EXPECT_EQ(second.get().error().code, ErrorCode::kOutOfMemory);
}

TEST_F(SessionHeldTest, AFreeDoesNotWaitForHostFunctionsBehindIt) {
  const auto first = session_.allocate(kMost);
  ASSERT_TRUE(first);
  close_gate(7, 1);
  free(*first);
  close_gate(8, 2);
  open_gate(7);
  EXPECT_TRUE(session_.allocate(kMost));
  open_gate(8);
}

TEST_F(SessionHeldTest, AWaitIsForWhatTheEventHadRecordedThen) {
  ASSERT_TRUE(session_.load("spin"));
  record(2);
  close_gate(7, 1);
  ASSERT_TRUE(session_.post(CommandType::kStreamWaitEvent, ipc::EventStream{9, 1}));
  ASSERT_TRUE(session_.launch(0, 3));
  record(3);
  ASSERT_TRUE(session_.post(CommandType::kEventDestroy, ipc::IdCommand{9}));
  open_gate(7);
  EXPECT_TRUE(synchronize(1)) << "while the kernel before the second recording runs on";
  EXPECT_EQ(session_.async_error(), ErrorCode::kNone);
  device_.release_spinning();
  EXPECT_TRUE(synchronize(3));
}

TEST_F(SessionHeldTest, AnEventThatAKeptWaitNamesCanBeRecordedAndTimed) {
  record(2);
  close_gate(7, 1);
  ASSERT_TRUE(session_.post(CommandType::kStreamWaitEvent, ipc::EventStream{9, 1}));
  record(2);
  EXPECT_TRUE(session_.call(CommandType::kSynchronize, ipc::Target{ipc::TargetKind::kEvent, 0, 9}));
  EXPECT_TRUE(session_.call<ipc::ElapsedReply>(CommandType::kEventElapsed, ipc::EventPair{9, 9}));
  open_gate(7);
}

TEST_F(SessionHeldTest, WhoAsksForARecordingIsAnsweredWhenItIsMade) {
  const auto ask = [&](std::uint32_t when_recorded) {
    return session_.call<ipc::QueryReply>(CommandType::kQuery,
                                          ipc::Target{ipc::TargetKind::kEvent, when_recorded, 9});
  };
  close_gate(7, 1);
  record(1);
  EXPECT_EQ(ask(0)->finished, 0u) << "at once";
  auto recorded = std::async([&] { return ask(1); });
  EXPECT_EQ(recorded.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  open_gate(7);
  EXPECT_TRUE(recorded.get());
}

}  // namespace
}  // namespace slate::daemon
