// Pinned host memory.
#include "client/cudart/front.h"
#include "client/session/pinned_memory.h"

namespace slate::cudart {
namespace {

constexpr unsigned kAllocFlags =
    cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
constexpr unsigned kRegisterFlags = cudaHostRegisterPortable | cudaHostRegisterMapped |
                                    cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;

cudaError_t allocate(void** address, std::size_t bytes, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr || (flags & ~kAllocFlags) != 0) return deny(cudaErrorInvalidValue);
    *address = nullptr;
    if (auto ok = session.captures().check_allows(); !ok) return ok;
    if (bytes == 0) return {};
    const bool mapped = (flags & cudaHostAllocMapped) != 0;
    return give(address, client::allocate_pinned(session, bytes, mapped, flags));
  });
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;

extern "C" {

cudaError_t cudaMallocHost(void** address, std::size_t bytes) {
  return allocate(address, bytes, cudaHostAllocDefault);
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned flags) {
  return allocate(address, bytes, flags);
}

cudaError_t cudaFreeHost(void* address) {
  return with_session([&](Session& session) -> Answer {
    if (auto ok = session.captures().check_allows(); !ok) return ok;
    if (address == nullptr) return {};
    return slate::client::free_pinned(session, address);
  });
}

cudaError_t cudaHostRegister(void* address, std::size_t bytes, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr || bytes == 0 || (flags & ~kRegisterFlags) != 0) {
      return deny(cudaErrorInvalidValue);
    }
    const bool mapped = (flags & cudaHostRegisterMapped) != 0;
    return slate::client::register_pinned(session, address, bytes, mapped, flags);
  });
}

cudaError_t cudaHostUnregister(void* address) {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr) return deny(cudaErrorInvalidValue);
    return slate::client::unregister_pinned(session, address);
  });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* address) {
  return with_session([&](Session&) -> Answer {
    const auto range = Process::get().pinned().find(address_of(address));
    if (flags == nullptr || !range) return deny(cudaErrorInvalidValue);
    *flags = range->flags;
    return {};
  });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* address, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    if (device == nullptr || flags != 0 || !Process::get().pinned().find(address_of(address))) {
      return deny(cudaErrorInvalidValue);
    }
    return give_address(device, slate::client::device_address_of(session, address));
  });
}

}  // extern "C"
