// Programs that ask to be profiled. The device's profiler belongs to the daemon, so that there is
// nothing to begin or to end.
#include <cudaProfiler.h>

#include "client/driver/front.h"

using namespace slate::driver;

extern "C" {

CUresult cuProfilerStart() {
  return with_context([](Session&) -> Answer { return {}; });
}
CUresult cuProfilerStop() {
  return with_context([](Session&) -> Answer { return {}; });
}

/// The driver's own answer since CUDA 12.
CUresult cuProfilerInitialize(const char*, const char*, CUoutput_mode) {
  return initialised([]() -> Answer { return deny(CUDA_ERROR_NOT_SUPPORTED); });
}

}  // extern "C"
