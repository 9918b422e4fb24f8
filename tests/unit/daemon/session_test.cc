#include "daemon/engine/session.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <future>

#include "daemon/engine/call_counts.h"
#include "tests/unit/daemon/session_fixture.h"

namespace slate::daemon {
namespace {

using ipc::CommandType;
using namespace std::chrono_literals;

TEST_F(SessionTest, AKernelWritesWhatACopyReads) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.load("write"));
  const auto address = *session.allocate(4096);
  ASSERT_TRUE(session.launch(address));
  EXPECT_EQ(*session.read_int(address), 42);
  EXPECT_EQ(session.async_error(), ErrorCode::kNone);
  const auto status = session.session->status();
  EXPECT_EQ(status.launches, 1u);
  EXPECT_EQ(status.copies, 1u);
  EXPECT_EQ(status.bytes_to_host, 4u);
  EXPECT_EQ(status.memory_used, FakeDevice::kGranularity);
}

TEST_F(SessionTest, CopiesGoThereAndBackRowByRow) {
  TestSession session(device_, completer_);
  const auto address = *session.allocate(4096);
  auto staging = *session.client->acquire_staging();
  const int rows[] = {1, 2, 3};
  std::memcpy(staging.memory.data(), rows, sizeof(rows));
  ASSERT_TRUE(
      session.post(CommandType::kCopy, ipc::Copy{Place::on_device(address, 512),
                                                 Place::in_slot(staging.slot, staging.sequence),
                                                 {4, 3},
                                                 0}));
  session.client->release_staging(staging, true);
  EXPECT_EQ(*session.read_int(address + 1024), 3);
  ASSERT_TRUE(session.post(
      CommandType::kCopy,
      ipc::Copy{
          Place::on_device(address + 4, 4), Place::on_device(address + 512, 512), {4, 2}, 0}));
  EXPECT_EQ(*session.read_int(address + 8), 3);
  ASSERT_TRUE(session.post(CommandType::kFill, ipc::Fill{address, 4, 4, 1, 0, 0x101, 1}));
  EXPECT_EQ(*session.read_int(address), 0x01010101);
  ASSERT_TRUE(session.post(CommandType::kFill, ipc::Fill{address, 8, 4, 2, 0, 0x01020304, 4}));
  EXPECT_EQ(*session.read_int(address + 8), 0x01020304);
  ASSERT_TRUE(session.post(CommandType::kFill, ipc::Fill{address + 2, 8, 4, 1, 0, 0x01020304, 2}));
  EXPECT_EQ(*session.read_int(address + 4), 0x0304);
  ASSERT_TRUE(session.post(CommandType::kFill, ipc::Fill{address + 2, 8, 4, 1, 0, 1, 4}));
  EXPECT_EQ(session.async_error(), ErrorCode::kInvalidValue) << "not aligned";
}

TEST_F(SessionTest, AttributesOfAKernelReachTheDeviceAndAllowancesAreNotTakenBack) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.load("write"));
  const auto set = [&](FunctionAttribute attribute, int value) {
    const auto done =
        session.call(CommandType::kFunctionSet, ipc::FunctionSet{1, attribute, value});
    return done ? ErrorCode::kNone : done.error().code;
  };
  using enum FunctionAttribute;
  EXPECT_EQ(set(kMaxDynamicShared, 1000), ErrorCode::kNone);
  EXPECT_EQ(set(kMaxDynamicShared, 500), ErrorCode::kNone) << "and not told to the device";
  EXPECT_EQ(set(kNonPortableClusters, 1), ErrorCode::kNone);
  EXPECT_EQ(set(kNonPortableClusters, 0), ErrorCode::kNone) << "likewise";
  EXPECT_EQ(set(kCarveout, -1), ErrorCode::kNone);
  EXPECT_EQ(set(kClusterScheduling, 2), ErrorCode::kNone);
  EXPECT_EQ(device_.attributes(),
            (std::vector<std::string>{"write 8=1000", "write 14=1", "write 9=-1", "write 15=2"}));
  EXPECT_EQ(set(kMaxDynamicShared, -1), ErrorCode::kInvalidValue);
  EXPECT_EQ(set(kCarveout, 101), ErrorCode::kInvalidValue);
  EXPECT_EQ(set(kClusterScheduling, 3), ErrorCode::kInvalidValue);
  EXPECT_EQ(set(kClusterWidth, 2), ErrorCode::kInvalidValue) << "a launch says it itself";
  EXPECT_EQ(set(FunctionAttribute{16}, 1), ErrorCode::kInvalidValue);
}

