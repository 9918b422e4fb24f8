// Device memory that programs of one user share. The address of what was opened is the one that the
// program which allocated it has.
#include "client/cudart/front.h"
#include "client/session/program_memory.h"
#include "client/session/share_handles.h"

using namespace slate::cudart;
using namespace slate;

extern "C" {

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* address) {
  return with_session([&](Session& session) -> Answer {
    if (handle == nullptr) return deny(cudaErrorInvalidValue);
    const auto made = client::export_program_memory(session, address_of(address));
    if (!made) return std::unexpected<Failure>(made.error());
    return give(handle, client::handle_with<cudaIpcMemHandle_t>(*made));
  });
}

cudaError_t cudaIpcOpenMemHandle(void** address, cudaIpcMemHandle_t handle, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr || flags != cudaIpcMemLazyEnablePeerAccess)
      return deny(cudaErrorInvalidValue);
    const auto wanted = client::share_of(handle);
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
