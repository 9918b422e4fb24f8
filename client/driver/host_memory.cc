// Pinned host memory. All of it is mapped for the device, as with unified addressing.
#include "client/driver/front.h"
#include "client/session/pinned_memory.h"

namespace slate::driver {
namespace {

constexpr unsigned kAllocFlags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned kRegisterFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                    CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;

/// Notes which context has the memory.
void own(const void* address) {
  Process::get().pinned().set_owner(address_of(address), address_of(this_thread().current));
}

CUresult allocate(void** address, std::size_t bytes, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr || (flags & ~kAllocFlags) != 0) return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto ok = session.captures().check_allows(); !ok) return ok;
    if (bytes == 0) {
      *address = nullptr;
      return {};
    }
    const bool mapped = (flags & CU_MEMHOSTALLOC_DEVICEMAP) != 0;
    const auto made = client::allocate_pinned(session, bytes, mapped, flags);
    if (!made) return std::unexpected<Failure>(made.error());
    own(*made);
    *address = *made;
    return {};
  });
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuMemHostAlloc(void** address, std::size_t bytes, unsigned flags) {
  return allocate(address, bytes, flags);
}

CUresult cuMemAllocHost_v2(void** address, std::size_t bytes) {
  return allocate(address, bytes, 0);
}

CUresult cuMemFreeHost(void* address) {
  return with_session([&](Session& session) -> Answer {
    if (auto ok = session.captures().check_allows(); !ok) return ok;
    if (address == nullptr) return {};
    return client::free_pinned(session, address);
  });
}

CUresult cuMemHostRegister_v2(void* address, std::size_t bytes, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr || bytes == 0 || (flags & ~kRegisterFlags) != 0)
      return deny(CUDA_ERROR_INVALID_VALUE);
    const bool mapped = (flags & CU_MEMHOSTREGISTER_DEVICEMAP) != 0;
    auto done = client::register_pinned(session, address, bytes, mapped, flags);
    if (done) own(address);
    return done;
  });
}

CUresult cuMemHostUnregister(void* address) {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto range = Process::get().pinned().find(address_of(address));
    if (range && range->address != address_of(address)) return deny(CUDA_ERROR_INVALID_VALUE);
    return client::unregister_pinned(session, address);
  });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* address, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    if (device == nullptr || flags != 0 || !Process::get().pinned().find(address_of(address)))
      return deny(CUDA_ERROR_INVALID_VALUE);
    return give(device, client::device_address_of(session, address));
  });
}

CUresult cuMemHostGetFlags(unsigned* flags, void* address) {
  return with_session([&](Session&) -> Answer {
    const auto range = Process::get().pinned().find(address_of(address));
    if (flags == nullptr || !range) return deny(CUDA_ERROR_INVALID_VALUE);
    *flags = range->flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return {};
  });
}

}  // extern "C"
