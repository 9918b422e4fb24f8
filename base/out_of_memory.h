// or_out_of_memory(): turns want of host memory into an Error, for work whose size a client
// decides. Other sessions go on. Thread: any.
#pragma once

#include <new>
#include <stdexcept>
#include <type_traits>

#include "base/result.h"

namespace slate {

/// Returns what `make` returns, a Result. Errors: those of `make`, and kOutOfMemory where it throws
/// for want of memory. Requires: it leaves nothing half done then.
template <typename Make>
std::invoke_result_t<Make> or_out_of_memory(const Make& make) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  return fail(ErrorCode::kOutOfMemory, "slate's engine has no memory left for this");
}

}  // namespace slate
