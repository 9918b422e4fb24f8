// Host memory for what is not on the device, and whose memory is there.
#include "daemon/engine/residency/residency.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/engine/residency/host_pool.h"
#include "tests/unit/daemon/fake_device.h"

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;

class HostPoolTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kChunk = 8 * kMiB;

  HostPool::Counts counts() const { return pool_.counts(); }

  FakeDevice device_;
  HostPool pool_{device_, {.pinned = 0, .directory = "", .chunk = kChunk}};
};

TEST_F(HostPoolTest, WhatIsGivenBackIsTakenAgain) {
  auto first = *pool_.take(2 * kMiB);
  std::byte* const memory = first.memory();
  std::memset(memory, 1, 2 * kMiB);
  EXPECT_EQ(counts().used, 2 * kMiB);
  EXPECT_EQ(counts().bytes, kChunk);
  pool_.give(std::move(first));
  EXPECT_EQ(counts().used, 0u);
  const auto again = *pool_.take(2 * kMiB);
  EXPECT_EQ(again.memory(), memory);
  EXPECT_EQ(counts().bytes, kChunk) << "chunks stay";
  pool_.give(again);
}

TEST_F(HostPoolTest, ExtentsAreRoundedUpToWhatADeviceMaps) {
  const auto extent = *pool_.take(1);
  EXPECT_EQ(extent.bytes, 2 * kMiB);
  pool_.give(extent);
  EXPECT_EQ(counts().used, 0u);
}

TEST_F(HostPoolTest, NeighboursThatAreFreeAreOneAgain) {
  for (const auto& order :
       std::vector<std::vector<int>>{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 2, 0}}) {
    std::vector<HostPool::Extent> parts;
    for (int i = 0; i < 4; ++i) parts.push_back(*pool_.take(2 * kMiB));
    for (const int which : order) pool_.give(parts[static_cast<std::size_t>(which)]);
    const auto whole = *pool_.take(kChunk);
    EXPECT_EQ(whole.offset, 0u);
    EXPECT_EQ(counts().bytes, kChunk) << "no chunk is added";
    pool_.give(whole);
  }
}

TEST_F(HostPoolTest, ItGrowsWhenNoChunkHasRoom) {
  const auto first = *pool_.take(6 * kMiB), second = *pool_.take(6 * kMiB);
  EXPECT_NE(first.chunk, second.chunk);
  EXPECT_EQ(counts().bytes, 2 * kChunk);
  const auto third = *pool_.take(2 * kMiB);
  EXPECT_EQ(third.chunk, first.chunk) << "what is left of the first";
  for (const auto& each : {first, second, third}) pool_.give(each);
}

TEST_F(HostPoolTest, OneExtentMayBeLargerThanAChunk) {
  const auto large = *pool_.take(3 * kChunk);
  EXPECT_EQ(large.bytes, 3 * kChunk);
  EXPECT_EQ(counts().bytes, 3 * kChunk);
  std::memset(large.memory(), 1, large.bytes);
  pool_.give(large);
}

TEST_F(HostPoolTest, ItGrowsAsFarAsIsWantedAndNoFurther) {
  ASSERT_TRUE(pool_.grow_to(12 * kMiB));
  EXPECT_EQ(counts().bytes, 12 * kMiB);
  ASSERT_TRUE(pool_.grow_to(4 * kMiB));
  EXPECT_EQ(counts().bytes, 12 * kMiB);
}

TEST_F(HostPoolTest, ItGrowsAheadByItself) {
  pool_.grow_ahead(3 * kChunk);
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (counts().bytes < 3 * kChunk && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(counts().bytes, 3 * kChunk);
}

TEST_F(HostPoolTest, AFolderThatDoesNotExistIsRefused) {
  HostPool pool(device_, {.pinned = 0, .directory = "/nonexistent/slate", .chunk = kChunk});
  EXPECT_FALSE(pool.take(2 * kMiB));
  EXPECT_FALSE(pool.grow_to(2 * kMiB));
  EXPECT_EQ(pool.counts().bytes, 0u);
}

/// Files of this process may have so many bytes while it lives.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(HostPoolTest, AFolderWithoutRoomIsRefusedAndSmallerFilesAreTried) {
  HostPool pool(device_, {.pinned = 0, .directory = testing::TempDir(), .chunk = kChunk});
  const auto first = pool.take(2 * kMiB);
  ASSERT_TRUE(first) << first.error().message;
  {
    const FileLimit limit(5 * kMiB);
    EXPECT_FALSE(pool.take(kChunk));
    EXPECT_EQ(pool.counts().bytes, kChunk);
    EXPECT_EQ(pool.counts().used, 2 * kMiB);
    const auto rest = pool.take(6 * kMiB);
    ASSERT_TRUE(rest);
    const auto small = pool.take(4 * kMiB);
    ASSERT_TRUE(small) << "a whole chunk is no longer possible";
    EXPECT_EQ(pool.counts().bytes, kChunk + 4 * kMiB);
    pool.give(*rest);
    pool.give(*small);
  }
  pool.give(*first);
}

