// Addresses and memory apart: reservations, physical allocations and mappings of a session. On sim,
// whose mappings show the same memory, and on a fake device, whose work the test holds.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "daemon/engine/residency/residency.h"
#include "daemon/engine/virtual_ranges.h"
#include "tests/unit/daemon/session_fixture.h"

namespace slate::daemon {
namespace {

using ipc::CommandType;

constexpr std::uint64_t kGranule = VirtualRanges::kGranule;

/// The commands, by any session.
struct Virtual {
  TestSession& session;

  Result<std::uint64_t> reserve(std::uint64_t bytes, std::uint64_t wished = 0,
                                std::uint64_t align = 0) const {
    const auto reply = session.call<ipc::AddressReply>(CommandType::kAddressReserve,
                                                       ipc::AddressReserve{bytes, align, wished});
    if (!reply) return std::unexpected(reply.error());
    return reply->address;
  }
  ErrorCode create(std::uint64_t id, std::uint64_t bytes) const {
    return code_of(session.call(CommandType::kPhysicalCreate, ipc::PhysicalCreate{id, bytes}));
  }
  ErrorCode map(std::uint64_t address, std::uint64_t bytes, std::uint64_t id) const {
    return code_of(session.call(CommandType::kPhysicalMap, ipc::PhysicalMap{address, bytes, id}));
  }
  ErrorCode unmap(std::uint64_t address, std::uint64_t bytes) const {
    EXPECT_TRUE(session.post(CommandType::kPhysicalUnmap, ipc::PhysicalUnmap{address, bytes}));
    return session.async_error();
  }
  ErrorCode release(std::uint64_t id) const {
    EXPECT_TRUE(session.post(CommandType::kPhysicalRelease, ipc::IdCommand{id}));
    return session.async_error();
  }
  ErrorCode free(std::uint64_t address) const {
    EXPECT_TRUE(session.post(CommandType::kAddressFree, ipc::MemoryFree{address}));
    return session.async_error();
  }
  ErrorCode fill(std::uint64_t address, std::uint64_t bytes, std::uint32_t value) const {
    EXPECT_TRUE(session.post(CommandType::kFill, ipc::Fill{address, bytes, bytes, 1, 0, value, 4}));
    return session.async_error();
  }
  /// Whether the session has so much memory, once what was released is gone.
  bool comes_to(std::uint64_t bytes) const {
    EXPECT_TRUE(session.synchronize());
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (session.session->status().memory_used != bytes) {
      if (std::chrono::steady_clock::now() > limit) return false;
      std::this_thread::yield();
    }
    return true;
  }
  static ErrorCode code_of(const Result<void>& done) {
    return done ? ErrorCode::kNone : done.error().code;
  }
};

/// The parameter: whether all memory leaves in front of each command.
class VirtualSimTest : public testing::TestWithParam<bool> {
 protected:
  std::uint64_t used() const { return device_->info().total_memory - *device_->free_memory(); }
  bool moves() const { return GetParam(); }

