// Pinned host memory. For now ordinary page-aligned memory: copies pass through the staging slots
// as for any other, and kernels cannot reach it, so what asks for a device address of it is not
// supported.
#include <cstdlib>

#include "client/cudart/front.h"

namespace slate::cudart {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint32_t kTagAllocated = 1;
constexpr std::uint32_t kTagRegistered = 2;

constexpr unsigned kAllocFlags =
    cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
constexpr unsigned kRegisterFlags = cudaHostRegisterPortable | cudaHostRegisterMapped |
                                    cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;

std::unexpected<Failure> no_mapping(const char* what) {
  return std::unexpected<Failure>(
      Error{ErrorCode::kNotSupported,
            std::string(what) + " is not supported yet: kernels cannot reach host memory"});
}

cudaError_t allocate(void** address, std::size_t bytes, unsigned flags) {
  return with_session([&](Session&) -> Answer {
    if (address == nullptr || (flags & ~kAllocFlags) != 0) return deny(cudaErrorInvalidValue);
    *address = nullptr;
    if (bytes == 0) return {};
    if ((flags & cudaHostAllocMapped) != 0) return no_mapping("cudaHostAllocMapped");
    const std::size_t padded = (bytes + kPage - 1) / kPage * kPage;
    void* memory = padded < bytes ? nullptr : std::aligned_alloc(kPage, padded);
    if (memory == nullptr) return deny(cudaErrorMemoryAllocation);
    Process::get().pinned().insert({address_of(memory), bytes, kTagAllocated, flags});
    *address = memory;
    return {};
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
  return with_session([&](Session&) -> Answer {
    if (address == nullptr) return {};
    if (!Process::get().pinned().erase(address_of(address), kTagAllocated)) {
      return deny(cudaErrorInvalidValue);
    }
    std::free(address);
    return {};
  });
}

cudaError_t cudaHostRegister(void* address, std::size_t bytes, unsigned flags) {
  return with_session([&](Session&) -> Answer {
    if (address == nullptr || bytes == 0 || (flags & ~kRegisterFlags) != 0) {
      return deny(cudaErrorInvalidValue);
    }
    if ((flags & cudaHostRegisterMapped) != 0) return no_mapping("cudaHostRegisterMapped");
    slate::client::AllocationTable& pinned = Process::get().pinned();
    if (pinned.touches(address_of(address), bytes)) {
      return deny(cudaErrorHostMemoryAlreadyRegistered);
    }
    pinned.insert({address_of(address), bytes, kTagRegistered, flags});
    return {};
  });
}

cudaError_t cudaHostUnregister(void* address) {
  return with_session([&](Session&) -> Answer {
    if (address == nullptr) return deny(cudaErrorInvalidValue);
    if (!Process::get().pinned().erase(address_of(address), kTagRegistered)) {
      return deny(cudaErrorHostMemoryNotRegistered);
    }
    return {};
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
  return with_session([&](Session&) -> Answer {
    if (device == nullptr || flags != 0 || !Process::get().pinned().find(address_of(address))) {
      return deny(cudaErrorInvalidValue);
    }
    return no_mapping("cudaHostGetDevicePointer");
  });
}

}  // extern "C"
