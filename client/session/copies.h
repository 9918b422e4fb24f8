// Copies: copies and fills of a session, by place. The daemon checks the places, see covers().
// Fills, and copies of pinned memory or on the device alone, return at once. Other copies from the
// host return when the source may be changed, those to the host when the data is there.
// Thread-safe.
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

  /// Arrays are named by ArrayTable::Entry::array.
  Result<void> copy(const Place& to, const Place& from, const Box& box, std::uint64_t stream);
  /// For a copy of pinned memory for whose end the caller would wait. True: it need not wait. The
  /// source was read, and nobody can see the destination before the data is there. False: nothing
  /// was done.
  Result<bool> take_to_device(std::uint64_t to, std::span<const std::byte> from,
                              std::uint64_t stream);
  /// Waits for all copies of take_to_device(). To be called after making a stream, or sharing
  /// memory, that could show their destinations sooner.
  Result<void> settle_taken();
  /// Writes bytes outside of the program's memory. No earlier work can write them, so it waits for
  /// nothing.
  Result<void> write(std::uint64_t to, std::span<const std::byte> bytes, std::uint64_t stream,
                     Sent* sent = nullptr);
  /// Fills one plane of a place of kind kDevice. Requires: value.fits().
  Result<void> fill(const Place& to, FillValue value, const Box& box, std::uint64_t stream);
  /// Whether all rows of this plane on the device lie in one allocation or variable of the session.
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
  /// Position of take_to_device()'s newest copy; 0: no copy that may be under way.
  std::atomic<std::uint64_t> taken_at_{0};
};

}  // namespace slate::client
