// Where a session's segments are, on sim, whose addresses the test reads and writes itself.
#include "daemon/engine/residency/segment_backing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/engine/exports.h"
#include "daemon/engine/memory_manager.h"
#include "tests/unit/daemon/fake_device.h"
#include "tests/unit/daemon/forwarding_device.h"

namespace slate::daemon {
namespace {

using device::Address;
using device::AddressRange;

using NeededSegments = SegmentBacking::Needs;

constexpr std::uint64_t kCapacity = 16 * kMiB, kPiece = 4 * kMiB;
constexpr std::uint64_t kAllOfIt = ~std::uint64_t{0};
const NeededSegments kEverything{.everything = true, .segments = {}};
const SegmentBacking::Written kWritesAll{.everything = true, .ranges = {}};

/// Sim, which fails where the test wants it, and knows what is mapped.
class MovingDevice : public ForwardingDevice {
 public:
  MovingDevice() : ForwardingDevice(std::move(*device::open_device("sim:sms=1,memory=128M"))) {}

  /// The map() or map_exported() with this number fails, from 1 on.
  void fail_map(int count, ErrorCode code) {
    maps_left_ = count;
    code_ = code;
  }
  /// The copy with this number fails, from 1 on: one that has begun, once it is looked at.
  void fail_copy(int count) { copies_left_ = count; }
  /// Copies that have ended since the last call.
  int take_copies() { return std::exchange(copies_, 0); }
  bool is_mapped(Address base) const { return mapped_.contains(base); }
  std::uint64_t mapped_bytes() const {
    return std::accumulate(mapped_.begin(), mapped_.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const auto& each) { return sum + each.second; });
  }

  Result<void> map(AddressRange range) override {
    if (is_time(maps_left_)) return fail(code_, "no map");
    return noted(range, ForwardingDevice::map(range));
  }
  Result<void> map_on_host(AddressRange range) override {
    return noted(range, ForwardingDevice::map_on_host(range));
  }
  Result<void> map_again(AddressRange range, Address mapped) override {
    if (is_time(maps_left_)) return fail(code_, "no map");
    return noted(range, ForwardingDevice::map_again(range, mapped));
  }
  Result<void> map_exported(AddressRange range, int memory) override {
    if (is_time(maps_left_)) return fail(code_, "no map");
    return noted(range, ForwardingDevice::map_exported(range, memory));
  }
  Result<void> unmap(AddressRange range) override {
    auto done = ForwardingDevice::unmap(range);
    if (done) mapped_.erase(range.base);
    return done;
  }
  Result<bool> query(device::Event event) override {
    auto done = ForwardingDevice::query(event);
    while (done && !*done) done = ForwardingDevice::query(event);
    ++copies_;
    if (is_time(copies_left_)) return fail(ErrorCode::kIllegalAddress, "the copy has failed");
    return done;
  }

 private:
  static bool is_time(int& left) { return left > 0 && --left == 0; }
  Result<void> noted(AddressRange range, Result<void> mapped) {
    if (mapped) mapped_[range.base] = range.bytes;
    return mapped;
  }

  int maps_left_ = 0, copies_left_ = 0, copies_ = 0;
  ErrorCode code_ = ErrorCode::kOutOfMemory;
  std::map<Address, std::uint64_t> mapped_;
};

/// What a book hears, as lines.
class HeardNotes : public PieceNotes {
 public:
  void piece_on_host(AddressRange piece, int memory, std::uint64_t offset) override {
    if (on_host) on_host(piece, memory, offset);
    add("host", piece.base);
  }
  void piece_on_device(AddressRange piece) override {
    if (on_device) on_device(piece);
    add("device", piece.base);
  }
  void piece_linked(AddressRange piece) override {
    if (on_linked) on_linked(piece);
    add("linked", piece.base);
  }
  void piece_blank(AddressRange piece) override { add("blank", piece.base); }
  void piece_gone(Address piece) override { add("gone", piece); }
  void in_pieces(Address segment) override {
    if (on_pieces) on_pieces(segment);
    add("pieces", segment);
  }
  bool are_for_another() const override { return is_frozen; }

  std::vector<std::string> take() { return std::exchange(heard_, {}); }

  std::function<void(AddressRange, int, std::uint64_t)> on_host;
  std::function<void(AddressRange)> on_device, on_linked;
  std::function<void(Address)> on_pieces;
  Address base = 0;  // addresses in lines count from here, in MiB
  bool is_frozen = false;

 private:
  void add(const char* what, Address at) {
    heard_.push_back(fmt::format("{} {}", what, (at - base) / kMiB));
  }
  std::vector<std::string> heard_;
};

volatile std::uint32_t* words_at(Address address) {
  return reinterpret_cast<volatile std::uint32_t*>(address);
}

void fill(Address address, std::uint64_t bytes, std::uint32_t seed) {
  for (std::uint64_t i = 0; i < bytes / 4; ++i)
    words_at(address)[i] = static_cast<std::uint32_t>(i) * 2654435761u + seed;
}

/// How many words are others than fill() has put there.
std::uint64_t wrong_words(Address address, std::uint64_t bytes, std::uint32_t seed) {
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < bytes / 4; ++i)
    wrong += words_at(address)[i] != static_cast<std::uint32_t>(i) * 2654435761u + seed;
  return wrong;
}

std::uint64_t words_not_zero(Address address, std::uint64_t bytes) {
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < bytes / 4; ++i) wrong += words_at(address)[i] != 0;
  return wrong;
}

