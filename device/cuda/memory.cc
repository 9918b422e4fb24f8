#include "device/cuda/memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

namespace slate::cuda {
namespace {

std::unexpected<Error> bad_range(const char* what, device::AddressRange range) {
  return fail(ErrorCode::kInvalidValue,
              fmt::format("{} of {} bytes at {:#x}", what, range.bytes, range.base));
}

}  // namespace

Result<std::unique_ptr<AddressSpace>> AddressSpace::open(Context& context) {
  std::unique_ptr<AddressSpace> space(new AddressSpace(context));
  const Driver& driver = context.driver();
  const CUmemAllocationProp properties = space->properties();
  std::size_t granularity = 0;
  if (auto got = context.call(driver.cuMemGetAllocationGranularity, &granularity, &properties,
                              CU_MEM_ALLOC_GRANULARITY_MINIMUM);
      !got) {
    return std::unexpected(got.error());
  }
  space->granularity_ = granularity;
  if (auto made = context.call(driver.cuStreamCreateWithPriority, &space->stream_,
                               CU_STREAM_NON_BLOCKING, context.highest_priority());
      !made) {
    return std::unexpected(made.error());
  }
  return space;
}

AddressSpace::~AddressSpace() {
  const Driver& driver = context_.driver();
  // Nobody is left to hear of a failure, and after a fault the driver refuses every one of these.
  std::set<CUmemGenericAllocationHandle> handles;
  for (const auto& [base, mapping] : mapped_) {
    std::ignore = context_.call(driver.cuMemUnmap, base, mapping.bytes);
    handles.insert(mapping.handle);
  }
  for (const auto handle : handles) std::ignore = context_.call(driver.cuMemRelease, handle);
  for (const auto& [base, bytes] : reservations_) {
    std::ignore = context_.call(driver.cuMemAddressFree, base, bytes);
  }
  if (stream_ != nullptr) std::ignore = context_.call(driver.cuStreamDestroy, stream_);
}

CUmemAllocationProp AddressSpace::properties() const {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = context_.device();
  // So that the contents can outlive a fault (export_memory()).
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

/// Of the host's memory that is nearest to the device.
CUmemAllocationProp AddressSpace::host_properties() const {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  int node = -1;
  const auto told = context_.call(context_.driver().cuDeviceGetAttribute, &node,
                                  CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, context_.device());
  properties.location.id = told && node >= 0 ? node : 0;
  return properties;
}

bool AddressSpace::is_granular(device::AddressRange range) const {
  return range.bytes != 0 && range.bytes % granularity_ == 0 && range.base % granularity_ == 0;
}

Result<device::Address> AddressSpace::reserve(std::uint64_t bytes, std::uint64_t align,
                                              device::Address wished) {
  if (!is_granular({.base = 0, .bytes = bytes})) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("reservation of {} bytes: not a multiple of {}", bytes, granularity_));
  }
  CUdeviceptr base = 0;
  if (auto reserved = context_.call(context_.driver().cuMemAddressReserve, &base, bytes,
                                    std::max(align, granularity_), wished, 0);
      !reserved) {
    return std::unexpected(reserved.error());
  }
  MutexLock lock(mutex_);
  reservations_[base] = bytes;
  return base;
}

void AddressSpace::unreserve(device::AddressRange range) {
  {
    MutexLock lock(mutex_);
    const auto found = reservations_.find(range.base);
    if (found == reservations_.end() || found->second != range.bytes) return;
    reservations_.erase(found);
  }
  std::ignore = context_.call(context_.driver().cuMemAddressFree, range.base, range.bytes);
}

Result<void> AddressSpace::map(device::AddressRange range) {
  return map_new(range, properties());
}

Result<void> AddressSpace::map_on_host(device::AddressRange range) {
  return map_new(range, host_properties());
}

Result<void> AddressSpace::map_new(device::AddressRange range,
                                   const CUmemAllocationProp& properties) {
  if (!is_granular(range))
    return bad_range("mapping that is no multiple of the granularity,", range);
  const Driver& driver = context_.driver();
  CUmemGenericAllocationHandle handle = 0;
  if (auto made = context_.call(driver.cuMemCreate, &handle, range.bytes, &properties, 0); !made) {
    return made;
  }
  if (auto backed = back(range, handle, true); !backed) {
    std::ignore = context_.call(driver.cuMemRelease, handle);
    return backed;
  }
  MutexLock lock(mutex_);
  mapped_[range.base] = Mapping{.bytes = range.bytes, .handle = handle};
  return {};
}

