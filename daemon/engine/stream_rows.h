// StreamRows: the rows of one session's streams, and which of them have launches that the device
// does not have yet. Session thread only.
#pragma once

#include <functional>
#include <vector>

#include "daemon/engine/stream_order.h"

namespace slate::daemon {

class StreamRows {
 public:
  using OnRefusal = std::function<void(const Error&)>;

  /// `device` outlives it.
  explicit StreamRows(device::Device& device) : device_(device) {}

  /// `tell` gets the errors of launches that the device refused with their row.
  /// Requires: no launch has come yet.
  void report_refusals(OnRefusal tell) { on_refusal_ = std::move(tell); }

  /// Adds a launch to the stream's row. Requires: the row is not full, and the stream's device
  /// stream is ready for its first launch.
  void add(LogicalStream& stream, const device::LaunchSpec& spec);
  /// Gives the device the launches of this stream's row now, if there are any.
  void submit(LogicalStream& stream) {
    if (!stream.row.empty()) submit_launches(stream);
  }
  /// Gives the device the launches of all rows.
  void submit_all();

 private:
  void submit_launches(LogicalStream& stream);

  device::Device& device_;
  OnRefusal on_refusal_;
  std::vector<LogicalStream*> filled_;  // streams with launches in their row
};

}  // namespace slate::daemon
