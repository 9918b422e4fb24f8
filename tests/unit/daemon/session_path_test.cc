// The short paths through a session: progress that is published, copies inside their command and of
// memory that both sides share.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/unit/daemon/session_fixture.h"

namespace slate::daemon {
namespace {

using ipc::CommandType;

class SessionPathTest : public SessionTest {
 protected:
  template <typename Body>
  static std::uint64_t post(TestSession& session, CommandType type, const Body& body,
                            std::span<const std::byte> tail = {}) {
    ipc::PlaceNote note;
    EXPECT_TRUE(session.client->post(type, ipc::bytes_of(body), tail, &note));
    return note.position;
  }
  static void wait_completed(TestSession& session, std::uint32_t progress, std::uint64_t position) {
    while (!session.client->completed(progress, position)) std::this_thread::yield();
  }
  /// A block of shared memory as a client maps it.
  struct Shared {
    std::uint64_t device_address = 0;
    std::byte* memory = nullptr;
    std::uint64_t bytes = 0;
    ~Shared() {
      if (memory != nullptr) ::munmap(memory, bytes);
    }
  };
  static void allocate_host(TestSession& session, std::uint64_t id, Shared& shared) {
    const auto reply =
        session.call<ipc::AddressReply>(CommandType::kHostAllocate, ipc::HostAllocate{id, 8192});
    ASSERT_TRUE(reply) << reply.error().message;
    const auto fd = session.client->receive_memory(id);
    ASSERT_TRUE(fd) << fd.error().message;
    void* const mapped = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0);
    ASSERT_NE(mapped, MAP_FAILED);
    shared.device_address = reply->address;
    shared.memory = static_cast<std::byte*>(mapped);
    shared.bytes = 8192;
    ASSERT_TRUE(session.post(CommandType::kHostMapped, ipc::IdCommand{id}));
  }
};

TEST_F(SessionPathTest, ProgressOfEveryStreamIsPublishedWithoutBeingAskedFor) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.load("spin"));
  ASSERT_TRUE(session.post(CommandType::kStreamCreate,
                           ipc::StreamCreate{5, ipc::kStreamNonBlocking, 0, 3, 0}));
  const auto address = *session.allocate(4096);
  const std::uint64_t argument = 0;
  const std::uint64_t spins =
      post(session, CommandType::kLaunch, ipc::Launch{1, 5, {1, 1, 1}, {1, 1, 1}, 0, 8},
           ipc::bytes_of(argument));
  const std::uint64_t fills =
      post(session, CommandType::kFill, ipc::Fill{address, 4, 4, 1, 0, 1, 1});
  wait_completed(session, 0, fills);
  EXPECT_FALSE(session.client->completed(3, spins));
  device_.release_spinning();
  wait_completed(session, 3, spins);
}

TEST_F(SessionPathTest, ARefusedCommandIsProgressToo) {
  TestSession session(device_, completer_);
  const std::uint64_t refused =
      post(session, CommandType::kFill, ipc::Fill{0x1234, 4, 4, 1, 0, 1, 1});
  wait_completed(session, 0, refused);
  EXPECT_EQ(session.async_error(), ErrorCode::kInvalidValue);
}

TEST_F(SessionPathTest, ARecordIsPublishedBeforeTheWorkBehindItEnds) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.load("noop"));
  ASSERT_TRUE(session.add_function(2, "spin"));
  ASSERT_TRUE(session.post(CommandType::kEventCreate, ipc::EventCreate{9, 0, 0}));
  device_.hold(true);  // so that the record comes while the stream has work
  ASSERT_TRUE(session.launch(0));
  const std::uint64_t recorded = post(session, CommandType::kEventRecord, ipc::EventStream{9, 0});
  ASSERT_TRUE(session.launch(0, 0, 2));
  EXPECT_EQ(session.async_error(), ErrorCode::kNone);
  EXPECT_FALSE(session.client->completed(0, recorded));
  device_.hold(false);
  wait_completed(session, 0, recorded);
  EXPECT_FALSE(session.client->completed(0, session.client->status().ring_tail.load()));
  device_.release_spinning();
  ASSERT_TRUE(session.synchronize());
}

