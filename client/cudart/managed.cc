// Managed memory. It lies in host memory that the device reaches at the same address, so pages
// never move: advice and prefetches are checked, remembered and told, and otherwise without effect.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "client/cudart/front.h"
#include "client/session/program_memory.h"

namespace slate::cudart {
namespace {

using client::PageAdvice;
using client::PagePlace;
static_assert(static_cast<int>(PagePlace::Kind::kNone) == cudaMemLocationTypeInvalid &&
              static_cast<int>(PagePlace::Kind::kDevice) == cudaMemLocationTypeDevice &&
              static_cast<int>(PagePlace::Kind::kHost) == cudaMemLocationTypeHost &&
              static_cast<int>(PagePlace::Kind::kHostNode) == cudaMemLocationTypeHostNuma &&
              PagePlace::kHostId == cudaCpuDeviceId && PagePlace::kNoId == cudaInvalidDeviceId);

using Pages = client::ManagedPages;

Maybe<Pages> pages_of(Session& session, const void* pointer, std::size_t count) {
  return client::managed_pages(session, address_of(pointer), count);
}

/// `numa`: whether a node of the host may be meant.
Maybe<PagePlace> place_of(const cudaMemLocation& location, bool numa) {
  int type = 0;  // a program may give a number that is none of the enum's
  std::memcpy(&type, &location.type, sizeof(type));
  switch (type) {
    case cudaMemLocationTypeDevice:
      if (location.id != 0) return deny(cudaErrorInvalidDevice);
      return PagePlace{PagePlace::Kind::kDevice, 0};
    case cudaMemLocationTypeHost:
      return PagePlace{PagePlace::Kind::kHost, PagePlace::kHostId};
    case cudaMemLocationTypeHostNuma:
      if (!numa || location.id < 0) return deny(cudaErrorInvalidValue);
      return PagePlace{PagePlace::Kind::kHostNode, location.id};
    case cudaMemLocationTypeHostNumaCurrent:
      // Which one that is makes no difference to memory that does not move.
      if (!numa) return deny(cudaErrorInvalidValue);
      return PagePlace{PagePlace::Kind::kHostNode, 0};
    default:
      return deny(cudaErrorInvalidValue);
  }
}

/// The stream that a hint is sent to, which has to be one that does not capture.
Maybe<std::uint64_t> hint_stream(Session& session, cudaStream_t stream, DefaultStream zero) {
  auto id = stream_id(session, stream, zero);
  if (!id) return id;
  if (auto refused = refuse_capture(session, *id)) return std::unexpected(refused->error());
  return id;
}

cudaError_t prefetch(const void* pointer, std::size_t count, const cudaMemLocation& location,
                     unsigned flags, cudaStream_t stream, DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    if (flags != 0) return deny(cudaErrorInvalidValue);
    const auto pages = pages_of(session, pointer, count);
    if (!pages) return std::unexpected(pages.error());
    const auto place = place_of(location, true);
    if (!place) return std::unexpected(place.error());
    const auto id = hint_stream(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    session.host_memory().advice().change(pages->begin, pages->end,
                                          [&](PageAdvice& advice) { advice.prefetched = *place; });
    return {};
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

/// Where each operation of the batch goes.
Maybe<std::vector<PagePlace>> places_of(const Batch& batch) {
  std::vector<PagePlace> places(batch.count);
  if (batch.locations == nullptr || batch.first == nullptr || batch.location_count == 0 ||
      batch.location_count > batch.count || batch.first[0] != 0) {
    return deny(cudaErrorInvalidValue);
  }
  for (std::size_t k = 0; k < batch.location_count; ++k) {
    const bool last = k + 1 == batch.location_count;
    const std::size_t end = last ? batch.count : batch.first[k + 1];
    if (end <= batch.first[k] || end > batch.count) return deny(cudaErrorInvalidValue);
    const auto place = place_of(batch.locations[k], true);
    if (!place) return std::unexpected(place.error());
    std::fill(places.begin() + static_cast<std::ptrdiff_t>(batch.first[k]),
              places.begin() + static_cast<std::ptrdiff_t>(end), *place);
  }
  return places;
}

/// Prefetches, or discards (whose contents may as well stay), or both.
cudaError_t run_batch(const Batch& batch, bool prefetches, cudaStream_t stream,
                      DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    if (batch.pointers == nullptr || batch.sizes == nullptr || batch.count == 0 ||
        batch.flags != 0) {
      return deny(cudaErrorInvalidValue);
    }
    const bool is_legacy = stream == cudaStreamLegacy || (stream == nullptr && zero == kLegacy);
    if (is_legacy) return deny(cudaErrorInvalidValue);
    std::vector<Pages> ranges;
    for (std::size_t i = 0; i < batch.count; ++i) {
      const auto pages = pages_of(session, batch.pointers[i], batch.sizes[i]);
      if (!pages) return std::unexpected(pages.error());
      ranges.push_back(*pages);
    }
    const auto places = prefetches ? places_of(batch) : Maybe<std::vector<PagePlace>>();
    if (!places) return std::unexpected(places.error());
    const auto id = hint_stream(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    for (std::size_t i = 0; prefetches && i < batch.count; ++i) {
      session.host_memory().advice().change(
          ranges[i].begin, ranges[i].end,
          [&](PageAdvice& advice) { advice.prefetched = (*places)[i]; });
    }
    return {};
  });
}

Answer advise(Session& session, const Pages& pages, int advice, const cudaMemLocation& location) {
  const auto change = [&](const std::function<void(PageAdvice&)>& how) -> Answer {
    session.host_memory().advice().change(pages.begin, pages.end, how);
    return {};
  };
  switch (advice) {
    case cudaMemAdviseSetReadMostly:
    case cudaMemAdviseUnsetReadMostly:
      return change([&](PageAdvice& of) { of.read_mostly = advice == cudaMemAdviseSetReadMostly; });
    case cudaMemAdviseUnsetPreferredLocation:
      return change([](PageAdvice& of) { of.preferred = {}; });
    case cudaMemAdviseSetPreferredLocation: {
      const auto place = place_of(location, true);
      if (!place) return std::unexpected(place.error());
      return change([&](PageAdvice& of) { of.preferred = *place; });
    }
    case cudaMemAdviseSetAccessedBy:
    case cudaMemAdviseUnsetAccessedBy: {
      const auto place = place_of(location, false);
      if (!place) return std::unexpected(place.error());
      const bool set = advice == cudaMemAdviseSetAccessedBy;
      return change([&](PageAdvice& of) {
        (place->kind == PagePlace::Kind::kDevice ? of.by_device : of.by_host) = set;
      });
    }
    default:
      return deny(cudaErrorInvalidValue);
  }
}

/// The attribute's value, or cudaErrorInvalidValue for a number that is none or a size that is not
/// its.
Answer tell(const PageAdvice& advice, int attribute, void* data, std::size_t size) {
  if (data == nullptr) return deny(cudaErrorInvalidValue);
  if (attribute == cudaMemRangeAttributeAccessedBy) {
    if (size == 0 || size % sizeof(int) != 0) return deny(cudaErrorInvalidValue);
    std::vector<int> devices;
    if (advice.by_device) devices.push_back(0);
    if (advice.by_host) devices.push_back(cudaCpuDeviceId);
    devices.resize(size / sizeof(int), cudaInvalidDeviceId);
    std::memcpy(data, devices.data(), size);
    return {};
  }
  // What has no device's number is told as none.
  const auto device = [](const PagePlace& place) {
    return place.kind == PagePlace::Kind::kHostNode ? cudaInvalidDeviceId : place.id;
  };
  int value = 0;
  switch (attribute) {
    case cudaMemRangeAttributeReadMostly:
      value = advice.read_mostly ? 1 : 0;
      break;
    case cudaMemRangeAttributePreferredLocation:
      value = device(advice.preferred);
      break;
    case cudaMemRangeAttributeLastPrefetchLocation:
      value = device(advice.prefetched);
      break;
    case cudaMemRangeAttributePreferredLocationType:
      value = static_cast<int>(advice.preferred.kind);
      break;
    case cudaMemRangeAttributePreferredLocationId:
      value = advice.preferred.id;
      break;
    case cudaMemRangeAttributeLastPrefetchLocationType:
      value = static_cast<int>(advice.prefetched.kind);
      break;
    case cudaMemRangeAttributeLastPrefetchLocationId:
      value = advice.prefetched.id;
      break;
    default:
      return deny(cudaErrorInvalidValue);
  }
  if (size != sizeof(value)) return deny(cudaErrorInvalidValue);
  std::memcpy(data, &value, sizeof(value));
  return {};
}

cudaError_t attach(cudaStream_t stream, void* pointer, std::size_t length, unsigned flags,
                   DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    const auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    const auto range = client::find_managed(session, address_of(pointer));
    const bool known =
        flags == cudaMemAttachGlobal || flags == cudaMemAttachHost || flags == cudaMemAttachSingle;
    if (!known || !range || range->address != address_of(pointer) ||
        (length != 0 && length != range->bytes)) {
      return deny(cudaErrorInvalidValue);
    }
    if (flags == cudaMemAttachSingle && *id == ipc::kDefaultStream)
      return deny(cudaErrorInvalidValue);
    if (auto refused = refuse_capture(session, *id)) return *refused;
    return {};  // host and device may use it at any time
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
  return prefetch(pointer, count, location, flags, stream, kLegacy);
}
cudaError_t cudaMemPrefetchAsync_ptsz(const void* pointer, std::size_t count,
                                      cudaMemLocation location, unsigned flags,
                                      cudaStream_t stream) {
  return prefetch(pointer, count, location, flags, stream, kPerThread);
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
    const auto pages = pages_of(session, pointer, count);
    if (!pages) return std::unexpected(pages.error());
    return advise(session, *pages, number, location);
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
    const auto pages = pages_of(session, pointer, count);
    if (!pages) return std::unexpected(pages.error());
    const PageAdvice advice = session.host_memory().advice().common(pages->begin, pages->end);
    for (std::size_t i = 0; i < attribute_count; ++i) {
      int number = 0;
      std::memcpy(&number, &attributes[i], sizeof(number));
      if (auto told = tell(advice, number, data[i], sizes[i]); !told) return told;
    }
    return {};
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
