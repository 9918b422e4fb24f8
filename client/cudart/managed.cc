// Managed memory: its allocation, and what programs say and ask about it.
#include <cstring>
#include <vector>

#include "client/cudart/front.h"
#include "client/session/managed_hints.h"

namespace slate::cudart {
namespace {

using client::LocationName;
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
LocationName location_of(const cudaMemLocation& location) {
  int type = 0;  // a program may give a number that is none of the enum's
  std::memcpy(&type, &location.type, sizeof(type));
  return {type, location.id};
}

cudaError_t prefetch(const ManagedSpan& memory, const cudaMemLocation& location, unsigned flags,
                     cudaStream_t stream, DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    if (flags != 0) return deny(cudaErrorInvalidValue);
    const auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    return client::prefetch_managed(session, memory, location_of(location), *id);
  });
}

struct Batch {
  void** pointers;
  std::size_t* sizes;
  std::size_t count;
  cudaMemLocation* locations = nullptr;  // null: a discard without a prefetch
  std::size_t* first = nullptr;          // which operation each location begins with
  std::size_t location_count = 0;
  unsigned long long flags = 0;
};

/// Prefetches, or discards, or both.
cudaError_t run_batch(const Batch& batch, bool prefetches, cudaStream_t stream,
                      DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    if (batch.pointers == nullptr || batch.sizes == nullptr || batch.flags != 0)
      return deny(cudaErrorInvalidValue);
    std::vector<ManagedSpan> memory;
    for (std::size_t i = 0; i < batch.count; ++i)
      memory.push_back(span_of(batch.pointers[i], batch.sizes[i]));
    std::vector<LocationName> locations;
    if (batch.locations != nullptr && batch.first != nullptr &&
        batch.location_count <= batch.count) {
      for (std::size_t k = 0; k < batch.location_count; ++k)
        locations.push_back(location_of(batch.locations[k]));
    }
    const auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    return client::run_hint_batch(session, {memory, locations, {batch.first, locations.size()}},
                                  prefetches, *id);
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
    const auto made =
        session.host_memory().allocate_managed(bytes, slate::client::kTagManaged, flags);
    if (!made) return std::unexpected<Failure>(made.error());
    *address = pointer_to(*made);
    return {};
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
                                         location_of(location));
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
    if (data == nullptr || sizes == nullptr || attributes == nullptr || attribute_count == 0) {
      return deny(cudaErrorInvalidValue);
    }
    std::vector<slate::client::ManagedQuestion> questions;
    for (std::size_t i = 0; i < attribute_count; ++i) {
      int number = 0;
      std::memcpy(&number, &attributes[i], sizeof(number));
      questions.push_back({number, data[i], sizes[i]});
    }
    return slate::client::tell_managed(session, span_of(pointer, count), questions);
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
