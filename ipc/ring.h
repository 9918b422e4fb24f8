// The command ring over shared memory: one producer (the client, under its mutex), one consumer
// (the engine's session thread). No waiting and no wake-ups here: channel.h adds them.
//
// A cache line that both sides write or read at every command costs more than the command. So each
// side keeps what it last saw of the other's position, and looks again when that is used up; the
// consumer tells of its own only now and then.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "ipc/segment.h"

namespace slate::ipc {

/// Client's end. Not thread-safe.
class RingProducer {
 public:
  explicit RingProducer(SegmentLayout* segment) : segment_(segment) {}

  /// Copies header, body and tail into the ring and publishes them. False when there is no room
  /// now. Requires: the record is at most kMaxCommandBytes.
  bool try_push(CommandType type, std::uint16_t reply_slot, std::uint32_t reply_sequence,
                std::span<const std::byte> body, std::span<const std::byte> tail);
  /// Where the last command ends in the stream of commands; RingConsumer counts alike.
  std::uint64_t position() const { return tail_; }

 private:
  void put(std::uint64_t position, std::span<const std::byte> bytes);
  SegmentLayout* segment_;
  std::uint64_t tail_ = 0;
  std::uint64_t head_ = 0;  // the consumer's, as last seen
};

/// A command copied out of shared memory: safe to look at.
struct Command {
  CommandHeader header;
  std::vector<std::byte> body;  // body_bytes long

  /// The body as `T`, whatever follows it in `rest`; kProtocol when it is too short.
  template <typename T>
  Result<T> as(std::span<const std::byte>* rest = nullptr) const {
    constexpr std::size_t kBytes = std::is_empty_v<T> ? 0 : sizeof(T);
    if (body.size() < kBytes) return fail(ErrorCode::kProtocol, "command is too short");
    T value;
    if constexpr (kBytes > 0) __builtin_memcpy(&value, body.data(), kBytes);
    if (rest) *rest = std::span(body).subspan(kBytes);
    return value;
  }
};

/// Engine's end. Not thread-safe. Trusts nothing in the segment.
class RingConsumer {
 public:
  explicit RingConsumer(SegmentLayout* segment) : segment_(segment) {}

  bool empty() const;
  /// Copies the next command into `command`. False when the ring is empty; kProtocol when what the
  /// client published cannot be a command: the session must end.
  Result<bool> try_pop(Command& command);
  /// Since the last call the producer was told that there is room in half of the ring or more: so
  /// that whoever waits for room finds it for any command, and for many.
  bool made_room();
  /// Where the last command that was popped ends.
  std::uint64_t position() const { return head_; }

 private:
  void tell_head();
  void prefetch_next() const;
  SegmentLayout* segment_;
  std::uint64_t head_ = 0;
  std::uint64_t told_ = 0;  // of head_, to the producer
  std::uint64_t tail_ = 0;  // the producer's, as last seen, and in range
  bool news_ = false;       // since made_room()
};

}  // namespace slate::ipc