TEST_F(SessionTest, ATensorMapIsMadeByTheDevice) {
  TestSession session(device_, completer_);
  TensorMapSpec spec;
  spec.rank = 3;
  const auto map = session.call<TensorMap>(CommandType::kTensorMapEncode, spec);
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(map->bytes[0], std::byte{3});
  EXPECT_EQ(map->bytes[127], std::byte{3});
  spec.rank = 9;
  EXPECT_EQ(session.call<TensorMap>(CommandType::kTensorMapEncode, spec).error().code,
            ErrorCode::kInvalidValue);
}

TEST_F(SessionTest, ClientDeathFreesEverything) {
  {
    TestSession session(device_, completer_);
    ASSERT_TRUE(session.load("spin"));
    ASSERT_TRUE(session.allocate(20 << 20));
    ASSERT_TRUE(session.post(CommandType::kStreamCreate, ipc::StreamCreate{1, 0, 0}));
    ASSERT_TRUE(session.post(CommandType::kEventCreate, ipc::EventCreate{1, 0, 0}));
    ASSERT_TRUE(session.launch(0, 1));
    ASSERT_TRUE(session.post(CommandType::kEventRecord, ipc::EventStream{1, 1}));
    EXPECT_EQ(session.async_error(), ErrorCode::kNone);
    session.leave();
  }
  EXPECT_TRUE(device_.holds_nothing());
}

TEST_F(SessionTest, WhatADeadClientLeftInTheRingIsNotLaunched) {
  device_.before_launch([](const std::string&) { std::this_thread::sleep_for(1ms); });
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.load("noop"));
  constexpr int kLaunches = 2000;
  for (int i = 0; i < kLaunches; ++i) ASSERT_TRUE(session.launch(0));
  session.leave();
  EXPECT_LT(device_.launches(), kLaunches / 2);
  EXPECT_FALSE(session.session->faulted());
}

TEST_F(SessionTest, AGateHoldsItsStreamUntilTheClientOpensIt) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.load("write"));
  const auto address = *session.allocate(64);
  ASSERT_TRUE(session.post(CommandType::kFill, ipc::Fill{address, 64, 64, 1, 0, 0, 1}));
  ASSERT_TRUE(session.post(CommandType::kStreamCreate, ipc::StreamCreate{1, 1, 0}));
  ASSERT_TRUE(session.synchronize());
  for (const std::uint64_t ticket : {7u, 8u}) {  // a gate is used again
    ASSERT_TRUE(session.post(CommandType::kHostGate, ipc::HostGate{ticket, 1}));
    ASSERT_TRUE(session.launch(address, 1));
    EXPECT_EQ(*session.read_int(address), 0) << "on another stream, meanwhile";
    const auto state = session.call<ipc::QueryReply>(CommandType::kQuery,
                                                     ipc::Target{ipc::TargetKind::kStream, 0, 1});
    ASSERT_TRUE(state);
    EXPECT_EQ(state->finished, 0u);
    ASSERT_TRUE(session.post(CommandType::kHostDone, ipc::IdCommand{ticket}));
    ASSERT_TRUE(session.synchronize());
    EXPECT_EQ(*session.read_int(address), 42);
    ASSERT_TRUE(session.post(CommandType::kFill, ipc::Fill{address, 64, 64, 1, 0, 0, 1}));
    ASSERT_TRUE(session.synchronize());
  }
  ASSERT_TRUE(session.post(CommandType::kHostDone, ipc::IdCommand{8}));
  EXPECT_EQ(session.async_error(), ErrorCode::kInvalidHandle) << "opened twice";
}

