// Copies: copies and fills of a session, by where the memory is. Places are not checked here but
// by the daemon: see covers(). With pinned host memory, on the device alone, and for fills they
// return at once; else those from the host return when the source may be changed, those to the host
// when the data is there. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/copy.h"
#include "base/result.h"
#include "client/session/host_blocks.h"
#include "client/session/host_functions.h"
#include "client/session/managed_guard.h"
#include "client/session/streams.h"
#include "client/session/waiting.h"
#include "client/session/wire.h"

namespace slate::client {

class Copies {
 public:
  explicit Copies(Session& session);

  /// Arrays are meant by the daemon's ids (ArrayTable::Entry::array).
  Result<void> copy(const Place& to, const Place& from, const Box& box, std::uint64_t stream);
  /// For a caller who would wait for the end of this copy of pinned memory: true when it need not,
  /// as the source was read already and nobody can look at the destination before it is there.
  /// False when nothing was done.
  Result<bool> take_to_device(std::uint64_t to, std::span<const std::byte> from,
                              std::uint64_t stream);
  /// Waits for all of them: to be called by who has made a stream, or shares memory, that lets
  /// somebody look sooner.
  Result<void> settle_taken();
  /// Bytes that are not the program's memory, so that no earlier work can write them: waits for
  /// nothing.
  Result<void> write(std::uint64_t to, std::span<const std::byte> bytes, std::uint64_t stream,
                     Sent* sent = nullptr);
  /// One plane, of kind kDevice.
  Result<void> fill(const Place& to, std::uint8_t value, const Box& box, std::uint64_t stream);
  /// True when all rows of this plane on the device lie in one allocation or variable of the
  /// session.
  bool covers(const Place& place, const Box& box) const;

 private:
  Result<void> copy_in(const Place& to, const Place& from, const Box& box, std::uint64_t stream);
  Result<void> copy_out(const Place& to, const Place& from, const Box& box, std::uint64_t stream);
  template <typename Other>
  Result<bool> copy_pinned(const HostBlock& block, const Place& to, const Place& from,
                           const Box& box, std::uint64_t stream, const Other& other);
  std::optional<HostBlock> pinned_block(const Place& host, const Box& box) const;
  Result<void> settle_host_memory(bool under_way, std::uint64_t stream);
  Result<void> stage_to_device(const Place& to, const Place& from, const Box& box,
                               std::uint64_t stream, Sent* sent = nullptr);
  Result<void> stage_to_host(const Place& to, const Place& from, const Box& box,
                             std::uint64_t stream);

  Session& session_;
  Streams& streams_;
  HostBlocks& host_blocks_;
  /// Where the newest copy of take_to_device() is; 0: none that may not be there yet.
  std::atomic<std::uint64_t> taken_at_{0};
};

}  // namespace slate::client
