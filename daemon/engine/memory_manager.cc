// Large allocations get a segment of their own; small ones share pool segments, which grow from one
// granule to kLargestStep. A free block never spans two segments, so that a segment can be unmapped
// as soon as nothing in it is used.
#include "daemon/engine/memory_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>

#include "base/check.h"
#include "base/sizes.h"
#include "daemon/engine/saved_memory.h"

namespace slate::daemon {
namespace {

constexpr std::uint64_t kLargestStep = 32 << 20;
constexpr std::uint64_t kDedicatedFrom = 16 << 20;
constexpr std::uint64_t kKeptEmpty = 8 << 20;
/// Holes between segments must not make an allocation fail.
constexpr std::uint64_t kArenaPerLimit = 4;

/// Addresses for `limit` bytes. They are as many as the window has room for. Where another session
/// has the window they are no more than the limit, as hundreds of sessions would use them up.
Result<device::AddressRange> reserve_arena(device::Device& device, std::uint64_t limit,
                                           device::AddressRange wished) {
  std::uint64_t bytes = limit * kArenaPerLimit;
  if (wished.bytes != 0) bytes = std::min(bytes, wished.bytes);
  while (bytes > limit) {
    const auto base = device.reserve_at(bytes, 0, wished.base);
    if (base && (wished.bytes == 0 || *base == wished.base)) {
      return device::AddressRange{*base, bytes};
    }
    if (base) {
      device.unreserve({*base, bytes});
      break;
    }
    bytes = round_up(bytes / 2, device.granularity());
  }
  const auto base = device.reserve_at(limit, 0, wished.base);
  if (base) return device::AddressRange{*base, limit};
  return fail(base.error().code, fmt::format("no {} bytes of addresses are left for a session: {}",
                                             limit, base.error().message));
}

}  // namespace

Result<std::unique_ptr<MemoryManager>> MemoryManager::make(
    device::Device& device, std::uint64_t limit, std::unique_ptr<MemoryLedger::Account> account,
    MemoryNotes* notes, device::AddressRange wished, std::unique_ptr<SegmentBacking> backing) {
  const std::uint64_t capped = most(device, limit, backing.get());
  std::unique_ptr<MemoryManager> manager(
      new MemoryManager(device, capped, std::move(account), notes, std::move(backing)));
  manager->granularity_ = device.granularity();
  const auto arena = reserve_arena(
      device, std::max(round_up(capped, manager->granularity_), manager->granularity_), wished);
  if (!arena) return std::unexpected(arena.error());
  manager->arena_ = *arena;
  if (notes != nullptr) notes->arena(manager->arena_);
  return manager;
}

Result<std::unique_ptr<MemoryManager>> MemoryManager::make_again(
    device::Device& device, std::uint64_t limit, std::unique_ptr<MemoryLedger::Account> account,
    MemoryNotes* notes, const PastMemory& past, std::unique_ptr<SegmentBacking> backing) {
  const std::uint64_t capped = most(device, limit, backing.get());
  std::unique_ptr<MemoryManager> manager(
      new MemoryManager(device, capped, std::move(account), notes, std::move(backing)));
  manager->granularity_ = device.granularity();
  const auto reserved = device.reserve_at(past.arena.bytes, 0, past.arena.base);
  if (!reserved) return std::unexpected(reserved.error());
  manager->arena_ = {*reserved, past.arena.bytes};
  Result<void> done;
  if (*reserved != past.arena.base) {
    done = fail(ErrorCode::kUnavailable, "the session's addresses are taken in the next engine");
  } else {
    const MutexLock lock(manager->mutex_);
    done = manager->map_past(past);
  }
  if (done) return manager;
  manager->release();
  return std::unexpected(done.error());
}

/// The most that a session's memory may be.
std::uint64_t MemoryManager::most(const device::Device& device, std::uint64_t limit,
                                  SegmentBacking* backing) {
  const std::uint64_t swap = backing == nullptr ? 0 : backing->residency().settings().swap;
  return std::min(limit, device.info().total_memory + swap);
}

Result<void> MemoryManager::back(device::AddressRange segment) {
  return backing_ ? backing_->add(segment) : device_.map(segment);
}

void MemoryManager::unback(device::AddressRange segment) {
  if (backing_) return backing_->remove(segment.base);
  // Only a device that is lost refuses, and its engine is about to end.
  (void)device_.unmap(segment);
}

bool MemoryManager::is_on_device(device::Address segment) const {
  return !backing_ || backing_->is_mapped(segment);
}

/// Of a suspended session it is new memory, with what was saved.
Result<void> MemoryManager::map_past(const PastMemory::Segment& segment) {
  if (backing_ && segment.memory < 0) {
    const std::vector<PastPiece> one = {{segment.range, -1, segment.saved}};
    return backing_->add_past(segment.range, segment.pieces.empty() ? one : segment.pieces);
  }
  if (!segment.pieces.empty())
    return fail(ErrorCode::kUnavailable, "some of its memory is on the host, and there is no swap");
  if (segment.saved < 0) {
    const auto mapped = device_.map_exported(segment.range, segment.memory);
    if (mapped && backing_) backing_->add_mapped(segment.range);
    return mapped;
  }
  if (const auto mapped = device_.map(segment.range); !mapped) return mapped;
  const auto restored = restore_memory(device_, segment.range, segment.saved);
  if (restored) {
    if (notes_ != nullptr) notes_->segment(segment.range, segment.dedicated, true);
  } else {
    (void)device_.unmap(segment.range);
  }
  return restored;
}

/// A segment without a block is not made again: the allocation that it was mapped for, or its own
/// end, was under way when the engine died.
bool MemoryManager::forget_unused(const PastMemory::Segment& segment,
                                  const std::set<device::Address>& blocks) {
  const auto first = blocks.lower_bound(segment.range.base);
  if (first != blocks.end() && segment.range.contains(*first, 1)) return false;
  if (backing_) backing_->forget(segment.pieces);
  if (notes_ != nullptr) notes_->unmapped(segment.range.base);
  return true;
}

Result<void> MemoryManager::map_past(const PastMemory& past) {
  std::set<device::Address> blocks;
  for (const PastMemory::Block& each : past.blocks) blocks.insert(each.range.base);
  for (const PastMemory::Segment& each : past.segments) {
    if (!arena_.contains(each.range.base, each.range.bytes))
      return fail(ErrorCode::kInvalidValue, "memory outside of its arena");
    if (forget_unused(each, blocks)) continue;
    const auto mapped = map_past(each);
    if (!mapped) return mapped;
    // It is there already, whatever others may have by now.
    if (account_ != nullptr) account_->take_anyway(each.range.bytes);
    charged_ += each.range.bytes;
    segments_.emplace(each.range.base, Segment{each.range.bytes, 0, each.dedicated});
  }
  for (const PastMemory::Block& each : past.blocks) {
    const auto next = segments_.upper_bound(each.range.base);
    if (next == segments_.begin()) return fail(ErrorCode::kInvalidValue, "a block of no segment");
    auto& [base, segment] = *std::prev(next);
    if (!device::AddressRange{base, segment.bytes}.contains(each.range.base, each.range.bytes))
      return fail(ErrorCode::kInvalidValue, "a block of no segment");
    segment.used += each.range.bytes;
    (each.retired ? retired_ : live_).emplace(each.range.base, each.range.bytes);
  }
  for (const auto& segment : segments_) {
    if (!segment.second.dedicated) find_free_blocks(segment);
  }
  for (const auto& segment : segments_) put_slack(segment);
  mapped_version_.fetch_add(1);
  return {};
}

/// What lies between the blocks of a segment is free.
void MemoryManager::find_free_blocks(const Segments::value_type& segment) {
  std::map<device::Address, std::uint64_t> used;
  const device::Address end = segment.first + segment.second.bytes;
  for (const Blocks* const blocks : {&live_, &retired_})
    used.insert(blocks->lower_bound(segment.first), blocks->lower_bound(end));
  used.emplace(end, 0);
  device::Address at = segment.first;
  for (const auto& [address, bytes] : used) {
    if (address > at) {
      free_.emplace(at, address - at);
      by_size_.emplace(address - at, at);
    }
    at = address + bytes;
  }
}

void MemoryManager::add_live(device::Address address, std::uint64_t bytes) {
  live_.emplace(address, bytes);
  if (notes_ != nullptr) notes_->block(address, bytes, false);
}

MemoryManager::~MemoryManager() {
  SLATE_CHECK(arena_.bytes == 0 && charged_ == 0 && outside_ == 0);
}

std::uint64_t MemoryManager::chargeable() const {
  const MutexLock lock(mutex_);
  return account_ == nullptr ? left() : std::min(left(), account_->left());
}

std::uint64_t MemoryManager::charged() const {
  const MutexLock lock(mutex_);
  return charged_ + outside_;
}

Result<device::Address> MemoryManager::allocate(std::uint64_t bytes) {
  if (bytes == 0) return fail(ErrorCode::kInvalidValue, "allocation of 0 bytes");
  const MutexLock lock(mutex_);
  if (bytes > limit_) {
    return fail(ErrorCode::kOutOfMemory,
                fmt::format("{} bytes asked for, the session may have {}", bytes, limit_));
  }
  if (bytes >= kDedicatedFrom) return allocate_dedicated(bytes);
  const std::uint64_t size = round_up(bytes, kAlign);
  // The address behind an allocation should not be that of another one: what a pointer is to must
  // be certain where work is done again (injector/analysis/restart.h).
  const std::uint64_t gap = bytes == size ? kAlign : 0;
  auto address = take_free_block(size + gap);
  bool has_gap = address && gap > 0;
  if (!address) {
    const auto grown = grow_pool(size);
    address = take_free_block(size + gap);
    has_gap = address && gap > 0;
    if (!address) address = take_free_block(size);  // a whole segment, or the last room
    if (!address) return std::unexpected(grown.error());
  }
  if (has_gap) gaps_.insert(*address + size);
  add_live(*address, size);
  segment_of(*address)->second.used += size;
  return *address;
}

Result<device::Address> MemoryManager::allocate_bare(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  if (bytes == 0 || bytes > limit_)
    return fail(ErrorCode::kOutOfMemory, fmt::format("{} bytes of memory", bytes));
  return allocate_dedicated(bytes, Around::kNothing);
}

Result<device::Address> MemoryManager::allocate_dedicated(std::uint64_t bytes, Around around) {
  const std::uint64_t size = round_up(bytes, granularity_);
  auto address = add_segment(size, true, around);
  if (!address && drop_empty_segments()) address = add_segment(size, true, around);
  if (!address) return address;
  add_live(*address, size);
  segments_.at(*address).used = size;
  return address;
}

/// Best fit, lowest address among equals.
std::optional<device::Address> MemoryManager::take_free_block(std::uint64_t bytes) {
  const auto found = by_size_.lower_bound({bytes, 0});
  if (found == by_size_.end()) return std::nullopt;
  const auto [block_bytes, address] = *found;
  erase_free_block(free_.find(address));
  if (block_bytes > bytes) {
    free_.emplace(address + bytes, block_bytes - bytes);
    by_size_.emplace(block_bytes - bytes, address + bytes);
  }
  return address;
}

/// Maps a pool segment of at least `bytes`: the more the session has, the larger the step; the
/// smallest one when that does not fit.
Result<void> MemoryManager::grow_pool(std::uint64_t bytes) {
  const std::uint64_t least = round_up(bytes, granularity_);
  const std::uint64_t wished = std::clamp(std::bit_floor(std::max(charged_, granularity_)),
                                          granularity_, std::max(kLargestStep, granularity_));
  const std::uint64_t step = std::max(least, round_up(wished, granularity_));
  auto address = add_segment(step, false);
  if (!address && drop_empty_segments()) address = add_segment(step, false);
  std::uint64_t size = step;
  if (!address && step > least) {
    address = add_segment(least, false);
    size = least;
  }
  if (!address) return std::unexpected(address.error());
  free_.emplace(*address, size);
  by_size_.emplace(size, *address);
  return {};
}

Result<void> MemoryManager::take(std::uint64_t bytes) {
  auto taken = account_ == nullptr ? Result<void>() : account_->take(bytes);
  refused_by_account_ = !taken;
  if (!taken) ++refusals_;
  return taken;
}

bool MemoryManager::waits_for_others() const {
  const MutexLock lock(mutex_);
  return device_full_ || refused_by_account_;
}

void MemoryManager::give(std::uint64_t bytes) {
  if (account_ != nullptr) account_->give(bytes);
}

Result<device::Address> MemoryManager::add_segment(std::uint64_t bytes, bool dedicated,
                                                   Around around) {
  if (bytes > left()) {
    device_full_ = refused_by_account_ = false;
    return fail(ErrorCode::kOutOfMemory,
                fmt::format("{} bytes more would exceed the session's limit "
                            "of {} ({} in use)",
                            bytes, limit_, charged_ + outside_));
  }
  if (auto taken = take(bytes); !taken) return std::unexpected(taken.error());
  const auto given_back = [&](const Error& error) SLATE_REQUIRES(mutex_) {
    give(bytes);
    return std::unexpected(error);
  };
  const bool has_slack = around == Around::kSlack;
  auto address = find_hole(bytes, has_slack ? slack_.bytes() : 0);
  if (!address && has_slack) address = find_hole(bytes, 0);
  if (!address) return given_back({ErrorCode::kOutOfMemory, "the session's arena is fragmented"});
  const auto mapped = back({*address, bytes});
  device_full_ = !mapped && mapped.error().code == ErrorCode::kOutOfMemory;
  if (!mapped) return given_back(mapped.error());
  charged_ += bytes;
  const auto segment = segments_.emplace(*address, Segment{bytes, 0, dedicated}).first;
  if (notes_ != nullptr) notes_->segment({*address, bytes}, dedicated, is_on_device(*address));
  if (has_slack) put_slack(*segment);
  mapped_version_.fetch_add(1);
  return *address;
}

/// Where the segment is `apart` bytes, or slack that is there already, from its neighbours: in the
/// lowest hole, beside one of them. A fence's fast path knows one run of memory without holes.
std::optional<device::Address> MemoryManager::find_hole(std::uint64_t bytes,
                                                        std::uint64_t apart) const {
  device::Address first = arena_.base;  // of the present hole
  bool behind_slack = false;
  const auto place_before = [&](device::Address end,
                                bool is_slack) -> std::optional<device::Address> {
    const device::Address place = first + (behind_slack ? 0 : apart);
    const std::uint64_t room = place < end ? end - place : 0;
    if (room < bytes || (room - bytes < apart && !(is_slack && room == bytes))) return std::nullopt;
    const bool is_low = first != arena_.base || end == arena_.base + arena_.bytes;
    return is_low ? place : end - (is_slack ? 0 : apart) - bytes;
  };
  auto segment = segments_.begin();
  auto slack = slack_.places().begin();
  while (segment != segments_.end() || slack != slack_.places().end()) {
    const bool is_slack =
        segment == segments_.end() || (slack != slack_.places().end() && *slack < segment->first);
    const device::AddressRange taken =
        is_slack ? device::AddressRange{*slack++, slack_.bytes()}
                 : device::AddressRange{segment->first, segment->second.bytes};
    if (!is_slack) ++segment;
    if (const auto place = place_before(taken.base, is_slack)) return place;
    first = taken.base + taken.bytes;
    behind_slack = is_slack;
  }
  return place_before(arena_.base + arena_.bytes, false);
}

/// Of the arena, and nothing there.
bool MemoryManager::is_unmapped(device::AddressRange range) const {
  if (!arena_.contains(range.base, range.bytes) || slack_.is_at(range.base)) return false;
  const auto next = segments_.lower_bound(range.base);
  if (next != segments_.end() && next->first < range.base + range.bytes) return false;
  if (next == segments_.begin()) return true;
  const auto& [base, previous] = *std::prev(next);
  return base + previous.bytes <= range.base;
}

/// What a program reads there by mistake is its own, and no fault.
void MemoryManager::put_slack(const Segments::value_type& segment) {
  for (const device::Address place :
       {segment.first - slack_.bytes(), segment.first + segment.second.bytes}) {
    if (is_unmapped({place, slack_.bytes()})) slack_.put(place);
  }
}

/// Around a segment that is gone, but what its neighbours need.
void MemoryManager::remove_slack(device::AddressRange segment) {
  const auto ends_at = [this](device::Address address) SLATE_REQUIRES(mutex_) {
    const auto next = segments_.lower_bound(address);
    return next != segments_.begin() &&
           std::prev(next)->first + std::prev(next)->second.bytes == address;
  };
  const device::Address before = segment.base - slack_.bytes();
  const device::Address behind = segment.base + segment.bytes;
  if (!ends_at(before)) slack_.remove(before);
  if (!segments_.contains(behind + slack_.bytes())) slack_.remove(behind);
}

bool MemoryManager::drop_slack() {
  const MutexLock lock(mutex_);
  if (!device_full_ || slack_.places().empty()) return false;
  slack_.clear();
  return true;
}

std::vector<device::AddressRange> MemoryManager::mapped() const {
  const MutexLock lock(mutex_);
  std::vector<device::AddressRange> ranges;
  for (const auto& [base, segment] : segments_) {
    if (!segment.leaving && is_on_device(base)) ranges.push_back({base, segment.bytes});
  }
  for (const device::Address place : slack_.places()) {
    if (is_beside_segment(place)) ranges.push_back({place, slack_.bytes()});
  }
  std::ranges::sort(ranges, {}, &device::AddressRange::base);
  return ranges;
}

/// Beside one that does not leave.
bool MemoryManager::is_beside_segment(device::Address slack) const {
  const auto behind = segments_.find(slack + slack_.bytes());
  if (behind != segments_.end() && !behind->second.leaving) return true;
  const auto next = segments_.lower_bound(slack);
  if (next == segments_.begin()) return false;
  const auto& [base, segment] = *std::prev(next);
  return base + segment.bytes == slack && !segment.leaving;
}

MemoryManager::Segments::iterator MemoryManager::segment_of(device::Address address) {
  auto next = segments_.upper_bound(address);
  SLATE_CHECK(next != segments_.begin());
  return std::prev(next);
}

Result<void> MemoryManager::retire(device::Address address) {
  const MutexLock lock(mutex_);
  const auto found = live_.find(address);
  if (found == live_.end()) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("free of {:#x}, which is no allocation", address));
  }
  const std::uint64_t bytes = found->second;
  retired_.insert(live_.extract(found));
  if (notes_ != nullptr) notes_->block(address, bytes, true);
  return {};
}