TEST_F(SessionTest, BytesOfACopyThatIsKeptStayInTheirSlot) {
  TestSession session(device_, completer_);
  const auto address = *session.allocate(64);
  EXPECT_EQ(*session.read_int(address), 0) << "from here on there is staging memory to take back";
  ASSERT_TRUE(session.post(CommandType::kHostGate, ipc::HostGate{7, 0}));
  auto staging = *session.client->acquire_staging();
  std::memset(staging.memory.data(), 9, sizeof(int));
  ASSERT_TRUE(session.post(
      CommandType::kCopy,
      ipc::Copy{
          Place::on_device(address, 4), Place::in_slot(staging.slot, staging.sequence), {4}, 0}));
  session.client->release_staging(staging, true);
  std::this_thread::sleep_for(Session::kStagingIdle + 300ms);
  ASSERT_TRUE(session.post(CommandType::kHostDone, ipc::IdCommand{7}));
  EXPECT_EQ(*session.read_int(address), 0x09090909);
}

TEST_F(SessionTest, ClientDeathOpensItsGates) {
  device_.refuse_cancel();
  {
    TestSession session(device_, completer_);
    ASSERT_TRUE(session.load("write"));
    const auto address = *session.allocate(64);
    for (std::uint64_t ticket = 1; ticket <= 5; ++ticket) {
      ASSERT_TRUE(session.post(CommandType::kHostGate, ipc::HostGate{ticket, 0}));
      ASSERT_TRUE(session.launch(address));
    }
    EXPECT_EQ(session.async_error(), ErrorCode::kNone);
    session.leave();
  }
  EXPECT_TRUE(device_.holds_nothing());
}

TEST_F(SessionTest, CallsThatSlateDoesNotHaveAreCountedByName) {
  CallCounts counts;
  SessionHooks hooks;
  hooks.unsupported = [&](std::string_view name) { counts.count(name); };
  TestSession session(device_, completer_, 64 << 20, 1min, hooks);
  const auto report = [&](std::string_view name) {
    return session.client->post(CommandType::kUnsupportedCall, std::as_bytes(std::span(name)));
  };
  ASSERT_TRUE(report("cudaIpcGetMemHandle"));
  ASSERT_TRUE(report("cudaIpcGetMemHandle"));
  ASSERT_TRUE(session.synchronize());
  EXPECT_EQ(counts.snapshot(), (std::map<std::string, std::uint64_t>{{"cudaIpcGetMemHandle", 2}}));
}

TEST(CallCountsTest, NamesBeyondTheLimitAreCountedTogether) {
  CallCounts counts;
  for (std::size_t i = 0; i < CallCounts::kMostNames + 3; ++i) counts.count(std::to_string(i));
  counts.count("0");
  const auto seen = counts.snapshot();
  EXPECT_EQ(seen.size(), CallCounts::kMostNames + 1);
  EXPECT_EQ(seen.at(std::string(CallCounts::kOthers)), 3u);
  EXPECT_EQ(seen.at("0"), 2u);
}

TEST_F(SessionTest, WithoutCancelTheEndWaitsForTheWork) {
  device_.refuse_cancel();
  std::promise<void> stuck;
  SessionHooks hooks;
  hooks.stuck = [&](std::uint64_t) { stuck.set_value(); };
  TestSession session(device_, completer_, 64 << 20, 1ms, hooks);
  ASSERT_TRUE(session.load("spin"));
  ASSERT_TRUE(session.launch(0));
  EXPECT_EQ(session.async_error(), ErrorCode::kNone);
  session.hang_up();
  stuck.get_future().wait();
  EXPECT_FALSE(session.ended);
  EXPECT_EQ(session.session->status().phase, SessionPhase::kDraining);
  device_.release_spinning();
  session.join();
  EXPECT_TRUE(device_.holds_nothing());
}

TEST_F(SessionTest, AFaultSticksToItsSessionAndLeavesOthersAlone) {
  TestSession bad(device_, completer_);
  TestSession good(device_, completer_);
  ASSERT_TRUE(bad.load("fault"));
  ASSERT_TRUE(good.load("write"));
  const auto address = *good.allocate(64);
  ASSERT_TRUE(bad.launch(0x10));
  EXPECT_EQ(bad.synchronize().error().code, ErrorCode::kIllegalAddress);
  EXPECT_EQ(bad.allocate(64).error().code, ErrorCode::kIllegalAddress);
  EXPECT_EQ(bad.client->check().error().code, ErrorCode::kIllegalAddress);
  EXPECT_TRUE(bad.session->faulted());
  ASSERT_TRUE(good.launch(address));
  EXPECT_EQ(*good.read_int(address), 42);
  EXPECT_TRUE(good.synchronize());
}