TEST_F(HostPoolTest, ItIsPinnedOnlyUpToItsBound) {
  {
    HostPool pool(device_, {.pinned = 2 * kChunk, .directory = "", .chunk = kChunk});
    ASSERT_TRUE(pool.grow_to(kChunk));
    EXPECT_EQ(pool.counts().pinned, kChunk);
    EXPECT_FALSE(device_.holds_nothing());
    ASSERT_TRUE(pool.grow_to(4 * kChunk));
    EXPECT_EQ(pool.counts().pinned, 2 * kChunk);
    EXPECT_EQ(pool.counts().bytes, 4 * kChunk);
  }
  EXPECT_TRUE(device_.holds_nothing());
}

TEST_F(HostPoolTest, ALeftExtentIsNotUsedAgain) {
  auto left = *pool_.take(2 * kMiB);
  const auto chunk = left.chunk;
  pool_.leave(std::move(left));
  EXPECT_EQ(counts().used, 0u);
  const auto rest = *pool_.take(6 * kMiB), more = *pool_.take(2 * kMiB);
  EXPECT_EQ(rest.chunk, chunk);
  EXPECT_NE(more.chunk, chunk) << "its first 2 MiB are somebody else's";
  pool_.give(rest);
  pool_.give(more);
}

TEST_F(HostPoolTest, AnotherPoolFindsTheSameBytesByTheDescriptor) {
  auto before = *pool_.take(2 * kMiB), own = *pool_.take(4 * kMiB);
  ASSERT_GT(own.offset, 0u);
  std::memset(before.memory(), 1, before.bytes);
  std::memset(own.memory(), 2, own.bytes);
  const auto found = HostPool::adopt(own.fd(), own.offset, own.bytes);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(std::memcmp(found->memory(), own.memory(), own.bytes), 0);
  own.memory()[17] = std::byte{3};
  EXPECT_EQ(found->memory()[17], std::byte{3});
  pool_.leave(std::move(own));
  pool_.give(std::move(before));
  pool_.trim();
  EXPECT_EQ(found->memory()[17], std::byte{3}) << "also when the pool has let go of it";
  pool_.give(*found);
  EXPECT_EQ(counts().used, 0u) << "it is no memory of this pool";
  EXPECT_FALSE(HostPool::adopt(-1, 0, 2 * kMiB));
}

TEST_F(HostPoolTest, ChunksThatNothingUsesAreGivenBack) {
  HostPool pool(device_, {.pinned = 4 * kChunk, .directory = "", .chunk = kChunk});
  const auto first = *pool.take(2 * kMiB);
  const auto second = *pool.take(kChunk);
  pool.trim();
  EXPECT_EQ(pool.counts().bytes, 2 * kChunk);
  pool.give(second);
  pool.trim();
  EXPECT_EQ(pool.counts().bytes, kChunk);
  EXPECT_EQ(pool.counts().pinned, kChunk);
  pool.give(first);
  pool.trim();
  EXPECT_EQ(pool.counts().bytes, 0u);
  EXPECT_EQ(pool.counts().pinned, 0u);
}

