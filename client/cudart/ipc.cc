// Device memory that programs of one user share. The address of what was opened is the one that the
// program which allocated it has.
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "client/cudart/front.h"
#include "client/cudart/pools.h"

namespace slate::cudart {
namespace {

/// Handles that this process gave out: CUDA does not let it open them itself.
class OwnHandles {
 public:
  static OwnHandles& get() {
    static OwnHandles* const instance = new OwnHandles;
    return *instance;
  }
  void add(const cudaIpcMemHandle_t& handle) {
    const std::lock_guard lock(mutex_);
    handles_.emplace(handle.reserved, sizeof(handle.reserved));
  }
  bool contains(const cudaIpcMemHandle_t& handle) {
    const std::lock_guard lock(mutex_);
    return handles_.contains(std::string(handle.reserved, sizeof(handle.reserved)));
  }

 private:
  std::mutex& mutex_ = Process::get().mutex_of(Process::Table::kOwnHandles);
  std::set<std::string> handles_;
};

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;

extern "C" {

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* address) {
  return with_session([&](Session& session) -> Answer {
    const auto range = session.memory().find(address_of(address));
    if (handle == nullptr || !range || range->tag != slate::client::kTagMemory)
      return deny(cudaErrorInvalidValue);
    const auto made = session.export_memory(address_of(address));
    if (!made) return std::unexpected<Failure>(made.error());
    static_assert(sizeof(handle->reserved) == sizeof(made->bytes));
    std::memcpy(handle->reserved, made->bytes, sizeof(made->bytes));
    OwnHandles::get().add(*handle);
    return {};
  });
}

cudaError_t cudaIpcOpenMemHandle(void** address, cudaIpcMemHandle_t handle, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr || flags != cudaIpcMemLazyEnablePeerAccess)
      return deny(cudaErrorInvalidValue);
    if (OwnHandles::get().contains(handle)) return deny(cudaErrorDeviceUninitialized);
    slate::ipc::ShareHandle wanted{};
    std::memcpy(wanted.bytes, handle.reserved, sizeof(wanted.bytes));
    const auto opened = session.import_memory(wanted);
    if (!opened) return std::unexpected<Failure>(opened.error());
    *address = pointer_to(opened->address);
    return {};
  });
}

cudaError_t cudaIpcCloseMemHandle(void* address) {
  return with_session(
      [&](Session& session) -> Answer { return session.close_import(address_of(address)); });
}

}  // extern "C"
