#include "daemon/engine/virtual_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace slate::daemon {
namespace {

using device::Address;
using device::AddressRange;

std::unexpected<Error> bad(const char* what, AddressRange range) {
  return fail(ErrorCode::kInvalidValue,
              fmt::format("{} {} bytes at {:#x}", what, range.bytes, range.base));
}

bool is_granular(std::uint64_t bytes) {
  return bytes != 0 && bytes % VirtualRanges::kGranule == 0;
}

/// The one with these bytes in a map from beginnings; end() when there is none.
template <typename Map>
auto range_with(Map& ranges, AddressRange range, auto bytes_of) {
  auto next = ranges.upper_bound(range.base);
  if (next == ranges.begin()) return ranges.end();
  --next;
  const AddressRange its{next->first, bytes_of(next->second)};
  return its.contains(range.base, range.bytes) ? next : ranges.end();
}

}  // namespace

VirtualRanges::~VirtualRanges() {
  SLATE_CHECK(reservations_.empty() && memories_.empty() && mappings_.empty());
}

Result<Address> VirtualRanges::reserve(const ipc::AddressReserve& wanted) {
  const std::uint64_t align = std::max(wanted.align, kGranule);
  if (!is_granular(wanted.bytes) || !std::has_single_bit(align))
    return bad("no reservation can have", {wanted.wished, wanted.bytes});
  if (kGranule % device_.granularity() != 0)
    return fail(ErrorCode::kNotSupported, "this device maps larger pieces of memory only");
  const MutexLock lock(mutex_);
  if (reservations_.size() >= kMostReservations || wanted.bytes > kMostReserved - reserved_)
    return fail(ErrorCode::kLimit, "too many addresses are reserved");
  const auto address = device_.reserve_at(wanted.bytes, align, wanted.wished);
  if (!address) return address;
  reservations_.emplace(*address, Reservation{.bytes = wanted.bytes});
  reserved_ += wanted.bytes;
  return address;
}

Result<void> VirtualRanges::unreserve(Address address) {
  const MutexLock lock(mutex_);
  const auto found = reservations_.find(address);
  if (found == reservations_.end() || found->second.freed)
    return bad("no reservation is", {address, 0});
  const auto first = first_in({address, found->second.bytes});
  const bool has_live = std::any_of(first, mappings_.cend(), [&](const auto& each) {
    return each.second.reservation == address && !each.second.leaving;
  });
  if (has_live) return bad("memory is still mapped in the", {address, found->second.bytes});
  found->second.freed = true;
  if (found->second.mappings == 0) end_reservation(address);
  return {};
}

void VirtualRanges::end_reservation(Address address) {
  const auto node = reservations_.extract(address);
  reserved_ -= node.mapped().bytes;
  device_.unreserve({address, node.mapped().bytes});
}

Result<void> VirtualRanges::create(std::uint64_t id, std::uint64_t bytes) {
  if (id == 0 || memories_.contains(id))
    return fail(ErrorCode::kProtocol, fmt::format("memory id {} is not a new one", id));
  if (!is_granular(bytes)) return bad("no physical allocation has", {0, bytes});
  if (memories_.size() >= kMostMemories)
    return fail(ErrorCode::kLimit, "too many physical allocations");
  const auto home = memory_.allocate_bare(bytes);
  if (!home) return std::unexpected(home.error());
  memories_.emplace(id, Memory{*home, bytes});
  return {};
}

Result<Address> VirtualRanges::retire(std::uint64_t id) {
  const auto node = memories_.extract(id);
  if (node.empty()) return fail(ErrorCode::kInvalidHandle, "no such physical allocation");
  if (const auto done = memory_.retire(node.mapped().home); !done)
    return std::unexpected(done.error());
  return node.mapped().home;
}

/// The first mapping that has a byte of the range, or a later one.
VirtualRanges::Mappings::const_iterator VirtualRanges::first_in(AddressRange range) const {
  auto next = mappings_.upper_bound(range.base);
  if (next == mappings_.begin()) return next;
  const auto before = std::prev(next);
  return range.base - before->first < before->second.bytes ? before : next;
}

bool VirtualRanges::has_mapping(AddressRange range) const {
  const MutexLock lock(mutex_);
  const auto first = first_in(range);
  return first != mappings_.end() &&
         (first->first <= range.base || first->first - range.base < range.bytes);
}

bool VirtualRanges::is_leaving(AddressRange range) const {
  const MutexLock lock(mutex_);
  for (auto each = first_in(range);
       each != mappings_.end() &&
       (each->first <= range.base || each->first - range.base < range.bytes);
       ++each) {
    if (each->second.leaving) return true;
  }
  return false;
}

void VirtualRanges::wait_for_unmap(std::chrono::milliseconds timeout) {
  MutexLock lock(mutex_);
  (void)unmapped_.wait_until(lock, std::chrono::steady_clock::now() + timeout);
}