TEST_F(HostPoolTest, CopiesStayUntilSomebodyTakesTheMemory) {
  std::vector<HostPool::Ticket> copies;
  for (int i = 0; i < 4; ++i) copies.push_back(pool_.keep(*pool_.take(2 * kMiB)));
  EXPECT_EQ(counts().kept, kChunk);
  EXPECT_EQ(counts().used, 0u) << "nothing needs them";
  const auto back = pool_.reclaim(copies[2]);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->offset, 4 * kMiB);
  EXPECT_EQ(counts().used, 2 * kMiB);
  EXPECT_EQ(counts().kept, 6 * kMiB);
  const auto taken = *pool_.take(2 * kMiB);
  EXPECT_EQ(taken.offset, 0u) << "the oldest copy goes first";
  EXPECT_FALSE(pool_.reclaim(copies[0]));
  EXPECT_TRUE(pool_.reclaim(copies[1])) << "the others are still there";
  pool_.forget(copies[3]);
  pool_.forget(copies[3]);
  pool_.forget(HostPool::Ticket::kNone);
  EXPECT_EQ(counts().kept, 0u);
  EXPECT_EQ(counts().used, 6 * kMiB);
  EXPECT_EQ(counts().bytes, kChunk) << "it grows for nobody's copy unless it may";
}

TEST_F(HostPoolTest, NoCopyStandsInTheWay) {
  const auto small = *pool_.take(2 * kMiB);
  for (int i = 0; i < 3; ++i) (void)pool_.keep(*pool_.take(2 * kMiB));
  const auto large = *pool_.take(kChunk);
  EXPECT_EQ(counts().kept, 0u) << "none of them made room";
  EXPECT_EQ(counts().bytes, 2 * kChunk);
  pool_.give(small);
  pool_.give(large);
}

TEST_F(HostPoolTest, ItGrowsForCopiesAsFarAsItMay) {
  HostPool pool(device_, {.pinned = 0, .directory = "", .chunk = kChunk, .most = 2 * kChunk});
  (void)pool.keep(*pool.take(kChunk));
  const auto first = *pool.take(kChunk);
  for (int i = 0; pool.counts().bytes < 2 * kChunk && i < 10'000; ++i)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(pool.counts().bytes, 2 * kChunk);
  (void)pool.keep(*pool.take(kChunk));
  EXPECT_EQ(pool.counts().kept, kChunk) << "both have room now";
  (void)pool.take(kChunk);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(pool.counts().bytes, 2 * kChunk);
}

TEST_F(HostPoolTest, MemoryOfAnotherPoolIsNotKept) {
  const auto extent = *pool_.take(2 * kMiB);
  EXPECT_EQ(pool_.keep(*HostPool::adopt(extent.fd(), extent.offset, extent.bytes)),
            HostPool::Ticket::kNone);
  pool_.give(extent);
}

TEST_F(HostPoolTest, WhatShouldBeReadyIsKept) {
  HostPool pool(device_, {.pinned = 0, .ready = 2 * kChunk, .directory = "", .chunk = kChunk});
  EXPECT_EQ(pool.counts().bytes, 0u);
  pool.get_ready();
  while (pool.counts().bytes < 2 * kChunk) std::this_thread::yield();
  const auto more = *pool.take(3 * kChunk);
  pool.give(more);
  pool.trim();
  EXPECT_EQ(pool.counts().bytes, 3 * kChunk) << "the largest chunk alone is enough";
}

TEST_F(HostPoolTest, ATrimDoesNotEndTheGrowthOfWhatShouldBeReady) {
  HostPool pool(device_, {.pinned = 0, .ready = 16 * kChunk, .directory = "", .chunk = kChunk});
  pool.get_ready();
  while (pool.counts().bytes < 16 * kChunk) pool.trim();
}

class ResidencyTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kCapacity = 16 * kMiB, kSwap = 32 * kMiB;
  using Tenant = std::shared_ptr<Residency::Tenant>;

  ~ResidencyTest() override {
    for (const Tenant& each : tenants_) leave(each);
    const auto counts = residency_.counts();
    EXPECT_EQ(counts.used, 0u);
    EXPECT_EQ(counts.host.used, 0u);
  }

  Residency::Settings settings(double overhead = 0.05) const {
    return {.capacity = kCapacity, .swap = kSwap, .piece = 2 * kMiB, .overhead = overhead};
  }
  Tenant enter(std::function<void()> wake = {}, std::function<bool()> busy = {}) {
    tenants_.push_back(residency_.enter({.session = tenants_.size() + 1,
                                         .weight = 1,
                                         .priority = 0,
                                         .wake = std::move(wake),
                                         .busy = std::move(busy)}));
    return tenants_.back();
  }
  /// A session that has so much on the device.
  Tenant with(std::uint64_t bytes, std::function<void()> wake = {},
              std::function<bool()> busy = {}) {
    const Tenant tenant = enter(std::move(wake), std::move(busy));
    EXPECT_TRUE(residency_.charge(*tenant, bytes));
    EXPECT_TRUE(residency_.take_at_once(*tenant, bytes));
    charged_[tenant.get()] = bytes;
    return tenant;
  }
  void leave(const Tenant& tenant) {
    if (tenant->on_device() > 0) residency_.give(*tenant, tenant->on_device(), false);
    residency_.uncharge(*tenant, charged_[tenant.get()]);
    residency_.leave(tenant);
  }
  Result<void> charge(const Tenant& tenant, std::uint64_t bytes) {
    const auto done = residency_.charge(*tenant, bytes);
    if (done) charged_[tenant.get()] += bytes;
    return done;
  }

  FakeDevice device_;
  Residency residency_{device_, settings(), {.pinned = 0, .directory = "", .chunk = 2 * kMiB}};
  std::vector<Tenant> tenants_;
  std::map<Residency::Tenant*, std::uint64_t> charged_;
};