TEST_F(SessionPathTest, AnEventRecordedAgainAndAgainNeedsFewDeviceEvents) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.post(CommandType::kEventCreate, ipc::EventCreate{9, 0, 0}));
  std::uint64_t last = 0;
  for (int i = 0; i < 3000; ++i)
    last = post(session, CommandType::kEventRecord, ipc::EventStream{9, 0});
  wait_completed(session, 0, last);
  EXPECT_EQ(session.async_error(), ErrorCode::kNone);
}

TEST_F(SessionPathTest, RecordsBehindWorkThatDoesNotEndStayInTheRing) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.load("spin"));
  ASSERT_TRUE(session.post(CommandType::kEventCreate, ipc::EventCreate{9, 0, 0}));
  ASSERT_TRUE(session.launch(0));
  std::atomic<int> posted{0};
  constexpr int kRecords = 3 * Session::kMostWatches;
  std::thread program([&] {
    for (; posted < kRecords; ++posted) {
      if (!session.post(CommandType::kEventRecord, ipc::EventStream{9, 0})) return;
    }
  });
  // Until the ring is full as well.
  for (int before = -1; before != posted || before < static_cast<int>(Session::kMostWatches);) {
    before = posted;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  constexpr int kRing = ipc::kRingBytes / (sizeof(ipc::CommandHeader) + sizeof(ipc::EventStream));
  EXPECT_LE(posted, static_cast<int>(Session::kMostWatches) + kRing);
  device_.release_spinning();
  program.join();
  EXPECT_TRUE(session.synchronize());
  EXPECT_EQ(session.async_error(), ErrorCode::kNone);
}

TEST_F(SessionPathTest, AnOpenGateIsHeardBehindManyRecords) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.load("spin"));
  ASSERT_TRUE(session.post(CommandType::kStreamCreate, ipc::StreamCreate{1, 1, 0}));
  ASSERT_TRUE(session.post(CommandType::kEventCreate, ipc::EventCreate{9, 0, 0}));
  ASSERT_TRUE(session.post(CommandType::kHostGate, ipc::HostGate{7, 1}));
  ASSERT_TRUE(session.launch(0));
  for (std::uint64_t i = 0; i < Session::kMostWatches + 100; ++i)
    ASSERT_TRUE(session.post(CommandType::kEventRecord, ipc::EventStream{9, 0}));
  EXPECT_EQ(session.async_error(), ErrorCode::kNone) << "answered, as the host function still runs";
  ASSERT_TRUE(session.post(CommandType::kHostDone, ipc::IdCommand{7}));
  device_.release_spinning();
  EXPECT_TRUE(session.synchronize());
}

TEST_F(SessionPathTest, AClosedGateDoesNotLiftTheLimitOfRecords) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.load("spin"));
  ASSERT_TRUE(session.post(CommandType::kStreamCreate, ipc::StreamCreate{1, 1, 0}));
  ASSERT_TRUE(session.post(CommandType::kEventCreate, ipc::EventCreate{9, 0, 0}));
  ASSERT_TRUE(session.launch(0));
  ASSERT_TRUE(session.post(CommandType::kHostGate, ipc::HostGate{7, 1}));
  for (std::uint64_t i = 0; i < 3 * Session::kMostWatches; ++i)
    ASSERT_TRUE(session.post(CommandType::kEventRecord, ipc::EventStream{9, 0}));
  EXPECT_EQ(session.async_error(), ErrorCode::kNone) << "answered, as the host function still runs";
  EXPECT_LT(device_.records(), Session::kMostWatches + 100);
  ASSERT_TRUE(session.post(CommandType::kHostDone, ipc::IdCommand{7}));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LT(device_.records(), Session::kMostWatches + 100) << "nor does its end";
  device_.release_spinning();
  EXPECT_TRUE(session.synchronize());
  EXPECT_GE(device_.records(), 3 * Session::kMostWatches);
}

