// Memory and events that sessions share: who may open what, and how long it lives.
#include <gtest/gtest.h>

#include "tests/unit/daemon/session_fixture.h"

namespace slate::daemon {
namespace {

using ipc::CommandType;

class ShareTest : public SessionTest {
 protected:
  std::unique_ptr<TestSession> session(std::uint64_t id, std::uint32_t uid = 7) {
    return std::make_unique<TestSession>(device_, completer_, 64 << 20, std::chrono::seconds(60),
                                         SessionHooks{}, nullptr, exports_, id, uid);
  }
  static Result<ipc::ShareHandle> offer(TestSession& from, std::uint64_t address) {
    const auto reply =
        from.call<ipc::ShareReply>(CommandType::kMemoryExport, ipc::MemoryFree{address});
    if (!reply) return std::unexpected(reply.error());
    return reply->handle;
  }
  static Result<ipc::ImportReply> open(TestSession& by, const ipc::ShareHandle& handle) {
    return by.call<ipc::ImportReply>(CommandType::kMemoryImport, ipc::HandleCommand{handle, 0});
  }
  static Result<ipc::ImportReply> close(TestSession& by, std::uint64_t address) {
    return by.call<ipc::ImportReply>(CommandType::kMemoryImportClose, ipc::MemoryFree{address});
  }
  static void fill(TestSession& by, std::uint64_t address, std::uint32_t value) {
    EXPECT_TRUE(by.post(CommandType::kFill, ipc::Fill{address, 4, 4, 1, 0, value, 1}));
  }