Result<void> AddressSpace::map_again(device::AddressRange range, device::Address mapped) {
  CUmemGenericAllocationHandle handle = 0;
  {
    MutexLock lock(mutex_);
    const auto found = mapped_.find(mapped);
    if (found == mapped_.end() || found->second.bytes != range.bytes)
      return bad_range("mapping again what was never mapped,", range);
    handle = found->second.handle;
  }
  if (auto backed = back(range, handle, false); !backed) return backed;
  MutexLock lock(mutex_);
  mapped_[range.base] = Mapping{.bytes = range.bytes, .handle = handle};
  return {};
}

Result<UniqueFd> AddressSpace::export_memory(device::AddressRange range) {
  CUmemGenericAllocationHandle handle = 0;
  {
    MutexLock lock(mutex_);
    const auto found = mapped_.find(range.base);
    if (found == mapped_.end() || found->second.bytes != range.bytes)
      return bad_range("export of what was never mapped,", range);
    handle = found->second.handle;
  }
  int fd = -1;
  if (auto exported = context_.call(context_.driver().cuMemExportToShareableHandle, &fd, handle,
                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
      !exported) {
    return std::unexpected(exported.error());
  }
  return UniqueFd(fd);
}

Result<void> AddressSpace::map_exported(device::AddressRange range, int memory) {
  if (!is_granular(range))
    return bad_range("mapping that is no multiple of the granularity,", range);
  const Driver& driver = context_.driver();
  CUmemGenericAllocationHandle handle = 0;
  // The driver takes the number of the descriptor as a pointer.
  void* const descriptor = reinterpret_cast<void*>(static_cast<std::uintptr_t>(memory));
  if (auto imported = context_.call(driver.cuMemImportFromShareableHandle, &handle, descriptor,
                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
      !imported) {
    return imported;
  }
  if (auto backed = back(range, handle, false); !backed) {
    std::ignore = context_.call(driver.cuMemRelease, handle);
    return backed;
  }
  MutexLock lock(mutex_);
  mapped_[range.base] = Mapping{.bytes = range.bytes, .handle = handle};
  return {};
}

/// Leaves the range unmapped when it fails. `fresh`: memory that has to be cleared.
Result<void> AddressSpace::back(device::AddressRange range, CUmemGenericAllocationHandle handle,
                                bool fresh) {
  const Driver& driver = context_.driver();
  if (auto placed = context_.call(driver.cuMemMap, range.base, range.bytes, 0, handle, 0);
      !placed) {
    return placed;
  }
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = context_.device();
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  auto usable = context_.call(driver.cuMemSetAccess, range.base, range.bytes, &access, 1);
  if (usable && fresh) usable = clear(range);
  if (!usable) std::ignore = context_.call(driver.cuMemUnmap, range.base, range.bytes);
  return usable;
}

/// Within one process the driver hands out physical memory as the last owner left it, and here the
/// last owner may have been another client.
Result<void> AddressSpace::clear(device::AddressRange range) {
  const Driver& driver = context_.driver();
  auto filled = context_.call(driver.cuMemsetD32Async, range.base, 0, range.bytes / 4, stream_);
  // Also when the fill was refused: nothing of ours may still be running when the range is
  // unmapped.
  auto finished = context_.call(driver.cuStreamSynchronize, stream_);
  return filled ? finished : filled;
}

Result<void> AddressSpace::unmap(device::AddressRange range) {
  Mapping mapping{};
  {
    MutexLock lock(mutex_);
    const auto found = mapped_.find(range.base);
    if (found == mapped_.end() || found->second.bytes != range.bytes) {
      return bad_range("unmapping what was never mapped,", range);
    }
    mapping = found->second;
    mapped_.erase(found);
  }
  const Driver& driver = context_.driver();
  if (auto unmapped = context_.call(driver.cuMemUnmap, range.base, range.bytes); !unmapped) {
    MutexLock lock(mutex_);
    mapped_[range.base] = mapping;
    return unmapped;
  }
  {
    MutexLock lock(mutex_);
    const auto shows_it = [&](const auto& each) { return each.second.handle == mapping.handle; };
    if (std::ranges::any_of(mapped_, shows_it)) return {};
  }
  return context_.call(driver.cuMemRelease, mapping.handle);
}

}  // namespace slate::cuda
