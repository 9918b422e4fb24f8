// Device memory and events that programs of one user share. The address of memory that was opened
// is the one that the program which allocated it has.
#include "client/driver/front.h"
#include "client/session/program_events.h"
#include "client/session/program_memory.h"
#include "client/session/share_handles.h"

namespace slate::driver {
namespace {

CUresult open_memory(CUdeviceptr* address, const CUipcMemHandle& handle, unsigned flags) noexcept {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    const ipc::ShareHandle wanted = client::share_of(handle);
    // CUDA does not let a program open what it gave out itself.
    if (session.memory().has_exported(wanted)) return deny(CUDA_ERROR_INVALID_CONTEXT);
    const auto opened = session.memory().import_memory(wanted);
    if (!opened) return std::unexpected<Failure>(opened.error());
    return give(address, opened->address);
  });
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  return with_session([&](Session& session) -> Answer {
    if (handle == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto made = client::export_program_memory(session, address);
    if (!made) return std::unexpected<Failure>(made.error());
    return give(handle, client::handle_with<CUipcMemHandle>(*made));
  });
}
CUresult cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  return open_memory(address, handle, flags);
}
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  return open_memory(address, handle, flags);
}
CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  return with_session(
      [&](Session& session) -> Answer { return session.memory().close_import(address); });
}

CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
  return with_session([&](Session& session) -> Answer {
    if (handle == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto made = client::export_program_event(session, address_of(event));
    if (!made) return std::unexpected<Failure>(made.error());
    return give(handle, client::handle_with<CUipcEventHandle>(*made));
  });
}
CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
  return with_session([&](Session& session) -> Answer {
    if (event == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto id = session.events().import_event(client::share_of(handle));
    if (!id && id.error().code == ErrorCode::kInvalidHandle) return deny(CUDA_ERROR_MAP_FAILED);
    return give_address(event, id);
  });
}

}  // extern "C"