TEST_F(ResidencyTest, WhatFitsOnTheDeviceNeedsNoSwap) {
  const auto tenant = enter();
  ASSERT_TRUE(charge(tenant, kCapacity));
  EXPECT_FALSE(tenant->looks()) << "its commands pass without a look";
}

TEST_F(ResidencyTest, MoreThanCouldLeaveIsRefused) {
  const auto one = enter(), other = enter();
  ASSERT_TRUE(charge(one, kCapacity));
  ASSERT_TRUE(charge(other, 8 * kMiB));
  // What is beyond the device, and as much as one session may need at once.
  while (residency_.counts().host.bytes < 8 * kMiB + kCapacity) std::this_thread::yield();
  const auto refused = charge(other, 16 * kMiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfMemory);
  EXPECT_TRUE(charge(other, 8 * kMiB)) << "what was refused is not charged";
}

TEST_F(ResidencyTest, WhatTheHostHasNoMemoryForIsRefusedAndNotCharged) {
  Residency residency(device_, settings(),
                      {.pinned = 0, .directory = "/nonexistent/slate", .chunk = 2 * kMiB});
  const auto tenant = residency.enter({.session = 1, .wake = {}, .busy = {}});
  ASSERT_TRUE(residency.charge(*tenant, kCapacity));
  EXPECT_EQ(residency.charge(*tenant, 2 * kMiB).error().code, ErrorCode::kOutOfMemory);
  residency.uncharge(*tenant, kCapacity);
  residency.leave(tenant);
}

TEST_F(ResidencyTest, WhatIsChargeableIsJustWhatIsGranted) {
  const auto one = enter(), other = enter();
  for (const std::uint64_t outside : {0 * kMiB, 6 * kMiB}) {
    residency_.take_outside(outside);
    for (const std::uint64_t theirs : {0 * kMiB, 2 * kMiB, 14 * kMiB, 20 * kMiB}) {
      ASSERT_TRUE(charge(other, theirs));
      const std::uint64_t most = residency_.chargeable(*one);
      EXPECT_FALSE(residency_.charge(*one, most + kMiB)) << theirs << " " << outside;
      EXPECT_TRUE(residency_.charge(*one, most)) << theirs << " " << outside;
      residency_.uncharge(*one, most);
      residency_.uncharge(*other, std::exchange(charged_[other.get()], 0));
    }
    residency_.give_outside(outside);
  }
}

TEST_F(ResidencyTest, NothingIsTakenAtOnceBeyondTheDevice) {
  const auto tenant = with(12 * kMiB);
  EXPECT_FALSE(residency_.take_at_once(*tenant, 6 * kMiB));
  residency_.take_outside(2 * kMiB);
  EXPECT_FALSE(residency_.take_at_once(*tenant, 4 * kMiB));
  EXPECT_TRUE(residency_.take_at_once(*tenant, 2 * kMiB));
  EXPECT_EQ(tenant->on_device(), 14 * kMiB);
  EXPECT_EQ(residency_.counts().used, kCapacity);
  residency_.give_outside(2 * kMiB);
}

TEST_F(ResidencyTest, NothingIsTakenAtOnceWhileAnotherWaits) {
  const auto tenant = enter(), waiter = enter();
  residency_.begin_wait(*waiter, 2 * kMiB, 0);
  EXPECT_TRUE(waiter->waits());
  EXPECT_TRUE(tenant->looks()) << "it is to note its uses";
  EXPECT_FALSE(residency_.take_at_once(*tenant, 2 * kMiB));
  residency_.end_wait(*waiter);
  EXPECT_FALSE(tenant->looks());
  EXPECT_TRUE(residency_.take_at_once(*tenant, 2 * kMiB));
}