TEST_F(SessionPathTest, BytesInsideACommandReachTheDeviceInOrder) {
  TestSession session(device_, completer_);
  const auto address = *session.allocate(4096);
  // More than there are places for them, while the device does nothing.
  device_.hold(true);
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(
        session.post(CommandType::kCopyInline, ipc::CopyInline{address + 4, 0}, ipc::bytes_of(i)));
  }
  EXPECT_EQ(session.async_error(), ErrorCode::kNone);
  device_.hold(false);
  EXPECT_EQ(*session.read_int(address + 4), 299);
  EXPECT_EQ(session.session->status().bytes_to_device, 1200u);
}

TEST_F(SessionPathTest, SharedMemoryIsCopiedStraightBothWays) {
  TestSession session(device_, completer_);
  const auto address = *session.allocate(4096);
  Shared shared;
  allocate_host(session, 7, shared);
  const int there = 77;
  std::memcpy(shared.memory + 100, &there, 4);
  ASSERT_TRUE(
      session.post(CommandType::kCopy,
                   ipc::Copy{Place::on_device(address, 4), Place::in_block(7, 100, 4), {4}, 0}));
  EXPECT_EQ(*session.read_int(address), 77);
  const std::uint64_t back =
      post(session, CommandType::kCopy,
           ipc::Copy{Place::in_block(7, 8188, 4), Place::on_device(address, 4), {4}, 0});
  wait_completed(session, 0, back);
  int value = 0;
  std::memcpy(&value, shared.memory + 8188, 4);
  EXPECT_EQ(value, 77);
  ASSERT_TRUE(session.post(CommandType::kHostFree, ipc::IdCommand{7}));
  EXPECT_EQ(session.async_error(), ErrorCode::kNone);
}

TEST_F(SessionPathTest, FreedSharedMemoryStaysMappedWhileACopyMayUseIt) {
  TestSession session(device_, completer_);
  const auto address = *session.allocate(4096);
  Shared shared;
  allocate_host(session, 7, shared);
  std::memset(shared.memory, 9, 4);
  device_.hold(true);
  ASSERT_TRUE(
      session.post(CommandType::kCopy,
                   ipc::Copy{Place::on_device(address, 4), Place::in_block(7, 0, 4), {4}, 0}));
  ASSERT_TRUE(session.post(CommandType::kHostFree, ipc::IdCommand{7}));
  EXPECT_EQ(session.async_error(), ErrorCode::kNone);
  device_.hold(false);
  EXPECT_EQ(*session.read_int(address), 0x09090909);
}

TEST_F(SessionPathTest, ClientDeathFreesItsSharedMemory) {
  TestSession session(device_, completer_);
  Shared shared;
  allocate_host(session, 7, shared);
  // And one that it never mapped.
  ASSERT_TRUE(
      session.call<ipc::AddressReply>(CommandType::kHostAllocate, ipc::HostAllocate{8, 1 << 20}));
  session.leave();
  EXPECT_TRUE(device_.holds_nothing());
}

TEST_F(SessionPathTest, CopiesOutsideSharedMemoryAreRefused) {
  TestSession session(device_, completer_);
  const auto address = *session.allocate(4096);
  Shared shared;
  allocate_host(session, 7, shared);
  const ipc::Copy good{Place::on_device(address, 4), Place::in_block(7, 0, 4), {4}, 0};
  const auto refused = [&](auto change) {
    ipc::Copy bad = good;
    change(bad);
    EXPECT_TRUE(session.post(CommandType::kCopy, bad));
    EXPECT_EQ(session.async_error(), ErrorCode::kInvalidValue);
  };
  refused([](auto& copy) { copy.from.object = 6; });
  refused([](auto& copy) { copy.from.address = 8190; });
  refused([](auto& copy) { copy.from.address = ~0ull - 1; });
  refused([](auto& copy) { copy.box.width = 8193; });
  refused([](auto& copy) {
    copy.box.height = 1ull << 40;
    copy.from.pitch = 1ull << 40;
    copy.to.pitch = 0;
  });
  refused([](auto& copy) {
    copy.box.height = 2;
    copy.from.pitch = 2;
    copy.to.pitch = 4;
  });
  EXPECT_TRUE(session.post(CommandType::kCopy, good));
  EXPECT_EQ(session.async_error(), ErrorCode::kNone);
}

