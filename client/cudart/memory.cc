// Device memory: allocation, questions about addresses.
#include "client/cudart/front.h"
#include "client/session/address_copy.h"
#include "client/session/program_memory.h"

namespace slate::cudart {
namespace {

/// Allocates rows that begin aligned. An empty size gives null, which is no error.
Answer allocate_pitched(Session& session, std::size_t width, std::size_t rows, void** address,
                        std::size_t* pitch) {
  *address = nullptr;
  *pitch = 0;
  if (auto ok = session.captures().check_allows(); !ok) return ok;
  if (width == 0 || rows == 0) return {};
  const auto made = client::allocate_pitched(session, width, rows);
  if (!made) return std::unexpected<Failure>(made.error());
  *address = pointer_to(made->address);
  *pitch = made->pitch;
  return {};
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;
using namespace slate;

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  if (address == nullptr) return remember(cudaErrorInvalidValue);
  return with_session([&](Session& session) -> Answer {
    *address = nullptr;
    if (auto ok = session.captures().check_allows(); !ok) return ok;
    if (bytes == 0) return {};
    return give_address(address, session.memory().allocate(bytes));
  });
}

cudaError_t cudaMallocPitch(void** address, std::size_t* pitch, std::size_t width,
                            std::size_t height) {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr || pitch == nullptr) return deny(cudaErrorInvalidValue);
    return allocate_pitched(session, width, height, address, pitch);
  });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
  return with_session([&](Session& session) -> Answer {
    std::size_t rows = 0;
    if (pointer == nullptr) return deny(cudaErrorInvalidValue);
    if (__builtin_mul_overflow(extent.height, extent.depth, &rows)) {
      return deny(cudaErrorMemoryAllocation);
    }
    pointer->xsize = extent.width;
    pointer->ysize = extent.height;
    return allocate_pitched(session, extent.width, rows, &pointer->ptr, &pointer->pitch);
  });
}

cudaError_t cudaFree(void* address) {
  return with_session([&](Session& session) -> Answer {
    if (auto ok = session.captures().check_allows(); !ok) return ok;
    if (address == nullptr) return {};
    return client::free_program_memory(session, address_of(address));
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  return with_session([&](Session& session) -> Answer {
    auto info = session.memory().info();
    if (!info) return std::unexpected<Failure>(info.error());
    if (free_bytes != nullptr) *free_bytes = info->free_bytes;
    if (total_bytes != nullptr) *total_bytes = info->total_bytes;
    return {};
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return with_device([&](Session& session) -> Answer {
    if (attributes == nullptr) return deny(cudaErrorInvalidValue);
    *attributes = {};
    if (pointer != nullptr && client::on_device(session, pointer, 1, {1, 1})) {
      const bool managed = client::find_managed(session, address_of(pointer)).has_value();
      attributes->type = managed ? cudaMemoryTypeManaged : cudaMemoryTypeDevice;
      if (managed) attributes->hostPointer = const_cast<void*>(pointer);
      attributes->devicePointer = const_cast<void*>(pointer);
      return {};
    }
    attributes->hostPointer = const_cast<void*>(pointer);
    if (const auto block = session.host_memory().blocks().find(address_of(pointer))) {
      attributes->devicePointer =
          pointer_to(block->device_address + (address_of(pointer) - block->address));
    }
    if (pointer != nullptr && Process::get().pinned().find(address_of(pointer))) {
      attributes->type = cudaMemoryTypeHost;
    } else {
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->device = cudaInvalidDeviceId;
    }
    return {};
  });
}

}  // extern "C"
