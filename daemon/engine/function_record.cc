#include "daemon/engine/function_record.h"

#include <algorithm>

namespace slate::daemon {

std::uint32_t parameter_bytes_of(const device::FunctionInfo& info) {
  std::uint32_t bytes = 0;
  for (const auto& parameter : info.parameters)
    bytes = std::max(bytes, parameter.offset + parameter.size);
  return bytes;
}

}  // namespace slate::daemon