TEST_F(SessionPathTest, ARefusedCopyToTheHostIsItsSlotsErrorAndNobodyElses) {
  TestSession session(device_, completer_);
  const auto address = *session.allocate(4096);
  const auto slot = *session.client->acquire_staging();
  constexpr std::uint64_t kNoStream = 99;
  ASSERT_TRUE(session.post(
      CommandType::kCopy,
      ipc::Copy{
          Place::in_slot(slot.slot, slot.sequence), Place::on_device(address, 4), {4}, kNoStream}));
  EXPECT_EQ(session.client->wait_staging(slot).error().code, ErrorCode::kInvalidHandle);
  EXPECT_EQ(session.async_error(), ErrorCode::kNone);
  session.client->release_staging(slot, true);
  EXPECT_EQ(*session.read_int(address), 0) << "the next copy of the slot is another one";
}

TEST_F(SessionPathTest, ARefusedCopyToTheDeviceIsFoundByALaterCall) {
  TestSession session(device_, completer_);
  const auto address = *session.allocate(4096);
  const auto slot = *session.client->acquire_staging();
  ASSERT_TRUE(session.post(
      CommandType::kCopy,
      ipc::Copy{Place::on_device(address, 4), Place::in_slot(slot.slot, slot.sequence), {4}, 99}));
  session.client->release_staging(slot, true);
  EXPECT_EQ(session.async_error(), ErrorCode::kInvalidHandle);
}

TEST_F(SessionPathTest, ASlotIsFreeWhileWorkBehindItsCopyRuns) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.load("spin"));
  const auto address = *session.allocate(4096);
  const auto slot = *session.client->acquire_staging();
  ASSERT_TRUE(session.post(
      CommandType::kCopy,
      ipc::Copy{Place::on_device(address, 4), Place::in_slot(slot.slot, slot.sequence), {4}, 0}));
  session.client->release_staging(slot, true);
  ASSERT_TRUE(session.launch(0, 1));
  EXPECT_TRUE(session.client->wait_staging(slot));
  device_.release_spinning();
}

TEST_F(SessionPathTest, ASlotIsNotFinishedWhileItsTransferRunsUnwatched) {
  TestSession session(device_, completer_);
  const auto address = *session.allocate(4096);
  ASSERT_EQ(*session.read_int(address), 0);
  const auto slot = *session.client->acquire_staging();
  device_.hold(true);
  device_.refuse_records(true);
  ASSERT_TRUE(session.post(
      CommandType::kCopy,
      ipc::Copy{Place::in_slot(slot.slot, slot.sequence), Place::on_device(address, 4), {4}, 0}));
  EXPECT_EQ(session.client->wait_staging(slot).error().code, ErrorCode::kLaunchFailed)
      << "the session's, as nothing tells the transfer's end";
  EXPECT_LT(session.raw.status().staging[slot.slot].done.load(), slot.sequence);
  device_.refuse_records(false);
  device_.hold(false);
}

TEST_F(SessionPathTest, SharedMemoryIsTheDevicesByItsAddressToo) {
  TestSession session(device_, completer_);
  const auto address = *session.allocate(4096);
  Shared shared;
  allocate_host(session, 7, shared);
  ASSERT_TRUE(
      session.post(CommandType::kFill, ipc::Fill{shared.device_address + 4, 4, 4, 1, 0, 0x21, 1}));
  ASSERT_TRUE(session.post(
      CommandType::kCopy,
      ipc::Copy{
          Place::on_device(address, 4), Place::on_device(shared.device_address + 4, 4), {4}, 0}));
  ASSERT_TRUE(session.synchronize());
  EXPECT_EQ(*session.read_int(address), 0x21212121);
  EXPECT_EQ(static_cast<int>(shared.memory[4]), 0x21);
  const auto refused = [&](std::uint64_t to, std::uint64_t width) {
    EXPECT_TRUE(session.post(CommandType::kFill, ipc::Fill{to, width, width, 1, 0, 0, 1}));
    EXPECT_EQ(session.async_error(), ErrorCode::kInvalidValue);
  };
  refused(shared.device_address + 4, 8192);
  refused(shared.device_address - 1, 4);
  ASSERT_TRUE(session.post(CommandType::kHostFree, ipc::IdCommand{7}));
  refused(shared.device_address, 4);
}