/// A session's addresses, with segments one behind the other.
class Owner {
 public:
  Owner(device::Device& device, Residency& residency, std::uint64_t id, PieceNotes* notes = nullptr)
      : device_(device),
        residency_(residency),
        tenant(residency.enter({.session = id, .wake = {}, .busy = {}})),
        backing(device, residency, tenant, notes),
        arena{*device.reserve(256 * kMiB), 256 * kMiB},
        end_(arena.base) {}
  ~Owner() {
    backing.stop_notes();
    while (!segments.empty()) remove(*segments.begin());
    device_.unreserve(arena);
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  /// 0: refused.
  Address add(std::uint64_t bytes) {
    if (!backing.add({end_, bytes})) return 0;
    segments.insert(end_);
    return std::exchange(end_, end_ + bytes);
  }
  void remove(Address segment) {
    backing.remove(segment);
    segments.erase(segment);
  }
  /// As MemoryGate does it, but that nobody is waited for.
  Result<void> bring(const NeededSegments& needs) {
    residency_.begin_wait(*tenant, backing.missing(needs), backing.spare(needs));
    const auto brought = backing.bring(needs, [&](std::uint64_t bytes) -> Result<Residency::Taken> {
      const auto taken = residency_.take(*tenant, bytes, std::chrono::milliseconds(0));
      if (taken == Residency::Taken::kNotYet) return fail(ErrorCode::kUnavailable, "no room");
      return taken;
    });
    residency_.end_wait(*tenant);
    residency_.cannot_leave(*tenant);
    return brought;
  }
  Result<void> bring(Address segment) {
    return bring({.everything = false, .segments = {segment}});
  }
  Result<void> move_out(std::uint64_t bytes = kAllOfIt, const NeededSegments& needed = {}) {
    return backing.move_out(bytes, needed);
  }

 private:
  device::Device& device_;
  Residency& residency_;

 public:
  const std::shared_ptr<Residency::Tenant> tenant;
  SegmentBacking backing;
  const AddressRange arena;
  std::set<Address> segments;

 private:
  Address end_;
};

class SegmentBackingTest : public testing::Test {
 protected:
  ~SegmentBackingTest() override {
    EXPECT_EQ(device_.mapped_bytes(), 0u);
    EXPECT_EQ(*device_.free_memory(), device_.info().total_memory);
    const auto counts = residency_.counts();
    EXPECT_EQ(counts.used, 0u);
    EXPECT_EQ(counts.host.used, 0u);
    EXPECT_EQ(residency_.chargeable(*residency_.enter({.session = 99, .wake = {}, .busy = {}})),
              128 * kMiB)
        << "nothing is charged";
  }
  std::uint64_t host_used() const { return residency_.counts().host.used; }
  /// What a session has on the device is what is mapped for it.
  void expect_accounts(const Owner& owner, std::uint64_t linked = 0) const {
    EXPECT_EQ(owner.tenant->on_device() + linked, device_.mapped_bytes());
  }

  MovingDevice device_;
  Residency residency_{device_,
                       {.capacity = kCapacity, .swap = 128 * kMiB, .piece = kPiece},
                       {.pinned = 0, .directory = "", .chunk = 16 * kMiB}};
};

TEST_F(SegmentBackingTest, ContentsComeBackWordForWordAtTheSameAddresses) {
  Owner owner(device_, residency_, 1);
  const Address large = owner.add(10 * kMiB), small = owner.add(2 * kMiB);
  fill(large, 10 * kMiB, 1);
  fill(small, 2 * kMiB, 2);
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_TRUE(owner.move_out());
    EXPECT_EQ(device_.mapped_bytes(), 0u);
    EXPECT_EQ(owner.backing.on_host(), 12 * kMiB);
    EXPECT_EQ(host_used(), 12 * kMiB);
    EXPECT_EQ(owner.backing.missing(kEverything), 12 * kMiB);
    EXPECT_TRUE(owner.tenant->looks());
    ASSERT_TRUE(owner.bring(kEverything));
    EXPECT_EQ(wrong_words(large, 10 * kMiB, 1), 0u);
    EXPECT_EQ(wrong_words(small, 2 * kMiB, 2), 0u);
    EXPECT_EQ(host_used(), 0u);
    EXPECT_TRUE(owner.backing.is_mapped(large));
    EXPECT_TRUE(owner.tenant->looks()) << "a write may come";
    owner.backing.note_written(kWritesAll);
    EXPECT_FALSE(owner.tenant->looks());
    expect_accounts(owner);
  }
}

TEST_F(SegmentBackingTest, OnlyWhatIsNeededComesBack) {
  Owner owner(device_, residency_, 1);
  const Address one = owner.add(6 * kMiB), other = owner.add(6 * kMiB);
  fill(one, 6 * kMiB, 1);
  ASSERT_TRUE(owner.move_out());
  ASSERT_TRUE(owner.bring(one));
  EXPECT_EQ(wrong_words(one, 6 * kMiB, 1), 0u);
  EXPECT_TRUE(owner.backing.is_mapped(one));
  EXPECT_FALSE(owner.backing.is_mapped(other));
  EXPECT_EQ(owner.backing.spare({.everything = false, .segments = {other}}), 6 * kMiB);
  const auto needed = [&](Address base, std::uint64_t bytes) {
    NeededSegments needs;
    owner.backing.add_needed({base, bytes}, needs);
    return needs.segments;
  };
  EXPECT_EQ(needed(other + 17, 1), std::set<Address>{other});
  EXPECT_EQ(needed(other - 1, 2), (std::set<Address>{one, other}));
  EXPECT_EQ(needed(other + 6 * kMiB, 1), std::set<Address>{});
}

TEST_F(SegmentBackingTest, ASegmentThatHasMovedLeavesByPieces) {
  Owner owner(device_, residency_, 1);
  const Address segment = owner.add(14 * kMiB);
  fill(segment, 14 * kMiB, 1);
  ASSERT_TRUE(owner.move_out(1));
  EXPECT_EQ(owner.backing.on_host(), 14 * kMiB) << "what one call has mapped, one call unmaps";
  ASSERT_TRUE(owner.bring(kEverything));
  ASSERT_TRUE(owner.move_out(kPiece + 1));
  EXPECT_EQ(owner.backing.on_host(), 2 * kPiece);
  expect_accounts(owner);
  ASSERT_TRUE(owner.bring(kEverything));
  EXPECT_EQ(wrong_words(segment, 14 * kMiB, 1), 0u);
}

TEST_F(SegmentBackingTest, TheLeastRecentlyUsedLeavesFirstAndWhatIsNeededLast) {
  Owner owner(device_, residency_, 1);
  std::vector<Address> segments;
  for (int i = 0; i < 4; ++i) segments.push_back(owner.add(2 * kMiB));
  owner.backing.note_use({.everything = false, .segments = {segments[0]}});
  const NeededSegments needed{.everything = false, .segments = {segments[1]}};
  for (const int next : {2, 3, 0, 1}) {
    ASSERT_TRUE(owner.move_out(1, needed));
    EXPECT_FALSE(owner.backing.is_mapped(segments[static_cast<std::size_t>(next)])) << next;
  }
}

TEST_F(SegmentBackingTest, TheWorkingSetIsWhatWasUsedOrAllocatedInThisTurnAndTheOneBefore) {
  Owner owner(device_, residency_, 1);
  std::vector<Address> segments;
  for (int i = 0; i < 4; ++i) segments.push_back(owner.add(4 * kMiB));
  const Address blank = owner.add(4 * kMiB);
  ASSERT_FALSE(owner.backing.is_mapped(blank));
  const auto need = [&](std::size_t i) {
    return NeededSegments{.everything = false, .segments = {segments[i]}};
  };
  const auto working_set = [&](std::size_t needed) {
    return owner.backing.with_working_set(need(needed)).segments;
  };
  owner.backing.begin_turn();
  EXPECT_TRUE(working_set(0).contains(blank)) << "it is about to be filled";
  owner.backing.note_use(need(0));
  owner.backing.note_use(need(1));
  owner.backing.begin_turn();
  EXPECT_EQ(working_set(2), (std::set<Address>{segments[0], segments[1], segments[2]}));
  owner.backing.begin_turn();  // nothing was used in the turn that ended
  EXPECT_EQ(working_set(2), (std::set<Address>{segments[0], segments[1], segments[2]}));
  owner.backing.note_use(need(2));
  EXPECT_EQ(working_set(3).size(), 4u);
  owner.backing.begin_turn();
  EXPECT_EQ(working_set(3), (std::set<Address>{segments[2], segments[3]}));
}

