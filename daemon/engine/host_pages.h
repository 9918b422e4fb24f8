// Pages of host memory, which the system clears as it gives them. Several threads take them, as one
// clears 1 to 2 GiB a second. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace slate::daemon {

/// Takes the pages of a writable mapping. Errors: kOutOfMemory.
Result<void> take_pages(std::byte* memory, std::uint64_t bytes);

}  // namespace slate::daemon
