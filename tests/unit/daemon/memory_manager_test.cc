#include "daemon/engine/memory_manager.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/unit/daemon/fake_device.h"

namespace slate::daemon {
namespace {

/// What the slack of a session takes, once there is any.
constexpr std::uint64_t kSlack = FakeDevice::kGranularity;

class MemoryManagerTest : public testing::Test {
 protected:
  MemoryManagerTest() : memory_(*MemoryManager::make(device_, 64 * kMiB)) {}
  ~MemoryManagerTest() override {
    memory_->release();
    EXPECT_TRUE(device_.holds_nothing());
  }

  void free(device::Address address) {
    ASSERT_TRUE(memory_->retire(address));
    memory_->finish_free(address);
  }

  FakeDevice device_{128 * kMiB};
  std::unique_ptr<MemoryManager> memory_;
};

TEST_F(MemoryManagerTest, NothingIsMappedBeforeTheFirstAllocation) {
  EXPECT_EQ(device_.mapped_bytes(), 0u);
  EXPECT_EQ(memory_->charged(), 0u);
}

TEST(ArenaTest, LeavesTheAddressesOfOtherSessions) {
  const auto device = *device::open_device("sim:sms=2,memory=128M");
  const device::Address base = device->window_of(1, 128 * kMiB).reservation.base;
  const device::AddressRange first{base, 192 * kMiB}, second{first.base + first.bytes, 64 * kMiB};
  const auto arena_in = [&](const device::AddressRange& wished) {
    const auto memory = *MemoryManager::make(*device, 128 * kMiB, nullptr, nullptr, wished);
    const device::AddressRange arena = memory->arena();
    memory->release();
    return arena;
  };
  const auto held = *MemoryManager::make(*device, 128 * kMiB, nullptr, nullptr, first);
  EXPECT_EQ(held->arena().base, first.base);
  EXPECT_EQ(held->arena().bytes, first.bytes) << "as much as there is";
  EXPECT_EQ(arena_in(second).base, second.base);
  EXPECT_EQ(arena_in(second).bytes, 128 * kMiB) << "no less than the limit";
  EXPECT_NE(arena_in(first).base, first.base);
  EXPECT_EQ(arena_in(first).bytes, 128 * kMiB) << "no more outside of a window";
  held->release();
  EXPECT_EQ(arena_in({base, 4096 * kMiB}).bytes, 512 * kMiB);
}

TEST_F(MemoryManagerTest, AllocationsAreAlignedAndApart) {
  device::Address last = 0;
  for (const std::uint64_t bytes : {1u, 511u, 512u, 513u, 4096u}) {
    const auto address = *memory_->allocate(bytes);
    EXPECT_EQ(address % MemoryManager::kAlign, 0u);
    EXPECT_TRUE(memory_->arena().contains(address, bytes));
    if (last != 0) {
      EXPECT_GE(address, last + 512);
    }
    last = address;
  }
}

TEST_F(MemoryManagerTest, SmallAllocationsShareASegment) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(memory_->allocate(1000));
  EXPECT_EQ(memory_->charged(), FakeDevice::kGranularity);
}

TEST_F(MemoryManagerTest, AFreedLargeAllocationIsUnmapped) {
  const auto address = *memory_->allocate(20 * kMiB);
  EXPECT_EQ(device_.mapped_bytes(), 20 * kMiB + kSlack);
  free(address);
  EXPECT_EQ(device_.mapped_bytes(), kSlack);
  EXPECT_EQ(memory_->charged(), 0u);
}

TEST_F(MemoryManagerTest, OneGranuleStaysMapped) {
  const auto address = *memory_->allocate(100);
  free(address);
  EXPECT_EQ(device_.mapped_bytes(), FakeDevice::kGranularity + kSlack);
  EXPECT_EQ(*memory_->allocate(100), address);
}

TEST_F(MemoryManagerTest, TheLimitHolds) {
  EXPECT_EQ(memory_->allocate(65 * kMiB).error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(memory_->allocate(~0ull).error().code, ErrorCode::kOutOfMemory);
  ASSERT_TRUE(memory_->allocate(40 * kMiB));
  EXPECT_EQ(memory_->allocate(30 * kMiB).error().code, ErrorCode::kOutOfMemory);
  EXPECT_TRUE(memory_->allocate(24 * kMiB));
}

TEST_F(MemoryManagerTest, AnEmptyPoolSegmentMakesRoomForALargeAllocation) {
  free(*memory_->allocate(100));
  EXPECT_TRUE(memory_->allocate(64 * kMiB));
}

TEST_F(MemoryManagerTest, ZeroBytesAreRefused) {
  EXPECT_EQ(memory_->allocate(0).error().code, ErrorCode::kInvalidValue);
}

TEST_F(MemoryManagerTest, OnlyTheStartOfALiveAllocationCanBeFreed) {
  const auto address = *memory_->allocate(4096);
  EXPECT_EQ(memory_->retire(address + 512).error().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(memory_->retire(0x10).error().code, ErrorCode::kInvalidValue);
  free(address);
  EXPECT_EQ(memory_->retire(address).error().code, ErrorCode::kInvalidValue);
}

TEST_F(MemoryManagerTest, ARetiredAllocationIsNotReusedBeforeItsFreeIsFinished) {
  const auto address = *memory_->allocate(4096);
  ASSERT_TRUE(memory_->retire(address));
  EXPECT_FALSE(memory_->owns(address, 1));
  EXPECT_NE(*memory_->allocate(4096), address);
  memory_->finish_free(address);
  EXPECT_EQ(*memory_->allocate(4096), address);
}

TEST_F(MemoryManagerTest, OwnershipEndsWithTheAllocation) {
  const auto first = *memory_->allocate(512);
  const auto second = *memory_->allocate(512);
  EXPECT_TRUE(memory_->owns(first, 512));
  EXPECT_FALSE(memory_->owns(first, 513));
  EXPECT_FALSE(memory_->owns(second + 511, 2));
  EXPECT_FALSE(memory_->owns(0x10, 1));
  EXPECT_FALSE(memory_->owns(first, ~0ull));
}

TEST_F(MemoryManagerTest, WaitingForAFreeEndsWhenItIsFinished) {
  EXPECT_FALSE(memory_->wait_for_free(std::chrono::milliseconds(0)));
  const auto address = *memory_->allocate(4096);
  ASSERT_TRUE(memory_->retire(address));
  std::thread finisher([&] { memory_->finish_free(address); });
  while (memory_->wait_for_free(std::chrono::milliseconds(1))) {
  }
  finisher.join();
  EXPECT_EQ(*memory_->allocate(4096), address);
}

TEST_F(MemoryManagerTest, RandomUseNeverOverlapsAndGivesEverythingBack) {
  std::mt19937 random(7);
  std::map<device::Address, std::uint64_t> live;
  for (int i = 0; i < 3000; ++i) {
    if (live.empty() || random() % 5 < 3) {
      const std::uint64_t bytes = 1 + random() % (random() % 20 == 0 ? 18 * kMiB : 50'000);
      const auto address = memory_->allocate(bytes);
      if (!address) continue;
      const auto next = live.lower_bound(*address);
      if (next != live.end()) {
        ASSERT_GE(next->first, *address + bytes);
      }
      if (next != live.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second, *address);
      }
      live.emplace(*address, bytes);
    } else {
      auto victim = live.begin();
      std::advance(victim, random() % live.size());
      free(victim->first);
      live.erase(victim);
    }
    ASSERT_LE(memory_->charged(), memory_->limit());
    ASSERT_EQ(memory_->charged() + (live.empty() && i == 0 ? 0 : kSlack), device_.mapped_bytes());
  }
  for (const auto& [address, bytes] : live) free(address);
  EXPECT_LE(memory_->charged(), FakeDevice::kGranularity);
}

TEST(MemoryManagerDeviceTest, NothingIsNotedOfMemoryThatOutlivesItsSession) {
  struct Notes : MemoryNotes {
    void arena(device::AddressRange) override { ++count; }
    void segment(device::AddressRange, bool, bool) override { ++count; }
    void unmapped(device::Address) override { ++count; }
    void block(device::Address, std::uint64_t, bool) override { ++count; }
    void block_gone(device::Address) override { ++count; }
    int count = 0;
  };
  FakeDevice device(10 * kMiB);
  Notes notes;
  auto memory = *MemoryManager::make(device, 8 * kMiB, nullptr, &notes);
  const auto address = *memory->allocate(1000);
  ASSERT_TRUE(memory->keep(address));
  memory->release();
  const int before = notes.count;
  EXPECT_GT(before, 0);
  memory->let_go(address);
  EXPECT_EQ(notes.count, before) << "its book is gone";
}

TEST(MemoryManagerDeviceTest, ALeftSegmentIsChargedAndGivenToNobodyUntilItIsUnmapped) {
  FakeDevice device(256 * kMiB);
  auto memory = *MemoryManager::make(device, 64 * kMiB);
  bool later = true;
  std::vector<device::AddressRange> left;
  memory->unmap_later([&] { return later; },
                      [&](device::AddressRange range) { left.push_back(range); });
  const auto first = *memory->allocate(20 * kMiB);
  const auto mapped = device.mapped_bytes();
  ASSERT_TRUE(memory->retire(first));
  memory->finish_free(first);
  EXPECT_EQ(device.mapped_bytes(), mapped);
  ASSERT_FALSE(left.empty());
  EXPECT_EQ(left.front().base, first);
  EXPECT_EQ(left.front().bytes, 20 * kMiB);
  EXPECT_EQ(memory->charged(), 20 * kMiB);
  EXPECT_TRUE(memory->mapped().empty()) << "nor its slack";
  const auto second = *memory->allocate(20 * kMiB);
  EXPECT_NE(second, first);
  EXPECT_FALSE(memory->allocate(30 * kMiB)) << "beyond the limit";
  EXPECT_TRUE(memory->wait_for_free(std::chrono::milliseconds(0))) << "some may come back";

  const auto names = memory->take_left();
  EXPECT_EQ(names, std::vector{first});
  EXPECT_TRUE(memory->take_left().empty()) << "each is named once";
  memory->unmap_left(names);
  EXPECT_EQ(memory->charged(), 20 * kMiB);
  EXPECT_FALSE(memory->wait_for_free(std::chrono::milliseconds(0)));
  EXPECT_TRUE(memory->allocate(30 * kMiB));
  later = false;
  ASSERT_TRUE(memory->retire(second));
  memory->finish_free(second);
  EXPECT_EQ(memory->charged(), 30 * kMiB) << "at once";
  memory->release();
}

TEST(MemoryManagerDeviceTest, AFullDeviceIsOutOfMemory) {
  FakeDevice device(10 * kMiB);
  auto one = *MemoryManager::make(device, 8 * kMiB);
  auto other = *MemoryManager::make(device, 8 * kMiB);
  ASSERT_TRUE(one->allocate(6 * kMiB));
  EXPECT_EQ(other->allocate(6 * kMiB).error().code, ErrorCode::kOutOfMemory);
  EXPECT_TRUE(other->allocate(1000));
  one->release();
  EXPECT_TRUE(other->allocate(4 * kMiB));
  other->release();
}

/// On sim, whose addresses the test can read and write itself.
class SlackTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kRow = 64 << 10;

  SlackTest()
      : device_(*device::open_device("sim:sms=1,memory=256M")),
        memory_(*MemoryManager::make(*device_, 64 * kMiB)) {}
  ~SlackTest() override { memory_->release(); }

  static volatile int& at(device::Address address) {
    return *reinterpret_cast<volatile int*>(address);
  }
  /// One row before the allocation, and one behind it. Requires: it fills its segment.
  static void expect_slack_around(device::Address address, std::uint64_t bytes) {
    for (std::uint64_t i = sizeof(int); i <= kRow; i += 1024) {
      ASSERT_EQ(at(address - i), 0);
      ASSERT_EQ(at(address + bytes + i - sizeof(int)), 0);
    }
  }
  std::uint64_t mapped() const { return device_->info().total_memory - *device_->free_memory(); }

  std::unique_ptr<device::Device> device_;
  std::unique_ptr<MemoryManager> memory_;
};

TEST_F(SlackTest, ARowBeforeAndBehindEverySegmentReadsAsZero) {
  const auto pool = *memory_->allocate(2 * kMiB);
  expect_slack_around(pool, 2 * kMiB);
  std::vector<device::Address> large;
  for (int i = 0; i < 2; ++i) large.push_back(*memory_->allocate(18 * kMiB));
  for (const auto address : large) {
    std::memset(reinterpret_cast<void*>(address), 0xff, 18 * kMiB);
    expect_slack_around(address, 18 * kMiB);
  }
  expect_slack_around(pool, 2 * kMiB);
}

TEST_F(SlackTest, AllSlackOfASessionTakesOneGranuleAndIsNotCharged) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(memory_->allocate(18 * kMiB));
  EXPECT_EQ(mapped(), 56 * kMiB);
  EXPECT_EQ(memory_->charged(), 54 * kMiB);
}

TEST_F(SlackTest, WhatASessionWritesThereNoOtherOneSees) {
  auto other = *MemoryManager::make(*device_, 64 * kMiB);
  const auto own = *memory_->allocate(2 * kMiB);
  const auto others = *other->allocate(2 * kMiB);
  at(own - 8) = 7;
  at(own + 2 * kMiB) = 7;
  EXPECT_EQ(at(own - 8), 7) << "a program that finds its way back finds its data";
  expect_slack_around(others, 2 * kMiB);
  other->release();
  auto next = *MemoryManager::make(*device_, 64 * kMiB);
  expect_slack_around(*next->allocate(2 * kMiB), 2 * kMiB);
  next->release();
}

TEST_F(SlackTest, NeighboursOfAFreedSegmentKeepTheirs) {
  std::vector<device::Address> all;
  for (int i = 0; i < 3; ++i) all.push_back(*memory_->allocate(18 * kMiB));
  for (const int gone : {1, 0}) {
    ASSERT_TRUE(memory_->retire(all[static_cast<std::size_t>(gone)]));
    memory_->finish_free(all[static_cast<std::size_t>(gone)]);
    expect_slack_around(all[2], 18 * kMiB);
  }
  for (const int again : {1, 0}) {
    EXPECT_EQ(*memory_->allocate(18 * kMiB), all[static_cast<std::size_t>(again)])
        << "addresses come again, those beside others first";
    expect_slack_around(all[static_cast<std::size_t>(again)], 18 * kMiB);
  }
}

TEST_F(SlackTest, ASmallerSegmentInAHoleLeavesNoneToItsNeighbour) {
  const auto first = *memory_->allocate(26 * kMiB), second = *memory_->allocate(18 * kMiB);
  ASSERT_TRUE(memory_->retire(first));
  memory_->finish_free(first);
  const auto smaller = *memory_->allocate(18 * kMiB);
  EXPECT_EQ(smaller + 18 * kMiB + FakeDevice::kGranularity, second);
  expect_slack_around(smaller, 18 * kMiB);
  const auto mapped = memory_->mapped();
  for (std::size_t i = 1; i < mapped.size(); ++i)
    EXPECT_EQ(mapped[i].base, mapped[i - 1].base + mapped[i - 1].bytes);
}

TEST_F(SlackTest, BareMemoryHasNoneAndLeavesThatOfOthers) {
  const auto own = *memory_->allocate(18 * kMiB);
  const auto bare = *memory_->allocate_bare(4 * kMiB);
  EXPECT_EQ(mapped(), 24 * kMiB);
  EXPECT_EQ(memory_->charged(), 22 * kMiB);
  expect_slack_around(own, 18 * kMiB);
  ASSERT_TRUE(memory_->keep(bare));
  ASSERT_TRUE(memory_->retire(bare));
  memory_->finish_free(bare);
  EXPECT_EQ(memory_->charged(), 22 * kMiB) << "held";
  memory_->let_go(bare);
  EXPECT_EQ(memory_->charged(), 18 * kMiB);
  expect_slack_around(own, 18 * kMiB);
  EXPECT_EQ(memory_->allocate_bare(48 * kMiB).error().code, ErrorCode::kOutOfMemory);
  EXPECT_FALSE(memory_->allocate_bare(0));
}

TEST_F(SlackTest, ItWaitsForTheNextSegment) {
  for (int i = 0; i < 2; ++i) {
    const auto address = *memory_->allocate(18 * kMiB);
    expect_slack_around(address, 18 * kMiB);
    ASSERT_TRUE(memory_->retire(address));
    memory_->finish_free(address);
    EXPECT_EQ(mapped(), 2 * kMiB);
  }
  EXPECT_FALSE(memory_->allocate(65 * kMiB)) << "more than the session's";
  EXPECT_FALSE(memory_->drop_slack()) << "that would not have helped";
}

TEST_F(SlackTest, MemoryGoesBeforeSlack) {
  const auto device = *device::open_device("sim:sms=1,memory=64M");
  auto memory = *MemoryManager::make(*device, 64 * kMiB);
  ASSERT_TRUE(memory->allocate(32 * kMiB));
  EXPECT_FALSE(memory->allocate(32 * kMiB));
  EXPECT_TRUE(memory->drop_slack());
  EXPECT_TRUE(memory->allocate(32 * kMiB));
  EXPECT_FALSE(memory->drop_slack()) << "there was no room for it";
  memory->release();
}

}  // namespace
}  // namespace slate::daemon
