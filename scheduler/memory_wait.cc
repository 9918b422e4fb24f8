#include "scheduler/memory_wait.h"

#include <algorithm>
#include <utility>

#include "base/sizes.h"

namespace slate::scheduler {

void MemoryWait::begin(Time now, std::uint64_t missing, std::uint64_t spare) {
  missing_ = missing;
  spare_ = spare;
  fetches_ = false;
  begun_ = now;
  if (!std::exchange(continues_, false)) since_ = now;
  is_waiting_ = true;
}

void MemoryWait::end(Time now, bool must_leave) {
  continues_ = missing_ > 0 && must_leave;
  missing_ = spare_ = 0;
  fetches_ = false;
  used_ = now;
  if (std::exchange(begins_, false)) {
    turn_ = now;
  } else if (turn_ && blocked_ > begun_) {
    // A turn does not go on while the session waits for the turns of others.
    *turn_ += blocked_ - begun_;
  }
  is_waiting_ = false;
}

void MemoryWait::take(Time now, std::uint64_t bytes) {
  fetches_ = true;
  if (!turn_) {
    turn_ = now;
    begins_ = true;
  }
  do_without(bytes);
}

void MemoryWait::do_without(std::uint64_t bytes) {
  missing_ = difference(missing_, bytes);
}

SessionMemory MemoryWait::memory(Time now, const Holding& holding, bool busy) const {
  const std::uint64_t leaving = std::min(holding.leaving, holding.taken);
  return {.on_device = holding.taken - leaving,
          .movable = difference(holding.taken - leaving, holding.locked),
          .missing = missing_,
          .spare = difference(spare_, leaving),
          .fetches = fetches_,
          .busy = busy || arrives(),
          .since = since_,
          .turn = arrives() ? now : turn_,
          .used = used_};
}

void ExchangeRates::note(bool out, std::uint64_t bytes, double ms) {
  // Short moves say little of the link.
  constexpr std::uint64_t kLeast = 64 << 20;
  if (bytes < kLeast || ms <= 0) return;
  double& rate = out ? out_ : in_;
  rate += (static_cast<double>(bytes) / ms - rate) / 4;
}

/// The two ways of the link overlap in part only. Segments that have not moved yet leave as a
/// whole, and more than what is short at the end of a turn has to move. The way to the device also
/// waits for the other session's work to end, which is no loss: so it counts at most twice.
double ExchangeRates::bytes_per_ms() const {
  return 1 / (1 / out_ + 1 / std::max(in_, out_ / 2));
}

}  // namespace slate::scheduler
