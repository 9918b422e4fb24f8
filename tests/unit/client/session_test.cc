#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "tests/unit/client/fake_engine.h"

namespace slate::client {
namespace {

using ipc::CommandType;

class SessionTest : public ::testing::Test {
 protected:
  FakeEngine engine;
  Session& session = *engine.session;
};

TEST_F(SessionTest, AllocationsAreKnownUntilTheyAreFreed) {
  engine.answer(CommandType::kMemoryAllocate, ipc::AddressReply{0x7000});
  const auto address = session.memory().allocate(100);
  ASSERT_TRUE(address);
  EXPECT_EQ(*address, 0x7000u);
  EXPECT_TRUE(session.copies().covers(Place::on_device(0x7000, 100), {100, 1}));
  EXPECT_FALSE(session.copies().covers(Place::on_device(0x7000, 101), {101, 1}));
  EXPECT_TRUE(session.copies().covers(Place::on_device(0x7000, 60), {40, 2}));
  EXPECT_FALSE(session.copies().covers(Place::on_device(0x7000, 61), {40, 2}));
  EXPECT_EQ(session.memory().free(0x7010).error().code, ErrorCode::kInvalidValue);
  EXPECT_TRUE(session.memory().free(0x7000));
  EXPECT_FALSE(session.memory().free(0x7000)) << "freed twice";
  EXPECT_EQ(engine.wait_for(CommandType::kMemoryFree).as<ipc::MemoryFree>()->address, 0x7000u);
}

TEST_F(SessionTest, TheDaemonsErrorComesWithItsCode) {
  engine.handle(CommandType::kMemoryAllocate, [&](const ipc::Command& command) {
    engine.channel->reply_error(command.header.reply_slot, command.header.reply_sequence,
                                {ErrorCode::kOutOfMemory, "full"});
  });
  const auto address = session.memory().allocate(100);
  ASSERT_FALSE(address);
  EXPECT_EQ(address.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(session.memory().table().size(), 0u);
}

TEST_F(SessionTest, HostFunctionsRunInTheirOrderBetweenAnEventAndAGate) {
  std::vector<int> order;
  const auto stream = *session.streams().create(0, 0);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(
        session.host_functions().call(i % 2 == 0 ? stream : 0, [&order, i](const Result<void>& ok) {
          if (ok) order.push_back(i);
        }));
  }
  while (session.host_functions().busy()) std::this_thread::yield();
  ASSERT_EQ(order.size(), 50u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  // As many gates opened as there were, in the order in which they were closed.
  engine.answer(CommandType::kMemoryInfo, ipc::MemoryInfoReply{});
  ASSERT_TRUE(session.memory().info());  // an answer comes behind all before it
  const auto closed = engine.all(CommandType::kHostGate);
  const auto opened = engine.all(CommandType::kHostDone);
  ASSERT_EQ(closed.size(), 50u);
  ASSERT_EQ(opened.size(), 50u);
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(closed[i].as<ipc::HostGate>()->ticket, opened[i].as<ipc::IdCommand>()->id);
  }
  EXPECT_FALSE(session.host_functions().is_own_thread());
}

TEST_F(SessionTest, AHostFunctionDoesNotWaitForWorkOfAnotherStream) {
  engine.publishes = false;
  const auto busy = *session.streams().create(ipc::kStreamNonBlocking, 0);
  const auto idle = *session.streams().create(ipc::kStreamNonBlocking, 0);
  std::atomic<int> of_busy{0}, of_idle{0};
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(session.host_functions().call(busy, [&](const Result<void>&) { ++of_busy; }));
    ASSERT_TRUE(session.host_functions().call(idle, [&](const Result<void>&) { ++of_idle; }));
  }
  constexpr std::uint64_t kFar = 1 << 20;
  engine.channel->publish_completed(session.streams().table().find(idle)->progress, kFar);
  while (of_idle < 2) std::this_thread::yield();
  EXPECT_EQ(of_busy, 0);
  engine.channel->publish_completed(session.streams().table().find(busy)->progress, kFar);
  while (session.host_functions().busy()) std::this_thread::yield();
  EXPECT_EQ(of_busy, 2);
}

TEST_F(SessionTest, HostFunctionsOfAFailedSessionAreTold) {
  ErrorCode seen = ErrorCode::kNone;
  engine.publishes = false;
  engine.handle(CommandType::kHostGate, [&](const ipc::Command&) {
    engine.channel->fail({ErrorCode::kIllegalAddress, "kernel scale wrote to 0x10"});
  });
  ASSERT_TRUE(session.host_functions().call(
      0, [&seen](const Result<void>& outcome) { seen = outcome.error().code; }));
  while (session.host_functions().busy()) std::this_thread::yield();
  EXPECT_EQ(seen, ErrorCode::kIllegalAddress);
}

TEST_F(SessionTest, AnAsynchronousErrorIsReportedOnce) {
  engine.channel->set_async_error({ErrorCode::kInvalidValue, "a reason"});
  EXPECT_EQ(session.check().error().code, ErrorCode::kInvalidValue);
  EXPECT_TRUE(session.check());
}

TEST_F(SessionTest, ARefusalAfterItsCallIsSaidWithItsReason) {
  testing::internal::CaptureStderr();
  engine.channel->set_async_error({ErrorCode::kOutOfResources, "kernel scale needs 300 registers"});
  EXPECT_FALSE(session.check());
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("slate: "), std::string::npos) << said;
  EXPECT_NE(said.find("OutOfResources: kernel scale needs 300 registers"), std::string::npos)
      << said;
}

