// The command ring as a hostile client leaves it: any bytes, any tail. Every command that the ring
// gives out is decoded by its row. session_fuzz.cc has commands carried out.
#include <algorithm>
#include <memory>

#include "base/check.h"
#include "ipc/ring.h"
#include "tests/fuzz/target.h"

namespace slate::fuzz {
namespace {

constexpr int kMostCommands = 4096;

/// What the dispatcher and the held commands ask of a row.
void decode(const ipc::Command& command) {
  const auto known = [&command]<typename Row>() {
    std::span<const std::byte> tail;
    const auto body = command.as<typename Row::Body>(&tail);
    if (!body) {
      SLATE_CHECK(body.error().code == ErrorCode::kProtocol);
      return false;
    }
    SLATE_CHECK(tail.size() <= command.body.size());
    (void)Row::order_of(*body);
    if constexpr (Row::kHasStream) (void)Row::stream_of(*body);
    if constexpr (Row::kHoldsSlot) (void)slot_of(*body);
    return true;
  };
  (void)ipc::visit_row<bool>(command.header.type, known, [] { return false; });
}

/// Pops until the ring is empty, or has what can be no command.
void drain(ipc::RingConsumer& consumer) {
  ipc::Command command;
  for (int i = 0; i < kMostCommands; ++i) {
    const std::uint64_t before = consumer.position();
    const auto popped = consumer.try_pop(command);
    if (!popped) {
      SLATE_CHECK(popped.error().code == ErrorCode::kProtocol);
      return;
    }
    if (!*popped) return;
    SLATE_CHECK(consumer.position() > before);
    SLATE_CHECK(command.body.size() <= ipc::kMaxCommandBytes);
    decode(command);
  }
}

}  // namespace

void run(Input input) {
  static const auto segment = std::make_unique<ipc::SegmentLayout>();
  segment->status.ring_tail.store(take<std::uint64_t>(input));
  segment->status.ring_head.store(0);
  const Input bytes = take_bytes(input, ipc::kRingBytes);
  std::ranges::copy(bytes, segment->ring);
  ipc::RingConsumer consumer(segment.get());
  drain(consumer);
  std::fill_n(segment->ring, bytes.size(), std::byte{0});
}

}  // namespace slate::fuzz
