#include "daemon/engine/session_fence.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <span>
#include <thread>

#include "device/device.h"
#include "tests/unit/daemon/fake_device.h"
#include "tests/unit/daemon/forwarding_device.h"

namespace slate::daemon {
namespace {

using device::AddressRange;
using injector::FenceConstants;
using injector::FenceRecord;
using injector::FenceTable;

constexpr device::Module kFirstModule{7}, kOtherModule{8};
constexpr bool kIdle = true, kBusy = false;

/// Sim, which counts copies.
class CountingDevice : public ForwardingDevice {
 public:
  CountingDevice() : ForwardingDevice(std::move(*device::open_device("sim:sms=2,memory=1G"))) {}

  Result<void> copy(const Place& to, const Place& from, const Box& box,
                    device::Stream stream) override {
    ++copies;
    return ForwardingDevice::copy(to, from, box, stream);
  }

  int copies = 0;
};

class SessionFenceTest : public testing::Test {
 protected:
  SessionFenceTest() {
    device_ = std::make_unique<CountingDevice>();
    pool_ = std::make_shared<FenceMemory>(*device_, FenceChoice::kAlways, UnfencedChoice::kRun);
    device_->set_unmap_hook([this](AddressRange range) { pool_->forget(range); });
    stream_ = device_->create_stream(0).value();
    // Stands for modules' constants.
    constants_ = {device_->reserve(device_->granularity()).value(), device_->granularity()};
    EXPECT_TRUE(device_->map(constants_));
    memory_ = MemoryManager::make(*device_, 512 * kMiB).value();
    fence_ = std::make_unique<SessionFence>(pool_);
    EXPECT_TRUE(fence_->add_module(kFirstModule, constants_.base, names("first")));
  }
  ~SessionFenceTest() override {
    fence_->release();
    memory_->release();
    EXPECT_TRUE(device_->unmap(constants_));
    device_->unreserve(constants_);
    device_->destroy_stream(stream_);
    pool_.reset();
    device_->set_unmap_hook({});
  }

  static SessionFence::ModuleNames names(const std::string& kernel) {
    return {.kernel = std::make_shared<const std::string>(kernel),
            .functions = {kernel, "helper", kernel + "__slate_worker"}};
  }

  template <typename T>
  T read(device::Address at) {
    T value;
    EXPECT_TRUE(device_->copy(Place::on_host(&value), Place::on_device(at),
                              {.width = sizeof(value), .height = 1}, stream_));
    const auto event = device_->create_event(false).value();
    EXPECT_TRUE(device_->record(event, stream_));
    while (!device_->query(event).value()) device_->wait_for_progress(std::chrono::microseconds(9));
    device_->destroy_event(event);
    return value;
  }
  FenceTable table() { return read<FenceTable>(fence_->table().base); }
  FenceConstants constants(std::uint64_t number = 0) {
    return read<FenceConstants>(constants_.base + number * 256);
  }
  void write_ended(std::uint32_t ended) {
    const FenceMemory::Write write{fence_->table().base + offsetof(FenceTable, ended),
                                   std::as_bytes(std::span(&ended, 1))};
    EXPECT_TRUE(pool_->write({&write, 1}));
  }
  Result<void> update(bool idle, const SessionFence::Ranges& host = {}) {
    return fence_->bring_up_to_date(*memory_, host, [idle] { return idle; });
  }
  device::Address allocate(std::uint64_t bytes) { return memory_->allocate(bytes).value(); }
  void free(device::Address address) {
    ASSERT_TRUE(memory_->retire(address));
    memory_->finish_free(address);
  }
  /// Two runs of memory, of which the fence knows as one. What lay between them is freed.
  struct Runs {
    device::Address first, second;
  };
  Runs make_runs(std::uint64_t first_bytes, std::uint64_t second_bytes) {
    const auto first = allocate(first_bytes), gap = allocate(16 * kMiB);
    const auto second = allocate(second_bytes);
    EXPECT_TRUE(update(kIdle));
    free(gap);
    return {first, second};
  }
  /// Whether the exact check lets a kernel touch the bytes.
  bool allows(device::Address address, std::uint64_t bytes) {
    const FenceTable now = table();
    for (std::uint32_t i = 0; i < now.range_count; ++i) {
      if (AddressRange{now.ranges[i].base, now.ranges[i].bytes}.contains(address, bytes))
        return true;
    }
    return false;
  }
  /// Whether the fast check does.
  bool is_in_extent(device::Address address) {
    const FenceConstants now = constants();
    return address - now.low < now.size;
  }