TEST_F(SegmentBackingTest, WhatWasNeverWrittenTakesNoHostMemory) {
  Owner owner(device_, residency_, 1);
  const Address first = owner.add(kCapacity), blank = owner.add(8 * kMiB);
  fill(first, kCapacity, 1);
  EXPECT_FALSE(owner.backing.is_mapped(blank));
  EXPECT_EQ(owner.backing.on_host(), 0u);
  ASSERT_TRUE(owner.move_out());
  EXPECT_EQ(host_used(), kCapacity);
  ASSERT_TRUE(owner.bring(blank));
  EXPECT_EQ(words_not_zero(blank, 8 * kMiB), 0u);
}

TEST_F(SegmentBackingTest, BlankPiecesReadAsZerosWhereAnothersContentsWere) {
  Owner owner(device_, residency_, 1);
  {
    Owner other(device_, residency_, 2);
    const Address theirs = other.add(kCapacity);
    fill(theirs, kCapacity, 1);
    ASSERT_TRUE(other.move_out());
    ASSERT_TRUE(other.bring(theirs));
    const Address early = owner.add(8 * kMiB);
    EXPECT_FALSE(owner.backing.is_mapped(early)) << "there was no room";
    ASSERT_TRUE(other.move_out());
  }
  const Address late = owner.add(8 * kMiB);
  ASSERT_TRUE(owner.bring(kEverything));
  for (int turn = 0; turn < 2; ++turn) {
    for (const Address each : owner.segments) EXPECT_EQ(words_not_zero(each, 8 * kMiB), 0u);
    ASSERT_TRUE(owner.move_out());
    ASSERT_TRUE(owner.bring(kEverything));
  }
  EXPECT_TRUE(owner.backing.is_mapped(late));
}

TEST_F(SegmentBackingTest, AMapThatFailsInTheMiddleLeavesTheAccountsRight) {
  for (const ErrorCode code : {ErrorCode::kOutOfMemory, ErrorCode::kIllegalAddress}) {
    Owner owner(device_, residency_, 1);
    const Address segment = owner.add(kCapacity);
    fill(segment, kCapacity, 1);
    ASSERT_TRUE(owner.move_out());
    device_.fail_map(3, code);
    const auto brought = owner.bring(kEverything);
    if (code == ErrorCode::kOutOfMemory) {
      // What the device lacks is reached on the host.
      EXPECT_TRUE(brought);
      EXPECT_EQ(wrong_words(segment, kCapacity, 1), 0u);
      EXPECT_EQ(owner.backing.linked(kEverything), 2 * kPiece);
    } else {
      EXPECT_EQ(brought.error().code, code);
      EXPECT_EQ(wrong_words(segment, 2 * kPiece, 1), 0u) << "what has come stays";
      EXPECT_EQ(owner.backing.missing(kEverything), 2 * kPiece);
      EXPECT_EQ(host_used(), 2 * kPiece);
    }
    EXPECT_EQ(owner.tenant->on_device(), 2 * kPiece);
    expect_accounts(owner, owner.backing.linked(kEverything));
  }
}

TEST_F(SegmentBackingTest, ACopyThatFailsLeavesTheAccountsRight) {
  for (const int failing : {1, 2, 3}) {
    for (const bool whole : {true, false}) {
      Owner owner(device_, residency_, 1);
      const Address segment = owner.add(kCapacity);
      fill(segment, kCapacity, 1);
      if (!whole) {
        ASSERT_TRUE(owner.move_out());
        ASSERT_TRUE(owner.bring(kEverything));
        owner.backing.note_written(kWritesAll);
      }
      device_.fail_copy(failing);
      EXPECT_EQ(owner.move_out().error().code, ErrorCode::kIllegalAddress) << failing;
      expect_accounts(owner);
      EXPECT_EQ(host_used(), owner.backing.on_host());
      ASSERT_TRUE(owner.move_out());
      device_.fail_copy(failing);
      EXPECT_EQ(owner.bring(kEverything).error().code, ErrorCode::kIllegalAddress) << failing;
      expect_accounts(owner);
      EXPECT_EQ(host_used(), owner.backing.on_host());
      ASSERT_TRUE(owner.bring(kEverything));
      EXPECT_EQ(wrong_words(segment, kCapacity, 1), 0u);
    }
  }
}

TEST_F(SegmentBackingTest, MoreThanTheDeviceHasIsReachedOnTheHostAndKeepsItsContents) {
  Owner owner(device_, residency_, 1);
  const Address first = owner.add(12 * kMiB), second = owner.add(12 * kMiB);
  ASSERT_TRUE(owner.move_out());
  ASSERT_TRUE(owner.bring(kEverything));
  EXPECT_EQ(owner.backing.linked(kEverything), 8 * kMiB);
  EXPECT_TRUE(owner.backing.is_mapped(second));
  expect_accounts(owner, 8 * kMiB);
  EXPECT_EQ(words_not_zero(first, 24 * kMiB), 0u);
  owner.backing.note_written(kWritesAll);
  fill(first, 12 * kMiB, 1);
  fill(second, 12 * kMiB, 2);
  ASSERT_TRUE(owner.backing.unlink());
  EXPECT_EQ(owner.backing.linked(kEverything), 0u);
  EXPECT_EQ(host_used(), 8 * kMiB);
  expect_accounts(owner);
  ASSERT_TRUE(owner.move_out());
  ASSERT_TRUE(owner.bring(first));
  EXPECT_EQ(wrong_words(first, 12 * kMiB, 1), 0u);
  ASSERT_TRUE(owner.move_out());
  ASSERT_TRUE(owner.bring(kEverything));
  EXPECT_EQ(owner.backing.linked(kEverything), 8 * kMiB);
  EXPECT_EQ(wrong_words(first, 12 * kMiB, 1), 0u);
  EXPECT_EQ(wrong_words(second, 12 * kMiB, 2), 0u) << "also where it is linked again";
}

