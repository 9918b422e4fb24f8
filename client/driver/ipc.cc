// Device memory and events that programs of one user share. The address of memory that was opened
// is the one that the program which allocated it has.
#include <cstring>

#include "client/driver/front.h"
#include "client/session/program_events.h"

namespace slate::driver {
namespace {

/// The core's handle in a handle of the driver.
template <typename Handle>
ipc::ShareHandle share_of(const Handle& handle) {
  ipc::ShareHandle share{};
  static_assert(sizeof(handle.reserved) == sizeof(share.bytes));
  std::memcpy(share.bytes, handle.reserved, sizeof(share.bytes));
  return share;
}
template <typename Handle>
Handle handle_of(const ipc::ShareHandle& share) {
  Handle handle{};
  std::memcpy(handle.reserved, share.bytes, sizeof(share.bytes));
  return handle;
}

CUresult open_memory(CUdeviceptr* address, const CUipcMemHandle& handle, unsigned flags) noexcept {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    const ipc::ShareHandle wanted = share_of(handle);
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
    const auto range = session.memory().table().find(address);
    if (handle == nullptr || !range || range->tag != client::kTagMemory) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    const auto made = session.memory().export_memory(address);
    if (!made) return std::unexpected<Failure>(made.error());
    return give(handle, handle_of<CUipcMemHandle>(*made));
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
    return give(handle, handle_of<CUipcEventHandle>(*made));
  });
}
CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
  return with_session([&](Session& session) -> Answer {
    if (event == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto id = session.events().import_event(share_of(handle));
    if (!id && id.error().code == ErrorCode::kInvalidHandle) return deny(CUDA_ERROR_MAP_FAILED);
    if (!id) return std::unexpected<Failure>(id.error());
    return give(event, static_cast<CUevent>(pointer_to(*id)));
  });
}

}  // extern "C"