  const std::unique_ptr<device::Device> device_ =
      std::move(*device::open_device("sim:sms=2,memory=256M"));
  Completer completer_{*device_};
  const std::shared_ptr<Residency> residency_ = std::make_shared<Residency>(
      *device_,
      Residency::Settings{.capacity = 8 * kGranule,
                          .swap = 256 << 20,
                          .piece = 2 * kGranule,
                          .evicts_always = true},
      HostPool::Settings{.pinned = 0, .directory = "", .chunk = 16 << 20, .most = 256 << 20});
  const std::function<void(SessionSpec&)> adapt_ = [this](SessionSpec& spec) {
    if (moves()) spec.residency = residency_;
  };
};

INSTANTIATE_TEST_SUITE_P(Moving, VirtualSimTest, testing::Bool());

/// With 64 MiB.
struct SimSession : TestSession {
  SimSession(device::Device& device, Completer& completer,
             const std::function<void(SessionSpec&)>& adapt)
      : TestSession(device, completer, 64 << 20, std::chrono::seconds(60), {}, nullptr, nullptr, 1,
                    ::geteuid(), nullptr, adapt) {}
};

constexpr std::string_view kStore = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry store(.param .u64 to)
{
  .reg .b64 %d<2>;
  ld.param.u64 %d1, [to];
  st.global.u32 [%d1], 77;
  ret;
}
)";

TEST_P(VirtualSimTest, TwoMappingsShowTheSameMemory) {
  SimSession session(*device_, completer_, adapt_);
  const Virtual memory{session};
  const auto base = *memory.reserve(64 * kMiB);
  EXPECT_EQ(base % kGranule, 0u);
  ASSERT_EQ(memory.create(5, 2 * kGranule), ErrorCode::kNone);
  ASSERT_EQ(memory.map(base + kGranule, 2 * kGranule, 5), ErrorCode::kNone);
  ASSERT_EQ(memory.map(base + 8 * kGranule, 2 * kGranule, 5), ErrorCode::kNone);
  EXPECT_EQ(*session.read_int(base + kGranule), 0) << "new memory is clear";
  ASSERT_EQ(memory.fill(base + kGranule + 12, 4, 41), ErrorCode::kNone);
  EXPECT_EQ(*session.read_int(base + 8 * kGranule + 12), 41);
  EXPECT_TRUE(memory.comes_to(2 * kGranule)) << "charged once";
  // Nobody holds it any more but the second mapping.
  ASSERT_EQ(memory.release(5), ErrorCode::kNone);
  ASSERT_EQ(memory.unmap(base + kGranule, 2 * kGranule), ErrorCode::kNone);
  EXPECT_EQ(memory.fill(base + kGranule, 4, 1), ErrorCode::kInvalidValue);
  EXPECT_EQ(*session.read_int(base + 8 * kGranule + 12), 41);
  EXPECT_EQ(memory.free(base), ErrorCode::kInvalidValue) << "still mapped";
  ASSERT_EQ(memory.unmap(base, 64 * kMiB), ErrorCode::kNone);
  EXPECT_TRUE(memory.comes_to(0));
  EXPECT_EQ(memory.free(base), ErrorCode::kNone);
  EXPECT_EQ(memory.free(base), ErrorCode::kInvalidValue);
}

TEST_P(VirtualSimTest, CopiesAndKernelsReachNeighbouringMappingsAsOne) {
  SimSession session(*device_, completer_, adapt_);
  const Virtual memory{session};
  const auto base = *memory.reserve(std::uint64_t{64} << 30);
  for (const std::uint64_t id : {2, 1, 3}) {
    ASSERT_EQ(memory.create(id, kGranule), ErrorCode::kNone);
    ASSERT_EQ(memory.map(base + id * kGranule, kGranule, id), ErrorCode::kNone);
  }
  EXPECT_EQ(memory.fill(base + 2 * kGranule - 4, 2 * kGranule, 9), ErrorCode::kNone);
  EXPECT_EQ(memory.fill(base + 2 * kGranule, 2 * kGranule + 4, 9), ErrorCode::kInvalidValue);
  EXPECT_EQ(*session.read_int(base + 3 * kGranule), 9);
  const auto text = TestSession::text(kStore);
  ASSERT_TRUE(session.call(CommandType::kModuleLoad,
                           ipc::ModuleLoad{1, text.size(), 0, ipc::kImagePtx, 0}, text));
  ASSERT_TRUE(session.call<ipc::FunctionReply>(CommandType::kFunctionGet, ipc::FunctionGet{1, 1},
                                               TestSession::text("store")));
  ASSERT_TRUE(session.launch(base + 3 * kGranule + 8));
  EXPECT_EQ(*session.read_int(base + 3 * kGranule + 8), 77);
  ASSERT_EQ(memory.unmap(base + 2 * kGranule, kGranule), ErrorCode::kNone);
  EXPECT_EQ(memory.fill(base + 2 * kGranule - 4, 8, 9), ErrorCode::kInvalidValue);
  EXPECT_EQ(memory.fill(base + kGranule, kGranule, 9), ErrorCode::kNone);
  ASSERT_TRUE(session.launch(base + 2 * kGranule));
  EXPECT_EQ(session.synchronize().error().code, ErrorCode::kIllegalAddress);
}

TEST_P(VirtualSimTest, AnotherSessionsMemoryIsClearedAndItsAddressesAreItsOwn) {
  std::uint64_t address = 0;
  for (int i = 0; i < 2; ++i) {
    SimSession session(*device_, completer_, adapt_);
    const Virtual memory{session};
    const auto base = *memory.reserve(kGranule);
    if (i == 0) address = base;
    ASSERT_EQ(memory.create(1, kGranule), ErrorCode::kNone);
    ASSERT_EQ(memory.map(base, kGranule, 1), ErrorCode::kNone);
    EXPECT_EQ(*session.read_int(base + 4), 0);
    EXPECT_EQ(memory.fill(base, kGranule, 5), ErrorCode::kNone);
    SimSession other(*device_, completer_, adapt_);
    EXPECT_EQ(Virtual{other}.fill(base, 4, 1), ErrorCode::kInvalidValue);
    EXPECT_EQ(Virtual{other}.unmap(base, kGranule), ErrorCode::kInvalidValue);
  }
  EXPECT_NE(address, 0u);
  EXPECT_EQ(used(), 0u) << "their ends gave everything back";
}

TEST_P(VirtualSimTest, AWishedAddressAndAnAlignmentAreHeard) {
  SimSession session(*device_, completer_, adapt_);
  const Virtual memory{session};
  const auto base = *memory.reserve(4 * kGranule, 0, 64 * kMiB);
  EXPECT_EQ(base % (64 * kMiB), 0u);
  ASSERT_EQ(memory.free(base), ErrorCode::kNone);
  EXPECT_EQ(*memory.reserve(kGranule, base + kGranule), base + kGranule);
  EXPECT_NE(*memory.reserve(kGranule, base + kGranule), base + kGranule) << "taken";
  EXPECT_EQ(memory.reserve(kGranule, 0, 3 * kGranule).error().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(memory.reserve(kGranule + 1).error().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(memory.reserve(0).error().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(memory.reserve(VirtualRanges::kMostReserved).error().code, ErrorCode::kLimit);
}

TEST_P(VirtualSimTest, WhatIsBeyondTheDeviceIsMadeWhereTheHostHasRoom) {
  SimSession session(*device_, completer_, adapt_);
  const Virtual memory{session};
  const auto base = *memory.reserve(64 * kMiB);
  constexpr std::uint64_t kMany = 12, kEach = 2 * kGranule;
  for (std::uint64_t id = 1; id <= kMany; ++id) {
    ASSERT_EQ(memory.create(id, kEach), ErrorCode::kNone) << id;
    ASSERT_EQ(memory.map(base + id * kEach, kEach, id), ErrorCode::kNone) << id;
  }
  // Each command needs one or two of them.
  for (std::uint64_t id = 1; id <= kMany; ++id)
    ASSERT_EQ(memory.fill(base + id * kEach, kEach, static_cast<std::uint32_t>(id)),
              ErrorCode::kNone);
  ASSERT_EQ(memory.fill(base + 2 * kEach - 4, 8, 100), ErrorCode::kNone) << "over the border";
  for (std::uint64_t id = 1; id <= kMany; ++id) {
    const int last = id == 1 ? 100 : static_cast<int>(id);
    EXPECT_EQ(*session.read_int(base + (id + 1) * kEach - 4), last);
    EXPECT_EQ(*session.read_int(base + id * kEach), id == 2 ? 100 : static_cast<int>(id));
  }
  EXPECT_EQ(session.session->status().memory_used, kMany * kEach);
  if (moves()) {
    EXPECT_LE(session.session->status().places.on_device, residency_->settings().capacity);
    EXPECT_GT(residency_->counts().clean_out, 0u);
  }
  ASSERT_EQ(memory.unmap(base, 64 * kMiB), ErrorCode::kNone);
  for (std::uint64_t id = 1; id <= kMany; ++id) ASSERT_EQ(memory.release(id), ErrorCode::kNone);
  EXPECT_TRUE(memory.comes_to(0));
}

TEST_P(VirtualSimTest, AMappingIsMadeAndEndsWhereverItsMemoryIs) {
  SimSession session(*device_, completer_, adapt_);
  const Virtual memory{session};
  const auto base = *memory.reserve(64 * kMiB);
  const auto other = *session.allocate(kGranule);
  ASSERT_EQ(memory.create(1, 3 * kGranule), ErrorCode::kNone);
  ASSERT_EQ(memory.map(base, 3 * kGranule, 1), ErrorCode::kNone);
  ASSERT_EQ(memory.fill(base, 3 * kGranule, 7), ErrorCode::kNone);
  ASSERT_EQ(memory.fill(other, 4, 1), ErrorCode::kNone) << "moves the first one out";
  ASSERT_EQ(memory.map(base + 4 * kGranule, 3 * kGranule, 1), ErrorCode::kNone);
  EXPECT_EQ(*session.read_int(base + 7 * kGranule - 4), 7);
  ASSERT_EQ(memory.fill(base + 4 * kGranule, 4, 8), ErrorCode::kNone);
  ASSERT_EQ(memory.unmap(base, 3 * kGranule), ErrorCode::kNone);
  EXPECT_EQ(*session.read_int(other), 1);
  ASSERT_EQ(memory.map(base, 3 * kGranule, 1), ErrorCode::kNone);
  EXPECT_EQ(*session.read_int(base), 8) << "written by the other address";
  EXPECT_EQ(*session.read_int(base + 3 * kGranule - 4), 7);
}

class VirtualTest : public SessionTest {};

TEST_F(VirtualTest, WhatCannotBeMappedIsRefused) {
  TestSession session(device_, completer_);
  const Virtual memory{session};
  const auto base = *memory.reserve(8 * kGranule);
  ASSERT_EQ(memory.create(1, 2 * kGranule), ErrorCode::kNone);
  EXPECT_EQ(memory.create(2, kGranule + 1), ErrorCode::kInvalidValue);
  EXPECT_EQ(memory.create(2, 0), ErrorCode::kInvalidValue);
  EXPECT_EQ(memory.create(2, 66 * kMiB), ErrorCode::kOutOfMemory);
  EXPECT_EQ(memory.create(2, 62 * kMiB), ErrorCode::kOutOfMemory) << "the session has 64 MiB";
  EXPECT_EQ(memory.map(base, 2 * kGranule, 9), ErrorCode::kInvalidHandle);
  for (const auto& [address, bytes] :
       {std::pair(base, kGranule), std::pair(base + 4096, 2 * kGranule),
        std::pair(base + 7 * kGranule, 2 * kGranule), std::pair(base - kGranule, 2 * kGranule),
        std::pair(std::uint64_t{0}, 2 * kGranule), std::pair(~std::uint64_t{0}, 2 * kGranule)}) {
    EXPECT_EQ(memory.map(address, bytes, 1), ErrorCode::kInvalidValue) << std::hex << address;
  }
  ASSERT_EQ(memory.map(base + kGranule, 2 * kGranule, 1), ErrorCode::kNone);
  for (const std::uint64_t at : {base, base + kGranule, base + 2 * kGranule})
    EXPECT_EQ(memory.map(at, 2 * kGranule, 1), ErrorCode::kInvalidValue) << "not free";
  for (const auto& [address, bytes] :
       {std::pair(base, kGranule), std::pair(base, 2 * kGranule),
        std::pair(base + 2 * kGranule, 6 * kGranule), std::pair(base + 4 * kGranule, kGranule),
        std::pair(base + 2 * kGranule, ~std::uint64_t{0}), std::pair(base, std::uint64_t{0})}) {
    EXPECT_EQ(memory.unmap(address, bytes), ErrorCode::kInvalidValue) << bytes;
  }
  EXPECT_EQ(memory.unmap(base, ~std::uint64_t{0}), ErrorCode::kNone);
  EXPECT_EQ(memory.fill(base + kGranule, 4, 1), ErrorCode::kInvalidValue);
  EXPECT_EQ(memory.release(7), ErrorCode::kInvalidHandle);
  EXPECT_EQ(memory.release(1), ErrorCode::kNone);
  EXPECT_EQ(memory.release(1), ErrorCode::kInvalidHandle);
}

TEST_F(VirtualTest, UnmappedMemoryStaysWhileWorkMayUseIt) {
  TestSession session(device_, completer_);
  const Virtual memory{session};
  ASSERT_TRUE(session.load("spin"));
  const auto base = *memory.reserve(8 * kGranule);
  ASSERT_EQ(memory.create(1, kGranule), ErrorCode::kNone);
  ASSERT_EQ(memory.create(2, kGranule), ErrorCode::kNone);
  ASSERT_EQ(memory.map(base, kGranule, 1), ErrorCode::kNone);
  ASSERT_TRUE(session.launch(base));
  ASSERT_EQ(memory.unmap(base, kGranule), ErrorCode::kNone);
  ASSERT_EQ(memory.release(1), ErrorCode::kNone);
  EXPECT_EQ(memory.fill(base, 4, 1), ErrorCode::kInvalidValue) << "gone for the program at once";
  EXPECT_EQ(session.session->status().memory_used, 2 * kGranule) << "but not given to others";
  std::thread releaser([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    device_.release_spinning();
  });
  EXPECT_EQ(memory.map(base, kGranule, 2), ErrorCode::kNone) << "waits for the kernel";
  releaser.join();
  EXPECT_TRUE(memory.comes_to(kGranule));
  ASSERT_EQ(memory.unmap(base, kGranule), ErrorCode::kNone);
  EXPECT_EQ(memory.free(base), ErrorCode::kNone);
}

TEST_F(VirtualTest, AnUnmapBehindAHostFunctionIsWaitedForByTheNextMap) {
  TestSession session(device_, completer_);
  const Virtual memory{session};
  const auto base = *memory.reserve(kGranule);
  ASSERT_EQ(memory.create(1, kGranule), ErrorCode::kNone);
  ASSERT_EQ(memory.map(base, kGranule, 1), ErrorCode::kNone);
  ASSERT_TRUE(session.post(CommandType::kHostGate, ipc::HostGate{7, 0}));
  ASSERT_EQ(memory.unmap(base, kGranule), ErrorCode::kNone);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_TRUE(session.post(CommandType::kHostDone, ipc::IdCommand{7}));
  });
  EXPECT_EQ(memory.map(base, kGranule, 1), ErrorCode::kNone);
  opener.join();
}

TEST_F(VirtualTest, ClientDeathGivesEverythingBack) {
  {
    TestSession session(device_, completer_);
    const Virtual memory{session};
    ASSERT_TRUE(session.load("spin"));
    const auto base = *memory.reserve(8 * kGranule);
    ASSERT_TRUE(memory.reserve(kGranule));
    for (const std::uint64_t id : {1, 2, 3})
      ASSERT_EQ(memory.create(id, kGranule), ErrorCode::kNone);
    ASSERT_EQ(memory.map(base, kGranule, 1), ErrorCode::kNone);
    ASSERT_EQ(memory.map(base + kGranule, kGranule, 1), ErrorCode::kNone);
    ASSERT_EQ(memory.map(base + 2 * kGranule, kGranule, 2), ErrorCode::kNone);
    ASSERT_TRUE(session.launch(base));
    ASSERT_EQ(memory.unmap(base, kGranule), ErrorCode::kNone);
    ASSERT_EQ(memory.release(1), ErrorCode::kNone);
  }
  EXPECT_TRUE(device_.holds_nothing());
}

}  // namespace
}  // namespace slate::daemon