TEST_F(SegmentBackingTest, WhatWasOnlyReadLeavesWithoutACopy) {
  Owner owner(device_, residency_, 1);
  const Address segment = owner.add(8 * kMiB);
  fill(segment, 8 * kMiB, 1);
  ASSERT_TRUE(owner.move_out());
  EXPECT_EQ(device_.take_copies(), 2) << "by pieces";
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_TRUE(owner.bring(kEverything));
    EXPECT_EQ(device_.take_copies(), 2);
    EXPECT_EQ(residency_.counts().host.kept, 8 * kMiB);
    EXPECT_EQ(wrong_words(segment, 8 * kMiB, 1), 0u);
    ASSERT_TRUE(owner.move_out());
    EXPECT_EQ(device_.take_copies(), 0);
    EXPECT_EQ(owner.backing.on_host(), 8 * kMiB);
    EXPECT_EQ(host_used(), 8 * kMiB);
    EXPECT_EQ(residency_.counts().host.kept, 0u);
    expect_accounts(owner);
  }
  EXPECT_EQ(residency_.counts().clean_out, 24 * kMiB);
  EXPECT_EQ(residency_.counts().moved_out, 32 * kMiB);
}

TEST_F(SegmentBackingTest, WhatHasComeButWasNeverWrittenLeavesWithoutACopy) {
  Owner owner(device_, residency_, 1);
  const Address whole = owner.add(kCapacity), blank = owner.add(8 * kMiB);
  fill(whole, kCapacity, 1);
  ASSERT_TRUE(owner.move_out());
  (void)device_.take_copies();
  for (int turn = 0; turn < 2; ++turn) {
    ASSERT_TRUE(owner.bring(blank));
    EXPECT_TRUE(owner.tenant->looks()) << "a write has to be noticed";
    ASSERT_TRUE(owner.move_out());
    EXPECT_EQ(device_.take_copies(), 0);
    EXPECT_EQ(host_used(), kCapacity);
    EXPECT_FALSE(owner.backing.is_mapped(blank));
    expect_accounts(owner);
  }
  EXPECT_EQ(residency_.counts().clean_out, 16 * kMiB);
  ASSERT_TRUE(owner.bring(blank));
  EXPECT_EQ(words_not_zero(blank, 8 * kMiB), 0u);
  owner.backing.note_written({.everything = false, .ranges = {{blank + kPiece, 1}}});
  fill(blank + kPiece, kPiece, 2);
  ASSERT_TRUE(owner.move_out());
  EXPECT_EQ(device_.take_copies(), 1) << "of the piece that was written";
  EXPECT_EQ(host_used(), kCapacity + kPiece);
  ASSERT_TRUE(owner.bring(blank));
  EXPECT_EQ(words_not_zero(blank, kPiece), 0u);
  EXPECT_EQ(wrong_words(blank + kPiece, kPiece, 2), 0u);
}

TEST_F(SegmentBackingTest, AWriteThatNobodyKnewOfIsFoundWhereMemoryAlwaysMoves) {
  Residency always(
      device_, {.capacity = kCapacity, .swap = 128 * kMiB, .piece = kPiece, .evicts_always = true},
      {.pinned = 0, .directory = "", .chunk = 16 * kMiB});
  Owner owner(device_, always, 1);
  ASSERT_NE(owner.add(kCapacity), 0u);
  const Address blank = owner.add(8 * kMiB);
  ASSERT_TRUE(owner.move_out());
  ASSERT_TRUE(owner.bring(blank));
  ASSERT_TRUE(owner.move_out()) << "nothing was written";
  ASSERT_TRUE(owner.bring(blank));
  words_at(blank + 8 * kMiB - 4)[0] = 1;
  EXPECT_EQ(owner.move_out().error().code, ErrorCode::kInternal);
}

TEST_F(SegmentBackingTest, WhatWasWrittenIsCopiedPieceByPiece) {
  Owner owner(device_, residency_, 1);
  const Address first = owner.add(8 * kMiB), second = owner.add(8 * kMiB);
  fill(first, 8 * kMiB, 1);
  fill(second, 8 * kMiB, 2);
  ASSERT_TRUE(owner.move_out());
  const auto written = [](Address base, std::uint64_t bytes) {
    return SegmentBacking::Written{.everything = false, .ranges = {{base, bytes}}};
  };
  const struct {
    SegmentBacking::Written written;
    int copies;
  } kCases[] = {{{}, 0},
                {written(first, 1), 1},
                {written(first + 8 * kMiB - 1, 1), 1},
                {written(first + kPiece - 1, 2), 2},
                {written(first + 8 * kMiB, 1), 1},
                {written(first - kMiB, kMiB), 0},
                {written(first - kMiB, kMiB + 1), 1},
                {written(first + kPiece, 2 * kPiece), 2},
                {written(first, 16 * kMiB), 4},
                {kWritesAll, 4}};
  for (const auto& each : kCases) {
    ASSERT_TRUE(owner.bring(kEverything));
    owner.backing.note_written(each.written);
    (void)device_.take_copies();
    ASSERT_TRUE(owner.move_out());
    EXPECT_EQ(device_.take_copies(), each.copies) << &each - kCases;
  }
  ASSERT_TRUE(owner.bring(kEverything));
  EXPECT_EQ(wrong_words(first, 8 * kMiB, 1), 0u);
  EXPECT_EQ(wrong_words(second, 8 * kMiB, 2), 0u);
}

TEST_F(SegmentBackingTest, ACopyThatAnotherSessionsMemoryHasTakenIsMadeAgain) {
  Owner owner(device_, residency_, 1), other(device_, residency_, 2);
  const Address ours = owner.add(16 * kMiB);
  fill(ours, 16 * kMiB, 1);
  ASSERT_TRUE(owner.move_out());
  ASSERT_TRUE(owner.bring(kEverything));
  EXPECT_EQ(residency_.counts().host.kept, 16 * kMiB);
  const std::uint64_t pool = residency_.counts().host.bytes;
  const auto free = residency_.host().take(pool - 16 * kMiB);
  EXPECT_EQ(residency_.counts().host.kept, 16 * kMiB);
  const auto taken = residency_.host().take(kPiece);
  EXPECT_EQ(residency_.counts().host.kept, 12 * kMiB);
  EXPECT_EQ(residency_.counts().host.bytes, pool) << "it need not grow";
  (void)device_.take_copies();
  ASSERT_TRUE(owner.move_out());
  EXPECT_EQ(device_.take_copies(), 1);
  residency_.host().give(*free);
  residency_.host().give(*taken);
  ASSERT_TRUE(owner.bring(kEverything));
  EXPECT_EQ(wrong_words(ours, 16 * kMiB, 1), 0u);
}

TEST_F(SegmentBackingTest, WhatIsLockedIsNotClean) {
  Owner owner(device_, residency_, 1);
  const Address segment = owner.add(8 * kMiB);
  ASSERT_TRUE(owner.move_out());
  ASSERT_TRUE(owner.bring(kEverything));
  EXPECT_GT(residency_.counts().host.kept, 0u);
  owner.backing.lock({segment, 1});
  EXPECT_EQ(residency_.counts().host.kept, 0u);
}