  std::unique_ptr<CountingDevice> device_;
  std::shared_ptr<FenceMemory> pool_;
  device::Stream stream_{};
  AddressRange constants_;
  std::unique_ptr<MemoryManager> memory_;
  std::unique_ptr<SessionFence> fence_;
};

TEST_F(SessionFenceTest, AllMemoryOfTheSessionIsOneExtent) {
  const auto small = allocate(4096), large = allocate(64 * kMiB), third = allocate(32 * kMiB);
  ASSERT_TRUE(update(kIdle));
  for (const auto each : {small, large, third}) {
    EXPECT_TRUE(allows(each, 4096));
    EXPECT_TRUE(is_in_extent(each));
  }
  EXPECT_FALSE(allows(memory_->arena().base + memory_->arena().bytes - 8, 8));
  EXPECT_FALSE(allows(fence_->table().base, 8)) << "its own table";
  EXPECT_EQ(constants().table, fence_->table().base);
  EXPECT_EQ(constants().record, fence_->record().base);
}

TEST_F(SessionFenceTest, TheExtentEndsBeforeItsLastBytes) {
  allocate(4096);
  ASSERT_TRUE(update(kIdle));
  const FenceConstants now = constants();
  const auto mapped = memory_->mapped();
  ASSERT_EQ(mapped.size(), 3) << "a segment and its slack";
  const auto& last = mapped.back();
  EXPECT_EQ(now.low, mapped.front().base);
  EXPECT_EQ(now.low + now.size, last.base + last.bytes - injector::kFenceSlack);
  EXPECT_EQ(now.end, now.low + now.size);
}

TEST_F(SessionFenceTest, MemoryThatIsNewIsThereForTheNextLaunch) {
  allocate(4096);
  ASSERT_TRUE(update(kIdle));
  const auto more = allocate(64 * kMiB);
  EXPECT_FALSE(allows(more, 8));
  ASSERT_TRUE(update(kBusy));
  EXPECT_TRUE(allows(more, 8));
  EXPECT_TRUE(is_in_extent(more)) << "the extent grows beside running kernels";
}

TEST_F(SessionFenceTest, WhetherTheSessionIsIdleIsAskedOnlyIfSomethingHasChanged) {
  // To find out submits the launches that are kept to go together.
  int asked = 0;
  const auto launch = [&] {
    return fence_->bring_up_to_date(*memory_, {}, [&asked] { return ++asked > 0; });
  };
  allocate(4096);
  ASSERT_TRUE(launch());
  EXPECT_EQ(asked, 1);
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(launch());
  EXPECT_EQ(asked, 1);
  allocate(64 * kMiB);
  ASSERT_TRUE(launch());
  EXPECT_EQ(asked, 2);
}

TEST_F(SessionFenceTest, MemoryThatGoesIsTakenOutFirst) {
  const auto kept = allocate(64 * kMiB), gone = allocate(64 * kMiB), last = allocate(64 * kMiB);
  ASSERT_TRUE(update(kIdle));
  ASSERT_TRUE(is_in_extent(last));
  free(gone);
  EXPECT_FALSE(allows(gone, 8)) << "without another launch";
  EXPECT_TRUE(allows(kept, 8) && allows(last, 8)) << "a kernel may be running there";
  EXPECT_FALSE(is_in_extent(gone));
  EXPECT_FALSE(is_in_extent(last));
  ASSERT_TRUE(update(kBusy));
  EXPECT_TRUE(allows(kept, 8) && allows(last, 8));
  EXPECT_TRUE(is_in_extent(kept));
}

TEST_F(SessionFenceTest, AKernelThatWasEndedStaysEndedUntilTheSessionIsGone) {
  EXPECT_EQ(table().ended, 0u);
  write_ended(1);
  const auto some = allocate(64 * kMiB);
  ASSERT_TRUE(update(kBusy));
  free(some);
  fence_->add_handle(77);
  ASSERT_TRUE(update(kIdle));
  EXPECT_EQ(table().ended, 1u);
  // The next session gets the same table.
  const device::Address before = fence_->table().base;
  fence_->release();
  ASSERT_TRUE(fence_->add_module(kOtherModule, constants_.base, names("other")));
  ASSERT_EQ(fence_->table().base, before);
  EXPECT_EQ(table().ended, 0u);
}

TEST_F(SessionFenceTest, ARecordThatIsClaimedIsWaitedFor) {
  auto* const record = reinterpret_cast<FenceRecord*>(fence_->record().base);
  std::atomic_ref<std::uint32_t> state(record->state);
  EXPECT_FALSE(fence_->violation());
  state = FenceRecord::kClaimed;
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    record->kind = static_cast<std::uint32_t>(injector::Violation::kTrap);
    state = FenceRecord::kComplete;
  });
  const auto violation = fence_->violation();
  writer.join();
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->code, ErrorCode::kLaunchFailed);
}

