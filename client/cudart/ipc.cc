// Device memory that programs of one user share. The address of what was opened is the one that the
// program which allocated it has.
#include <cstring>

#include "client/cudart/front.h"

using namespace slate::cudart;

extern "C" {

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* address) {
  return with_session([&](Session& session) -> Answer {
    const auto range = session.memory().table().find(address_of(address));
    if (handle == nullptr || !range || range->tag != slate::client::kTagMemory)
      return deny(cudaErrorInvalidValue);
    const auto made = session.memory().export_memory(address_of(address));
    if (!made) return std::unexpected<Failure>(made.error());
    static_assert(sizeof(handle->reserved) == sizeof(made->bytes));
    std::memcpy(handle->reserved, made->bytes, sizeof(made->bytes));
    return {};
  });
}

cudaError_t cudaIpcOpenMemHandle(void** address, cudaIpcMemHandle_t handle, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr || flags != cudaIpcMemLazyEnablePeerAccess)
      return deny(cudaErrorInvalidValue);
    slate::ipc::ShareHandle wanted{};
    std::memcpy(wanted.bytes, handle.reserved, sizeof(wanted.bytes));
    // CUDA does not let a program open what it gave out itself.
    if (session.memory().has_exported(wanted)) return deny(cudaErrorDeviceUninitialized);
    const auto opened = session.memory().import_memory(wanted);
    if (!opened) return std::unexpected<Failure>(opened.error());
    *address = pointer_to(opened->address);
    return {};
  });
}

cudaError_t cudaIpcCloseMemHandle(void* address) {
  return with_session([&](Session& session) -> Answer {
    return session.memory().close_import(address_of(address));
  });
}

}  // extern "C"
