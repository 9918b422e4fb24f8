#include "daemon/engine/launch_row.h"

#include "base/check.h"

namespace slate::daemon {

void LaunchRow::add(const device::LaunchSpec& spec) {
  SLATE_CHECK(!is_full());
  specs_.push_back(spec);
  parameters_.insert(parameters_.end(), spec.parameters.begin(), spec.parameters.end());
}

Result<void> LaunchRow::submit(device::Device& device, device::Stream stream) {
  std::size_t offset = 0;
  for (device::LaunchSpec& spec : specs_) {
    spec.parameters = std::span(parameters_).subspan(offset, spec.parameters.size());
    offset += spec.parameters.size();
  }
  auto done = device.launch_row(specs_, stream);
  specs_.clear();
  parameters_.clear();
  return done;
}

}  // namespace slate::daemon
