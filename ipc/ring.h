// The command ring over shared memory: one producer (the client, under its mutex), one consumer
// (the engine's session thread). No waiting and no waking here: channel.h adds them.
//
// A cache line that both sides touch at every command costs more than the command. So each side
// keeps the other's position as last seen and reads it again only when that is used up. The
// consumer publishes its own position only now and then.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "ipc/segment.h"

namespace slate::ipc {

/// The client's end. Thread: one at a time.
class RingProducer {
 public:
  explicit RingProducer(SegmentLayout* segment) : segment_(segment) {}

  /// Copies header, body and tail into the ring and publishes them. Returns false when there is no
  /// room now. Requires: the record is at most kMaxCommandBytes long.
  bool try_push(CommandType type, std::uint16_t reply_slot, std::uint32_t reply_sequence,
                std::span<const std::byte> body, std::span<const std::byte> tail);
  /// Position in the stream of commands, in bytes, at which the last command ends. RingConsumer
  /// counts alike.
  std::uint64_t position() const { return tail_; }

 private:
  /// Copies bytes to a position of the ring.
  void put(std::uint64_t position, std::span<const std::byte> bytes);
  SegmentLayout* segment_;
  std::uint64_t tail_ = 0;
  std::uint64_t head_ = 0;  // position of the consumer as last seen
};

/// A command copied out of shared memory, which the client cannot change any more.
struct Command {
  CommandHeader header;
  std::vector<std::byte> body;  // body_bytes long

  /// The body as `T`; `rest` receives what follows it. Errors: kProtocol when it is too short.
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

/// The engine's end. Thread: one at a time. Trusts nothing in the segment.
class RingConsumer {
 public:
  /// `start`: where another consumer has stopped; what is in the ring from there on is untouched.
  explicit RingConsumer(SegmentLayout* segment, std::uint64_t start = 0)
      : segment_(segment),
        head_(start),
        told_(segment->status.ring_head.load(std::memory_order_relaxed)),
        tail_(start) {}

  bool empty() const;
  struct Next {
    CommandHeader header;
    std::uint64_t position = 0;  // at which it ends
  };
  /// The next command, which stays in the ring; nullopt: there is none.
  std::optional<Next> peek() const;
  /// Copies the next command into `command`. Returns false when the ring is empty. Errors:
  /// kProtocol when what the client published cannot be a command; then the session must end.
  Result<bool> try_pop(Command& command);
  /// Whether the producer was told since the last call of room in half of the ring or more: a
  /// client that waits for room then finds it for any command, and for many.
  bool made_room();
  /// Position in the stream of commands, in bytes, at which the last popped command ends.
  std::uint64_t position() const { return head_; }

 private:
  /// Publishes `head_` to the producer.
  void tell_head();
  void prefetch_next() const;
  SegmentLayout* segment_;
  std::uint64_t head_ = 0;
  std::uint64_t told_ = 0;  // value of `head_` that the producer was told
  std::uint64_t tail_ = 0;  // position of the producer as last seen, and in range
  bool news_ = false;       // whether tell_head() was called since made_room()
};

}  // namespace slate::ipc
