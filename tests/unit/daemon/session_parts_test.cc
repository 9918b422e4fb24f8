// The parts of a session by themselves: their commands are handed to them as the dispatcher does
// it, and there is no channel.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "daemon/engine/commands/event_commands.h"
#include "daemon/engine/commands/host_function_commands.h"
#include "daemon/engine/commands/memory_commands.h"
#include "daemon/engine/commands/part_context.h"
#include "daemon/engine/commands/stream_commands.h"
#include "tests/unit/daemon/fake_device.h"

namespace slate::daemon {
namespace {

using ipc::CommandType;

class SessionPartsTest : public testing::Test {
 protected:
  ~SessionPartsTest() override {
    streams_.cancel_all();
    streams_.watch_ends();
    EXPECT_TRUE(group_.wait_empty(std::chrono::seconds(10)));
    streams_.destroy_all();
    executor_.remove(client_);
  }

  /// Has `part` carry out one command; the reply is in reply_.
  template <CommandType kType, typename Part>
  Result<void> call(Part& part, const ipc::BodyOf<kType>& body, LogicalStream* stream = nullptr) {
    reply_ = {};
    streams_.begin_command(++position_);
    return part.on(Call<kType>{header_, body, {}, stream, nullptr, reply_});
  }
  template <typename T>
  T replied() const {
    EXPECT_EQ(reply_.size, sizeof(T));
    T value;
    __builtin_memcpy(&value, reply_.bytes.data(), sizeof(T));
    return value;
  }
  LogicalStream* default_stream() { return *streams_.find(ipc::kDefaultStream); }

  FakeDevice device_;
  Completer completer_{device_};
  Completer::Group group_;
  FormService forms_{device_, FormChoice::kNative};
  Trace trace_{0};
  Executor executor_{device_, forms_, completer_, trace_, policy_maker("fifo", {}), {}};
  std::optional<Error> failed_;
  Faults faults_{device_, [this](const Error& fault) { failed_ = fault; }, [](const Error&) {}};
  StreamTable streams_{device_, completer_, group_,
                       [this](const Error& fault) { faults_.on_device_error(fault); }};
  std::shared_ptr<Executor::Client> client_ = executor_.add({}, streams_, group_);
  Retirement retirement_{streams_, completer_, group_};
  HeldCommands held_{[](std::uint64_t) { return true; }};
  SessionFence fence_{nullptr};
  const PartContext context_{.session = 1,
                             .uid = 0,
                             .device = device_,
                             .executor = executor_,
                             .client = *client_,
                             .completer = completer_,
                             .group = group_,
                             .streams = streams_,
                             .retirement = retirement_,
                             .held = held_,
                             .exports = std::make_shared<Exports>(),
                             .book = nullptr,
                             .faults = faults_,
                             .fence = fence_,
                             .is_over = [] { return false; }};
  Reply reply_;