void MemoryManager::finish_free(device::Address address) {
  {
    const MutexLock lock(mutex_);
    const auto node = retired_.extract(address);
    SLATE_CHECK(!node.empty());
    const std::uint64_t bytes = node.mapped();
    if (notes_ != nullptr) notes_->block_gone(address);
    if (const auto kept = kept_.find(address); kept != kept_.end()) {
      kept->second.freed_bytes = bytes;
    } else {
      give_back(address, bytes);
    }
    ++frees_finished_;
  }
  freed_.notify_all();
}

void MemoryManager::give_back(device::Address address, std::uint64_t bytes) {
  const auto segment = segment_of(address);
  segment->second.used -= bytes;
  const std::uint64_t gap = gaps_.erase(address + bytes) > 0 ? kAlign : 0;
  if (!segment->second.dedicated) insert_free_block(*segment, address, bytes + gap);
  if (segment->second.used == 0 && !keeps(*segment)) drop_segment(segment);
}

Result<void> MemoryManager::keep(device::Address address) {
  const MutexLock lock(mutex_);
  if (!live_.contains(address))
    return fail(ErrorCode::kInvalidValue, fmt::format("no allocation begins at {:#x}", address));
  if (const auto segment = segment_of(address); backing_) {
    if (!is_on_device(segment->first))
      return fail(ErrorCode::kOutOfMemory, "the memory is not on the device");
    backing_->lock({segment->first, 1});
  }
  ++kept_[address].count;
  return {};
}

