// HeldCommands: what waits behind a held stream, and in which order it comes out.
#include "daemon/engine/held_commands.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace slate::daemon {
namespace {

using ipc::Command;
using ipc::CommandType;

constexpr std::uint64_t kOtherStream = 90;  // a stream that does not wait for the default stream

template <typename T>
Command command(CommandType type, const T& body) {
  Command made{{.bytes = 0, .type = type, .reply_slot = 0, .reply_sequence = 0, .body_bytes = 0},
               std::vector<std::byte>(sizeof(T))};
  std::memcpy(made.body.data(), &body, sizeof(T));
  return made;
}

Command launch(std::uint64_t stream) {
  ipc::Launch body{};
  body.stream = stream;
  return command(CommandType::kLaunch, body);
}
Command record(std::uint64_t event, std::uint64_t stream) {
  return command(CommandType::kEventRecord, ipc::EventStream{event, stream});
}
Command wait(std::uint64_t stream, std::uint64_t event) {
  return command(CommandType::kStreamWaitEvent, ipc::EventStream{event, stream});
}
Command synchronize(ipc::TargetKind kind, std::uint64_t id) {
  return command(CommandType::kSynchronize, ipc::Target{kind, 0, id});
}
Command release(std::uint64_t address) {
  return command(CommandType::kMemoryFree, ipc::MemoryFree{address});
}
Command allocate() {
  return command(CommandType::kMemoryAllocate, ipc::MemoryAllocate{64});
}

class HeldCommandsTest : public testing::Test {
 protected:
  /// Keeps it under the next number, or says that it need not wait.
  bool waits(Command next) {
    if (!held_.must_wait(next)) return false;
    EXPECT_TRUE(held_.keep({std::move(next), ++kept_}));
    return true;
  }
  std::vector<std::uint64_t> drain() {
    std::vector<std::uint64_t> out;
    EXPECT_TRUE(held_.drain([&](const HeldCommands::Kept& kept) {
      out.push_back(kept.position);
      return true;
    }));
    return out;
  }
  using Numbers = std::vector<std::uint64_t>;

