// Contexts: the primary one, those that programs create, and the stack of each thread.
#include <algorithm>

#include "client/driver/front.h"

namespace slate::driver {
namespace {

/// What a program may ask of a context. Sending by polling or waiting makes no difference here.
constexpr unsigned kKnownFlags = CU_CTX_FLAGS_MASK;
constexpr unsigned kApiVersion = 3020;  // as every version since CUDA 3.2

bool are_flags(unsigned flags) {
  const unsigned schedule = flags & CU_CTX_SCHED_MASK;
  return (flags & ~kKnownFlags) == 0 && (schedule & (schedule - 1)) == 0;
}

Answer push(Context& context) {
  Thread& thread = this_thread();
  if (thread.current != nullptr) {
    if (thread.below_count == Thread::kMostBelow) return deny(CUDA_ERROR_OUT_OF_MEMORY);
    thread.below[thread.below_count++] = thread.current;
  }
  thread.current = &context;
  return {};
}

Context* pop() {
  Thread& thread = this_thread();
  Context* const popped = thread.current;
  thread.current = thread.below_count > 0 ? thread.below[--thread.below_count] : nullptr;
  return popped;
}

/// The context behind a handle; for null, the thread's own.
Maybe<Context*> context_of(CUcontext handle) {
  Context* const context = handle != nullptr ? Contexts::get().find(handle) : this_thread().current;
  if (context == nullptr) return deny(CUDA_ERROR_INVALID_CONTEXT);
  return context;
}

CUresult create(CUcontext* handle, unsigned flags, CUdevice device) noexcept {
  return with_device([&](Session&) -> Answer {
    if (handle == nullptr || !are_flags(flags)) return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto ok = need_device(device); !ok) return ok;
    Context& fresh = Contexts::get().create(flags);
    *handle = fresh.handle();
    return push(fresh);
  });
}

CUresult destroy(CUcontext handle) noexcept {
  return initialised([&]() -> Answer {
    if (handle == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    Context* const context = Contexts::get().find(handle);
    if (context == nullptr) return deny(CUDA_ERROR_INVALID_CONTEXT);
    if (const CUresult done = Contexts::get().destroy(*context); done != CUDA_SUCCESS)
      return deny(done);
    if (this_thread().current == context) pop();
    return {};
  });
}

CUresult push_handle(CUcontext handle) noexcept {
  return initialised([&]() -> Answer {
    if (handle == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    Context* const context = Contexts::get().find(handle);
    if (context == nullptr) return deny(CUDA_ERROR_INVALID_CONTEXT);
    return push(*context);
  });
}

CUresult pop_handle(CUcontext* handle) noexcept {
  return initialised([&]() -> Answer {
    Context* const popped = pop();
    if (popped == nullptr) return deny(CUDA_ERROR_INVALID_CONTEXT);
    if (handle != nullptr) *handle = popped->handle();
    return {};
  });
}

CUresult release(CUdevice device) noexcept {
  return initialised([&]() -> Answer {
    if (auto ok = need_device(device); !ok) return ok;
    if (const CUresult done = Contexts::get().release_primary(); done != CUDA_SUCCESS)
      return deny(done);
    return {};
  });
}

CUresult reset(CUdevice device) noexcept {
  return initialised([&]() -> Answer {
    if (auto ok = need_device(device); !ok) return ok;
    const Session* const session = Process::get().current();
    if (session != nullptr && Process::get().current()->host_functions().is_own_thread())
      return deny(CUDA_ERROR_NOT_PERMITTED);
    Contexts::get().reset_primary();
    Process::get().limits().reset();
    return {};
  });
}

CUresult set_primary_flags(CUdevice device, unsigned flags) noexcept {
  return initialised([&]() -> Answer {
    if (!are_flags(flags)) return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto ok = need_device(device); !ok) return ok;
    Contexts::get().primary().flags = flags;
    return {};
  });
}

Answer synchronize(Session& session) {
  if (auto ok = session.captures().check_allows(); !ok) return ok;
  const auto outcome = session.waiting().synchronize(ipc::TargetKind::kSession, 0);
  session.printing().write();
  if (!outcome) return std::unexpected<Failure>(outcome.error());
  return {};
}

/// Limits that only the driver's API knows.
std::optional<std::size_t> limit_of_driver(const Session& session, int limit) {
  if (limit == CU_LIMIT_SHMEM_SIZE) {
    return static_cast<std::size_t>(
        session.device().attributes[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN]);
  }
  if (limit == CU_LIMIT_CIG_ENABLED) return 0;
  return std::nullopt;
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuDevicePrimaryCtxRetain(CUcontext* handle, CUdevice device) {
  return with_device([&](Session&) -> Answer {
    if (handle == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto ok = need_device(device); !ok) return ok;
    Contexts::get().retain_primary();
    return give(handle, Contexts::get().primary().handle());
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return release(device);
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return release(device);
}
CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return reset(device);
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return reset(device);
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  return set_primary_flags(device, flags);
}
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  return set_primary_flags(device, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return initialised([&]() -> Answer {
    if (flags == nullptr || active == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto ok = need_device(device); !ok) return ok;
    const Context& primary = Contexts::get().primary();
    *flags = primary.flags.load(std::memory_order_relaxed);
    *active = primary.is_active.load(std::memory_order_acquire) ? 1 : 0;
    return {};
  });
}

CUresult cuCtxCreate(CUcontext* handle, unsigned flags, CUdevice device) {
  return create(handle, flags, device);
}
CUresult cuCtxCreate_v2(CUcontext* handle, unsigned flags, CUdevice device) {
  return create(handle, flags, device);
}
CUresult cuCtxCreate_v3(CUcontext* handle, CUexecAffinityParam* affinity, int count, unsigned flags,
                        CUdevice device) {
  if (affinity != nullptr || count != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create(handle, flags, device);
}
CUresult cuCtxCreate_v4(CUcontext* handle, CUctxCreateParams* parameters, unsigned flags,
                        CUdevice device) {
  if (parameters != nullptr && parameters->numExecAffinityParams != 0)
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  if (parameters != nullptr && parameters->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return create(handle, flags, device);
}

CUresult cuCtxDestroy(CUcontext handle) {
  return destroy(handle);
}
CUresult cuCtxDestroy_v2(CUcontext handle) {
  return destroy(handle);
}
CUresult cuCtxPushCurrent(CUcontext handle) {
  return push_handle(handle);
}
CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  return push_handle(handle);
}
CUresult cuCtxPopCurrent(CUcontext* handle) {
  return pop_handle(handle);
}
CUresult cuCtxPopCurrent_v2(CUcontext* handle) {
  return pop_handle(handle);
}

CUresult cuCtxSetCurrent(CUcontext handle) {
  return initialised([&]() -> Answer {
    if (handle == nullptr) {
      (void)pop();
      return {};
    }
    Context* const context = Contexts::get().find(handle);
    if (context == nullptr) return deny(CUDA_ERROR_INVALID_CONTEXT);
    this_thread().current = context;
    return {};
  });
}

CUresult cuCtxGetCurrent(CUcontext* handle) {
  return initialised([&]() -> Answer {
    Context* const current = this_thread().current;
    return give(handle, current != nullptr ? current->handle() : nullptr);
  });
}

CUresult cuCtxGetDevice(CUdevice* device) {
  return initialised([&]() -> Answer {
    if (device == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    if (this_thread().current == nullptr) return deny(CUDA_ERROR_INVALID_CONTEXT);
    return give(device, 0);
  });
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
  return initialised([&]() -> Answer {
    if (device == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto context = context_of(handle); !context) return std::unexpected(context.error());
    return give(device, 0);
  });
}

CUresult cuCtxGetFlags(unsigned* flags) {
  return initialised([&]() -> Answer {
    auto context = context_of(nullptr);
    if (!context) return std::unexpected(context.error());
    return give(flags, (*context)->flags.load() | CU_CTX_MAP_HOST);
  });
}

CUresult cuCtxSetFlags(unsigned flags) {
  return initialised([&]() -> Answer {
    auto context = context_of(nullptr);
    if (!context) return std::unexpected(context.error());
    if (!are_flags(flags)) return deny(CUDA_ERROR_INVALID_VALUE);
    (*context)->flags = flags;
    return {};
  });
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
  return initialised([&]() -> Answer {
    auto context = context_of(handle);
    if (!context) return std::unexpected(context.error());
    return give(id, (*context)->id);
  });
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
  return initialised([&]() -> Answer {
    if (auto context = context_of(handle); !context) return std::unexpected(context.error());
    return give(version, kApiVersion);
  });
}

CUresult cuCtxSynchronize() {
  return with_session(synchronize);
}

CUresult cuCtxSynchronize_v2(CUcontext handle) {
  return with_device([&](Session& session) -> Answer {
    auto context = context_of(handle);
    if (!context) return std::unexpected(context.error());
    if (!(*context)->is_active.load(std::memory_order_acquire))
      return deny(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    if (auto ok = session.check(); !ok) return std::unexpected<Failure>(ok.error());
    return synchronize(session);
  });
}

CUresult cuCtxGetLimit(std::size_t* value, CUlimit limit) {
  const int number = limit;
  return with_session([&](Session& session) -> Answer {
    if (value == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    if (const auto own = limit_of_driver(session, number)) return give(value, *own);
    if (number == CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED) return deny(CUDA_ERROR_UNSUPPORTED_LIMIT);
    return give(value, Process::get().limits().get(session, number));
  });
}

CUresult cuCtxSetLimit(CUlimit limit, std::size_t value) {
  const int number = limit;
  return with_session([&](Session& session) -> Answer {
    if (limit_of_driver(session, number) || number == CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED)
      return deny(CUDA_ERROR_UNSUPPORTED_LIMIT);
    return Process::get().limits().set(session, number, value);
  });
}

// Hints, without effect on every GPU since Maxwell, or on any.

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  return with_session([&](Session&) { return give(config, CU_FUNC_CACHE_PREFER_NONE); });
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  const int number = config;
  return with_session([&](Session&) -> Answer {
    if (number < CU_FUNC_CACHE_PREFER_NONE || number > CU_FUNC_CACHE_PREFER_EQUAL)
      return deny(CUDA_ERROR_INVALID_VALUE);
    return {};
  });
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  return with_session(
      [&](Session&) { return give(config, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE); });
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  const int number = config;
  return with_session([&](Session&) -> Answer {
    if (number < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE ||
        number > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    return {};
  });
}

CUresult cuCtxResetPersistingL2Cache() {
  return with_session([](Session&) -> Answer { return {}; });
}

// There is one device, and every context stands for it.

CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
  return with_session([&](Session&) -> Answer {
    if (flags != 0) return deny(CUDA_ERROR_INVALID_VALUE);
    if (Contexts::get().find(handle) == nullptr) return deny(CUDA_ERROR_INVALID_CONTEXT);
    return deny(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  });
}

CUresult cuCtxDisablePeerAccess(CUcontext handle) {
  return with_session([&](Session&) -> Answer {
    if (Contexts::get().find(handle) == nullptr) return deny(CUDA_ERROR_INVALID_CONTEXT);
    return deny(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  });
}

}  // extern "C"