Result<void> MemoryManager::show(device::Address address, device::Address view) {
  const MutexLock lock(mutex_);
  const auto found = live_.find(address);
  if (found == live_.end())
    return fail(ErrorCode::kInvalidValue, fmt::format("no allocation begins at {:#x}", address));
  auto shown =
      backing_ ? backing_->show(address, view) : device_.map_again({view, found->second}, address);
  if (shown) ++kept_[address].count;
  return shown;
}

void MemoryManager::hide(device::Address address, device::AddressRange view) {
  {
    const MutexLock lock(mutex_);
    // Only a device that is lost refuses, and its engine is about to end.
    backing_ ? backing_->hide(view.base) : (void)device_.unmap(view);
  }
  let_go(address);
}

void MemoryManager::let_go(device::Address address) {
  {
    const MutexLock lock(mutex_);
    const auto kept = kept_.find(address);
    SLATE_CHECK(kept != kept_.end() && kept->second.count > 0);
    if (--kept->second.count > 0) return;
    const std::uint64_t bytes = kept->second.freed_bytes;
    kept_.erase(kept);
    if (bytes != 0) give_back(address, bytes);
    if (released_ && kept_.empty()) drop_everything();
    ++frees_finished_;
  }
  freed_.notify_all();
}

/// One empty pool segment stays if it is small, so that a program which allocates and frees in turn
/// does not map each time.
bool MemoryManager::keeps(const Segments::value_type& segment) const {
  if (segment.second.dedicated || segment.second.bytes > kKeptEmpty) return false;
  return std::ranges::none_of(segments_, [&](const auto& other) {
    return other.first != segment.first && other.second.used == 0 && !other.second.leaving;
  });
}