Result<void> VirtualRanges::map(AddressRange range, std::uint64_t id) {
  const auto memory = memories_.find(id);
  if (memory == memories_.end())
    return fail(ErrorCode::kInvalidHandle, "no such physical allocation");
  if (memory->second.bytes != range.bytes)
    return bad("a physical allocation is mapped whole, and not at", range);
  if (has_mapping(range)) return bad("something is mapped already in", range);
  Address base = 0;
  {
    const MutexLock lock(mutex_);
    const auto reservation =
        range_with(reservations_, range, [](const Reservation& its) { return its.bytes; });
    if (reservation == reservations_.end() || reservation->second.freed ||
        (range.base - reservation->first) % kGranule != 0) {
      return bad("not reserved, or not at a multiple of the granule, are", range);
    }
    if (mappings_.size() >= kMostMappings) return fail(ErrorCode::kLimit, "too many mappings");
    base = reservation->first;
  }
  if (const auto shown = memory_.show(memory->second.home, range.base); !shown) return shown;
  {
    const MutexLock lock(mutex_);
    mappings_.emplace(range.base, Mapping{.bytes = range.bytes,
                                          .home = memory->second.home,
                                          .reservation = base,
                                          .leaving = false});
    ++reservations_.at(base).mappings;
  }
  add_run(range);
  return {};
}

Result<std::vector<Address>> VirtualRanges::retire_mappings(AddressRange range) {
  std::vector<Address> retired;
  {
    const MutexLock lock(mutex_);
    const auto first = mappings_.lower_bound(range.base);
    if (first_in(range) != first) return bad("an allocation is cut by unmapping", range);
    auto each = first;
    for (; each != mappings_.end() && each->first - range.base < range.bytes; ++each) {
      if (!range.contains(each->first, each->second.bytes))
        return bad("an allocation is cut by unmapping", range);
      if (!each->second.leaving) retired.push_back(each->first);
    }
    if (retired.empty()) return bad("nothing is mapped in", range);
    for (const Address address : retired) {
      Mapping& mapping = mappings_.at(address);
      mapping.leaving = true;
      cut_run({address, mapping.bytes});
    }
  }
  return retired;
}

void VirtualRanges::finish_unmap(Address mapping) {
  Mapping its;
  {
    const MutexLock lock(mutex_);
    its = mappings_.at(mapping);
    SLATE_CHECK(its.leaving);
  }
  memory_.hide(its.home, {mapping, its.bytes});
  {
    const MutexLock lock(mutex_);
    mappings_.erase(mapping);
    Reservation& reservation = reservations_.at(its.reservation);
    if (--reservation.mappings == 0 && reservation.freed) end_reservation(its.reservation);
  }
  unmapped_.notify_all();
}

void VirtualRanges::add_run(AddressRange range) {
  merged_ = nullptr;
  const auto next = runs_.lower_bound(range.base);
  if (next != runs_.end() && next->first == range.base + range.bytes) {
    range.bytes += next->second;
    runs_.erase(next);
  }
  const auto after = runs_.lower_bound(range.base);
  if (after != runs_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == range.base) {
      before->second += range.bytes;
      return;
    }
  }
  runs_.emplace(range.base, range.bytes);
}

/// Takes a mapping out of the run that it is in.
void VirtualRanges::cut_run(AddressRange range) {
  merged_ = nullptr;
  const auto run = range_with(runs_, range, [](std::uint64_t its) { return its; });
  SLATE_CHECK(run != runs_.end());
  const AddressRange whole{run->first, run->second};
  const Address end = range.base + range.bytes, its_end = whole.base + whole.bytes;
  runs_.erase(run);
  if (whole.base < range.base) runs_.emplace(whole.base, range.base - whole.base);
  if (end < its_end) runs_.emplace(end, its_end - end);
}

std::optional<AddressRange> VirtualRanges::reservation_of(Address address) const {
  const MutexLock lock(mutex_);
  const auto found =
      range_with(reservations_, {address, 1}, [](const Reservation& its) { return its.bytes; });
  if (found == reservations_.end()) return std::nullopt;
  return AddressRange{found->first, found->second.bytes};
}

bool VirtualRanges::owns(Address address, std::uint64_t bytes) const {
  return range_with(runs_, {address, bytes}, [](std::uint64_t its) { return its; }) != runs_.end();
}

/// What is mapped and on the device, where neighbours are one.
std::vector<AddressRange> VirtualRanges::reachable() const {
  std::vector<AddressRange> ranges;
  const MutexLock lock(mutex_);
  for (const auto& [base, mapping] : mappings_) {
    if (mapping.leaving || !memory_.is_mapped(mapping.home)) continue;
    if (!ranges.empty() && ranges.back().base + ranges.back().bytes == base) {
      ranges.back().bytes += mapping.bytes;
    } else {
      ranges.push_back({base, mapping.bytes});
    }
  }
  return ranges;
}

VirtualRanges::Ranges VirtualRanges::with(const Ranges& others) {
  if (runs_.empty()) return others;
  const std::uint64_t version = memory_.mapped_version();
  if (merged_ != nullptr && others_ == others && merged_version_ == version) return merged_;
  auto ranges = std::make_shared<std::vector<AddressRange>>(reachable());
  if (others) ranges->insert(ranges->end(), others->begin(), others->end());
  std::ranges::sort(*ranges, {}, &AddressRange::base);
  others_ = others;
  merged_version_ = version;
  merged_ = std::move(ranges);
  return merged_;
}

void VirtualRanges::release() {
  const MutexLock lock(mutex_);
  for (const auto& [base, mapping] : mappings_) memory_.hide(mapping.home, {base, mapping.bytes});
  mappings_.clear();
  for (const auto& [base, reservation] : reservations_)
    device_.unreserve({base, reservation.bytes});
  reservations_.clear();
  reserved_ = 0;
  memories_.clear();  // the manager has them
  runs_.clear();
  merged_ = others_ = nullptr;
}

}  // namespace slate::daemon