TEST_F(SessionTest, TheEndOfASessionIsSaidOnceWithItsCause) {
  testing::internal::CaptureStderr();
  engine.channel->fail({ErrorCode::kIllegalAddress, "by another program's kernel wild"});
  for (int i = 0; i < 3; ++i)
    EXPECT_FALSE(session.copies().fill(Place::on_device(0x1000, 8), 1, {8, 1}, 0));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("IllegalAddress: by another program's kernel wild"), std::string::npos)
      << said;
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
}

TEST_F(SessionTest, ALastingErrorStays) {
  engine.channel->fail({ErrorCode::kIllegalAddress, "kernel scale wrote to 0x10"});
  for (int i = 0; i < 3; ++i) {
    const auto outcome = session.check();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::kIllegalAddress);
    EXPECT_EQ(outcome.error().message, "kernel scale wrote to 0x10");
  }
  EXPECT_FALSE(session.memory().allocate(8));
}

TEST_F(SessionTest, SynchronizeReportsWhatTheCommandsBeforeItCameTo) {
  engine.handle(CommandType::kSynchronize, [&](const ipc::Command& command) {
    engine.channel->set_async_error({ErrorCode::kOutOfResources, "a reason"});
    engine.reply(command);
  });
  engine.publishes = false;
  ASSERT_TRUE(session.copies().fill(Place::on_device(0x1000, 8), 1, {8, 1}, 0));
  EXPECT_EQ(session.waiting().synchronize(ipc::TargetKind::kSession, 0).error().code,
            ErrorCode::kOutOfResources);
}

TEST_F(SessionTest, ManyThreadsThatWaitLeaveOthersTheirAnswers) {
  engine.publishes = false;
  engine.handle(CommandType::kSynchronize, [](const ipc::Command&) {});  // answered below
  engine.answer(CommandType::kQuery, ipc::QueryReply{0, 0});
  engine.answer(CommandType::kMemoryInfo, ipc::MemoryInfoReply{});
  ASSERT_TRUE(session.copies().fill(Place::on_device(0x1000, 8), 1, {8, 1}, 0));
  std::vector<std::thread> threads;
  std::atomic<std::size_t> returned{0};
  for (std::uint32_t i = 0; i < ipc::kReplySlots + 8; ++i) {
    threads.emplace_back([&] {
      EXPECT_TRUE(session.waiting().synchronize(ipc::TargetKind::kStream, 0));
      ++returned;
    });
  }
  while (engine.all(CommandType::kSynchronize).size() < ipc::kReplySlots / 2)
    std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(session.memory().info());
  const auto waiting = engine.all(CommandType::kSynchronize);
  EXPECT_EQ(waiting.size(), ipc::kReplySlots / 2);
  // The others see for themselves that the work is done.
  engine.channel->publish_completed(0, 1 << 20);
  while (returned + waiting.size() < threads.size()) std::this_thread::yield();
  for (const auto& command : waiting) engine.reply(command);
  for (auto& thread : threads) thread.join();
}

TEST_F(SessionTest, StreamsAndEventsAreMadeWithoutARoundTrip) {
  const auto stream = session.streams().create(ipc::kStreamNonBlocking, -3);
  const auto event = session.events().create(ipc::kEventNoTiming);
  ASSERT_TRUE(stream && event);
  const auto made = engine.wait_for(CommandType::kStreamCreate);
  EXPECT_EQ(made.header.reply_slot, ipc::kNoReply);
  EXPECT_EQ(made.as<ipc::StreamCreate>()->id, *stream);
  EXPECT_EQ(made.as<ipc::StreamCreate>()->flags, ipc::kStreamNonBlocking);
  EXPECT_EQ(made.as<ipc::StreamCreate>()->priority, -3);
  EXPECT_EQ(engine.wait_for(CommandType::kEventCreate).as<ipc::EventCreate>()->flags,
            ipc::kEventNoTiming);
  EXPECT_EQ(session.events().table().find(*event)->flags & kEventRecorded, 0u);
  EXPECT_TRUE(session.events().record(*event, *stream));
  EXPECT_NE(session.events().table().find(*event)->flags & kEventRecorded, 0u);
  EXPECT_TRUE(session.streams().destroy(*stream));
  EXPECT_EQ(session.streams().destroy(*stream).error().code, ErrorCode::kInvalidHandle);
}

TEST_F(SessionTest, AnAbandonedSessionFailsEveryCall) {
  session.abandon();
  EXPECT_EQ(session.check().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(session.memory().allocate(8).error().code, ErrorCode::kUnavailable);
}

TEST_F(SessionTest, AnImportWaitsForACloseOfTheSame) {
  engine.answer(CommandType::kMemoryImport, ipc::ImportReply{0x9000, 64, 1});
  engine.handle(CommandType::kMemoryImportClose, [](const ipc::Command&) {});  // answered below
  ASSERT_TRUE(session.memory().import_memory({}));
  std::thread close([&] { EXPECT_TRUE(session.memory().close_import(0x9000)); });
  const ipc::Command closing = engine.wait_for(CommandType::kMemoryImportClose);
  std::thread open([&] { EXPECT_TRUE(session.memory().import_memory({})); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(engine.all(CommandType::kMemoryImport).size(), 1u);
  engine.reply(closing, ipc::ImportReply{0x9000, 64, 0});
  close.join();
  open.join();
  EXPECT_TRUE(session.memory().table().find(0x9000)) << "opened anew";
}

TEST_F(SessionTest, AVariableBecomesMemoryOfTheSession) {
  engine.answer(CommandType::kGlobalGet, ipc::GlobalReply{0x9000, 64});
  ASSERT_TRUE(session.modules().find_global(3, "counter"));
  EXPECT_TRUE(session.copies().covers(Place::on_device(0x9000, 64), {64, 1}));
  EXPECT_FALSE(session.memory().free(0x9000)) << "a variable is not an allocation";
}

}  // namespace
}  // namespace slate::client
