// SmallCopies: a ring of small places in registered memory, where the bytes of copies that came
// inside their command wait for the device. A place is free again when its stream's work is done,
// so that no copy needs a watch of its own. Session thread only.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "daemon/engine/stream_order.h"
#include "device/device.h"
#include "ipc/commands.h"

namespace slate::daemon {

class SmallCopies {
 public:
  explicit SmallCopies(device::Device& device) : device_(device) {}
  /// Requires: no copy from a place is under way.
  ~SmallCopies();
  SmallCopies(const SmallCopies&) = delete;
  SmallCopies& operator=(const SmallCopies&) = delete;

  /// Copies `bytes` to a place, and returns it; null when none is free. The place is kept until the
  /// next work on `stream` is done, which the caller is about to submit. Requires: at most
  /// ipc::kMostInlineBytes.
  const std::byte* put(std::span<const std::byte> bytes,
                       const std::shared_ptr<LogicalStream>& stream);

 private:
  static constexpr std::size_t kPlaces = 64;
  struct Place {
    std::shared_ptr<LogicalStream> stream;  // null: never used
    std::uint64_t until = 0;                // value of its `completed` that frees the place
  };
  struct Free {
    void operator()(std::byte* memory) const;
  };

  device::Device& device_;
  std::unique_ptr<std::byte, Free> memory_;  // made at the first use
  bool registered_ = false;
  std::array<Place, kPlaces> places_;
  std::size_t next_ = 0;
};

}  // namespace slate::daemon
