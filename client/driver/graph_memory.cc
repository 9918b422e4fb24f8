// What the device tells of the memory that graphs allocate.
#include "client/session/graph_memory.h"

#include "client/driver/front.h"

using namespace slate::driver;
using slate::client::GraphMemory;

extern "C" {

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute,
                                      void* value) {
  const int number = attribute;
  return initialised([&]() -> Answer {
    if (auto ok = need_device(device); !ok) return ok;
    return give(static_cast<cuuint64_t*>(value), GraphMemory::attribute(number));
  });
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute,
                                      void* value) {
  const int number = attribute;
  return initialised([&]() -> Answer {
    if (auto ok = need_device(device); !ok) return ok;
    if (value == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return GraphMemory::set_attribute(number, *static_cast<const cuuint64_t*>(value));
  });
}

/// Nothing is kept beyond what graphs need for their next launch.
CUresult cuDeviceGraphMemTrim(CUdevice device) {
  return initialised([&]() -> Answer { return need_device(device); });
}

}  // extern "C"