TEST_F(ResidencyTest, RoomThatIsGivenWakesTheWaiter) {
  const auto holder = with(kCapacity), waiter = enter();
  residency_.lock(*holder, kCapacity / 2);
  residency_.begin_wait(*waiter, 8 * kMiB, 0);
  const auto begin = std::chrono::steady_clock::now();
  auto taken =
      std::async(std::launch::async, [&] { return residency_.take(*waiter, 8 * kMiB, 60s); });
  std::this_thread::sleep_for(20ms);
  residency_.give(*holder, 8 * kMiB, true);
  EXPECT_EQ(taken.get(), Residency::Taken::kYes);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  residency_.end_wait(*waiter);
  residency_.unlock(*holder, kCapacity / 2);
  EXPECT_EQ(waiter->on_device(), 8 * kMiB);
  EXPECT_EQ(residency_.counts().moved_out, 8 * kMiB);
}

TEST_F(ResidencyTest, AnIdleSessionIsAskedToLeave) {
  std::atomic<int> woken{0};
  const auto idle = with(kCapacity, [&] { ++woken; }), waiter = enter();
  EXPECT_EQ(residency_.asked(*idle), 0u);
  residency_.begin_wait(*waiter, 6 * kMiB, 0);
  EXPECT_EQ(residency_.take(*waiter, 2 * kMiB, 50ms), Residency::Taken::kNotYet);
  EXPECT_EQ(residency_.asked(*idle), 6 * kMiB) << "no more than is missing";
  EXPECT_EQ(woken, 1);
  EXPECT_TRUE(idle->looks());
  residency_.give(*idle, 6 * kMiB, true);
  EXPECT_EQ(residency_.asked(*idle), 0u);
  for (int piece = 0; piece < 3; ++piece)
    EXPECT_EQ(residency_.take(*waiter, 2 * kMiB, 50ms), Residency::Taken::kYes);
  residency_.end_wait(*waiter);
  EXPECT_FALSE(idle->looks());
}

TEST_F(ResidencyTest, ABusySessionIsAskedOnceItsTurnIsOver) {
  // Moving 8 MiB out and back takes 0.4 ms at first sight, and may take 1/2000 of the time.
  Residency residency(device_, settings(0.0005), {.pinned = 0, .directory = "", .chunk = 2 * kMiB});
  std::promise<void> woken;
  const auto begin = std::chrono::steady_clock::now();
  const auto busy = residency.enter(
      {.session = 1, .wake = [&] { woken.set_value(); }, .busy = [] { return true; }});
  const auto waiter = residency.enter({.session = 2, .wake = {}, .busy = {}});
  residency.take_anyway(*busy, kCapacity);
  residency.begin_wait(*waiter, 8 * kMiB, 0);
  auto taken =
      std::async(std::launch::async, [&] { return residency.take(*waiter, 8 * kMiB, 60s); });
  woken.get_future().wait();
  const auto turn = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(turn, 300ms);
  EXPECT_LT(turn, 30s);
  EXPECT_EQ(residency.asked(*busy), 8 * kMiB);
  residency.give(*busy, 8 * kMiB, true);
  EXPECT_EQ(taken.get(), Residency::Taken::kYes);
  residency.end_wait(*waiter);
  residency.give(*busy, 8 * kMiB, false);
  residency.give(*waiter, 8 * kMiB, false);
  residency.leave(busy);
  residency.leave(waiter);
}