/// A segment of 8 MiB with two views.
class ViewsTest : public SegmentBackingTest {
 protected:
  ViewsTest() {
    for (const Address view : {view_, other_view_})
      EXPECT_TRUE(owner_.backing.show(segment_, view));
    fill(segment_, 8 * kMiB, 1);
  }
  ~ViewsTest() override {
    for (const Address view : shown_) owner_.backing.hide(view);
  }
  void expect_everywhere(std::uint32_t seed) const {
    for (const Address at : {segment_, view_, other_view_})
      EXPECT_EQ(wrong_words(at, 8 * kMiB, seed), 0u) << (at == segment_);
  }

  Owner owner_{device_, residency_, 1};
  const Address segment_ = owner_.add(8 * kMiB);
  // Addresses of the arena behind the segment.
  const Address view_ = segment_ + 64 * kMiB, other_view_ = segment_ + 128 * kMiB;
  std::set<Address> shown_{view_, other_view_};
};

TEST_F(ViewsTest, TheyLeaveAndComeWithTheirSegment) {
  for (int turn = 0; turn < 3; ++turn) {
    expect_everywhere(1);
    EXPECT_EQ(device_.mapped_bytes(), 24 * kMiB);
    EXPECT_EQ(owner_.tenant->on_device(), 8 * kMiB) << "counted once";
    ASSERT_TRUE(owner_.move_out(turn == 1 ? 1 : kAllOfIt));
    EXPECT_EQ(device_.mapped_bytes(), turn == 1 ? 12 * kMiB : 0u);
    ASSERT_TRUE(owner_.bring(kEverything));
  }
  expect_everywhere(1);
}

TEST_F(ViewsTest, ACommandThatNamesAViewMeansTheSegment) {
  ASSERT_TRUE(owner_.move_out());
  NeededSegments needs;
  owner_.backing.add_needed({view_ + 8 * kMiB - 1, 1}, needs);
  EXPECT_EQ(needs.segments, std::set<Address>{segment_});
  NeededSegments others;
  owner_.backing.add_needed({view_ + 8 * kMiB, kMiB}, others);
  owner_.backing.add_needed({view_ - kMiB, kMiB}, others);
  EXPECT_TRUE(others.segments.empty());
  ASSERT_TRUE(owner_.bring(needs));
  (void)device_.take_copies();
  owner_.backing.note_written({.everything = false, .ranges = {{other_view_ + kPiece, 1}}});
  ASSERT_TRUE(owner_.move_out());
  EXPECT_EQ(device_.take_copies(), 1) << "one piece was written";
}

TEST_F(ViewsTest, OneIsAddedAndEndsWhereverTheSegmentIs) {
  ASSERT_TRUE(owner_.move_out());
  owner_.backing.hide(view_);
  ASSERT_TRUE(owner_.bring(segment_));
  EXPECT_FALSE(device_.is_mapped(view_));
  ASSERT_TRUE(owner_.move_out(1));
  ASSERT_TRUE(owner_.backing.show(segment_, view_)) << "of one of two pieces";
  EXPECT_EQ(device_.mapped_bytes(), 3 * kPiece);
  ASSERT_TRUE(owner_.bring(segment_));
  expect_everywhere(1);
}

TEST_F(ViewsTest, AMapThatFailsInTheMiddleLeavesNothingMapped) {
  ASSERT_TRUE(owner_.move_out());
  for (const int failing : {2, 3}) {
    device_.fail_map(failing, ErrorCode::kIllegalAddress);
    EXPECT_FALSE(owner_.bring(segment_));
    EXPECT_EQ(device_.mapped_bytes(), 0u);
    EXPECT_EQ(owner_.tenant->on_device(), 0u);
  }
  ASSERT_TRUE(owner_.bring(segment_));
  owner_.backing.hide(view_);
  device_.fail_map(2, ErrorCode::kOutOfMemory);
  EXPECT_FALSE(owner_.backing.show(segment_, view_));
  EXPECT_EQ(device_.mapped_bytes(), 16 * kMiB);
  ASSERT_TRUE(owner_.backing.show(segment_, view_));
  expect_everywhere(1);
}

TEST_F(ViewsTest, WhatIsReachedOnTheHostIsReachedInEachOfThem) {
  const Address other = owner_.add(12 * kMiB);
  ASSERT_TRUE(owner_.move_out());
  ASSERT_TRUE(owner_.bring(other));
  ASSERT_TRUE(owner_.bring(kEverything));
  EXPECT_EQ(owner_.backing.linked({.everything = false, .segments = {segment_}}), 4 * kMiB);
  expect_everywhere(1);
  ASSERT_TRUE(owner_.backing.unlink());
  ASSERT_TRUE(owner_.move_out());
  EXPECT_EQ(device_.mapped_bytes(), 0u);
  ASSERT_TRUE(owner_.bring(segment_));
  expect_everywhere(1);
}

TEST_F(SegmentBackingTest, RandomReadsAndWritesComeBackWordForWord) {
  std::mt19937 random(30);
  const auto any_of = [&](std::size_t count) { return random() % count; };
  Owner owner(device_, residency_, 1), other(device_, residency_, 2);
  std::map<Address, std::vector<std::uint32_t>> expected;  // by piece, the word at each page
  constexpr std::uint64_t kPage = 4096;
  std::vector<std::pair<Owner*, Address>> all;
  for (int i = 0; i < 6; ++i) {
    Owner& its = i % 2 == 0 ? owner : other;
    const Address base = its.add(6 * kMiB);
    all.emplace_back(&its, base);
    expected[base].resize(6 * kMiB / kPage);
  }
  std::uint64_t wrong = 0;
  for (int turn = 0; turn < 60; ++turn) {
    const auto& [its, base] = all[any_of(all.size())];
    Owner& rest = its == &owner ? other : owner;
    ASSERT_TRUE(rest.move_out());
    const bool has_room = its->backing.missing({.everything = false, .segments = {base}}) == 0 ||
                          its->tenant->on_device() + 6 * kMiB <= kCapacity;
    const std::uint64_t leaving = !has_room ? kAllOfIt : any_of(3) == 0 ? any_of(12) * kMiB : 0;
    ASSERT_TRUE(its->move_out(leaving));
    ASSERT_TRUE(its->bring(base));
    auto& words = expected[base];
    for (std::size_t page = 0; page < words.size(); ++page)
      wrong += *words_at(base + page * kPage) != words[page];
    if (any_of(2) == 0) continue;
    const std::size_t from = any_of(words.size()), count = 1 + any_of(words.size() - from);
    its->backing.note_written(
        {.everything = false, .ranges = {{base + from * kPage, count * kPage}}});
    for (std::size_t page = from; page < from + count; ++page)
      *words_at(base + page * kPage) = words[page] = static_cast<std::uint32_t>(random());
  }
  EXPECT_EQ(wrong, 0u);
  const auto counts = residency_.counts();
  EXPECT_GT(counts.clean_out, 0u);
  EXPECT_LT(counts.clean_out, counts.moved_out);
}

