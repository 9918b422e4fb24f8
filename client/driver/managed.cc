// What programs say and ask about managed memory. Its allocation is in memory.cc.
#include "client/driver/front.h"
#include "client/session/managed_hints.h"

namespace slate::driver {
namespace {

using client::LocationName;
using client::ManagedSpan;
static_assert(client::kLocationOfDevice == CU_MEM_LOCATION_TYPE_DEVICE &&
              client::kLocationOfHost == CU_MEM_LOCATION_TYPE_HOST &&
              client::PagePlace::kHostId == CU_DEVICE_CPU &&
              client::PagePlace::kNoId == CU_DEVICE_INVALID);

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

using PassedBatch = client::PassedHints<CUdeviceptr, CUmemLocation>;

/// Prefetches, or discards, or both.
CUresult run_batch(const PassedBatch& passed, bool prefetches, CUstream stream) {
  return with_session([&](Session& session) -> Answer {
    const auto batch = client::batch_of(passed);
    if (!batch) return std::unexpected<Failure>(batch.error());
    const auto id = stream_id(session, stream);
    if (!id) return std::unexpected(id.error());
    return client::run_hint_batch(session, *batch, prefetches, *id);
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
  return prefetch({address, bytes}, client::location_of(location), flags, stream);
}
CUresult cuMemAdvise(CUdeviceptr address, std::size_t bytes, CUmem_advise advice, CUdevice device) {
  return advise({address, bytes}, advice, client::location_of_device(device));
}
CUresult cuMemAdvise_v2(CUdeviceptr address, std::size_t bytes, CUmem_advise advice,
                        CUmemLocation location) {
  return advise({address, bytes}, advice, client::location_of(location));
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
    return client::tell_managed(session, {address, bytes}, data, sizes, attributes, count);
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