TEST_F(SessionTest, AFaultIsSeenWithoutAnyoneWaiting) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.load("fault"));
  ASSERT_TRUE(session.launch(0));
  while (session.client->check()) std::this_thread::yield();
  EXPECT_EQ(session.client->check().error().code, ErrorCode::kIllegalAddress);
}

TEST_F(SessionTest, AKernelCannotReachAnotherSessionsMemory) {
  TestSession one(device_, completer_);
  TestSession other(device_, completer_);
  const auto address = *one.allocate(64);
  ASSERT_TRUE(other.load("write"));
  ASSERT_TRUE(other.launch(address));
  EXPECT_EQ(other.synchronize().error().code, ErrorCode::kIllegalAddress);
  EXPECT_EQ(*one.read_int(address), 0);
}

TEST_F(SessionTest, ALostDeviceIsReportedToTheEngine) {
  std::promise<ErrorCode> told;
  std::atomic<bool> once{false};
  SessionHooks hooks;
  hooks.device_lost = [&](const Error& error) {
    if (!once.exchange(true)) told.set_value(error.code);
  };
  TestSession session(device_, completer_, 64 << 20, 60s, hooks);
  ASSERT_TRUE(session.load("lose"));
  ASSERT_TRUE(session.launch(0));
  EXPECT_EQ(told.get_future().get(), ErrorCode::kIllegalAddress);
}

TEST_F(SessionTest, SynchronizingOneThreadDoesNotHoldUpAnother) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.load("spin"));
  ASSERT_TRUE(session.launch(0));
  std::thread waiter([&] { EXPECT_TRUE(session.synchronize()); });
  EXPECT_TRUE(session.allocate(64));
  const auto query = session.call<ipc::QueryReply>(CommandType::kQuery,
                                                   ipc::Target{ipc::TargetKind::kStream, 0, 0});
  EXPECT_EQ(query->finished, 0u);
  device_.release_spinning();
  waiter.join();
}

TEST_F(SessionTest, AnEventIsReachedBeforeLaterWork) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.load("noop"));
  ASSERT_TRUE(session.add_function(2, "spin"));
  ASSERT_TRUE(session.post(CommandType::kEventCreate, ipc::EventCreate{9, 0, 0}));
  const ipc::Target event{ipc::TargetKind::kEvent, 0, 9};
  EXPECT_TRUE(session.call(CommandType::kSynchronize, event))
      << "not recorded yet: nothing to wait for";
  ASSERT_TRUE(session.launch(0));
  ASSERT_TRUE(session.post(CommandType::kEventRecord, ipc::EventStream{9, 0}));
  ASSERT_TRUE(session.launch(0, 0, 2));
  EXPECT_TRUE(session.call(CommandType::kSynchronize, event));
  EXPECT_EQ(session.call<ipc::QueryReply>(CommandType::kQuery, event)->finished, 1u);
  ASSERT_TRUE(session.post(CommandType::kEventRecord, ipc::EventStream{9, 0}));
  EXPECT_EQ(session.call<ipc::QueryReply>(CommandType::kQuery, event)->finished, 0u);
  device_.release_spinning();
  EXPECT_TRUE(session.call(CommandType::kSynchronize, event));
}

TEST_F(SessionTest, AnEventMayBeRecordedAgainAndDestroyedWhileSomeoneWaits) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.load("spin"));
  ASSERT_TRUE(session.post(CommandType::kEventCreate, ipc::EventCreate{9, 0, 0}));
  ASSERT_TRUE(session.launch(0));
  ASSERT_TRUE(session.post(CommandType::kEventRecord, ipc::EventStream{9, 0}));
  std::thread waiter([&] {
    const auto done =
        session.call(CommandType::kSynchronize, ipc::Target{ipc::TargetKind::kEvent, 0, 9});
    // The destroy below may be served first.
    EXPECT_TRUE(done || done.error().code == ErrorCode::kInvalidHandle);
  });
  ASSERT_TRUE(session.post(CommandType::kEventRecord, ipc::EventStream{9, 0}));
  ASSERT_TRUE(session.post(CommandType::kEventDestroy, ipc::IdCommand{9}));
  EXPECT_EQ(session.async_error(), ErrorCode::kNone);
  device_.release_spinning();
  waiter.join();
}

