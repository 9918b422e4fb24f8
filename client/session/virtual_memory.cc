#include "client/session/virtual_memory.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "client/session/session.h"

namespace slate::client {
namespace {

using ipc::CommandType;

std::unexpected<Error> bad(const char* what) {
  return fail(ErrorCode::kInvalidValue, what);
}

bool is_granular(std::uint64_t bytes) {
  return bytes != 0 && bytes % VirtualMemory::kGranule == 0;
}

}  // namespace

Result<std::uint64_t> VirtualMemory::reserve(std::uint64_t bytes, std::uint64_t align,
                                             std::uint64_t wished) {
  if (!is_granular(bytes)) return bad("a reservation that is not of whole granules");
  if (align != 0 && !std::has_single_bit(align)) return bad("an alignment that is no power of two");
  const auto reply = session_.wire().call<ipc::AddressReply>(
      CommandType::kAddressReserve, ipc::AddressReserve{bytes, align, wished});
  if (!reply) return std::unexpected(reply.error());
  const MutexLock lock(mutex_);
  reservations_.insert_or_assign(reply->address, bytes);
  return reply->address;
}

Result<void> VirtualMemory::free_reservation(std::uint64_t address, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  const auto found = reservations_.find(address);
  if (found == reservations_.end() || found->second != bytes)
    return bad("addresses that are not a whole reservation");
  if (has_mapping(address, bytes)) return bad("a reservation in which memory is mapped");
  // Out of the map first: once the daemon has the command it may give the addresses to another
  // thread.
  reservations_.erase(found);
  return session_.wire().post(CommandType::kAddressFree, ipc::MemoryFree{address});
}

bool VirtualMemory::in_reservation(std::uint64_t address, std::uint64_t bytes) const {
  const auto next = reservations_.upper_bound(address);
  if (next == reservations_.begin()) return false;
  const auto& [base, size] = *std::prev(next);
  return is_inside(address - base, bytes, size);
}

std::optional<VirtualMemory::Reservation> VirtualMemory::reservation_at(
    std::uint64_t address) const {
  const MutexLock lock(mutex_);
  const auto next = reservations_.upper_bound(address);
  if (next == reservations_.begin()) return std::nullopt;
  const auto& [base, bytes] = *std::prev(next);
  return address - base < bytes ? std::optional(Reservation{base, bytes}) : std::nullopt;
}

bool VirtualMemory::is_reserved(std::uint64_t address, std::uint64_t bytes) const {
  const MutexLock lock(mutex_);
  return in_reservation(address, bytes);
}

Result<std::uint64_t> VirtualMemory::create(std::uint64_t bytes,
                                            const AllocationProperties& properties) {
  if (!is_granular(bytes)) return bad("a physical allocation that is not of whole granules");
  const std::uint64_t handle = ++session_.wire().handle_counter();
  const auto reply = session_.wire().call<Nothing>(CommandType::kPhysicalCreate,
                                                   ipc::PhysicalCreate{handle, bytes});
  if (!reply) return std::unexpected(reply.error());
  const MutexLock lock(mutex_);
  allocations_.emplace(handle, Allocation{bytes, properties, 1, 0});
  return handle;
}

Result<void> VirtualMemory::end_if_unused(std::uint64_t handle) {
  const auto found = allocations_.find(handle);
  if (found->second.held > 0 || found->second.mappings > 0) return {};
  allocations_.erase(found);
  return session_.wire().post(CommandType::kPhysicalRelease, ipc::IdCommand{handle});
}

Result<void> VirtualMemory::release(std::uint64_t handle) {
  const MutexLock lock(mutex_);
  const auto found = allocations_.find(handle);
  if (found == allocations_.end() || found->second.held == 0)
    return bad("no physical allocation has this handle");
  --found->second.held;
  return end_if_unused(handle);
}

Result<std::uint64_t> VirtualMemory::retain(std::uint64_t address) {
  const auto mapping = mapping_at(address);
  if (!mapping) return bad("nothing is mapped at the address");
  const MutexLock lock(mutex_);
  const auto found = allocations_.find(mapping->handle);
  if (found == allocations_.end()) return bad("nothing is mapped at the address any more");
  ++found->second.held;
  return mapping->handle;
}

Result<AllocationProperties> VirtualMemory::properties(std::uint64_t handle) const {
  const MutexLock lock(mutex_);
  const auto found = allocations_.find(handle);
  if (found == allocations_.end() || found->second.held == 0)
    return bad("no physical allocation has this handle");
  return found->second.properties;
}

std::optional<AllocationProperties> VirtualMemory::properties_at(std::uint64_t address) const {
  const auto mapping = mapping_at(address);
  if (!mapping) return std::nullopt;
  const MutexLock lock(mutex_);
  const auto found = allocations_.find(mapping->handle);
  return found == allocations_.end() ? std::nullopt : std::optional(found->second.properties);
}

bool VirtualMemory::has_mapping(std::uint64_t address, std::uint64_t bytes) const {
  const auto next = mappings_.lower_bound(address);
  if (next != mappings_.end() && next->first - address < bytes) return true;
  if (next == mappings_.begin()) return false;
  const Mapping& before = std::prev(next)->second;
  return address - before.address < before.bytes;
}

Result<void> VirtualMemory::map(std::uint64_t address, std::uint64_t bytes, std::uint64_t offset,
                                std::uint64_t handle) {
  const MutexLock lock(mutex_);
  const auto found = allocations_.find(handle);
  if (found == allocations_.end() || found->second.held == 0)
    return bad("no physical allocation has this handle");
  Allocation& allocation = found->second;
  if (offset != 0 || bytes != allocation.bytes) return bad("a physical allocation is mapped whole");
  if (!in_reservation(address, bytes)) return bad("memory is mapped at reserved addresses only");
  if (has_mapping(address, bytes)) return bad("something is mapped there already");
  const auto reply = session_.wire().call<Nothing>(CommandType::kPhysicalMap,
                                                   ipc::PhysicalMap{address, bytes, handle});
  if (!reply) return std::unexpected(reply.error());
  ++allocation.mappings;
  mappings_.emplace(address, Mapping{address, bytes, handle, 0});
  session_.memory().table().join({address, bytes, kTagMapped});
  return {};
}

/// The addresses of the mappings in a range, which may have gaps.
Result<std::vector<std::uint64_t>> VirtualMemory::whole_mappings(std::uint64_t address,
                                                                 std::uint64_t bytes) const {
  std::vector<std::uint64_t> found;
  const auto first = mappings_.lower_bound(address);
  const bool cuts_first = first != mappings_.begin() &&
                          address - std::prev(first)->first < std::prev(first)->second.bytes;
  for (auto each = first; each != mappings_.end() && each->first - address < bytes; ++each) {
    if (!is_inside(each->first - address, each->second.bytes, bytes))
      return bad("a range that cuts a mapping");
    found.push_back(each->first);
  }
  if (cuts_first || found.empty()) return bad("a range that has no mapping, or cuts one");
  return found;
}

Result<void> VirtualMemory::unmap(std::uint64_t address, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  const auto ended = whole_mappings(address, bytes);
  if (!ended) return std::unexpected(ended.error());
  // Out of the table first, as in DeviceMemory::free().
  for (const std::uint64_t each : *ended)
    session_.memory().table().cut(each, mappings_.at(each).bytes, kTagMapped);
  auto sent = session_.wire().post(CommandType::kPhysicalUnmap, ipc::PhysicalUnmap{address, bytes});
  for (const std::uint64_t each : *ended) {
    const std::uint64_t handle = mappings_.at(each).handle;
    mappings_.erase(each);
    --allocations_.at(handle).mappings;
    if (auto done = end_if_unused(handle); !done && sent) sent = done;
  }
  return sent;
}

Result<void> VirtualMemory::set_access(std::uint64_t address, std::uint64_t bytes,
                                       std::uint32_t access) {
  const MutexLock lock(mutex_);
  const auto found = whole_mappings(address, bytes);
  if (!found) return std::unexpected(found.error());
  std::uint64_t mapped = 0;
  for (const std::uint64_t each : *found) mapped += mappings_.at(each).bytes;
  if (mapped != bytes) return bad("a range with gaps between its mappings");
  for (const std::uint64_t each : *found) mappings_.at(each).access = access;
  return {};
}

Result<std::uint32_t> VirtualMemory::access(std::uint64_t address) const {
  const auto mapping = mapping_at(address);
  if (!mapping) return bad("nothing is mapped at the address");
  return mapping->access;
}

std::optional<Mapping> VirtualMemory::mapping_at(std::uint64_t address) const {
  const MutexLock lock(mutex_);
  const auto next = mappings_.upper_bound(address);
  if (next == mappings_.begin()) return std::nullopt;
  const Mapping& its = std::prev(next)->second;
  return address - its.address < its.bytes ? std::optional(its) : std::nullopt;
}

}  // namespace slate::client
