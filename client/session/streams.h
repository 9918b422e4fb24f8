// Streams: the streams of a session, and the sending of work to them. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "client/session/handle_table.h"
#include "client/session/progress.h"
#include "client/session/stream_attributes.h"
#include "client/session/wire.h"

namespace slate::client {

/// The position of a command, and of the one before it on the same stream.
struct Sent {
  std::uint64_t position = 0;
  std::uint64_t before = 0;  // 0: the first, or the stream has no entry in the progress table
};

class Streams {
 public:
  explicit Streams(Wire& wire);

  const HandleTable& table() const { return table_; }
  ProgressTable& progress() { return progress_; }
  StreamAttributes& attributes() { return attributes_; }

  Result<std::uint64_t> create(std::uint32_t flags, std::int32_t priority);
  /// kInvalidHandle when there is no such stream.
  Result<void> destroy(std::uint64_t stream);
  /// Sends a command that puts work on the stream, and notes it in progress().
  template <typename Body>
  Result<void> post(ipc::CommandType type, const Body& body, std::uint64_t stream,
                    std::span<const std::byte> tail = {}, Sent* sent = nullptr) {
    ipc::PlaceNote note = progress_.note_of(progress_of(stream));
    auto ok = wire_.channel().post(type, body_of(body), tail, &note);
    if (sent != nullptr) *sent = {note.position, note.before};
    return ok;
  }
  /// A stream's entry in progress(); ipc::kNoProgress when it has none.
  std::uint32_t progress_of(std::uint64_t stream) const;
  /// Whether every stream waits for the default stream.
  bool all_ordered() const { return unordered_.load() == 0; }

 private:
  Wire& wire_;
  HandleTable table_;
  ProgressTable progress_;
  StreamAttributes attributes_;
  std::atomic<int> unordered_{0};  // streams that do not wait for the default stream
};

}  // namespace slate::client
