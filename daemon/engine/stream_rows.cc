#include "daemon/engine/stream_rows.h"

namespace slate::daemon {

void StreamRows::add(LogicalStream& stream, const device::LaunchSpec& spec) {
  if (stream.row.empty()) filled_.push_back(&stream);
  stream.row.add(spec);
}

void StreamRows::submit_launches(LogicalStream& stream) {
  std::erase(filled_, &stream);
  const auto done = stream.row.submit(device_, stream.device);
  if (done) return;
  stream.refused = true;
  if (on_refusal_) on_refusal_(done.error());
}

void StreamRows::submit_all() {
  while (!filled_.empty()) submit(*filled_.back());
}

}  // namespace slate::daemon
