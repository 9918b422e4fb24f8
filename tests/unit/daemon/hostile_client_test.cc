// Everything a client can send that it should not: each is that command's error or the end of that
// session, never more.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/daemon/session_fixture.h"

namespace slate::daemon {
namespace {

using ipc::CommandType;

class HostileClientTest : public SessionTest {
 protected:
  HostileClientTest() : session_(std::make_unique<TestSession>(device_, completer_)) {}
  ~HostileClientTest() override { session_.reset(); }

  /// The session must end by itself, and say why.
  void expect_ended() {
    session_->join();
    EXPECT_EQ(session_->client->check().error().code, ErrorCode::kProtocol);
    EXPECT_TRUE(device_.holds_nothing());
  }
  ErrorCode error_of(Result<void> posted) {
    EXPECT_TRUE(posted);
    return session_->async_error();
  }

  std::unique_ptr<TestSession> session_;
};

TEST_F(HostileClientTest, GarbageInTheRingEndsTheSession) {
  TestSession other(device_, completer_);
  std::mt19937_64 random(1);
  ipc::SegmentLayout* const layout = session_->raw.operator->();
  for (std::uint64_t at = 0; at < ipc::kRingBytes; at += 8) {
    const std::uint64_t value = random();
    std::memcpy(&layout->ring[at], &value, 8);
  }
  layout->status.ring_tail.store(4096);
  session_->ring();
  session_->join();
  EXPECT_EQ(session_->client->check().error().code, ErrorCode::kProtocol);
  EXPECT_TRUE(other.synchronize());
}

TEST_F(HostileClientTest, AnImpossibleTailEndsTheSession) {
  session_->raw->status.ring_tail.store(~0ull - 15);
  session_->ring();
  expect_ended();
}

TEST_F(HostileClientTest, AnUnknownCommandEndsTheSession) {
  ASSERT_TRUE(session_->post(static_cast<CommandType>(999), char{}));
  expect_ended();
}

TEST_F(HostileClientTest, AShortCommandEndsTheSession) {
  ASSERT_TRUE(session_->post(CommandType::kLaunch, char{}));
  expect_ended();
}

TEST_F(HostileClientTest, LaunchFlagsThatThereAreNotEndTheSession) {
  ASSERT_TRUE(session_->load("spin"));
  const std::uint64_t argument = 0;
  ASSERT_TRUE(session_->post(
      CommandType::kLaunch,
      ipc::Launch{1, 0, {1, 1, 1}, {1, 1, 1}, 0, 8, ipc::kLaunchFlags + 1, {0, 0, 0}},
      ipc::bytes_of(argument)));
  expect_ended();
}

TEST_F(HostileClientTest, AVariablesNameWithoutEndEndsTheSession) {
  const std::string name(ModuleStore::kMostPlacedNameBytes + 1, 'x');
  ASSERT_TRUE(session_->post(CommandType::kVariablePlace, ipc::VariablePlace{1, 4096},
                             TestSession::text(name)));
  expect_ended();
}

TEST_F(HostileClientTest, AnEventIdTwiceImportedEndsTheSession) {
  ASSERT_TRUE(session_->post(CommandType::kEventImport, ipc::HandleCommand{{}, 0}));
  expect_ended();
}

TEST_F(HostileClientTest, AFunctionNameThatIsNoneEndsTheSession) {
  for (const std::string& name : {std::string(), std::string("a b"), std::string("\xff\n"),
                                  std::string(ipc::kMostNameBytes + 1, 'a')}) {
    TestSession session(device_, completer_);
    ASSERT_TRUE(
        session.client->post(ipc::CommandType::kUnsupportedCall, std::as_bytes(std::span(name))));
    session.join();
    EXPECT_TRUE(session.ended) << name;
  }
}

TEST_F(HostileClientTest, AStagingSlotOutOfBoundsEndsTheSession) {
  const auto address = *session_->allocate(4 << 20);
  ASSERT_TRUE(session_->post(
      CommandType::kCopy,
      ipc::Copy{Place::on_device(address, 16), Place::in_slot(ipc::kStagingSlots, 1), {16}, 0}));
  expect_ended();
}

TEST_F(HostileClientTest, AStagingOffsetOutOfBoundsEndsTheSession) {
  const auto address = *session_->allocate(4 << 20);
  ASSERT_TRUE(session_->post(
      CommandType::kCopy,
      ipc::Copy{Place::in_slot(0, 1, static_cast<std::uint32_t>(ipc::kStagingSlotBytes) - 8),
                Place::on_device(address, 16),
                {16},
                0}));
  expect_ended();
}

TEST_F(HostileClientTest, AStagingSizeThatOverflowsEndsTheSession) {
  const auto address = *session_->allocate(4 << 20);
  ASSERT_TRUE(session_->post(
      CommandType::kCopy,
      ipc::Copy{Place::in_slot(0, 1), Place::on_device(address, 1), {1ull << 33, 1ull << 33}, 0}));
  expect_ended();
}

TEST_F(HostileClientTest, AGateWithATakenTicketEndsTheSession) {
  for (const std::uint64_t stream : {1, 2}) {
    ASSERT_TRUE(session_->post(CommandType::kStreamCreate, ipc::StreamCreate{stream, 0, 0}));
    ASSERT_TRUE(session_->post(CommandType::kHostGate, ipc::HostGate{1, stream}));
  }
  expect_ended();
}

TEST_F(HostileClientTest, AWaitWithoutReplyEndsTheSession) {
  ASSERT_TRUE(
      session_->post(CommandType::kSynchronize, ipc::Target{ipc::TargetKind::kSession, 0, 0}));
  expect_ended();
}

TEST_F(HostileClientTest, AnUnknownTargetEndsTheSession) {
  EXPECT_FALSE(session_->call(CommandType::kSynchronize,
                              ipc::Target{static_cast<ipc::TargetKind>(7), 0, 0}));
  expect_ended();
}

TEST_F(HostileClientTest, TakenIdsEndTheSession) {
  ASSERT_TRUE(session_->post(CommandType::kEventCreate, ipc::EventCreate{1, 0, 0}));
  ASSERT_TRUE(session_->post(CommandType::kEventCreate, ipc::EventCreate{1, 0, 0}));
  expect_ended();
}

TEST_F(HostileClientTest, ModuleChunksOutOfOrderEndTheSession) {
  ASSERT_TRUE(session_->post(CommandType::kModuleLoad,
                             ipc::ModuleLoad{1, 100, 0, ipc::kImagePtx, 0},
                             TestSession::text("abc")));
  ASSERT_TRUE(session_->post(CommandType::kModuleLoad,
                             ipc::ModuleLoad{1, 100, 50, ipc::kImagePtx, 0},
                             TestSession::text("abc")));
  expect_ended();
}

TEST_F(HostileClientTest, AHugeModuleIsRefused) {
  EXPECT_EQ(session_
                ->call(CommandType::kModuleLoad, ipc::ModuleLoad{1, ~0ull, 0, ipc::kImagePtx, 0},
                       TestSession::text("abc"))
                .error()
                .code,
            ErrorCode::kLimit);
}

TEST_F(HostileClientTest, UnknownIdsAreInvalidHandles) {
  const auto expect_invalid = [&](Result<void> posted) {
    EXPECT_EQ(error_of(std::move(posted)), ErrorCode::kInvalidHandle);
  };
  expect_invalid(session_->launch(0));
  expect_invalid(session_->post(CommandType::kStreamDestroy, ipc::IdCommand{77}));
  expect_invalid(session_->post(CommandType::kEventDestroy, ipc::IdCommand{77}));
  expect_invalid(session_->post(CommandType::kModuleUnload, ipc::IdCommand{77}));
  expect_invalid(session_->post(CommandType::kEventRecord, ipc::EventStream{77, 0}));
  expect_invalid(session_->post(CommandType::kStreamWaitEvent, ipc::EventStream{77, 0}));
}

TEST_F(HostileClientTest, WildAddressesAreRefused) {
  const auto address = *session_->allocate(4096);
  const auto expect_refused = [&](std::uint64_t to, std::uint64_t pitch, std::uint64_t width,
                                  std::uint64_t height) {
    EXPECT_EQ(
        error_of(session_->post(CommandType::kFill, ipc::Fill{to, pitch, width, height, 0, 0, 1})),
        ErrorCode::kInvalidValue)
        << std::hex << to << " " << pitch << " " << width << " " << height;
  };
  expect_refused(0x10, 4, 4, 1);
  expect_refused(address, 4097, 4097, 1);
  expect_refused(address + 4095, 2, 2, 1);
  expect_refused(address - 1, 1, 1, 1);
  expect_refused(~0ull, 4, 4, 1);
  expect_refused(address, 1ull << 63, 4, 3);
  expect_refused(address, ~0ull, 4, ~0ull);
  expect_refused(address, 2, 4, 2);
  expect_refused(address, 1024, 1024, 5);
  EXPECT_EQ(
      error_of(session_->post(CommandType::kFill, ipc::Fill{address, 1024, 1024, 4, 0, 0, 1})),
      ErrorCode::kNone);
}

TEST_F(HostileClientTest, ARefusedCopyGivesItsStagingBack) {
  EXPECT_EQ(session_->read_int(0x10).error().code, ErrorCode::kInvalidValue) << "returns at all";
  EXPECT_EQ(session_->async_error(), ErrorCode::kNone) << "it was told";
}

TEST_F(HostileClientTest, FreedMemoryCannotBeCopied) {
  const auto address = *session_->allocate(4096);
  ASSERT_TRUE(session_->post(CommandType::kMemoryFree, ipc::MemoryFree{address}));
  EXPECT_EQ(error_of(session_->post(CommandType::kFill, ipc::Fill{address, 4, 4, 1, 0, 0, 1})),
            ErrorCode::kInvalidValue);
  EXPECT_EQ(error_of(session_->post(CommandType::kMemoryFree, ipc::MemoryFree{address})),
            ErrorCode::kInvalidValue);
}

TEST_F(HostileClientTest, AnotherSessionsMemoryCannotBeCopied) {
  TestSession other(device_, completer_);
  const auto address = *other.allocate(4096);
  EXPECT_EQ(error_of(session_->post(CommandType::kFill, ipc::Fill{address, 4, 4, 1, 0, 1, 1})),
            ErrorCode::kInvalidValue);
  EXPECT_EQ(*other.read_int(address), 0);
}

TEST_F(HostileClientTest, LaunchesAreChecked) {
  ASSERT_TRUE(session_->load("noop"));
  const auto launch = [&](std::uint32_t grid, std::uint32_t block, std::string_view parameters) {
    return error_of(session_->post(
        CommandType::kLaunch,
        ipc::Launch{
            1, 0, {grid, 1, 1}, {block, 1, 1}, 0, static_cast<std::uint32_t>(parameters.size())},
        TestSession::text(parameters)));
  };
  EXPECT_EQ(launch(1, 1, "12345678"), ErrorCode::kNone);
  EXPECT_EQ(launch(1, 1, "1234567"), ErrorCode::kInvalidValue);
  EXPECT_EQ(launch(1, 1, "123456789"), ErrorCode::kInvalidValue);
  EXPECT_EQ(launch(0, 1, "12345678"), ErrorCode::kInvalidConfiguration);
  EXPECT_EQ(launch(1, 0, "12345678"), ErrorCode::kInvalidConfiguration);
  EXPECT_EQ(launch(1, 4096, "12345678"), ErrorCode::kInvalidConfiguration);
}

TEST_F(HostileClientTest, AReplySlotOutOfBoundsEndsTheSession) {
  ipc::RingProducer producer(session_->raw.operator->());
  ASSERT_TRUE(
      producer.try_push(CommandType::kMemoryInfo, ipc::kReplySlots, 1, ipc::bytes_of(char{}), {}));
  session_->ring();
  expect_ended();
}

TEST_F(HostileClientTest, RandomBodiesOfEveryCommandHarmNobody) {
  TestSession other(device_, completer_);
  std::mt19937_64 random(11);
  for (int round = 0; round < 60; ++round) {
    TestSession victim(device_, completer_);
    for (int i = 0; i < 40; ++i) {
      std::array<std::uint64_t, 32> body{};  // more than any body
      for (auto& word : body) word = random() >> (random() % 64);
      const auto type = static_cast<CommandType>(1 + random() % ipc::kCommandTypes);
      const bool is_short = random() % 16 == 0;  // that ends the session
      const auto bytes =
          std::as_bytes(std::span(body)).first(is_short ? random() % 80 : sizeof(body));
      if (!victim.client->post(type, bytes)) break;
    }
  }
  EXPECT_TRUE(other.synchronize());
}

}  // namespace
}  // namespace slate::daemon
