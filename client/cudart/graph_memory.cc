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
    return give(static_cast<std::uint64_t*>(value), GraphMemory::attribute(number));
  });
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value) {
  const int number = attribute;
  return with_session([&](Session&) -> Answer {
    if (auto ok = check_device(device); !ok) return ok;
    if (value == nullptr) return deny(cudaErrorInvalidValue);
    return GraphMemory::set_attribute(number, *static_cast<const std::uint64_t*>(value));
  });
}

/// Nothing is kept beyond what graphs need for their next launch.
cudaError_t cudaDeviceGraphMemTrim(int device) {
  return with_session([&](Session&) { return check_device(device); });
}

}  // extern "C"
