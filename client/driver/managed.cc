// What programs say and ask about managed memory. Its allocation is in memory.cc.
#include <cstring>
#include <vector>

#include "client/driver/front.h"
#include "client/session/managed_hints.h"

namespace slate::driver {
namespace {

using client::LocationName;
using client::ManagedQuestion;
using client::ManagedSpan;
static_assert(client::kLocationOfDevice == CU_MEM_LOCATION_TYPE_DEVICE &&
              client::kLocationOfHost == CU_MEM_LOCATION_TYPE_HOST &&
              client::PagePlace::kHostId == CU_DEVICE_CPU &&
              client::PagePlace::kNoId == CU_DEVICE_INVALID);

LocationName location_of(const CUmemLocation& location) {
  int type = 0;  // a program may give a number that is none of the enum's
  std::memcpy(&type, &location.type, sizeof(type));
  return {type, location.id};
}

CUresult prefetch(const ManagedSpan& memory, const LocationName& location, unsigned flags,
                  CUstream stream) {
  return with_session([&](Session& session) -> Answer {
    if (flags != 0) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto id = stream_id(session, stream);
    if (!id) return std::unexpected(id.error());
    return client::prefetch_managed(session, memory, location, *id);
  });
}

CUresult advise(const ManagedSpan& memory, int advice, const LocationName& location) {
  return with_session([&](Session& session) -> Answer {
    return client::advise_managed(session, memory, advice, location);
  });
}

struct Batch {
  const CUdeviceptr* addresses;
  const std::size_t* sizes;
  std::size_t count;
  const CUmemLocation* locations = nullptr;  // null: a discard without a prefetch
  const std::size_t* first = nullptr;        // which operation each location begins with
  std::size_t location_count = 0;
  unsigned long long flags = 0;
};

/// Prefetches, or discards, or both.
CUresult run_batch(const Batch& batch, bool prefetches, CUstream stream) {
  return with_session([&](Session& session) -> Answer {
    if (batch.addresses == nullptr || batch.sizes == nullptr || batch.flags != 0)
      return deny(CUDA_ERROR_INVALID_VALUE);
    std::vector<ManagedSpan> memory;
    for (std::size_t i = 0; i < batch.count; ++i)
      memory.push_back({batch.addresses[i], batch.sizes[i]});
    std::vector<LocationName> locations;
    if (batch.locations != nullptr && batch.first != nullptr &&
        batch.location_count <= batch.count) {
      for (std::size_t k = 0; k < batch.location_count; ++k)
        locations.push_back(location_of(batch.locations[k]));
    }
    const auto id = stream_id(session, stream);
    if (!id) return std::unexpected(id.error());
    return client::run_hint_batch(session, {memory, locations, {batch.first, locations.size()}},
                                  prefetches, *id);
  });
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuMemPrefetchAsync(CUdeviceptr address, std::size_t bytes, CUdevice device,
                            CUstream stream) {
  return prefetch({address, bytes}, client::location_of_device(device), 0, stream);
}
CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, std::size_t bytes, CUmemLocation location,
                               unsigned flags, CUstream stream) {
  return prefetch({address, bytes}, location_of(location), flags, stream);
}
CUresult cuMemAdvise(CUdeviceptr address, std::size_t bytes, CUmem_advise advice, CUdevice device) {
  return advise({address, bytes}, advice, client::location_of_device(device));
}
CUresult cuMemAdvise_v2(CUdeviceptr address, std::size_t bytes, CUmem_advise advice,
                        CUmemLocation location) {
  return advise({address, bytes}, advice, location_of(location));
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr* addresses, std::size_t* sizes, std::size_t count,
                                 CUmemLocation* locations, std::size_t* first,
                                 std::size_t location_count, unsigned long long flags,
                                 CUstream stream) {
  return run_batch({addresses, sizes, count, locations, first, location_count, flags}, true,
                   stream);
}
CUresult cuMemDiscardBatchAsync(CUdeviceptr* addresses, std::size_t* sizes, std::size_t count,
                                unsigned long long flags, CUstream stream) {
  return run_batch({addresses, sizes, count, nullptr, nullptr, 0, flags}, false, stream);
}
CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* addresses, std::size_t* sizes,
                                           std::size_t count, CUmemLocation* locations,
                                           std::size_t* first, std::size_t location_count,
                                           unsigned long long flags, CUstream stream) {
  return run_batch({addresses, sizes, count, locations, first, location_count, flags}, true,
                   stream);
}

CUresult cuMemRangeGetAttribute(void* data, std::size_t size, CUmem_range_attribute attribute,
                                CUdeviceptr address, std::size_t bytes) {
  return cuMemRangeGetAttributes(&data, &size, &attribute, 1, address, bytes);
}
CUresult cuMemRangeGetAttributes(void** data, std::size_t* sizes, CUmem_range_attribute* attributes,
                                 std::size_t count, CUdeviceptr address, std::size_t bytes) {
  return with_session([&](Session& session) -> Answer {
    if (data == nullptr || sizes == nullptr || attributes == nullptr || count == 0)
      return deny(CUDA_ERROR_INVALID_VALUE);
    std::vector<ManagedQuestion> questions;
    for (std::size_t i = 0; i < count; ++i) {
      int number = 0;  // a program may give one that is none of the enum's
      std::memcpy(&number, &attributes[i], sizeof(number));
      questions.push_back({number, data[i], sizes[i]});
    }
    return client::tell_managed(session, {address, bytes}, questions);
  });
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, std::size_t bytes,
                                unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    const auto id = stream_id(session, stream);
    if (!id) return std::unexpected(id.error());
    return client::attach_managed(session, {address, bytes}, flags, *id);
  });
}

}  // extern "C"
