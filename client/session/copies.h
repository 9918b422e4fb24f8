// Copies: copies and fills of a session, by where the memory is. Addresses are not checked here but
// by the daemon: see covers(). With pinned host memory, on the device alone, and for fills they
// return at once; else those from the host return when the source may be changed, those to the host
// when the data is there. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "client/session/array_table.h"
#include "client/session/host_blocks.h"
#include "client/session/host_functions.h"
#include "client/session/managed_guard.h"
#include "client/session/streams.h"
#include "client/session/waiting.h"
#include "client/session/wire.h"

namespace slate::client {

/// `height` rows of `width` bytes.
struct Shape {
  std::uint64_t width = 0;
  std::uint64_t height = 1;
};

/// Rows on the device, `pitch` bytes apart.
struct DeviceRows {
  std::uint64_t address = 0;
  std::uint64_t pitch = 0;
};

/// The size of a copy of three dimensions; the width in bytes.
struct Box {
  std::uint64_t width = 0;
  std::uint64_t height = 1, depth = 1;

  bool empty() const { return width == 0 || height == 0 || depth == 0; }
};

/// Where such a copy begins in an array, or in memory with rows `pitch` and planes `slice` apart.
struct ArrayPlace {
  ArrayTable::Entry array;
  std::uint64_t x = 0;  // bytes
  std::uint64_t y = 0, z = 0;
};
struct DevicePlanes {
  std::uint64_t address = 0;
  std::uint64_t pitch = 0, slice = 0;
};
struct HostPlanes {
  std::byte* memory = nullptr;  // not written where it is what a copy reads
  std::uint64_t pitch = 0, slice = 0;
};

class Copies {
 public:
  explicit Copies(Session& session);

  Result<void> copy_to_device(DeviceRows to, const std::byte* from, std::uint64_t from_pitch,
                              Shape shape, std::uint64_t stream);
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
  Result<void> copy_to_host(std::byte* to, std::uint64_t to_pitch, DeviceRows from, Shape shape,
                            std::uint64_t stream);
  Result<void> copy_on_device(DeviceRows to, DeviceRows from, Shape shape, std::uint64_t stream);
  Result<void> fill(DeviceRows to, std::uint8_t value, Shape shape, std::uint64_t stream);
  /// True when all of these rows lie in one allocation or variable of this session.
  bool covers(DeviceRows rows, Shape shape) const;

  Result<void> copy_box(const ArrayPlace& to, const ArrayPlace& from, Box box,
                        std::uint64_t stream);
  Result<void> copy_box(const ArrayPlace& to, const DevicePlanes& from, Box box,
                        std::uint64_t stream);
  Result<void> copy_box(const DevicePlanes& to, const ArrayPlace& from, Box box,
                        std::uint64_t stream);
  Result<void> copy_box(const ArrayPlace& to, const HostPlanes& from, Box box,
                        std::uint64_t stream);
  Result<void> copy_box(const HostPlanes& to, const ArrayPlace& from, Box box,
                        std::uint64_t stream);

 private:
  template <typename Other>
  Result<bool> copy_pinned(const HostBlock& block, DeviceRows device_rows, std::uint64_t host,
                           std::uint64_t host_pitch, Shape shape, std::uint64_t stream,
                           bool to_device, const Other& other);
  std::optional<HostBlock> pinned_block(std::uint64_t host, std::uint64_t pitch, Shape shape) const;
  Result<void> settle_host_memory(bool under_way, std::uint64_t stream);
  Result<void> stage_to_device(DeviceRows to, const std::byte* from, std::uint64_t from_pitch,
                               Shape shape, std::uint64_t stream, Sent* sent = nullptr);
  Result<void> stage_to_host(std::byte* to, std::uint64_t to_pitch, DeviceRows from, Shape shape,
                             std::uint64_t stream);
  Result<void> post_box(const ipc::BoxPlace& to, const ipc::BoxPlace& from, Box box,
                        std::uint64_t stream);
  Result<std::optional<ipc::BoxPlace>> pinned_planes(const HostPlanes& planes, Box box,
                                                     std::uint64_t stream);

  Session& session_;
  Streams& streams_;
  HostBlocks& host_blocks_;
  /// Where the newest copy of take_to_device() is; 0: none that may not be there yet.
  std::atomic<std::uint64_t> taken_at_{0};
};

}  // namespace slate::client