TEST_F(ResidencyTest, TheStatusSaysWhomASessionWaitsFor) {
  using Sessions = std::vector<std::uint64_t>;
  Residency residency(device_, settings(0.0005), {.pinned = 0, .directory = "", .chunk = 2 * kMiB});
  const auto enter_as = [&](std::uint64_t session, bool busy) {
    return residency.enter({.session = session, .wake = {}, .busy = [busy] { return busy; }});
  };
  const auto busy = enter_as(1, true), waiter = enter_as(2, false), later = enter_as(3, false);
  residency.take_anyway(*busy, kCapacity);
  EXPECT_TRUE(residency.motion(*waiter).waits_for.empty());
  residency.begin_wait(*waiter, 8 * kMiB, 0);
  residency.begin_wait(*later, 8 * kMiB, 0);
  EXPECT_EQ(residency.take(*waiter, 8 * kMiB, 0ms), Residency::Taken::kNotYet);
  EXPECT_EQ(residency.motion(*waiter).waits_for, Sessions{1}) << "it is its turn";
  EXPECT_EQ(residency.motion(*later).waits_for, Sessions{2}) << "that one comes first";
  EXPECT_TRUE(residency.motion(*busy).waits_for.empty());
  EXPECT_FALSE(residency.motion(*busy).leaves);
  while (!residency.motion(*busy).leaves)
    EXPECT_EQ(residency.take(*waiter, 8 * kMiB, 100ms), Residency::Taken::kNotYet);
  EXPECT_EQ(residency.motion(*waiter).waits_for, Sessions{1}) << "it leaves";
  EXPECT_EQ(residency.motion(*later).waits_for, Sessions{1});
  residency.give(*busy, 8 * kMiB, true);
  EXPECT_EQ(residency.take(*waiter, 4 * kMiB, 60s), Residency::Taken::kYes);
  EXPECT_TRUE(residency.motion(*waiter).comes);
  EXPECT_EQ(residency.take(*waiter, 4 * kMiB, 60s), Residency::Taken::kYes);
  EXPECT_TRUE(residency.motion(*waiter).waits_for.empty()) << "all of it has room";
  for (const auto& each : {waiter, later}) residency.end_wait(*each);
  EXPECT_FALSE(residency.motion(*waiter).comes);
  residency.give(*busy, 8 * kMiB, false);
  residency.give(*waiter, 8 * kMiB, false);
  for (const auto& each : {busy, waiter, later}) residency.leave(each);
}

TEST_F(ResidencyTest, WhatIsLockedIsNotAskedFor) {
  const auto holder = with(kCapacity), waiter = enter();
  residency_.lock(*holder, 12 * kMiB);
  residency_.begin_wait(*waiter, 8 * kMiB, 0);
  EXPECT_EQ(residency_.take(*waiter, 2 * kMiB, 50ms), Residency::Taken::kNotYet);
  EXPECT_EQ(residency_.asked(*holder), 4 * kMiB) << "the rest of what is missing never comes";
  residency_.give(*holder, 4 * kMiB, true);
  EXPECT_EQ(residency_.take(*waiter, 4 * kMiB, 50ms), Residency::Taken::kYes);
  EXPECT_EQ(residency_.take(*waiter, 4 * kMiB, 50ms), Residency::Taken::kNever);
  residency_.do_without(*waiter, 4 * kMiB);
  residency_.end_wait(*waiter);
  residency_.unlock(*holder, 12 * kMiB);
}

TEST_F(ResidencyTest, WhoCannotLeaveIsNoLongerAsked) {
  const auto holder = with(kCapacity), waiter = enter();
  residency_.begin_wait(*waiter, 4 * kMiB, 0);
  EXPECT_EQ(residency_.take(*waiter, 4 * kMiB, 50ms), Residency::Taken::kNotYet);
  ASSERT_GT(residency_.asked(*holder), 0u);
  residency_.cannot_leave(*holder);
  EXPECT_EQ(residency_.asked(*holder), 0u);
  residency_.end_wait(*waiter);
  EXPECT_FALSE(holder->looks());
}

TEST_F(ResidencyTest, ATurnEndsWhenAnotherSessionNeedsTheMemory) {
  const auto holder = with(kCapacity), waiter = enter();
  EXPECT_FALSE(residency_.begins_turn(*holder));
  EXPECT_FALSE(residency_.begins_turn(*waiter)) << "all that it has is there";
  residency_.begin_wait(*waiter, 4 * kMiB, 0);
  EXPECT_EQ(residency_.take(*waiter, 4 * kMiB, 50ms), Residency::Taken::kNotYet);
  EXPECT_TRUE(residency_.begins_turn(*holder));
  residency_.give(*holder, 4 * kMiB, true);
  EXPECT_EQ(residency_.take(*waiter, 4 * kMiB, 50ms), Residency::Taken::kYes);
  residency_.end_wait(*waiter);
  residency_.begin_wait(*holder, 2 * kMiB, 4 * kMiB);
  EXPECT_EQ(residency_.take(*holder, 2 * kMiB, 50ms), Residency::Taken::kNotYet);
  EXPECT_EQ(residency_.asked(*holder), 2 * kMiB) << "of its own, as the other is in its turn";
  residency_.give(*holder, 2 * kMiB, true);
  EXPECT_EQ(residency_.take(*holder, 2 * kMiB, 50ms), Residency::Taken::kYes);
  EXPECT_FALSE(residency_.begins_turn(*holder));
  residency_.end_wait(*holder);
}

