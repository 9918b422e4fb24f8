// The functions of the stream-ordered allocator.
#include "client/cudart/front.h"
#include "client/session/program_memory.h"

namespace slate::cudart {
namespace {

using client::Pools;

cudaMemPool_t pool_handle(std::uint64_t pool) {
  return static_cast<cudaMemPool_t>(pointer_to(pool));
}

/// Allocates from `pool`, or from the device's current one.
cudaError_t allocate(void** address, std::size_t bytes, const cudaMemPool_t* pool,
                     cudaStream_t stream, DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr) return deny(cudaErrorInvalidValue);
    const auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    const auto from = pool == nullptr ? std::nullopt : std::optional(address_of(*pool));
    const auto made = client::allocate_in_order(session, bytes, from, *id);
    if (!made && made.error().why == client::Refusal::kInvalidHandle) {
      return deny(cudaErrorInvalidValue);
    }
    *address = pointer_to(made.value_or(0));
    if (!made) return std::unexpected<Failure>(made.error());
    return {};
  });
}

cudaError_t release(void* address, cudaStream_t stream, DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    const auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    return client::free_in_order(session, address_of(address), *id);
  });
}

template <typename Body>
cudaError_t about_pool(cudaMemPool_t pool, const Body& body) {
  return with_session([&](Session& session) -> Answer {
    Answer outcome = deny(cudaErrorInvalidValue);
    session.memory().pools().with(address_of(pool), [&](Pools::Pool& its) { outcome = body(its); });
    return outcome;
  });
}

/// cudaDeviceGetMemPool and its like.
template <typename Which>
cudaError_t tell_pool(cudaMemPool_t* pool, int device, const Which& which) {
  return with_session([&](Session& session) -> Answer {
    if (pool == nullptr) return deny(cudaErrorInvalidValue);
    if (device != 0) return deny(cudaErrorInvalidDevice);
    *pool = pool_handle(which(session.memory().pools()));
    return {};
  });
}

std::uint64_t default_of(client::Pools& pools) {
  return pools.default_pool();
}
std::uint64_t current_of(client::Pools& pools) {
  return pools.current_pool();
}

cudaError_t set_pool(int device, cudaMemPool_t pool) {
  return with_session([&](Session& session) -> Answer {
    if (device != 0) return deny(cudaErrorInvalidDevice);
    if (!session.memory().pools().set_current(address_of(pool))) {
      return deny(cudaErrorInvalidValue);
    }
    return {};
  });
}

/// The device that a location and a type of memory mean; -1 when slate has no pool there.
int device_of(const cudaMemLocation* location, cudaMemAllocationType type) {
  const bool ours = location != nullptr && client::is_device(*location);
  return ours && type == cudaMemAllocationTypePinned ? 0 : -1;
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;
using namespace slate;
using slate::client::Pools;

extern "C" {

cudaError_t cudaMallocAsync(void** address, std::size_t bytes, cudaStream_t stream) {
  return allocate(address, bytes, nullptr, stream, kLegacy);
}
cudaError_t cudaMallocAsync_ptsz(void** address, std::size_t bytes, cudaStream_t stream) {
  return allocate(address, bytes, nullptr, stream, kPerThread);
}
cudaError_t cudaMallocFromPoolAsync(void** address, std::size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  return allocate(address, bytes, &pool, stream, kLegacy);
}
cudaError_t cudaMallocFromPoolAsync_ptsz(void** address, std::size_t bytes, cudaMemPool_t pool,
                                         cudaStream_t stream) {
  return allocate(address, bytes, &pool, stream, kPerThread);
}
cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
  return release(address, stream, kLegacy);
}
cudaError_t cudaFreeAsync_ptsz(void* address, cudaStream_t stream) {
  return release(address, stream, kPerThread);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return tell_pool(pool, device, default_of);
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return tell_pool(pool, device, current_of);
}
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return set_pool(device, pool);
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* pool, cudaMemLocation* location,
                                     cudaMemAllocationType type) {
  if (device_of(location, type) != 0) return remember(cudaErrorInvalidValue);
  return tell_pool(pool, 0, default_of);
}
cudaError_t cudaMemGetMemPool(cudaMemPool_t* pool, cudaMemLocation* location,
                              cudaMemAllocationType type) {
  if (device_of(location, type) != 0) return remember(cudaErrorInvalidValue);
  return tell_pool(pool, 0, current_of);
}
cudaError_t cudaMemSetMemPool(cudaMemLocation* location, cudaMemAllocationType type,
                              cudaMemPool_t pool) {
  if (device_of(location, type) != 0) return remember(cudaErrorInvalidValue);
  return set_pool(0, pool);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return with_session([&](Session& session) -> Answer {
    if (pool == nullptr || properties == nullptr) return deny(cudaErrorInvalidValue);
    if (auto ok = client::check_pool(*properties); !ok) return ok;
    *pool = pool_handle(session.memory().pools().create(properties->maxSize));
    return {};
  });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return with_session([&](Session& session) -> Answer {
    if (!session.memory().pools().destroy(address_of(pool))) {
      return deny(cudaErrorInvalidValue);
    }
    return {};
  });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t) {
  // Nothing is kept beyond what is in use.
  return about_pool(pool, [](Pools::Pool&) -> Answer { return {}; });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  const int number = attribute;
  return about_pool(
      pool, [&](Pools::Pool& its) -> Answer { return client::set_attribute(its, number, value); });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  const int number = attribute;
  return about_pool(
      pool, [&](Pools::Pool& its) -> Answer { return client::tell_attribute(its, number, value); });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* wishes,
                                 std::size_t count) {
  return about_pool(
      pool, [&](Pools::Pool&) -> Answer { return client::check_pool_access(wishes, count); });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                 cudaMemLocation* location) {
  return about_pool(pool, [&](Pools::Pool&) -> Answer {
    if (flags == nullptr || location == nullptr) return deny(cudaErrorInvalidValue);
    if (!client::is_device(*location)) return deny(cudaErrorInvalidDevice);
    *flags = cudaMemAccessFlagsProtReadWrite;
    return {};
  });
}

}  // extern "C"