  const std::shared_ptr<Exports> exports_ = std::make_shared<Exports>();
};

TEST_F(ShareTest, WhatOneWritesTheOtherReads) {
  auto a = session(1), b = session(2);
  const auto address = *a->allocate(1 << 20);
  const auto handle = offer(*a, address + 100);
  ASSERT_TRUE(handle);
  EXPECT_EQ(std::memcmp(offer(*a, address)->bytes, handle->bytes, 64), 0) << "of the allocation";
  fill(*b, address, 1);
  EXPECT_EQ(b->async_error(), ErrorCode::kInvalidValue) << "not opened";
  const auto opened = open(*b, *handle);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->address, address);
  EXPECT_EQ(opened->bytes, 1u << 20);
  EXPECT_EQ(open(*b, *handle)->count, 2u);
  fill(*b, address, 0x11);
  ASSERT_TRUE(b->synchronize());
  EXPECT_EQ(*a->read_int(address), 0x11111111);
  EXPECT_EQ(close(*b, address)->count, 1u);
  fill(*b, address, 0x12);
  EXPECT_EQ(b->async_error(), ErrorCode::kNone);
  EXPECT_EQ(close(*b, address)->count, 0u);
  EXPECT_EQ(close(*b, address).error().code, ErrorCode::kInvalidValue);
  fill(*b, address, 0x13);
  EXPECT_EQ(b->async_error(), ErrorCode::kInvalidValue) << "closed";
}

TEST_F(ShareTest, ItStaysUntilItsOwnerFreesItAndEverybodyClosesIt) {
  auto a = session(1), b = session(2);
  const auto address = *a->allocate(1 << 20);
  const auto handle = offer(*a, address);
  ASSERT_TRUE(open(*b, *handle));
  ASSERT_TRUE(a->post(CommandType::kMemoryFree, ipc::MemoryFree{address}));
  ASSERT_TRUE(a->synchronize());
  fill(*b, address, 0x21);
  EXPECT_EQ(*b->read_int(address), 0x21212121);
  EXPECT_NE(*a->allocate(1 << 20), address) << "not given to anybody else";
  EXPECT_EQ(open(*b, *handle).error().code, ErrorCode::kInvalidValue) << "freed: not opened again";
  // Not even the owner's death takes it away.
  a->leave();
  EXPECT_EQ(*b->read_int(address), 0x21212121);
  EXPECT_EQ(close(*b, address)->count, 0u);
  ASSERT_TRUE(b->synchronize());
  b->leave();
  EXPECT_TRUE(device_.holds_nothing());
}

TEST_F(ShareTest, TheDeathOfWhoHasItOpenGivesItBack) {
  auto a = session(1), b = session(2);
  const auto address = *a->allocate(1 << 20);
  ASSERT_TRUE(open(*b, *offer(*a, address)));
  a->leave();
  EXPECT_FALSE(device_.holds_nothing());
  b->leave();
  EXPECT_TRUE(device_.holds_nothing());
}

TEST_F(ShareTest, TheDeathOfWhoClosedItWithWorkUnderWayGivesItBack) {
  auto a = session(1), b = session(2);
  ASSERT_TRUE(b->load("spin"));
  const auto address = *a->allocate(1 << 20);
  ASSERT_TRUE(open(*b, *offer(*a, address)));
  ASSERT_TRUE(b->launch(address));
  EXPECT_EQ(close(*b, address)->count, 0u);
  // Opened and closed again meanwhile.
  ASSERT_TRUE(open(*b, *offer(*a, address)));
  EXPECT_EQ(close(*b, address)->count, 0u);
  b->leave();
  a->leave();
  EXPECT_TRUE(device_.holds_nothing());
}

TEST_F(ShareTest, OnlyTheSameUserOpensIt) {
  auto a = session(1, 7), other = session(2, 8);
  const auto address = *a->allocate(4096);
  const auto handle = offer(*a, address);
  EXPECT_EQ(open(*other, *handle).error().code, ErrorCode::kInvalidValue);
  ipc::ShareHandle wrong = *handle;
  wrong.bytes[63] ^= 1;
  auto same = session(3, 7);
  EXPECT_EQ(open(*same, wrong).error().code, ErrorCode::kInvalidValue);
  EXPECT_TRUE(open(*same, *handle));
}

TEST_F(ShareTest, WhatIsNotTheSessionsIsNotOffered) {
  auto a = session(1), b = session(2);
  const auto address = *a->allocate(4096);
  EXPECT_EQ(offer(*b, address).error().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(offer(*a, 0).error().code, ErrorCode::kInvalidValue);
  ASSERT_TRUE(open(*b, *offer(*a, address)));
  EXPECT_EQ(offer(*b, address).error().code, ErrorCode::kInvalidValue) << "nor what it has open";
  ASSERT_TRUE(b->post(CommandType::kMemoryFree, ipc::MemoryFree{address}));
  EXPECT_EQ(b->async_error(), ErrorCode::kInvalidValue) << "it closes it, but does not free it";
}

TEST_F(ShareTest, AnEventIsRecordedByOneAndWaitedForByTheOther) {
  auto a = session(1), b = session(2);
  ASSERT_TRUE(a->post(CommandType::kEventCreate, ipc::EventCreate{5, ipc::kEventNoTiming, 0}));
  const auto given = a->call<ipc::ShareReply>(CommandType::kEventExport, ipc::IdCommand{5});
  ASSERT_TRUE(given);
  ASSERT_TRUE(b->call(CommandType::kEventImport, ipc::HandleCommand{given->handle, 9}));
  const ipc::Target event{ipc::TargetKind::kEvent, 0, 9};
  EXPECT_EQ(b->call<ipc::QueryReply>(CommandType::kQuery, event)->finished, 1u) << "never recorded";
  const auto address = *a->allocate(4096);
  device_.hold(true);
  fill(*a, address, 0x31);
  ASSERT_TRUE(a->post(CommandType::kEventRecord, ipc::EventStream{5, 0}));
  const ipc::Target own{ipc::TargetKind::kEvent, 0, 5};
  EXPECT_EQ(a->call<ipc::QueryReply>(CommandType::kQuery, own)->finished, 0u);
  EXPECT_EQ(b->call<ipc::QueryReply>(CommandType::kQuery, event)->finished, 0u);
  device_.hold(false);
  EXPECT_TRUE(b->call(CommandType::kSynchronize, event));
  EXPECT_EQ(b->call<ipc::QueryReply>(CommandType::kQuery, event)->finished, 1u);
}

TEST_F(ShareTest, ADestroyedEventIsOfferedNoLonger) {
  auto a = session(1), b = session(2);
  ipc::ShareHandle first{};
  for (std::uint64_t id = 1; id <= Exports::kMostOfSession + 1; ++id) {
    ASSERT_TRUE(a->post(CommandType::kEventCreate, ipc::EventCreate{id, ipc::kEventNoTiming, 0}));
    const auto given = a->call<ipc::ShareReply>(CommandType::kEventExport, ipc::IdCommand{id});
    ASSERT_TRUE(given) << id << ": " << given.error().message;
    if (id == 1) {
      first = given->handle;
      ASSERT_TRUE(b->call(CommandType::kEventImport, ipc::HandleCommand{first, 9}));
    }
    ASSERT_TRUE(a->post(CommandType::kEventDestroy, ipc::IdCommand{id}));
  }
  EXPECT_EQ(a->async_error(), ErrorCode::kNone);
  EXPECT_EQ(b->call(CommandType::kEventImport, ipc::HandleCommand{first, 10}).error().code,
            ErrorCode::kInvalidHandle);
  // Whoever has it open goes on with it.
  EXPECT_TRUE(b->post(CommandType::kEventRecord, ipc::EventStream{9, 0}));
  EXPECT_EQ(b->async_error(), ErrorCode::kNone);
}

TEST_F(ShareTest, AFaultBeforeASharedEventIsNotTheOthers) {
  auto a = session(1), b = session(2);
  ASSERT_TRUE(a->load("fault"));
  ASSERT_TRUE(a->post(CommandType::kEventCreate, ipc::EventCreate{5, ipc::kEventNoTiming, 0}));
  const auto given = a->call<ipc::ShareReply>(CommandType::kEventExport, ipc::IdCommand{5});
  ASSERT_TRUE(b->call(CommandType::kEventImport, ipc::HandleCommand{given->handle, 9}));
  device_.hold(true);
  ASSERT_TRUE(a->launch(0));
  ASSERT_TRUE(a->post(CommandType::kEventRecord, ipc::EventStream{5, 0}));
  const ipc::Target own{ipc::TargetKind::kEvent, 0, 5};
  ASSERT_TRUE(a->call<ipc::QueryReply>(CommandType::kQuery, own));
  device_.hold(false);
  const ipc::Target event{ipc::TargetKind::kEvent, 0, 9};
  EXPECT_TRUE(b->call(CommandType::kSynchronize, event));
  EXPECT_EQ(b->call<ipc::QueryReply>(CommandType::kQuery, event)->finished, 1u);
  ASSERT_TRUE(b->post(CommandType::kStreamWaitEvent, ipc::EventStream{9, 0}));
  const auto address = *b->allocate(4096);
  fill(*b, address, 0x41);
  EXPECT_EQ(*b->read_int(address), 0x41414141);
  EXPECT_FALSE(a->synchronize());
  EXPECT_TRUE(a->session->faulted());
  EXPECT_FALSE(b->session->faulted());
}

TEST_F(ShareTest, EventsWithTimingAndMemoryHandlesAreNotEvents) {
  auto a = session(1), b = session(2);
  ASSERT_TRUE(a->post(CommandType::kEventCreate, ipc::EventCreate{5, 0, 0}));
  EXPECT_EQ(a->call<ipc::ShareReply>(CommandType::kEventExport, ipc::IdCommand{5}).error().code,
            ErrorCode::kInvalidHandle);
  const auto handle = offer(*a, *a->allocate(4096));
  EXPECT_EQ(b->call(CommandType::kEventImport, ipc::HandleCommand{*handle, 9}).error().code,
            ErrorCode::kInvalidHandle);
}

}  // namespace
}  // namespace slate::daemon