TEST_F(SessionFenceTest, TheExtentMovesAtOnceWhenNothingRuns) {
  const auto [first, longest] = make_runs(16 * kMiB, 128 * kMiB);
  ASSERT_TRUE(update(kIdle));
  EXPECT_TRUE(is_in_extent(longest));
  EXPECT_FALSE(is_in_extent(first));
  EXPECT_TRUE(allows(first, 8));
  EXPECT_FALSE(fence_->take_move());
}

TEST_F(SessionFenceTest, TheExtentIsEmptyUntilAllRunningKernelsHaveSeenItsMove) {
  const auto [first, longest] = make_runs(16 * kMiB, 128 * kMiB);
  ASSERT_TRUE(update(kBusy));
  EXPECT_EQ(constants().size, 0u);
  EXPECT_EQ(constants().end, 0u);
  EXPECT_EQ(fence_->main_extent().bytes, 0u);
  const auto move = fence_->take_move();
  ASSERT_TRUE(move);
  EXPECT_FALSE(fence_->take_move()) << "it is told once";
  const device::Address low = constants().low;
  fence_->add_variable(kFirstModule, {0x1000, 8});  // something has changed
  ASSERT_TRUE(update(kBusy));
  EXPECT_EQ(constants().size, 0u) << "a kernel may still have the old beginning";
  fence_->move_was_seen(*move);
  ASSERT_TRUE(update(kBusy));
  EXPECT_EQ(constants().low, low);
  EXPECT_TRUE(is_in_extent(longest));
  EXPECT_FALSE(is_in_extent(first));
}

TEST_F(SessionFenceTest, AMoveThatIsOverDoesNotEndALaterOne) {
  const device::Address longer = make_runs(16 * kMiB, 128 * kMiB).second;
  ASSERT_TRUE(update(kBusy));
  const auto move = fence_->take_move();
  ASSERT_TRUE(move);
  fence_->add_variable(kFirstModule, {0x1000, 8});
  ASSERT_TRUE(update(kIdle));  // which ends the move
  ASSERT_TRUE(is_in_extent(longer));
  const auto other = allocate(8 * kMiB), longest = allocate(300 * kMiB);
  free(longer);
  free(other);
  ASSERT_TRUE(update(kBusy));
  ASSERT_TRUE(fence_->take_move());
  fence_->move_was_seen(*move);
  ASSERT_TRUE(update(kBusy));
  EXPECT_FALSE(is_in_extent(longest));
}