bool MemoryManager::wait_for_free(std::chrono::milliseconds timeout) {
  MutexLock lock(mutex_);
  const bool leaves =
      std::ranges::any_of(segments_, [](const auto& each) { return each.second.leaving; });
  if (retired_.empty() && outside_retired_ == 0 && !leaves) return false;
  const std::uint64_t before = frees_finished_;
  freed_.wait_for(lock, timeout,
                  [&]() SLATE_REQUIRES(mutex_) { return frees_finished_ != before; });
  return true;
}

/// Adds a free block, joined with its neighbours of the same segment.
void MemoryManager::insert_free_block(const Segments::value_type& segment, device::Address address,
                                      std::uint64_t bytes) {
  auto next = free_.lower_bound(address);
  if (next != free_.end() && next->first == address + bytes &&
      next->first < segment.first + segment.second.bytes) {
    bytes += next->second;
    auto following = std::next(next);
    erase_free_block(next);
    next = following;
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first >= segment.first && previous->first + previous->second == address) {
      address = previous->first;
      bytes += previous->second;
      erase_free_block(previous);
    }
  }
  free_.emplace(address, bytes);
  by_size_.emplace(bytes, address);
}

void MemoryManager::erase_free_block(Blocks::iterator block) {
  by_size_.erase({block->second, block->first});
  free_.erase(block);
}

