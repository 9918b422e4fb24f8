// What the device tells of the memory that graphs allocate.
#include "client/session/graph_memory.h"

#include "client/cudart/front.h"

using namespace slate::cudart;
using slate::client::GraphMemory;

namespace {

Answer check_device(int device) {
  if (device != 0) return deny(cudaErrorInvalidDevice);
  return {};
}

}  // namespace

extern "C" {

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value) {
  const int number = attribute;
  return with_session([&](Session&) -> Answer {
    if (auto ok = check_device(device); !ok) return ok;
    if (value == nullptr) return deny(cudaErrorInvalidValue);
    const GraphMemory::Totals totals = GraphMemory::totals();
    const std::uint64_t values[] = {totals.used, totals.used_high, totals.reserved,
                                    totals.reserved_high};
    if (number < 0 || number > cudaGraphMemAttrReservedMemHigh) return deny(cudaErrorInvalidValue);
    *static_cast<std::uint64_t*>(value) = values[number];
    return {};
  });
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value) {
  const int number = attribute;
  return with_session([&](Session&) -> Answer {
    if (auto ok = check_device(device); !ok) return ok;
    // High-water marks can only be taken back to the present.
    if (value == nullptr || *static_cast<const std::uint64_t*>(value) != 0) {
      return deny(cudaErrorInvalidValue);
    }
    if (number == cudaGraphMemAttrUsedMemHigh) {
      GraphMemory::reset_high_used();
    } else if (number == cudaGraphMemAttrReservedMemHigh) {
      GraphMemory::reset_high_reserved();
    } else {
      return deny(cudaErrorInvalidValue);
    }
    return {};
  });
}

/// Nothing is kept beyond what graphs need for their next launch.
cudaError_t cudaDeviceGraphMemTrim(int device) {
  return with_session([&](Session&) { return check_device(device); });
}

}  // extern "C"