 private:
  const ipc::CommandHeader header_{};
  std::uint64_t position_ = 0;
};

TEST_F(SessionPartsTest, MemoryThatIsFreedIsNotTheSessionsAnyMore) {
  MemoryCommands memory(context_, std::make_shared<LocalMemory>(device_));
  ASSERT_TRUE(memory.start(64 << 20, nullptr));
  ASSERT_TRUE(call<CommandType::kMemoryAllocate>(memory, {4096}));
  const auto address = replied<ipc::AddressReply>().address;
  EXPECT_TRUE(memory.owns(address, 4096));
  EXPECT_GT(memory.charged(), 0u);
  EXPECT_TRUE(call<CommandType::kMemoryFree>(memory, {address}));
  EXPECT_FALSE(memory.owns(address, 4096));
  EXPECT_EQ(call<CommandType::kMemoryFree>(memory, {address}).error().code,
            ErrorCode::kInvalidValue);
  EXPECT_TRUE(group_.wait_empty(std::chrono::seconds(10)));
  memory.release();
}

TEST_F(SessionPartsTest, AGateHoldsItsStreamUntilTheFunctionIsDone) {
  HostFunctionCommands gates(context_);
  ASSERT_TRUE(call<CommandType::kHostGate>(gates, {7, ipc::kDefaultStream}, default_stream()));
  EXPECT_TRUE(reply_.unfinished) << "the stream has not passed it";
  EXPECT_FALSE(held_.nothing_waits());
  EXPECT_FALSE(gates.none());
  EXPECT_FALSE(gates.take_opened());
  ASSERT_TRUE(call<CommandType::kHostDone>(gates, {7}));
  EXPECT_TRUE(held_.nothing_waits());
  EXPECT_TRUE(gates.take_opened());
  EXPECT_FALSE(gates.take_opened());
  EXPECT_EQ(call<CommandType::kHostDone>(gates, {7}).error().code, ErrorCode::kInvalidHandle);
}

TEST_F(SessionPartsTest, AnEventHasADeviceEventFromItsFirstRecordingOn) {
  EventCommands events(context_);
  ASSERT_TRUE(call<CommandType::kEventCreate>(events, {3, 0, 0}));
  EXPECT_FALSE((*events.find(3))->event);
  ASSERT_TRUE(call<CommandType::kEventRecord>(events, {3, ipc::kDefaultStream}, default_stream()));
  EXPECT_TRUE((*events.find(3))->event);
  ASSERT_TRUE(call<CommandType::kEventDestroy>(events, {3}));
  EXPECT_EQ(events.find(3).error().code, ErrorCode::kInvalidHandle);
  EXPECT_EQ(call<CommandType::kEventCreate>(events, {0, 0, 0}).error().code, ErrorCode::kProtocol);
  EXPECT_TRUE(group_.wait_empty(std::chrono::seconds(10)));
  events.release();
}

TEST_F(SessionPartsTest, TheBookHasWorkAsDoneBeforeTheClientIsToldSo) {
  PartContext context = context_;
  context.book = std::make_shared<SessionBook>(
      device_, *Book::make(), HeldMemory{},
      SessionBook::Holder{.hold = [](Book::Key, int) { return Result<void>(); },
                          .let_go = [](Book::Key) {}});
  EventCommands events(context);
  std::vector<std::uint64_t> done_when_told;
  StreamCommands streams(context, events, [&](const ipc::CommandHeader&, const Result<void>&) {
    done_when_told.push_back(context.book->book().done_of(0));
  });
  ASSERT_TRUE(call<CommandType::kEventCreate>(events, {3, 0, 0}));
  device_.hold(true);
  ASSERT_TRUE(call<CommandType::kEventRecord>(events, {3, ipc::kDefaultStream}, default_stream()));
  const std::uint64_t recorded = streams_.position();
  ASSERT_TRUE(call<CommandType::kSynchronize>(streams, {ipc::TargetKind::kEvent, 0, 3}));
  EXPECT_TRUE(reply_.deferred);
  ASSERT_TRUE(call<CommandType::kSynchronize>(streams, {ipc::TargetKind::kStream, 0, 0}));
  EXPECT_TRUE(reply_.deferred);
  device_.hold(false);
  EXPECT_TRUE(group_.wait_empty(std::chrono::seconds(10)));
  ASSERT_EQ(done_when_told.size(), 2u);
  EXPECT_GE(done_when_told[0], recorded);
  EXPECT_EQ(done_when_told[1], streams_.position()) << "all that came before the wait";
  events.release();
}

TEST_F(SessionPartsTest, TheFirstFaultLasts) {
  faults_.on_device_error({ErrorCode::kInternal, "strange"});
  faults_.fail({ErrorCode::kIllegalAddress, "later"});
  EXPECT_TRUE(faults_.failed());
  ASSERT_TRUE(failed_);
  EXPECT_EQ(failed_->code, ErrorCode::kLaunchFailed) << "as every fault that is not a sticky one";
  EXPECT_EQ(faults_.error().message, "strange");
}

TEST_F(SessionPartsTest, ASessionThatEndsHearsOfNoMoreFaults) {
  faults_.ignore();
  EXPECT_FALSE(faults_.checked(fail(ErrorCode::kIllegalAddress, "too late")));
  EXPECT_FALSE(faults_.failed());
  EXPECT_FALSE(failed_);
}

}  // namespace
}  // namespace slate::daemon