  HeldCommands held_{[](std::uint64_t stream) { return stream != kOtherStream; }};
  std::uint64_t kept_ = 0;
};

TEST_F(HeldCommandsTest, NothingWaitsUnlessAStreamIsHeld) {
  EXPECT_FALSE(waits(launch(1)));
  EXPECT_FALSE(waits(release(512)));
  held_.hold(1, 0);
  held_.release(1, 0);
  EXPECT_FALSE(waits(launch(1)));
  EXPECT_TRUE(held_.nothing_waits());
}

TEST_F(HeldCommandsTest, OnlyTheHeldStreamsCommandsWait) {
  held_.hold(1, 0);
  EXPECT_TRUE(waits(launch(1)));
  EXPECT_FALSE(waits(launch(2)));
  EXPECT_FALSE(waits(launch(kOtherStream)));
  EXPECT_FALSE(waits(allocate()));
  EXPECT_TRUE(waits(synchronize(ipc::TargetKind::kStream, 1)));
  EXPECT_FALSE(waits(synchronize(ipc::TargetKind::kStream, 2)));
  EXPECT_EQ(drain(), Numbers{});
  held_.release(1, 0);
  EXPECT_EQ(drain(), (Numbers{1, 2}));
  EXPECT_TRUE(held_.nothing_waits());
}

TEST_F(HeldCommandsTest, AStreamHeldTwiceIsReleasedTwice) {
  held_.hold(1, 0);
  held_.hold(1, 0);
  EXPECT_TRUE(waits(launch(1)));
  held_.release(1, 0);
  EXPECT_EQ(drain(), Numbers{});
  held_.release(1, 0);
  EXPECT_EQ(drain(), Numbers{1});
}

TEST_F(HeldCommandsTest, TheDefaultStreamWaitsForBlockingStreamsAndTheyForIt) {
  held_.hold(kOtherStream, 0);
  EXPECT_FALSE(waits(launch(ipc::kDefaultStream)));
  held_.hold(1, 0);
  EXPECT_TRUE(waits(launch(ipc::kDefaultStream)));
  EXPECT_TRUE(waits(launch(2))) << "behind the default stream's";
  held_.release(1, 0);
  EXPECT_EQ(drain().front(), 1u);
}

TEST_F(HeldCommandsTest, AnEventCarriesTheWaitToOtherStreams) {
  held_.hold(1, 0);
  EXPECT_FALSE(waits(wait(2, 7))) << "recorded before";
  EXPECT_TRUE(waits(record(7, 1)));
  EXPECT_TRUE(waits(wait(2, 7)));
  EXPECT_TRUE(waits(launch(2)));
  EXPECT_TRUE(waits(synchronize(ipc::TargetKind::kEvent, 7)));
  EXPECT_FALSE(waits(launch(3)));
  EXPECT_TRUE(waits(command(CommandType::kEventDestroy, ipc::IdCommand{7})));
  EXPECT_FALSE(waits(command(CommandType::kEventDestroy, ipc::IdCommand{8})));
  held_.release(1, 0);
  EXPECT_EQ(drain(), (Numbers{1, 2, 3, 4, 5}));
}

TEST_F(HeldCommandsTest, WhoWaitsForAllWorkKeepsNobodyBack) {
  held_.hold(1, 0);
  EXPECT_TRUE(waits(release(512)));
  EXPECT_TRUE(waits(synchronize(ipc::TargetKind::kSession, 0)));
  EXPECT_FALSE(waits(launch(2)));
  EXPECT_FALSE(waits(synchronize(ipc::TargetKind::kEvent, 7)));
  EXPECT_TRUE(waits(synchronize(ipc::TargetKind::kStream, ipc::kDefaultStream)));
  EXPECT_FALSE(waits(launch(2))) << "a wait for the default stream is no work on it";
  EXPECT_FALSE(waits(allocate()));
  held_.release(1, 0);
  EXPECT_EQ(drain(), (Numbers{1, 2, 3}));
}

TEST_F(HeldCommandsTest, AWaitForWhatWasRecordedBeforeKeepsNobodyBack) {
  held_.hold(1, 0);
  EXPECT_FALSE(held_.keeps_record(7));
  EXPECT_TRUE(held_.keep({wait(1, 7), ++kept_, std::shared_ptr<SharedEvent>()}));
  EXPECT_FALSE(waits(record(7, 2))) << "the wait knows its recording";
  EXPECT_FALSE(waits(synchronize(ipc::TargetKind::kEvent, 7)));
  EXPECT_FALSE(waits(command(CommandType::kEventDestroy, ipc::IdCommand{7})));
}

TEST_F(HeldCommandsTest, AWaitForAKeptRecordingComesBeforeTheNextOne) {
  held_.hold(1, 0);
  EXPECT_TRUE(waits(record(7, 1)));
  EXPECT_TRUE(held_.keeps_record(7));
  EXPECT_TRUE(waits(wait(2, 7)));
  EXPECT_TRUE(waits(record(7, 3)));
  EXPECT_TRUE(waits(command(CommandType::kEventElapsed, ipc::EventPair{8, 7})));
  held_.release(1, 0);
  EXPECT_EQ(drain(), (Numbers{1, 2, 3, 4}));
  EXPECT_FALSE(held_.keeps_record(7));
}

TEST_F(HeldCommandsTest, WhoOnlyReadsAnEventWaitsForNoWaitOfOthers) {
  held_.hold(1, 0);
  held_.hold(2, 0);
  EXPECT_TRUE(waits(record(7, 1)));
  EXPECT_TRUE(waits(wait(2, 7)));
  held_.release(1, 0);
  EXPECT_EQ(drain(), Numbers{1});
  EXPECT_FALSE(waits(synchronize(ipc::TargetKind::kEvent, 7))) << "the wait is still kept";
  EXPECT_FALSE(waits(command(CommandType::kEventElapsed, ipc::EventPair{8, 7})));
}

TEST_F(HeldCommandsTest, WhoWaitsForAllWorkDoesNotWaitForWhatComesLater) {
  held_.hold(1, 0);
  EXPECT_TRUE(waits(release(512)));  // number 1
  held_.hold(2, 2);
  EXPECT_EQ(drain(), Numbers{});
  held_.release(1, 0);
  EXPECT_EQ(drain(), Numbers{1}) << "some stream may be held at any time";
  held_.release(2, 2);
}

TEST_F(HeldCommandsTest, WhatFoundNoMemoryComesBehindKeptFrees) {
  EXPECT_FALSE(held_.keeps_frees());
  held_.hold(1, 0);
  EXPECT_TRUE(waits(release(512)));
  EXPECT_TRUE(held_.keeps_frees());
  EXPECT_TRUE(held_.keep_for_room({allocate(), ++kept_}));
  EXPECT_FALSE(waits(launch(2)));
  EXPECT_EQ(drain(), Numbers{});
  held_.release(1, 0);
  EXPECT_EQ(drain(), (Numbers{1, 2}));
  EXPECT_FALSE(held_.keeps_frees());
}

TEST_F(HeldCommandsTest, AGateThatIsServedHoldsWhatFollowsIt) {
  held_.hold(1, 0);
  EXPECT_TRUE(waits(command(CommandType::kHostGate, ipc::HostGate{5, 1})));
  EXPECT_TRUE(waits(launch(1)));
  held_.release(1, 0);
  Numbers out;
  EXPECT_TRUE(held_.drain([&](const HeldCommands::Kept& kept) {
    out.push_back(kept.position);
    if (kept.command.header.type == CommandType::kHostGate) held_.hold(1, 0);
    return true;
  }));
  EXPECT_EQ(out, Numbers{1});
  held_.release(1, 0);
  EXPECT_EQ(drain(), Numbers{2});
}

TEST_F(HeldCommandsTest, AnEndedSessionGetsBackWhatWasKept) {
  held_.hold(1, 0);
  EXPECT_TRUE(waits(launch(1)));
  EXPECT_TRUE(waits(synchronize(ipc::TargetKind::kSession, 0)));
  int dropped = 0;
  held_.give_up([&](const Command&) { ++dropped; });
  EXPECT_EQ(dropped, 2);
  held_.release(1, 0);
  EXPECT_EQ(drain(), Numbers{}) << "nothing is left";
}

TEST_F(HeldCommandsTest, WhoOnlyAsksIsServedBeforeACrowdThatIsHeld) {
  held_.hold(1, 0);
  held_.hold(2, 0);
  EXPECT_TRUE(waits(launch(2)));
  for (std::size_t i = 0; i < HeldCommands::kCrowd; ++i) EXPECT_TRUE(waits(launch(1)));
  EXPECT_TRUE(held_.crowded());
  EXPECT_TRUE(waits(synchronize(ipc::TargetKind::kStream, 2)));
  EXPECT_EQ(drain().size(), 0u);
  held_.release(2, 0);
  EXPECT_EQ(drain().size(), 2u);  // the second stream's launch, and the wait for it
  EXPECT_EQ(drain().size(), 0u);
  held_.release(1, 0);
  EXPECT_EQ(drain().size(), HeldCommands::kCrowd);
  EXPECT_FALSE(held_.crowded());
}

TEST_F(HeldCommandsTest, TooManyBytesAreRefused) {
  held_.hold(1, 0);
  Result<void> kept;
  for (int i = 0; kept && i < 10'000; ++i) {
    Command large = launch(1);
    large.body.resize(60'000);
    kept = held_.keep({std::move(large), 1});
  }
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, ErrorCode::kLimit);
}

}  // namespace
}  // namespace slate::daemon
