// SmallCopies: where the bytes of copies that came inside their command wait for the device. A ring
// of small places in registered memory; a place is free again when the stream that used it has come
// that far, so that no copy needs a watch of its own. Session thread only.
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
  /// Requires: no copy from here is under way.
  ~SmallCopies();
  SmallCopies(const SmallCopies&) = delete;
  SmallCopies& operator=(const SmallCopies&) = delete;

  /// Copies `bytes` to a place that stays as it is until the next piece of work on `stream` has
  /// finished, which the caller is about to submit. Null when none is free.
  /// Requires: at most ipc::kMostInlineBytes.
  const std::byte* put(std::span<const std::byte> bytes,
                       const std::shared_ptr<LogicalStream>& stream);

 private:
  static constexpr std::size_t kPlaces = 64;
  struct Place {
    std::shared_ptr<LogicalStream> stream;  // null: never used
    std::uint64_t until = 0;                // of its completed
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