TEST_F(ResidencyTest, MemoryThatHasJustComeIsNotAskedFor) {
  const auto one = with(kCapacity / 2), other = enter(), waiter = enter();
  residency_.lock(*one, kCapacity / 2);
  residency_.begin_wait(*other, kCapacity / 2, 0);
  std::this_thread::sleep_for(20ms);  // much longer than a way out and back takes
  ASSERT_EQ(residency_.take(*other, kCapacity / 2, 50ms), Residency::Taken::kYes);
  residency_.begin_wait(*waiter, kCapacity / 2, 0);
  EXPECT_EQ(residency_.take(*waiter, kCapacity / 2, 0ms), Residency::Taken::kNotYet);
  EXPECT_EQ(residency_.asked(*other), 0u) << "it is about to be used";
  residency_.end_wait(*other);
  residency_.end_wait(*waiter);
  residency_.unlock(*one, kCapacity / 2);
}

TEST_F(ResidencyTest, AnExchangeIsTheWayOutAndBack) {
  const auto tenant = enter();
  const auto rate = [&] { return residency_.counts().bytes_per_ms / 1e6; };
  const auto move = [&](bool out, double gb_per_s) {
    for (int i = 0; i < 40; ++i) residency_.note_move(*tenant, out, 100'000'000, 100 / gb_per_s);
  };
  move(true, 40);
  move(false, 40);
  EXPECT_NEAR(rate(), 20, 1e-2);
  move(false, 60);
  EXPECT_NEAR(rate(), 24, 1e-2);
  move(false, 1);
  EXPECT_NEAR(rate(), 40. / 3, 1e-2) << "the rest was a wait for work";
  residency_.note_move(*tenant, true, 4096, 100);
  EXPECT_NEAR(rate(), 40. / 3, 1e-2) << "too short to say anything";
}

