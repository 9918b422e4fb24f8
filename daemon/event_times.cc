#include "daemon/event_times.h"

#include "base/clock.h"

namespace slate::daemon {

EventTimes::EventTimes(Memory& memory, int fd, std::uint64_t begin, const std::atomic<bool>& frozen)
    : memory_(memory), pages_(fd, begin), frozen_(frozen) {}

std::uint32_t EventTimes::take() {
  std::uint32_t row = kNoRow;
  if (!given_.empty()) {
    row = given_.back();
    given_.pop_back();
  } else {
    while (next_ < past_.size() && past_[next_]) ++next_;
    if (next_ == kRows || !has_page(next_)) return kNoRow;
    row = next_++;
  }
  recorded(row, {});
  return row;
}

void EventTimes::give(std::uint32_t row) {
  if (row < kRows) given_.push_back(row);
}

EventTimes::Recording EventTimes::take_again(std::uint32_t row) {
  if (row >= kRows || !has_page(row)) return {};
  if (past_.size() <= row) past_.resize(row + 1);
  past_[row] = true;
  Row& of = memory_.rows[row];
  const Recording last{of.recorded.load(std::memory_order_acquire), of.stream.load()};
  if (last.position == 0 || time(row)) return last;
  of.reached.store(0);
  reached(row, last.position);
  return last;
}

void EventTimes::recorded(std::uint32_t row, const Recording& recording) {
  if (row >= kRows || frozen_.load(std::memory_order_relaxed)) return;
  Row& of = memory_.rows[row];
  of.reached.store(0, std::memory_order_relaxed);
  of.stream.store(recording.stream, std::memory_order_relaxed);
  of.recorded.store(recording.position, std::memory_order_release);
}

void EventTimes::set(std::uint32_t row, std::int64_t ns) {
  if (row >= kRows || frozen_.load(std::memory_order_relaxed)) return;
  memory_.rows[row].ns.store(ns, std::memory_order_relaxed);
}

/// The session's thread may record the event again meanwhile. Then the time is of a recording that
/// is not the last one, and does not count.
void EventTimes::reached(std::uint32_t row, std::uint64_t position) {
  if (row >= kRows || frozen_.load(std::memory_order_relaxed)) return;
  Row& of = memory_.rows[row];
  if (of.recorded.load(std::memory_order_relaxed) != position) return;
  std::uint64_t seen = of.reached.load(std::memory_order_relaxed);
  if (seen == position || seen == kBeingWritten) return;
  if (!of.reached.compare_exchange_strong(seen, kBeingWritten)) return;
  of.ns.store(now_ns(), std::memory_order_relaxed);
  of.reached.store(position, std::memory_order_release);
}

std::optional<std::int64_t> EventTimes::time(std::uint32_t row) const {
  if (row >= kRows) return std::nullopt;
  const Row& of = memory_.rows[row];
  const std::uint64_t position = of.recorded.load(std::memory_order_relaxed);
  if (position == 0 || of.reached.load(std::memory_order_acquire) != position) return std::nullopt;
  return of.ns.load(std::memory_order_relaxed);
}

}  // namespace slate::daemon
