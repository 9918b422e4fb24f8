#include "ipc/ring.h"

#include <cstring>
#include <utility>

namespace slate::ipc {
namespace {

constexpr std::uint64_t kMask = kRingBytes - 1;
static_assert((kRingBytes & kMask) == 0);
static_assert(kMaxCommandBytes * 4 <= kRingBytes);  // made_room(): one, and a pad before it
// Every so many bytes the producer is told how far the consumer is.
constexpr std::uint64_t kTellEvery = kRingBytes / 8;
constexpr std::uint64_t kUsualBytes = 192;  // of a command
static_assert(kRingBytes % kCommandAlign == 0);

constexpr std::uint64_t round_up(std::uint64_t bytes) {
  return (bytes + kCommandAlign - 1) / kCommandAlign * kCommandAlign;
}

}  // namespace

void RingProducer::put(std::uint64_t position, std::span<const std::byte> bytes) {
  if (!bytes.empty()) std::memcpy(segment_->ring + (position & kMask), bytes.data(), bytes.size());
}

bool RingProducer::try_push(CommandType type, std::uint16_t reply_slot,
                            std::uint32_t reply_sequence, std::span<const std::byte> body,
                            std::span<const std::byte> tail) {
  const std::uint64_t body_bytes = body.size() + tail.size();
  const std::uint64_t bytes = round_up(sizeof(CommandHeader) + body_bytes);
  // A record never wraps: what is left at the end of the ring is skipped with a pad record.
  const std::uint64_t left = kRingBytes - (tail_ & kMask);
  const std::uint64_t pad = left < bytes ? left : 0;
  if (tail_ + pad + bytes - head_ > kRingBytes) {
    head_ = segment_->status.ring_head.load(std::memory_order_seq_cst);
    if (tail_ + pad + bytes - head_ > kRingBytes) return false;
  }
  if (pad > 0) {
    const CommandHeader header{static_cast<std::uint32_t>(pad), CommandType::kPad, kNoReply, 0, 0};
    put(tail_, std::as_bytes(std::span(&header, 1)));
    tail_ += pad;
  }
  const CommandHeader header{static_cast<std::uint32_t>(bytes), type, reply_slot, reply_sequence,
                             static_cast<std::uint32_t>(body_bytes)};
  put(tail_, std::as_bytes(std::span(&header, 1)));
  put(tail_ + sizeof(header), body);
  put(tail_ + sizeof(header) + body.size(), tail);
  tail_ += bytes;
  segment_->status.ring_tail.store(tail_, std::memory_order_seq_cst);
  return true;
}

bool RingConsumer::empty() const {
  return segment_->status.ring_tail.load(std::memory_order_seq_cst) == head_;
}

bool RingConsumer::made_room() {
  return std::exchange(news_, false) &&
         segment_->status.ring_tail.load(std::memory_order_relaxed) - told_ <= kRingBytes / 2;
}

/// The next command comes from the other side's cache, meanwhile.
void RingConsumer::prefetch_next() const {
  if (tail_ == head_) return;
  for (std::uint64_t i = 0; i < kUsualBytes; i += 64) {
    __builtin_prefetch(segment_->ring + ((head_ + i) & kMask));
  }
}

void RingConsumer::tell_head() {
  if (told_ == head_) return;
  told_ = head_;
  news_ = true;
  segment_->status.ring_head.store(head_, std::memory_order_seq_cst);
}

std::optional<RingConsumer::Next> RingConsumer::peek() const {
  std::uint64_t at = head_;
  const std::uint64_t end = segment_->status.ring_tail.load(std::memory_order_acquire);
  while (at < end && end - at <= kRingBytes) {
    Next next;
    std::memcpy(&next.header, segment_->ring + (at & kMask), sizeof(CommandHeader));
    if (next.header.bytes < sizeof(CommandHeader) || next.header.bytes > end - at) break;
    at += next.header.bytes;
    next.position = at;
    if (next.header.type != CommandType::kPad) return next;
  }
  return std::nullopt;
}

Result<bool> RingConsumer::try_pop(Command& command) {
  // What was popped so far has been taken, or it would not come to this. Until then it stays in
  // the ring, for another engine.
  if (head_ - told_ >= kTellEvery) tell_head();
  while (true) {
    if (tail_ == head_) {
      tell_head();
      const std::uint64_t tail = segment_->status.ring_tail.load(std::memory_order_acquire);
      if (tail - head_ > kRingBytes || (tail - head_) % kCommandAlign != 0)
        return fail(ErrorCode::kProtocol, "the ring's tail is out of range");
      tail_ = tail;
    }
    const std::uint64_t available = tail_ - head_;
    if (available == 0) return false;
    // One copy of the header; every later decision uses this copy.
    std::memcpy(&command.header, segment_->ring + (head_ & kMask), sizeof(CommandHeader));
    const CommandHeader& header = command.header;
    const std::uint64_t left = kRingBytes - (head_ & kMask);
    if (header.bytes < sizeof(CommandHeader) || header.bytes % kCommandAlign != 0 ||
        header.bytes > available || header.bytes > left)
      return fail(ErrorCode::kProtocol, "a command's length is out of range");
    const bool pad = header.type == CommandType::kPad;
    if (!pad) {
      if (header.bytes > kMaxCommandBytes ||
          header.body_bytes > header.bytes - sizeof(CommandHeader))
        return fail(ErrorCode::kProtocol, "a command's length is out of range");
      const std::byte* body = segment_->ring + ((head_ + sizeof(CommandHeader)) & kMask);
      command.body.assign(body, body + header.body_bytes);
    }
    head_ += header.bytes;
    prefetch_next();
    if (!pad) return true;
  }
}

}  // namespace slate::ipc