TEST_F(SessionPathTest, AVariableIsPlacedInSharedMemoryOfTheSessionOnly) {
  const std::string ptx =
      ".version 9.0\n.target sm_90\n.address_size 64\n"
      ".global .attribute(.managed) .align 4 .b8 x[8] = {1, 2};\n";
  TestSession session(device_, completer_);
  Shared shared;
  allocate_host(session, 7, shared);
  shared.memory[20] = std::byte{9};
  const auto load = [&](std::uint64_t module, std::uint64_t at, std::uint32_t kind) {
    EXPECT_TRUE(session.post(CommandType::kVariablePlace, ipc::VariablePlace{module, at},
                             TestSession::text("x")));
    const auto done =
        session.call(CommandType::kModuleLoad, ipc::ModuleLoad{module, ptx.size(), 0, kind, 0},
                     TestSession::text(ptx));
    return done ? ErrorCode::kNone : done.error().code;
  };
  EXPECT_EQ(load(1, shared.device_address + 16, ipc::kImagePtx), ErrorCode::kNone);
  EXPECT_EQ(static_cast<int>(shared.memory[16]), 1);
  EXPECT_EQ(static_cast<int>(shared.memory[17]), 2);
  EXPECT_EQ(static_cast<int>(shared.memory[20]), 0);
  EXPECT_EQ(load(2, shared.device_address + 8188, ipc::kImagePtx), ErrorCode::kInvalidValue);
  EXPECT_EQ(load(3, 4096, ipc::kImagePtx), ErrorCode::kInvalidValue);
  EXPECT_EQ(load(4, shared.device_address + 2, ipc::kImagePtx), ErrorCode::kInvalidValue);
  EXPECT_EQ(load(5, shared.device_address, ipc::kImageElf), ErrorCode::kNotSupported);
  // One that is loaded already takes no more.
  ASSERT_TRUE(session.post(CommandType::kVariablePlace, ipc::VariablePlace{1, 4096},
                           TestSession::text("x")));
  session.join();
  EXPECT_TRUE(session.ended);
}

TEST_F(SessionPathTest, SharedMemoryThatIsNotMappedIsBounded) {
  TestSession session(device_, completer_);
  ErrorCode last = ErrorCode::kNone;
  std::uint64_t id = 1;
  for (; last == ErrorCode::kNone && id < 100; ++id) {
    const auto reply =
        session.call<ipc::AddressReply>(CommandType::kHostAllocate, ipc::HostAllocate{id, 4096});
    if (!reply) last = reply.error().code;
  }
  EXPECT_EQ(last, ErrorCode::kLimit);
  ASSERT_TRUE(session.post(CommandType::kHostMapped, ipc::IdCommand{1}));
  EXPECT_TRUE(
      session.call<ipc::AddressReply>(CommandType::kHostAllocate, ipc::HostAllocate{200, 4096}));
  EXPECT_EQ(
      session
          .call<ipc::AddressReply>(CommandType::kHostAllocate, ipc::HostAllocate{201, 1ull << 60})
          .error()
          .code,
      ErrorCode::kLimit);
}

TEST_F(SessionPathTest, SizesThatNoClientSendsEndTheSession) {
  for (const std::uint64_t bytes : {0ull, 100ull}) {
    TestSession session(device_, completer_);
    EXPECT_FALSE(
        session.call<ipc::AddressReply>(CommandType::kHostAllocate, ipc::HostAllocate{1, bytes}));
    session.join();
    EXPECT_TRUE(session.ended);
  }
  TestSession session(device_, completer_);
  const std::vector<std::byte> much(ipc::kMostInlineBytes + 1);
  ASSERT_TRUE(session.post(CommandType::kCopyInline, ipc::CopyInline{0, 0}, much));
  session.join();
  EXPECT_TRUE(session.ended);
}

}  // namespace
}  // namespace slate::daemon