TEST_F(SessionTest, ElapsedNeedsTwoTimedAndRecordedEvents) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.post(CommandType::kEventCreate, ipc::EventCreate{1, 0, 0}));
  ASSERT_TRUE(session.post(CommandType::kEventCreate, ipc::EventCreate{2, ipc::kEventNoTiming, 0}));
  ASSERT_TRUE(session.post(CommandType::kEventRecord, ipc::EventStream{1, 0}));
  ASSERT_TRUE(session.post(CommandType::kEventRecord, ipc::EventStream{2, 0}));
  const auto elapsed = [&](std::uint64_t start, std::uint64_t stop) {
    return session.call<ipc::ElapsedReply>(CommandType::kEventElapsed, ipc::EventPair{start, stop});
  };
  EXPECT_FLOAT_EQ(elapsed(1, 1)->milliseconds, 1.5f);
  EXPECT_EQ(elapsed(1, 2).error().code, ErrorCode::kInvalidHandle);
  EXPECT_EQ(elapsed(1, 3).error().code, ErrorCode::kInvalidHandle);
}

/// Frees memory while a kernel spins that may use it.
void free_behind_spinning_work(TestSession& session, std::uint64_t bytes) {
  ASSERT_TRUE(session.load("spin"));
  const auto address = session.allocate(bytes);
  ASSERT_TRUE(address) << address.error().message;
  ASSERT_TRUE(session.launch(0));
  ASSERT_TRUE(session.post(CommandType::kMemoryFree, ipc::MemoryFree{*address}));
}

TEST_F(SessionTest, FreedMemoryStaysBackedWhileWorkMayUseIt) {
  TestSession session(device_, completer_);
  free_behind_spinning_work(session, 20 << 20);
  EXPECT_EQ(session.async_error(), ErrorCode::kNone);
  EXPECT_EQ(device_.mapped_bytes(), (20u << 20) + FakeDevice::kGranularity) << "and slack";
  device_.release_spinning();
  ASSERT_TRUE(session.synchronize());
  while (device_.mapped_bytes() != FakeDevice::kGranularity) std::this_thread::yield();
}

TEST_F(SessionTest, AllocationUnderPressureWaitsForFreesUnderWay) {
  TestSession session(device_, completer_, 32 << 20);
  free_behind_spinning_work(session, 30 << 20);
  std::thread releaser([&] { device_.release_spinning(); });
  EXPECT_TRUE(session.allocate(30 << 20));
  releaser.join();
}

TEST_F(SessionTest, ClientDeathEndsAnAllocationThatWaits) {
  TestSession session(device_, completer_, 32 << 20);
  free_behind_spinning_work(session, 30 << 20);
  ASSERT_TRUE(session.post(CommandType::kMemoryAllocate, ipc::MemoryAllocate{30 << 20}));
  session.leave();
  EXPECT_TRUE(device_.holds_nothing());
}

TEST_F(SessionTest, MemoryInfoKnowsTheLimit) {
  TestSession session(device_, completer_, 32 << 20);
  ASSERT_TRUE(session.allocate(20 << 20));
  const auto info = session.call<ipc::MemoryInfoReply>(CommandType::kMemoryInfo, char{});
  EXPECT_EQ(info->total_bytes, 32u << 20);
  EXPECT_EQ(info->free_bytes, 12u << 20);
  EXPECT_EQ(session.allocate(20 << 20).error().code, ErrorCode::kOutOfMemory);
}