TEST_F(ResidencyTest, ATurnDoesNotGoOnWhileItsSessionWaitsForTheTurnsOfOthers) {
  // A turn that 8 MiB end lasts a second, that of the session with much weight a thousand times
  // as long.
  Residency residency(device_, settings(0.0004), {.pinned = 0, .directory = "", .chunk = 2 * kMiB});
  const auto enter = [&](std::uint64_t session, double weight) {
    return residency.enter(
        {.session = session, .weight = weight, .wake = {}, .busy = [] { return true; }});
  };
  const auto one = enter(1, 1), heavy = enter(2, 1'000), other = enter(3, 1);
  residency.take_anyway(*one, 8 * kMiB);
  residency.take_anyway(*heavy, 8 * kMiB);
  residency.begin_wait(*one, 4 * kMiB, 0);
  EXPECT_EQ(residency.take(*one, 4 * kMiB, 1200ms), Residency::Taken::kNotYet);
  residency.give(*heavy, 4 * kMiB, false);
  ASSERT_EQ(residency.take(*one, 4 * kMiB, 1s), Residency::Taken::kYes);
  residency.end_wait(*one);
  residency.begin_wait(*other, 8 * kMiB, 0);
  EXPECT_EQ(residency.take(*other, 8 * kMiB, 0ms), Residency::Taken::kNotYet);
  EXPECT_EQ(residency.asked(*one), 0u) << "its turn has hardly begun";
  residency.end_wait(*other);
  residency.give(*one, 12 * kMiB, false);
  residency.give(*heavy, 4 * kMiB, false);
  for (const auto& each : {one, heavy, other}) residency.leave(each);
}

TEST_F(ResidencyTest, ASessionThatHasToLeaveWhileItWaitsKeepsItsPlaceInTheQueue) {
  const auto one = with(4 * kMiB), holder = with(12 * kMiB), other = enter();
  residency_.lock(*holder, 12 * kMiB);
  const auto first = residency_.enter({.session = 9, .priority = 1, .wake = {}, .busy = {}});
  std::this_thread::sleep_for(100ms);  // no turn lasts so long
  residency_.begin_wait(*one, 4 * kMiB, 0);
  residency_.begin_wait(*other, 4 * kMiB, 0);
  residency_.begin_wait(*first, 4 * kMiB, 0);
  EXPECT_EQ(residency_.take(*first, 4 * kMiB, 0ms), Residency::Taken::kNotYet);
  ASSERT_EQ(residency_.asked(*one), 4 * kMiB);
  residency_.end_wait(*one);
  residency_.give(*one, 4 * kMiB, true);
  residency_.begin_wait(*one, 4 * kMiB, 0);
  residency_.end_wait(*first);
  EXPECT_EQ(residency_.take(*other, 4 * kMiB, 0ms), Residency::Taken::kNotYet);
  EXPECT_EQ(residency_.take(*one, 4 * kMiB, 0ms), Residency::Taken::kYes);
  residency_.end_wait(*one);
  residency_.end_wait(*other);
  residency_.unlock(*holder, 12 * kMiB);
  residency_.leave(first);
}

TEST_F(ResidencyTest, WhatOthersHaveLockedIsNobodysRoom) {
  const auto one = with(6 * kMiB), other = with(8 * kMiB);
  EXPECT_EQ(residency_.most_on_device(*one), kCapacity);
  residency_.lock(*other, 4 * kMiB);
  residency_.take_outside(2 * kMiB);
  EXPECT_EQ(residency_.most_on_device(*one), kCapacity - 6 * kMiB);
  EXPECT_EQ(residency_.most_on_device(*other), kCapacity - 2 * kMiB);
  residency_.unlock(*other, 4 * kMiB);
  residency_.give_outside(2 * kMiB);
}

TEST_F(ResidencyTest, AFullHostIsAskedAgainByAndByAndWaitedForNoLongerThanSaid) {
  auto spec = settings();
  spec.full_host_look = 200ms;
  spec.full_host_wait = 1s;
  Residency residency(device_, spec, {.pinned = 0, .directory = "", .chunk = 2 * kMiB});
  const auto holder = residency.enter({.session = 1, .wake = {}, .busy = {}});
  const auto waiter = residency.enter({.session = 2, .wake = {}, .busy = {}});
  residency.take_anyway(*holder, kCapacity);
  residency.begin_wait(*waiter, 4 * kMiB, 0);
  auto taken = Residency::Taken::kNotYet;
  int asked = 0;
  for (int look = 0; look < 6000 && taken == Residency::Taken::kNotYet; ++look) {
    taken = residency.take(*waiter, 4 * kMiB, 5ms);
    if (residency.asked(*holder) == 0) continue;
    ++asked;
    residency.cannot_leave(*holder);
    residency.note_host_full();
  }
  EXPECT_EQ(taken, Residency::Taken::kNever);
  EXPECT_GE(asked, 2);
  EXPECT_LE(asked, 6) << "once in 200 ms";
  residency.end_wait(*waiter);
  residency.give(*holder, kCapacity, false);
  residency.leave(holder);
  residency.leave(waiter);
}

TEST_F(ResidencyTest, AFullDeviceIsFullUntilAllSessionsHaveEnded) {
  const auto tenant = enter();
  ASSERT_TRUE(charge(tenant, 8 * kMiB));
  residency_.begin_wait(*tenant, 8 * kMiB, 0);
  EXPECT_EQ(residency_.take(*tenant, 4 * kMiB, 50ms), Residency::Taken::kYes);
  EXPECT_EQ(residency_.take(*tenant, 4 * kMiB, 50ms), Residency::Taken::kYes);
  residency_.note_full(*tenant, 4 * kMiB);
  EXPECT_EQ(tenant->on_device(), 4 * kMiB);
  EXPECT_EQ(residency_.counts().used, kCapacity) << "the rest is somebody else's";
  EXPECT_EQ(residency_.take(*tenant, 4 * kMiB, 50ms), Residency::Taken::kNever);
  residency_.end_wait(*tenant);
  EXPECT_FALSE(residency_.take_at_once(*tenant, 2 * kMiB));
  leave(tenant);
  tenants_.clear();
  const auto next = enter();
  EXPECT_TRUE(residency_.take_at_once(*next, kCapacity));
}

TEST_F(ResidencyTest, ASessionThatIsNotWholeLooksAtEachCommand) {
  const auto tenant = enter();
  residency_.set_whole(*tenant, false);
  EXPECT_TRUE(tenant->looks());
  residency_.set_whole(*tenant, true);
  EXPECT_FALSE(tenant->looks());
}

}  // namespace
}  // namespace slate::daemon
