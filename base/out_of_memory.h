// or_out_of_memory(): for what a stranger can make large. Without memory for it, it fails as
// everything else does, and nobody else is concerned. Any thread.
#pragma once

#include <new>
#include <stdexcept>
#include <type_traits>

#include "base/result.h"

namespace slate {

/// What `make` returns, a Result; kOutOfMemory where it throws for want of memory.
/// Requires: it leaves nothing half done then.
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
