#include "daemon/engine/commands/owned_ranges.h"

#include <fmt/format.h>

namespace slate::daemon {

Result<void> OwnedRanges::check(device::Address address, std::uint64_t bytes) const {
  if (owns(address, bytes)) return {};
  return fail(ErrorCode::kInvalidValue,
              fmt::format("{} bytes at {:#x} are not this session's", bytes, address));
}

}  // namespace slate::daemon