TEST_F(SegmentBackingTest, LockedSegmentsNeverMove) {
  Owner owner(device_, residency_, 1);
  const Address kept = owner.add(6 * kMiB), fixed = owner.add(2 * kMiB),
                other = owner.add(2 * kMiB);
  owner.backing.lock({kept, 1});
  owner.backing.lock({kept, 8 * kMiB});
  EXPECT_EQ(owner.backing.spare({}), 2 * kMiB);
  ASSERT_TRUE(owner.move_out());
  EXPECT_TRUE(owner.backing.is_mapped(kept));
  EXPECT_TRUE(owner.backing.is_mapped(fixed));
  EXPECT_FALSE(owner.backing.is_mapped(other));
  EXPECT_EQ(owner.tenant->on_device(), 8 * kMiB);
}

TEST_F(SegmentBackingTest, LockedSegmentsStayAlsoWhereTheyAreReachedOnTheHost) {
  Owner owner(device_, residency_, 1);
  const Address first = owner.add(12 * kMiB), second = owner.add(12 * kMiB);
  ASSERT_TRUE(owner.move_out());
  ASSERT_TRUE(owner.bring(kEverything));
  owner.backing.note_written(kWritesAll);
  fill(first, 12 * kMiB, 1);
  fill(second, 12 * kMiB, 2);
  owner.backing.lock({second, 1});
  EXPECT_EQ(owner.backing.linked(kEverything), 0u) << "that is to leave";
  ASSERT_TRUE(owner.backing.unlink());
  ASSERT_TRUE(owner.move_out());
  EXPECT_TRUE(owner.backing.is_mapped(second));
  EXPECT_FALSE(owner.backing.is_mapped(first));
  EXPECT_EQ(wrong_words(second, 12 * kMiB, 2), 0u);
  EXPECT_EQ(owner.tenant->on_device(), 4 * kMiB);
  ASSERT_TRUE(owner.bring(first)) << "12 MiB beside the 4 that are locked";
  EXPECT_EQ(owner.backing.missing(kEverything), 0u);
  EXPECT_EQ(wrong_words(first, 12 * kMiB, 1), 0u);
}

TEST_F(SegmentBackingTest, ADeviceThatIsFullerThanItShouldBeRefusesNothingThatMayWait) {
  Owner owner(device_, residency_, 1);
  device_.fail_map(1, ErrorCode::kOutOfMemory);
  const Address segment = owner.add(4 * kMiB);
  ASSERT_NE(segment, 0u);
  EXPECT_FALSE(owner.backing.is_mapped(segment));
  device_.fail_map(1, ErrorCode::kIllegalAddress);
  EXPECT_EQ(owner.add(2 * kMiB), 0u);
  EXPECT_EQ(owner.tenant->on_device(), 0u);
}

TEST_F(SegmentBackingTest, RemovalGivesEverythingBackWhereverItIs) {
  Owner owner(device_, residency_, 1);
  const auto nothing_left = [&] {
    EXPECT_EQ(device_.mapped_bytes(), 0u);
    EXPECT_EQ(host_used(), 0u);
    EXPECT_EQ(owner.tenant->on_device(), 0u);
    EXPECT_FALSE(owner.tenant->looks()) << "nothing is missing";
  };
  owner.remove(owner.add(6 * kMiB));  // on the device, as one
  nothing_left();
  const Address fixed = owner.add(6 * kMiB);
  owner.backing.lock({fixed, 1});
  owner.remove(fixed);  // the same, and locked
  nothing_left();
  const Address moved = owner.add(6 * kMiB);
  ASSERT_TRUE(owner.move_out());
  owner.remove(moved);  // on the host
  nothing_left();
  const Address back = owner.add(6 * kMiB);
  ASSERT_TRUE(owner.move_out());
  ASSERT_TRUE(owner.bring(back));
  ASSERT_TRUE(owner.move_out(kPiece));
  owner.remove(back);  // on both, in pieces
  nothing_left();
  const Address large = owner.add(2 * kCapacity);
  ASSERT_TRUE(owner.bring(large));
  EXPECT_EQ(owner.backing.linked(kEverything), kCapacity);
  owner.remove(large);  // on the device, and linked
  nothing_left();
  const Address locked = owner.add(2 * kCapacity);
  ASSERT_TRUE(owner.bring(locked));
  owner.backing.lock({locked, 1});
  owner.remove(locked);
  nothing_left();
  const Address first = owner.add(kCapacity), blank = owner.add(kCapacity);
  owner.remove(blank);  // nowhere
  owner.remove(first);
  nothing_left();
}

// What a book hears. At each note the process may die.

TEST_F(SegmentBackingTest, PiecesAreNotedWhereTheContentsAreSafe) {
  HeardNotes notes;
  Owner owner(device_, residency_, 1, &notes);
  notes.base = owner.arena.base;
  const Address segment = owner.add(10 * kMiB);
  fill(segment, 10 * kMiB, 1);
  EXPECT_TRUE(notes.take().empty()) << "the manager notes what is mapped as one";
  std::uint64_t on_host = 0;
  notes.on_host = [&](AddressRange piece, int memory, std::uint64_t offset) {
    EXPECT_TRUE(device_.is_mapped(piece.base) || device_.is_mapped(segment)) << "it was let go of";
    void* const saved =
        ::mmap(nullptr, piece.bytes, PROT_READ, MAP_SHARED, memory, static_cast<off_t>(offset));
    ASSERT_NE(saved, MAP_FAILED);
    EXPECT_EQ(std::memcmp(saved, reinterpret_cast<const void*>(piece.base), piece.bytes), 0);
    ::munmap(saved, piece.bytes);
    on_host += piece.bytes;
    EXPECT_GE(host_used(), on_host);
  };
  notes.on_pieces = [&](Address which) {
    EXPECT_TRUE(device_.is_mapped(which));
    EXPECT_EQ(on_host, 10 * kMiB) << "all of it is noted";
  };
  notes.on_device = [&](AddressRange piece) {
    EXPECT_TRUE(device_.is_mapped(piece.base));
    const auto first = static_cast<std::uint32_t>((piece.base - segment) / 4) * 2654435761u;
    EXPECT_EQ(wrong_words(piece.base, piece.bytes, 1 + first), 0u);
    EXPECT_GE(host_used(), on_host) << "the host's memory was dropped";
    on_host -= piece.bytes;
  };
  ASSERT_TRUE(owner.move_out());
  EXPECT_EQ(notes.take(), (std::vector<std::string>{"host 0", "host 4", "host 8", "pieces 0"}));
  ASSERT_TRUE(owner.bring(segment));
  EXPECT_EQ(notes.take(), (std::vector<std::string>{"device 0", "device 4", "device 8"}));
  ASSERT_TRUE(owner.move_out(kPiece + 1));
  EXPECT_EQ(notes.take(), (std::vector<std::string>{"host 0", "host 4"}));
  owner.remove(segment);
  EXPECT_EQ(notes.take(), (std::vector<std::string>{"gone 0", "gone 4", "gone 8"}));
}