/// Whether its memory is the device's again. Kernels behind a fence may use what is mapped,
/// whatever it is to their program. Then it goes only once those have ended.
bool MemoryManager::drop_segment(Segments::iterator segment) {
  const bool leaves = !released_ && later_.when && later_.when();
  if (leaves) {
    leave(segment);
  } else {
    unmap(segment);
  }
  return !leaves;
}

void MemoryManager::leave(Segments::iterator segment) {
  const device::AddressRange range{segment->first, segment->second.bytes};
  forget_free_blocks(range);
  segment->second.leaving = true;
  has_left_.store(true);
  later_.left(range);
  for (const device::Address slack : {range.base - slack_.bytes(), range.base + range.bytes}) {
    if (slack_.is_at(slack) && !is_beside_segment(slack)) later_.left({slack, slack_.bytes()});
  }
}

std::vector<device::Address> MemoryManager::take_left() {
  std::vector<device::Address> left;
  const MutexLock lock(mutex_);
  has_left_.store(false);
  for (auto& [base, segment] : segments_) {
    if (segment.leaving && !std::exchange(segment.taken, true)) left.push_back(base);
  }
  return left;
}

void MemoryManager::unmap_left(const std::vector<device::Address>& segments) {
  {
    const MutexLock lock(mutex_);
    for (const device::Address each : segments) {
      const auto segment = segments_.find(each);
      if (segment != segments_.end()) unmap(segment);
    }
    ++frees_finished_;
  }
  freed_.notify_all();
}

