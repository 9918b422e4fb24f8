// Managed memory: its allocation, and what programs say and ask about it.
#include "client/cudart/front.h"
#include "client/session/managed_hints.h"

namespace slate::cudart {
namespace {

using client::ManagedSpan;
using client::PagePlace;
static_assert(static_cast<int>(PagePlace::Kind::kNone) == cudaMemLocationTypeInvalid &&
              static_cast<int>(PagePlace::Kind::kDevice) == cudaMemLocationTypeDevice &&
              static_cast<int>(PagePlace::Kind::kHost) == cudaMemLocationTypeHost &&
              static_cast<int>(PagePlace::Kind::kHostNode) == cudaMemLocationTypeHostNuma &&
              PagePlace::kHostId == cudaCpuDeviceId && PagePlace::kNoId == cudaInvalidDeviceId);

ManagedSpan span_of(const void* pointer, std::size_t bytes) {
  return {address_of(pointer), bytes};
}
cudaError_t prefetch(const ManagedSpan& memory, const cudaMemLocation& location, unsigned flags,
                     cudaStream_t stream, DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    if (flags != 0) return deny(cudaErrorInvalidValue);
    const auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    return client::prefetch_managed(session, memory, client::location_of(location), *id);
  });
}

using Batch = client::PassedHints<void*, cudaMemLocation>;

/// Prefetches, or discards, or both.
cudaError_t run_batch(const Batch& passed, bool prefetches, cudaStream_t stream,
                      DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    const auto batch = client::batch_of(passed);
    if (!batch) return std::unexpected<Failure>(batch.error());
    const auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    return client::run_hint_batch(session, *batch, prefetches, *id);
  });
}

cudaError_t attach(cudaStream_t stream, void* pointer, std::size_t length, unsigned flags,
                   DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    const auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    return client::attach_managed(session, span_of(pointer, length), flags, *id);
  });
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;

extern "C" {

cudaError_t cudaMallocManaged(void** address, std::size_t bytes, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)) {
      return deny(cudaErrorInvalidValue);
    }
    if (auto ok = session.captures().check_allows(); !ok) return ok;
    if (bytes == 0) {
      *address = nullptr;
      return {};
    }
    return give_address(
        address, session.host_memory().allocate_managed(bytes, slate::client::kTagManaged, flags));
  });
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, std::size_t count, cudaMemLocation location,
                                 unsigned flags, cudaStream_t stream) {
  return prefetch(span_of(pointer, count), location, flags, stream, kLegacy);
}
cudaError_t cudaMemPrefetchAsync_ptsz(const void* pointer, std::size_t count,
                                      cudaMemLocation location, unsigned flags,
                                      cudaStream_t stream) {
  return prefetch(span_of(pointer, count), location, flags, stream, kPerThread);
}

cudaError_t cudaMemPrefetchBatchAsync(void** pointers, std::size_t* sizes, std::size_t count,
                                      cudaMemLocation* locations, std::size_t* first,
                                      std::size_t location_count, unsigned long long flags,
                                      cudaStream_t stream) {
  return run_batch({pointers, sizes, count, locations, first, location_count, flags}, true, stream,
                   kLegacy);
}
cudaError_t cudaMemPrefetchBatchAsync_ptsz(void** pointers, std::size_t* sizes, std::size_t count,
                                           cudaMemLocation* locations, std::size_t* first,
                                           std::size_t location_count, unsigned long long flags,
                                           cudaStream_t stream) {
  return run_batch({pointers, sizes, count, locations, first, location_count, flags}, true, stream,
                   kPerThread);
}

cudaError_t cudaMemDiscardBatchAsync(void** pointers, std::size_t* sizes, std::size_t count,
                                     unsigned long long flags, cudaStream_t stream) {
  return run_batch({pointers, sizes, count, nullptr, nullptr, 0, flags}, false, stream, kLegacy);
}
cudaError_t cudaMemDiscardBatchAsync_ptsz(void** pointers, std::size_t* sizes, std::size_t count,
                                          unsigned long long flags, cudaStream_t stream) {
  return run_batch({pointers, sizes, count, nullptr, nullptr, 0, flags}, false, stream, kPerThread);
}

cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void** pointers, std::size_t* sizes,
                                                std::size_t count, cudaMemLocation* locations,
                                                std::size_t* first, std::size_t location_count,
                                                unsigned long long flags, cudaStream_t stream) {
  return run_batch({pointers, sizes, count, locations, first, location_count, flags}, true, stream,
                   kLegacy);
}
cudaError_t cudaMemDiscardAndPrefetchBatchAsync_ptsz(void** pointers, std::size_t* sizes,
                                                     std::size_t count, cudaMemLocation* locations,
                                                     std::size_t* first, std::size_t location_count,
                                                     unsigned long long flags,
                                                     cudaStream_t stream) {
  return run_batch({pointers, sizes, count, locations, first, location_count, flags}, true, stream,
                   kPerThread);
}

cudaError_t cudaMemAdvise(const void* pointer, std::size_t count, cudaMemoryAdvise advice,
                          cudaMemLocation location) {
  const int number = advice;
  return with_session([&](Session& session) -> Answer {
    return slate::client::advise_managed(session, span_of(pointer, count), number,
                                         slate::client::location_of(location));
  });
}

cudaError_t cudaMemRangeGetAttribute(void* data, std::size_t size, cudaMemRangeAttribute attribute,
                                     const void* pointer, std::size_t count) {
  return cudaMemRangeGetAttributes(&data, &size, &attribute, 1, pointer, count);
}

cudaError_t cudaMemRangeGetAttributes(void** data, std::size_t* sizes,
                                      cudaMemRangeAttribute* attributes,
                                      std::size_t attribute_count, const void* pointer,
                                      std::size_t count) {
  return with_session([&](Session& session) -> Answer {
    return slate::client::tell_managed(session, span_of(pointer, count), data, sizes, attributes,
                                       attribute_count);
  });
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, std::size_t length,
                                     unsigned flags) {
  return attach(stream, pointer, length, flags, kLegacy);
}
cudaError_t cudaStreamAttachMemAsync_ptsz(cudaStream_t stream, void* pointer, std::size_t length,
                                          unsigned flags) {
  return attach(stream, pointer, length, flags, kPerThread);
}

}  // extern "C"
