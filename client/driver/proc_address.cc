// cuGetProcAddress: programs and cudart find the functions by name and CUDA version. It needs
// neither cuInit() nor a session.
#include <algorithm>

#include "client/driver/front.h"
#include "client/driver/functions.h"

namespace slate::driver {
namespace {

struct Found {
  void* function;  // null: see the status
  CUdriverProcAddressQueryResult status;
};

Found find_function(std::string_view name, int version, bool per_thread) {
  const auto names = named_functions();
  const auto named = std::ranges::lower_bound(names, name, {}, &NamedFunction::name);
  if (named == names.end() || named->name != name)
    return {nullptr, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND};
  void* function = nullptr;
  for (const FunctionVersion& each : named->versions) {
    if (each.since > version) break;
    function = per_thread ? each.per_thread : each.legacy;
  }
  if (function == nullptr) return {nullptr, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT};
  return {function, CU_GET_PROC_ADDRESS_SUCCESS};
}

Maybe<Found> proc_address(const char* name, void** function, int version, cuuint64_t flags) {
  constexpr cuuint64_t kKnownFlags =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (name == nullptr || function == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
  if (version > kNewestVersion || (flags & ~kKnownFlags) != 0)
    return deny(CUDA_ERROR_INVALID_VALUE);
  return find_function(name, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;

extern "C" {

CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags) {
  return answer([&]() -> Answer {
    const auto found = proc_address(symbol, pfn, cudaVersion, flags);
    if (!found) return std::unexpected(found.error());
    if (found->function == nullptr) return deny(CUDA_ERROR_NOT_FOUND);
    *pfn = found->function;
    return {};
  });
}

CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* symbolStatus) {
  return answer([&]() -> Answer {
    const auto found = proc_address(symbol, pfn, cudaVersion, flags);
    if (!found) return std::unexpected(found.error());
    *pfn = found->function;
    if (symbolStatus != nullptr) *symbolStatus = found->status;
    return {};
  });
}

}  // extern "C"