void MemoryManager::forget_free_blocks(device::AddressRange range) {
  auto block = free_.lower_bound(range.base);
  while (block != free_.end() && block->first < range.base + range.bytes) {
    const auto following = std::next(block);
    erase_free_block(block);
    block = following;
  }
}

void MemoryManager::unmap(Segments::iterator segment) {
  const device::AddressRange range{segment->first, segment->second.bytes};
  forget_free_blocks(range);
  unback(range);
  charged_ -= range.bytes;
  give(range.bytes);
  segments_.erase(segment);
  if (notes_ != nullptr) notes_->unmapped(range.base);
  remove_slack(range);
}

bool MemoryManager::drop_empty_segments() {
  bool dropped = false;
  for (auto segment = segments_.begin(); segment != segments_.end();) {
    const auto following = std::next(segment);
    if (segment->second.used == 0 && !segment->second.leaving) dropped |= drop_segment(segment);
    segment = following;
  }
  return dropped;
}

namespace {

std::optional<device::AddressRange> find_in(const std::map<device::Address, std::uint64_t>& blocks,
                                            device::Address address, std::uint64_t bytes) {
  const auto next = blocks.upper_bound(address);
  if (next == blocks.begin()) return std::nullopt;
  const auto& [base, size] = *std::prev(next);
  const device::AddressRange range{base, size};
  return range.contains(address, bytes) ? std::optional(range) : std::nullopt;
}

}  // namespace

