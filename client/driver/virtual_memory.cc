// Addresses and memory apart: reservations, physical allocations, and what is mapped where. Memory
// is the device's, and is not exported to other programs by these calls.
#include "client/session/virtual_memory.h"

#include "client/driver/front.h"

namespace slate::driver {
namespace {

using client::AllocationProperties;

/// What slate can make: memory of the device. A wish for a file descriptor to share it by is kept,
/// and the export is what is refused. The driver refuses fabric handles where there is no fabric.
Answer check(const CUmemAllocationProp& wanted) {
  if (wanted.type != CU_MEM_ALLOCATION_TYPE_PINNED) return deny(CUDA_ERROR_INVALID_VALUE);
  if (wanted.requestedHandleTypes == CU_MEM_HANDLE_TYPE_FABRIC)
    return deny(CUDA_ERROR_NOT_PERMITTED);
  if ((wanted.requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
    return deny(CUDA_ERROR_NOT_SUPPORTED);
  if (wanted.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return deny(CUDA_ERROR_NOT_SUPPORTED);
  return need_device(wanted.location.id);
}

AllocationProperties properties_of(const CUmemAllocationProp& wanted) {
  return {.type = static_cast<std::uint32_t>(wanted.type),
          .handle_types = static_cast<std::uint32_t>(wanted.requestedHandleTypes),
          .location_type = static_cast<std::uint32_t>(wanted.location.type),
          .location = wanted.location.id,
          .compression = wanted.allocFlags.compressionType,
          .rdma = wanted.allocFlags.gpuDirectRDMACapable,
          .usage = wanted.allocFlags.usage};
}

CUmemAllocationProp properties_from(const AllocationProperties& known) {
  CUmemAllocationProp told{};
  told.type = static_cast<CUmemAllocationType>(known.type);
  told.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(known.handle_types);
  told.location.type = static_cast<CUmemLocationType>(known.location_type);
  told.location.id = known.location;
  told.allocFlags.compressionType = static_cast<unsigned char>(known.compression);
  told.allocFlags.gpuDirectRDMACapable = static_cast<unsigned char>(known.rdma);
  told.allocFlags.usage = static_cast<unsigned short>(known.usage);
  return told;
}

template <typename T>
Answer tell(const Result<T>& outcome) {
  if (!outcome) return std::unexpected<Failure>(outcome.error());
  return {};
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuMemGetAllocationGranularity(std::size_t* granularity, const CUmemAllocationProp* wanted,
                                       CUmemAllocationGranularity_flags option) {
  const int number = option;
  return initialised([&]() -> Answer {
    if (wanted == nullptr || (number != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
                              number != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    if (auto ok = check(*wanted); !ok) return ok;
    return give(granularity, client::VirtualMemory::kGranule);
  });
}

CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes, std::size_t align,
                             CUdeviceptr wished, unsigned long long flags) {
  return without_context([&](Session& session) -> Answer {
    if (address == nullptr || flags != 0) return deny(CUDA_ERROR_INVALID_VALUE);
    return give(address, session.virtual_memory().reserve(bytes, align, wished));
  });
}

CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  return without_context([&](Session& session) {
    return tell(session.virtual_memory().free_reservation(address, bytes));
  });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp* wanted, unsigned long long flags) {
  return without_context([&](Session& session) -> Answer {
    if (handle == nullptr || wanted == nullptr || flags != 0) return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto ok = check(*wanted); !ok) return ok;
    return give(handle, session.virtual_memory().create(bytes, properties_of(*wanted)));
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return without_context(
      [&](Session& session) { return tell(session.virtual_memory().release(handle)); });
}

CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  return without_context([&](Session& session) -> Answer {
    if (flags != 0) return deny(CUDA_ERROR_INVALID_VALUE);
    return tell(session.virtual_memory().map(address, bytes, offset, handle));
  });
}

CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  return without_context(
      [&](Session& session) { return tell(session.virtual_memory().unmap(address, bytes)); });
}

CUresult cuMemSetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* list,
                        std::size_t count) {
  return without_context([&](Session& session) -> Answer {
    if (list == nullptr || count == 0) return deny(CUDA_ERROR_INVALID_VALUE);
    for (std::size_t i = 0; i < count; ++i) {
      // The host reaches no memory of the device.
      if (list[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return deny(CUDA_ERROR_NOT_SUPPORTED);
      if (auto ok = need_device(list[i].location.id); !ok) return ok;
      const auto set = session.virtual_memory().set_access(
          address, bytes, static_cast<std::uint32_t>(list[i].flags));
      if (!set) return std::unexpected<Failure>(set.error());
    }
    return {};
  });
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr address) {
  return without_context([&](Session& session) -> Answer {
    if (location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
      return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto ok = need_device(location->id); !ok) return ok;
    return give(flags, session.virtual_memory().access(address));
  });
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  return without_context([&](Session& session) -> Answer {
    if (handle == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return give(handle, session.virtual_memory().retain(address_of(address)));
  });
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
  return without_context([&](Session& session) -> Answer {
    if (properties == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto known = session.virtual_memory().properties(handle);
    if (!known) return std::unexpected<Failure>(known.error());
    *properties = properties_from(*known);
    return {};
  });
}

}  // extern "C"