TEST_F(SegmentBackingTest, WhatIsBlankOrLinkedIsNoted) {
  HeardNotes notes;
  Owner owner(device_, residency_, 1, &notes);
  notes.base = owner.arena.base;
  const Address large = owner.add(kCapacity + kPiece);
  EXPECT_EQ(notes.take(),
            (std::vector<std::string>{"blank 0", "blank 4", "blank 8", "blank 12", "blank 16"}));
  ASSERT_TRUE(owner.bring(large));
  EXPECT_EQ(notes.take(), (std::vector<std::string>{"device 0", "device 4", "device 8", "device 12",
                                                    "linked 16"}));
  owner.backing.note_written({.everything = false, .ranges = {{large + kPiece, 4 * kPiece}}});
  fill(large + kPiece, kCapacity, 1);
  ASSERT_TRUE(owner.backing.unlink());
  EXPECT_EQ(notes.take(), std::vector<std::string>{"host 16"});
  ASSERT_TRUE(owner.move_out(kPiece));
  EXPECT_EQ(notes.take(), std::vector<std::string>{"blank 0"});
  ASSERT_TRUE(owner.bring(large));
  owner.backing.note_written(kWritesAll);
  fill(large, kCapacity + kPiece, 1);
  ASSERT_TRUE(owner.backing.unlink());
  bool is_kept = false;
  notes.on_linked = [&](AddressRange piece) {
    if (piece.base == large) is_kept = host_used() == kCapacity + kPiece;
  };
  ASSERT_TRUE(owner.move_out());
  residency_.take_outside(kCapacity);
  notes.take();
  ASSERT_TRUE(owner.bring(large));
  EXPECT_TRUE(is_kept) << "the first note came before the first piece was dropped";
  EXPECT_EQ(notes.take().size(), 5u);
  residency_.give_outside(kCapacity);
}

TEST_F(SegmentBackingTest, NothingIsNotedOfASessionThatEndsHere) {
  HeardNotes notes;
  Owner owner(device_, residency_, 1, &notes);
  const Address segment = owner.add(8 * kMiB);
  ASSERT_TRUE(owner.move_out());
  notes.take();
  owner.backing.stop_notes();
  owner.remove(segment);
  EXPECT_TRUE(notes.take().empty());
}

// The next engine.

/// What a session's book has of its pieces, with the descriptors.
struct Pieces {
  std::vector<PastPiece> past;
  std::vector<UniqueFd> kept;
  void put_device(MovingDevice& device, AddressRange piece) {
    kept.push_back(std::move(*device.export_memory(piece)));
    past.push_back({.range = piece, .memory = kept.back().get()});
  }
  void put_host(AddressRange piece, int memory, std::uint64_t offset) {
    kept.emplace_back(::fcntl(memory, F_DUPFD_CLOEXEC, 0));
    past.push_back({.range = piece, .memory = -1, .saved = kept.back().get(), .offset = offset});
  }
};

TEST_F(SegmentBackingTest, ASessionGoesOnWithItsPiecesWhereTheyAre) {
  Pieces book;
  AddressRange arena, range;
  {
    HeardNotes notes;
    notes.is_frozen = true;
    Owner owner(device_, residency_, 1, &notes);
    arena = owner.arena;
    const Address segment = owner.add(12 * kMiB);
    range = {segment, 12 * kMiB};
    fill(segment, 12 * kMiB, 1);
    ASSERT_TRUE(owner.move_out());
    ASSERT_TRUE(owner.bring(segment));
    notes.on_host = [&](AddressRange piece, int memory, std::uint64_t offset) {
      book.put_host(piece, memory, offset);
    };
    ASSERT_TRUE(owner.move_out(kPiece));
    for (const std::uint64_t at : {4 * kMiB, 8 * kMiB})
      book.put_device(device_, {segment + at, kPiece});
  }
  ASSERT_EQ(book.past.size(), 3u);
  book.past.push_back({.range = {range.base + range.bytes, kPiece}, .is_blank = true});
  range.bytes += kPiece;
  {
    Owner other(device_, residency_, 3);  // would take the left memory, if it were free
    const Address theirs = other.add(kCapacity);
    fill(theirs, kCapacity, 9);
    ASSERT_TRUE(other.move_out());
  }
  HeardNotes notes;
  const auto tenant = residency_.enter({.session = 2, .wake = {}, .busy = {}});
  {
    SegmentBacking next(device_, residency_, tenant, &notes);
    const Address reserved = *device_.reserve_at(arena.bytes, 0, arena.base);
    ASSERT_EQ(reserved, arena.base);
    for (const bool fails : {true, false}) {
      if (fails) device_.fail_map(2, ErrorCode::kIllegalAddress);
      const auto made = next.add_past(range, book.past);
      EXPECT_EQ(made.has_value(), !fails);
      EXPECT_TRUE(notes.take().empty()) << "the book is as it was, for another engine";
      EXPECT_EQ(tenant->on_device(), fails ? 0 : 2 * kPiece);
    }
    EXPECT_FALSE(next.is_mapped(range.base));
    EXPECT_EQ(next.on_host(), kPiece);
    residency_.begin_wait(*tenant, 2 * kPiece, 0);
    ASSERT_TRUE(next.bring(kEverything, [&](std::uint64_t bytes) -> Result<Residency::Taken> {
      return residency_.take(*tenant, bytes, std::chrono::milliseconds(0));
    }));
    residency_.end_wait(*tenant);
    EXPECT_EQ(wrong_words(range.base, 12 * kMiB, 1), 0u);
    EXPECT_EQ(words_not_zero(range.base + 12 * kMiB, kPiece), 0u);
    next.remove(range.base);
    device_.unreserve(arena);
  }
}

TEST_F(SegmentBackingTest, WhatWasNeverWrittenIsBlankWhateverElseIsThere) {
  Owner owner(device_, residency_, 1);
  auto stale = *residency_.host().take(kPiece);
  std::memset(stale.memory(), 1, kPiece);
  const AddressRange range{owner.arena.base, kPiece};
  ASSERT_TRUE(owner.backing.add_past(
      range, {{.range = range, .saved = stale.fd(), .offset = stale.offset, .is_blank = true}}));
  owner.segments.insert(range.base);
  ASSERT_TRUE(owner.bring(kEverything));
  EXPECT_EQ(words_not_zero(range.base, kPiece), 0u);
  residency_.host().give(std::move(stale));
}