std::optional<device::AddressRange> MemoryManager::allocation_of(device::Address address,
                                                                 std::uint64_t bytes) const {
  const MutexLock lock(mutex_);
  return find_in(live_, address, bytes);
}

std::optional<device::AddressRange> MemoryManager::block_of(device::Address address) const {
  const MutexLock lock(mutex_);
  const auto live = find_in(live_, address, 1);
  return live ? live : find_in(retired_, address, 1);
}

Result<void> MemoryManager::charge(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  if (bytes > left()) drop_empty_segments();
  if (bytes > left()) {
    device_full_ = refused_by_account_ = false;
    ++refusals_;
    return fail(ErrorCode::kOutOfMemory,
                fmt::format("{} bytes asked for, the session may have {} and has {}", bytes, limit_,
                            charged_ + outside_));
  }
  auto taken = take(bytes);
  if (!taken && drop_empty_segments()) taken = take(bytes);
  if (!taken) return taken;
  outside_ += bytes;
  if (backing_) backing_->residency().take_outside(bytes);
  return {};
}

void MemoryManager::charge_anyway(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  outside_ += bytes;
  if (backing_) backing_->residency().take_outside(bytes);
  if (account_ != nullptr) account_->take_anyway(bytes);
}

void MemoryManager::retire_charge() {
  const MutexLock lock(mutex_);
  ++outside_retired_;
}

void MemoryManager::finish_charge(std::uint64_t bytes, bool retired) {
  {
    const MutexLock lock(mutex_);
    SLATE_CHECK(outside_ >= bytes);
    outside_ -= bytes;
    if (backing_) backing_->residency().give_outside(bytes);
    give(bytes);
    if (retired) --outside_retired_;
    ++frees_finished_;
  }
  freed_.notify_all();
}

void MemoryManager::release() {
  const MutexLock lock(mutex_);
  released_ = true;
  // Kept memory outlives the session and its book.
  notes_ = nullptr;
  if (backing_) backing_->stop_notes();
  for (Blocks* const blocks : {&live_, &retired_}) {
    for (const auto& [address, bytes] : *blocks) {
      if (const auto kept = kept_.find(address); kept != kept_.end()) {
        kept->second.freed_bytes = bytes;
      } else {
        give_back(address, bytes);
      }
    }
    blocks->clear();
  }
  if (kept_.empty()) drop_everything();
}

void MemoryManager::drop_everything() {
  while (!segments_.empty()) unmap(segments_.begin());
  slack_.clear();
  SLATE_CHECK(free_.empty() && by_size_.empty() && charged_ == 0);
  if (arena_.bytes != 0) device_.unreserve(arena_);
  arena_ = {};
}

}  // namespace slate::daemon