TEST_F(SessionTest, ModulesComeInChunksAndGlobalsCanBeCopied) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.post(CommandType::kModuleLoad, ipc::ModuleLoad{5, 6, 0, ipc::kImagePtx, 0},
                           TestSession::text("abc")));
  ASSERT_TRUE(session.call(CommandType::kModuleLoad, ipc::ModuleLoad{5, 6, 3, ipc::kImagePtx, 0},
                           TestSession::text("def")));
  const auto global = session.call<ipc::GlobalReply>(CommandType::kGlobalGet, ipc::GlobalGet{5},
                                                     TestSession::text("g"));
  ASSERT_TRUE(global);
  EXPECT_EQ(*session.read_int(global->address), 0);
  ASSERT_TRUE(session.post(CommandType::kModuleUnload, ipc::IdCommand{5}));
  EXPECT_EQ(session.async_error(), ErrorCode::kNone);
  ASSERT_TRUE(session.post(CommandType::kFill, ipc::Fill{global->address, 4, 4, 1, 0, 1, 1}));
  EXPECT_EQ(session.async_error(), ErrorCode::kInvalidValue) << "gone with its module";
}

TEST_F(SessionTest, WithoutADescriptorToWakeItThereIsNoSession) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer itself needs descriptors to look at an object's type";
#endif
  Compiler compiler(device_, nullptr);
  FormService forms(device_, FormChoice::kNative);
  Trace trace{0};
  Executor executor(device_, forms, completer_, trace, policy_maker("fifo", {}), {});
  ipc::SessionEnds ends(device_.info(), 64 << 20);
  SessionSpec spec;
  spec.ends = std::move(ends.ends);
  spec.segment = std::move(ends.segment);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  Session session(device_, compiler, executor, completer_, std::move(spec), {}, 1min);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  session.run();
  EXPECT_EQ(ends.client->check().error().code, ErrorCode::kLimit);
}

TEST_F(SessionTest, ABadModuleIsThatCommandsError) {
  TestSession session(device_, completer_);
  EXPECT_EQ(session
                .call(CommandType::kModuleLoad, ipc::ModuleLoad{1, 1, 0, ipc::kImagePtx, 0},
                      TestSession::text("!"))
                .error()
                .code,
            ErrorCode::kInvalidPtx);
  EXPECT_EQ(session.load("unknown").error().code, ErrorCode::kSymbolNotFound);
}

TEST_F(SessionTest, ParametersAreTold) {
  TestSession session(device_, completer_);
  EXPECT_EQ(session.load("noop")->parameter_bytes, 8u);
  const auto parameters = session.call<ipc::ParameterReply>(CommandType::kFunctionParameters,
                                                            ipc::FunctionParameters{1, 0, 0});
  EXPECT_EQ(parameters->count, 1u);
  EXPECT_EQ(parameters->parameters[0].size, 8u);
}

TEST_F(SessionTest, LimitsAreCheckedBeforeTheyAreRaised) {
  TestSession session(device_, completer_);
  const auto raise = [&](std::uint32_t limit, std::uint64_t bytes) {
    const auto done = session.call(CommandType::kLimitRaise, ipc::LimitRaise{limit, 0, bytes});
    return done ? ErrorCode::kNone : done.error().code;
  };
  EXPECT_EQ(raise(0, 8192), ErrorCode::kNone);
  EXPECT_EQ(device_.local_sizes(), std::vector<std::uint64_t>{8192});
  EXPECT_EQ(raise(1, 64 << 20), ErrorCode::kNone);
  EXPECT_EQ(device_.raised_limit(), std::pair(device::Limit::kHeap, std::uint64_t{64} << 20));
  EXPECT_EQ(raise(3, 1), ErrorCode::kInvalidValue);
  EXPECT_EQ(raise(2, 1 << 20), ErrorCode::kInvalidValue);
  EXPECT_EQ(raise(~0u, 1), ErrorCode::kInvalidValue);
  EXPECT_EQ(raise(0, 1 << 20), ErrorCode::kInvalidValue) << "more stack than a thread can have";
  EXPECT_EQ(raise(1, std::uint64_t{1} << 40), ErrorCode::kInvalidValue);
  EXPECT_EQ(device_.raised_limit().second, std::uint64_t{64} << 20) << "refused ones came through";
  EXPECT_EQ(raise(2, 8192), ErrorCode::kNone);
  EXPECT_EQ(device_.raised_limit(),
            std::pair(device::Limit::kPendingLaunches, std::uint64_t{8192}));
}

TEST_F(SessionTest, StopTellsTheClient) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.synchronize());
  session.session->stop("slated is stopping");
  session.join();
  const auto after = session.synchronize();
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(after.error().message, "slated is stopping");
}

}  // namespace
}  // namespace slate::daemon
