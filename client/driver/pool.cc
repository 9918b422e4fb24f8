// The functions of the stream-ordered allocator.
#include "client/driver/front.h"
#include "client/session/program_memory.h"

namespace slate::driver {
namespace {

using client::Pools;

CUmemoryPool pool_handle(std::uint64_t pool) {
  return static_cast<CUmemoryPool>(pointer_to(pool));
}

/// Allocates from `pool`, or from the device's current one.
CUresult allocate(CUdeviceptr* address, std::size_t bytes, std::optional<CUmemoryPool> pool,
                  CUstream stream) noexcept {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto id = stream_id(session, stream);
    if (!id) return std::unexpected(id.error());
    const auto from = pool ? std::optional(address_of(*pool)) : std::nullopt;
    const auto made = client::allocate_in_order(session, bytes, from, *id);
    if (!made && made.error().why == client::Refusal::kInvalidHandle) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    *address = made.value_or(0);
    if (!made) return std::unexpected<Failure>(made.error());
    return {};
  });
}

template <typename Body>
CUresult about_pool(CUmemoryPool pool, const Body& body,
                    const char* name = __builtin_FUNCTION()) noexcept {
  return with_device(
      [&](Session& session) -> Answer {
        Answer outcome = deny(CUDA_ERROR_INVALID_VALUE);
        session.memory().pools().with(address_of(pool),
                                      [&](Pools::Pool& its) { outcome = body(its); });
        return outcome;
      },
      name);
}

/// Whether slate has a pool for this type of memory at this place.
Answer need_pool(const CUmemLocation* location, CUmemAllocationType type) {
  const bool ours = location != nullptr && client::is_device(*location);
  if (!ours || type != CU_MEM_ALLOCATION_TYPE_PINNED) return deny(CUDA_ERROR_INVALID_VALUE);
  return {};
}

Answer set_pool(Session& session, CUmemoryPool pool) {
  if (!session.memory().pools().set_current(address_of(pool))) {
    return deny(CUDA_ERROR_INVALID_VALUE);
  }
  return {};
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;
using slate::client::Pools;

extern "C" {

CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, CUstream stream) {
  return allocate(address, bytes, std::nullopt, stream);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  return allocate(address, bytes, pool, stream);
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return with_session([&](Session& session) -> Answer {
    const auto id = stream_id(session, stream);
    if (!id) return std::unexpected(id.error());
    return client::free_in_order(session, address, *id);
  });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return with_device([&](Session& session) -> Answer {
    if (auto ok = need_device(device); !ok) return ok;
    return give(pool, pool_handle(session.memory().pools().default_pool()));
  });
}
CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return with_device([&](Session& session) -> Answer {
    if (auto ok = need_device(device); !ok) return ok;
    return give(pool, pool_handle(session.memory().pools().current_pool()));
  });
}
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  return with_device([&](Session& session) -> Answer {
    if (auto ok = need_device(device); !ok) return ok;
    return set_pool(session, pool);
  });
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location,
                                CUmemAllocationType type) {
  return with_device([&](Session& session) -> Answer {
    if (auto ok = need_pool(location, type); !ok) return ok;
    return give(pool, pool_handle(session.memory().pools().default_pool()));
  });
}
CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return with_device([&](Session& session) -> Answer {
    if (auto ok = need_pool(location, type); !ok) return ok;
    return give(pool, pool_handle(session.memory().pools().current_pool()));
  });
}
CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  return with_device([&](Session& session) -> Answer {
    if (auto ok = need_pool(location, type); !ok) return ok;
    return set_pool(session, pool);
  });
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  return with_device([&](Session& session) -> Answer {
    if (pool == nullptr || properties == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto ok = client::check_pool(*properties); !ok) return ok;
    *pool = pool_handle(session.memory().pools().create(properties->maxSize));
    return {};
  });
}
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return with_device([&](Session& session) -> Answer {
    if (!session.memory().pools().destroy(address_of(pool))) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    return {};
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t) {
  // Nothing is kept beyond what is in use.
  return about_pool(pool, [](Pools::Pool&) -> Answer { return {}; });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  const int number = attribute;
  return about_pool(
      pool, [&](Pools::Pool& its) -> Answer { return client::set_attribute(its, number, value); });
}
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  const int number = attribute;
  return about_pool(
      pool, [&](Pools::Pool& its) -> Answer { return client::tell_attribute(its, number, value); });
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* wishes, std::size_t count) {
  return about_pool(
      pool, [&](Pools::Pool&) -> Answer { return client::check_pool_access(wishes, count); });
}
CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  return about_pool(pool, [&](Pools::Pool&) -> Answer {
    if (flags == nullptr || location == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    if (!client::is_device(*location)) return deny(CUDA_ERROR_INVALID_DEVICE);
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return {};
  });
}

}  // extern "C"