TEST_F(SessionFenceTest, AnExtentThatIsHalfAsLongStays) {
  const auto [first, longest] = make_runs(128 * kMiB, 160 * kMiB);
  ASSERT_TRUE(update(kBusy));
  EXPECT_TRUE(is_in_extent(first));
  EXPECT_FALSE(is_in_extent(longest));
  EXPECT_FALSE(fence_->take_move());
}

TEST_F(SessionFenceTest, HostMemoryAndVariablesAreRangesOfTheirOwn) {
  allocate(4096);
  const auto host = std::make_shared<const std::vector<AddressRange>>(
      std::vector<AddressRange>{{0x5000'0000, 4096}, {0x6000'0000, 8192}});
  fence_->add_variable(kFirstModule, {0x7000'0000, 256});
  fence_->add_variable(kFirstModule, {0x7000'0000, 256});
  ASSERT_TRUE(update(kIdle, host));
  EXPECT_TRUE(allows(0x5000'0000, 4096) && allows(0x6000'0000, 8192) && allows(0x7000'0000, 256));
  EXPECT_FALSE(allows(0x5000'0000, 4097) || allows(0x6fff'fff8, 8) || allows(0x7000'0100, 1));
  EXPECT_EQ(table().range_count, 6);
  ASSERT_TRUE(update(kBusy, {}));
  EXPECT_TRUE(allows(0x5000'0000, 4096)) << "kernels that began before it was freed may use it";
  fence_->remove_variables(kFirstModule);
  fence_->take_out({0x5000'0000, 4096});
  EXPECT_FALSE(allows(0x5000'0000, 1) || allows(0x7000'0000, 1)) << "without another launch";
  EXPECT_TRUE(allows(0x6000'0000, 8192));
  EXPECT_EQ(table().range_count, 6) << "entries are used again only when nothing runs";
  fence_->add_variable(kFirstModule, {0x8000'0000, 8});
  ASSERT_TRUE(update(kIdle));
  EXPECT_EQ(table().range_count, 4);
}

TEST_F(SessionFenceTest, WhatLiesBesideARangeThatGoesStays) {
  allocate(4096);
  const auto ranges = [](std::vector<AddressRange> all) {
    return std::make_shared<const std::vector<AddressRange>>(std::move(all));
  };
  ASSERT_TRUE(update(kIdle, ranges({{0x5000'0000, 0x9000}})));
  fence_->take_out({0x5000'3000, 0x3000});
  EXPECT_TRUE(allows(0x5000'0000, 0x3000) && allows(0x5000'6000, 0x3000));
  EXPECT_FALSE(allows(0x5000'2fff, 2) || allows(0x5000'5fff, 1));
  const auto rest = ranges({{0x5000'0000, 0x3000}, {0x5000'6000, 0x3000}});
  ASSERT_TRUE(update(kBusy, rest));
  EXPECT_FALSE(allows(0x5000'2fff, 2) || allows(0x5000'5fff, 1));
  ASSERT_TRUE(update(kIdle, rest));
  EXPECT_TRUE(allows(0x5000'0000, 0x3000) && allows(0x5000'6000, 0x3000));
}

TEST_F(SessionFenceTest, VariablesOfSharedCodeStayWithTheLastModule) {
  allocate(4096);
  fence_->add_variable(kFirstModule, {0x7000'0000, 256});
  fence_->add_variable(kOtherModule, {0x7000'0000, 256});
  ASSERT_TRUE(update(kIdle));
  fence_->remove_variables(kFirstModule);
  EXPECT_TRUE(allows(0x7000'0000, 256));
  fence_->remove_variables(kOtherModule);
  EXPECT_FALSE(allows(0x7000'0000, 1));
}

TEST_F(SessionFenceTest, AllVariablesOfAModuleAreTakenOutAtOnce) {
  allocate(4096);
  // They lie in a range with other memory, so that what is beside them stays.
  const auto host = std::make_shared<const std::vector<AddressRange>>(
      std::vector<AddressRange>{{0x8000'0000, 0x10000}});
  const auto copies_of = [&](int variables) {
    for (int i = 0; i < variables; ++i)
      fence_->add_variable(kFirstModule, {0x8000'0000 + i * 0x1000ull, 256});
    EXPECT_TRUE(update(kIdle, host));
    const int before = device_->copies;
    fence_->remove_variables(kFirstModule);
    return device_->copies - before;
  };
  const int for_one = copies_of(1), for_ten = copies_of(10);
  EXPECT_GT(for_one, 0);
  EXPECT_EQ(for_ten, for_one);
  EXPECT_FALSE(allows(0x8000'0000, 1) || allows(0x8000'9000, 1) || allows(0x8000'90ff, 2));
  EXPECT_TRUE(allows(0x8000'0100, 0xf00) && allows(0x8000'9100, 0x6f00));
}

TEST_F(SessionFenceTest, ASegmentThatIsLeftIsTakenOutWithItsSlackAndStaysMapped) {
  memory_->unmap_later([] { return true; },
                       [this](AddressRange range) { fence_->take_out(range); });
  const auto kept = allocate(64 * kMiB), gone = allocate(64 * kMiB);
  ASSERT_TRUE(update(kIdle));
  const std::uint64_t behind = gone + 64 * kMiB;
  ASSERT_TRUE(allows(gone, 8) && allows(behind, 8));
  free(gone);
  EXPECT_FALSE(allows(gone, 8) || allows(behind, 8));
  EXPECT_FALSE(is_in_extent(gone));
  ASSERT_TRUE(update(kBusy));
  EXPECT_FALSE(allows(gone, 8) || allows(behind, 8));
  EXPECT_TRUE(allows(kept, 8));
  read<std::uint64_t>(gone);  // still mapped
  memory_->unmap_left(memory_->take_left());
  EXPECT_TRUE(allows(kept, 8) && is_in_extent(kept));
}

TEST_F(SessionFenceTest, TexturesAreKnownByTheirNumbers) {
  allocate(4096);
  for (std::uint64_t handle = 1; handle <= 6; ++handle) fence_->add_handle(handle);
  ASSERT_TRUE(update(kIdle));
  EXPECT_EQ(table().handles, 6);
  EXPECT_EQ(constants().fast_handles[0], 6) << "the newest first";
  fence_->remove_handle(6);
  const FenceTable now = table();
  EXPECT_EQ(std::ranges::count(now.handle, 6), 0);
  EXPECT_EQ(constants().fast_handles[0], 5);
}

TEST_F(SessionFenceTest, EveryModuleGetsTheExtent) {
  ASSERT_TRUE(fence_->add_module(kOtherModule, constants_.base + 256, names("second")));
  allocate(4096);
  ASSERT_TRUE(update(kIdle));
  EXPECT_EQ(constants(0).low, constants(1).low);
  EXPECT_EQ(constants(0).size, constants(1).size);
  EXPECT_NE(constants(0).module, constants(1).module);
}

TEST_F(SessionFenceTest, TooManyRangesAreRefused) {
  std::vector<AddressRange> many;
  for (std::uint64_t i = 1; i <= FenceTable::kMostRanges; ++i) many.push_back({i << 20, 16});
  allocate(4096);
  const auto done = update(kIdle, std::make_shared<const std::vector<AddressRange>>(many));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kLimit);
}

TEST_F(SessionFenceTest, AViolationNamesKernelThreadAndAddress) {
  ASSERT_TRUE(update(kIdle));
  EXPECT_FALSE(fence_->violation());
  FenceRecord record{.state = FenceRecord::kClaimed,
                     .kind = static_cast<std::uint32_t>(injector::Violation::kRange),
                     .module = 1,
                     .function = 0,
                     .bytes = 4,
                     .flags = injector::kFenceWrites,
                     .address = 0x1234,
                     .block = {1, 2, 3},
                     .thread = {4, 5, 6}};
  auto* const seen = reinterpret_cast<FenceRecord*>(fence_->record().base);
  *seen = record;
  EXPECT_FALSE(fence_->violation()) << "not complete yet";
  seen->state = FenceRecord::kComplete;
  const auto violation = fence_->violation();
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->code, ErrorCode::kIllegalAddress);
  EXPECT_EQ(violation->message,
            "kernel first: thread (4,5,6) of block (1,2,3) wrote 4 bytes at 0x1234, which is no "
            "memory of its program's");
  seen->function = 1;
  seen->kind = static_cast<std::uint32_t>(injector::Violation::kTrap);
  seen->flags = injector::kFenceNumbered;
  EXPECT_EQ(fence_->violation()->message,
            "kernel first in function helper: thread (4,5,6) of block number 1 executed a trap "
            "instruction");
  EXPECT_EQ(fence_->violation()->code, ErrorCode::kLaunchFailed);
}

TEST_F(SessionFenceTest, ASlotIsCleanForTheNextSession) {
  allocate(4096);
  ASSERT_TRUE(update(kIdle));
  const auto place = fence_->table();
  reinterpret_cast<FenceRecord*>(fence_->record().base)->state = FenceRecord::kComplete;
  fence_->release();
  SessionFence next(pool_);
  ASSERT_TRUE(next.add_module(kOtherModule, constants_.base + 256, names("next")));
  EXPECT_EQ(next.table().base, place.base);
  EXPECT_EQ(read<FenceTable>(place.base).range_count, 0);
  EXPECT_FALSE(next.violation());
  next.release();
}

TEST(FenceMemoryTest, AUserThatComesWhenTheOtherHasGoneTurnsItOn) {
  const auto device = device::open_device("sim:sms=2").value();
  FenceMemory memory(*device, FenceChoice::kAuto, UnfencedChoice::kRun);
  EXPECT_FALSE(memory.add_users({1000}));
  EXPECT_FALSE(memory.add_users({}));
  EXPECT_TRUE(memory.add_users({1001}));
  EXPECT_TRUE(memory.is_on());
}

TEST(FenceMemoryTest, UsersWhoAreAboutToComeTurnItOn) {
  const auto device = device::open_device("sim:sms=2").value();
  FenceMemory memory(*device, FenceChoice::kAuto, UnfencedChoice::kRun);
  EXPECT_TRUE(memory.add_users({1000}, true));
  EXPECT_TRUE(memory.is_on());
}

TEST(FenceMemoryTest, SeveralUsersTurnItOn) {
  const auto device = device::open_device("sim:sms=2").value();
  FenceMemory automatic(*device, FenceChoice::kAuto, UnfencedChoice::kRun);
  EXPECT_FALSE(automatic.is_on());
  EXPECT_FALSE(automatic.add_users({1000}));
  EXPECT_FALSE(automatic.is_on());
  EXPECT_TRUE(automatic.add_users({1000, 1001}));
  EXPECT_TRUE(automatic.is_on());
  EXPECT_FALSE(automatic.add_users({1000, 1001}));
  EXPECT_FALSE(automatic.add_users({}));
  EXPECT_TRUE(automatic.is_on()) << "what they have left behind is still there";
  FenceMemory always(*device, FenceChoice::kAlways, UnfencedChoice::kRefuse);
  EXPECT_FALSE(always.add_users({}));
  EXPECT_TRUE(always.is_on());
}

}  // namespace
}  // namespace slate::daemon