TEST_F(SegmentBackingTest, LostContentsAndHolesEndASession) {
  Owner owner(device_, residency_, 1);
  const AddressRange range{owner.arena.base, 2 * kPiece};
  const AddressRange first{range.base, kPiece}, second{range.base + kPiece, kPiece};
  const PastPiece blank{.range = first, .is_blank = true};
  EXPECT_EQ(owner.backing.add_past(range, {blank, {.range = second}}).error().code,
            ErrorCode::kUnavailable);
  EXPECT_EQ(owner.backing.add_past(range, {blank}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(owner.backing.add_past(range, {{.range = second, .is_blank = true}}).error().code,
            ErrorCode::kUnavailable);
}

// With the manager of a session's memory.

class ManagerWithSwapTest : public SegmentBackingTest {
 protected:
  std::unique_ptr<SegmentBacking> backing(PieceNotes* notes = nullptr) {
    tenant_ = residency_.enter({.session = 1, .wake = {}, .busy = {}});
    return std::make_unique<SegmentBacking>(device_, residency_, tenant_, notes);
  }
  std::shared_ptr<Residency::Tenant> tenant_;
};

TEST_F(ManagerWithSwapTest, AllocationsMayBeLargerThanTheDeviceTogether) {
  auto memory = *MemoryManager::make(device_, 64 * kMiB, nullptr, nullptr, {}, backing());
  std::vector<Address> all;
  for (int i = 0; i < 3; ++i) {
    const auto address = memory->allocate(kCapacity);
    ASSERT_TRUE(address) << address.error().message;
    all.push_back(*address);
  }
  EXPECT_EQ(memory->charged(), 3 * kCapacity);
  EXPECT_EQ(tenant_->on_device(), kCapacity);
  EXPECT_EQ(memory->keep(all[1]).error().code, ErrorCode::kOutOfMemory) << "it is not there";
  const auto ranges = memory->mapped();
  EXPECT_TRUE(std::ranges::any_of(ranges, [&](const auto& each) { return each.base == all[0]; }));
  EXPECT_FALSE(std::ranges::any_of(ranges, [&](const auto& each) { return each.base == all[1]; }));
  ASSERT_TRUE(memory->backing()->move_out(kAllOfIt, {}));
  const std::uint64_t version = memory->mapped_version();
  memory->note_moved();
  EXPECT_NE(memory->mapped_version(), version);
  for (const Address each : all) {
    ASSERT_TRUE(memory->retire(each));
    memory->finish_free(each);
  }
  EXPECT_EQ(host_used(), 0u);
  EXPECT_EQ(memory->charged(), 0u);
  memory->release();
}

TEST_F(ManagerWithSwapTest, ReleaseGivesBackWhatWasMoved) {
  auto memory = *MemoryManager::make(device_, 64 * kMiB, nullptr, nullptr, {}, backing());
  for (const std::uint64_t bytes : {std::uint64_t{1000}, kCapacity, kCapacity})
    ASSERT_TRUE(memory->allocate(bytes));
  ASSERT_TRUE(memory->backing()->move_out(kAllOfIt, {}));
  EXPECT_GT(host_used(), 0u);
  memory->release();
}

TEST_F(ManagerWithSwapTest, KeptMemoryStaysOnTheDeviceUntilItIsLetGoOf) {
  auto memory = *MemoryManager::make(device_, 64 * kMiB, nullptr, nullptr, {}, backing());
  const auto kept = *memory->allocate(4 * kMiB);
  ASSERT_TRUE(memory->keep(kept));
  fill(kept, 4 * kMiB, 1);
  ASSERT_TRUE(memory->backing()->move_out(kAllOfIt, {}));
  EXPECT_EQ(wrong_words(kept, 4 * kMiB, 1), 0u);
  memory->release();
  EXPECT_EQ(wrong_words(kept, 4 * kMiB, 1), 0u);
  memory->let_go(kept);
}

TEST_F(ManagerWithSwapTest, OfferedMemoryStaysThoughNobodyHasOpenedItYet) {
  const std::shared_ptr<MemoryManager> memory =
      *MemoryManager::make(device_, 64 * kMiB, nullptr, nullptr, {}, backing());
  const auto offered = *memory->allocate(4 * kMiB);
  Exports exports;
  const auto handle = exports.offer(1, 7, memory, offered);
  ASSERT_TRUE(handle);
  ASSERT_TRUE(memory->backing()->move_out(kAllOfIt, {}));
  EXPECT_TRUE(memory->is_mapped(offered));
  const auto opened = exports.open_memory(*handle, 7);
  ASSERT_TRUE(opened) << opened.error().message;
  memory->let_go(offered);
  memory->release();
}

TEST_F(ManagerWithSwapTest, AnyThreadMaySeeWhereTheMemoryIsWhileItMoves) {
  auto memory = *MemoryManager::make(device_, 64 * kMiB, nullptr, nullptr, {}, backing());
  ASSERT_TRUE(memory->allocate(8 * kMiB));
  SegmentBacking& moved = *memory->backing();
  std::atomic<bool> ends{false};
  std::thread watcher([&] {
    while (!ends) {
      EXPECT_LE(moved.on_host(), 8 * kMiB);
      (void)memory->mapped();
    }
  });
  for (int turn = 0; turn < 5; ++turn) {
    EXPECT_TRUE(moved.move_out(kAllOfIt, {}));
    residency_.begin_wait(*tenant_, 8 * kMiB, 0);
    EXPECT_TRUE(moved.bring(kEverything, [&](std::uint64_t bytes) -> Result<Residency::Taken> {
      return residency_.take(*tenant_, bytes, std::chrono::milliseconds(0));
    }));
    residency_.end_wait(*tenant_);
  }
  ends = true;
  watcher.join();
  memory->release();
}

TEST_F(ManagerWithSwapTest, ASegmentWhoseEndWasUnderWayIsNotNeeded) {
  struct Notes : MemoryNotes {
    void arena(AddressRange) override {}
    void segment(AddressRange, bool, bool) override {}
    void unmapped(Address segment) override { gone.push_back(segment); }
    void block(Address, std::uint64_t, bool) override {}
    void block_gone(Address) override {}
    std::vector<Address> gone;
  };
  const AddressRange arena{*device_.reserve(64 * kMiB), 64 * kMiB};
  device_.unreserve(arena);
  // The first of its pieces was gone already when the engine died.
  const AddressRange segment{arena.base + 4 * kMiB, 2 * kPiece};
  const AddressRange left{segment.base + kPiece, kPiece};
  PastMemory past{.arena = arena, .segments = {}, .blocks = {}};
  past.segments.push_back(
      {.range = segment, .dedicated = true, .pieces = {{.range = left, .is_blank = true}}});
  Notes notes;
  HeardNotes pieces;
  pieces.base = arena.base;
  auto memory =
      MemoryManager::make_again(device_, 64 * kMiB, nullptr, &notes, past, backing(&pieces));
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_EQ(notes.gone, std::vector{segment.base});
  EXPECT_EQ(pieces.take(), std::vector<std::string>{"gone 8"});
  EXPECT_EQ((*memory)->charged(), 0u);
  (*memory)->release();
}

}  // namespace
}  // namespace slate::daemon
