// EventTimes: the part of a session's book (book.h) that has when the session's events were
// reached, by the clock of the host, which all engines share. So the time between two events is
// known where no engine has both. An event with timing has a row.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/book_pages.h"

namespace slate::daemon {

class EventTimes {
 public:
  static constexpr std::uint32_t kRows = 65536;
  static constexpr std::uint32_t kNoRow = ~0u;

  /// In shared memory. Writer: the engine. Reader: the next one. A time counts while `reached` is
  /// `recorded`: the engine may die between two stores.
  struct Row {
    std::atomic<std::uint64_t> recorded;  // position of the last recording; 0: none
    std::atomic<std::uint64_t> reached;   // position of the recording that `ns` is about
    std::atomic<std::int64_t> ns;         // base/clock.h
    std::atomic<std::uint32_t> stream;    // book's row of the stream of the last recording
    std::uint32_t reserved;
  };
  static_assert(sizeof(Row) == 32);
  struct Memory {
    Row rows[kRows];
  };
  struct Recording {
    std::uint64_t position = 0;  // of its command; 0: none
    std::uint32_t stream = 0;    // row of its stream in the book
  };
  /// The row of an event, for what sees that it is reached.
  struct Place {
    EventTimes* times = nullptr;  // null: none wants to know
    std::uint32_t row = kNoRow;
  };

  /// `memory` lies at `begin` of the shared memory `fd`. All of it outlives this. Nothing is
  /// written while `frozen`.
  EventTimes(Memory& memory, int fd, std::uint64_t begin, const std::atomic<bool>& frozen);

  // Session thread.
  /// The row of a new event. kNoRow: there is none left, or no memory.
  std::uint32_t take();
  void give(std::uint32_t row);
  /// Takes a row that the engine before had given an event. Requires: nothing was taken yet.
  /// Returns the event's last recording. One without a time, as its engine died in that moment,
  /// gets the present one.
  Recording take_again(std::uint32_t row);
  /// The event was recorded. Its time is not known any more.
  void recorded(std::uint32_t row, const Recording& recording);
  /// Corrects a known time.
  void set(std::uint32_t row, std::int64_t ns);

  // Any thread.
  /// The recording by the command at `position` is reached. The first call of these counts, and
  /// only if it is the last recording.
  void reached(std::uint32_t row, std::uint64_t position);
  /// When the last recording was reached; nullopt: not known.
  std::optional<std::int64_t> time(std::uint32_t row) const;

 private:
  static constexpr std::uint64_t kBeingWritten = ~std::uint64_t{0};

  bool has_page(std::uint32_t row) { return pages_.take((row + 1) * sizeof(Row)).has_value(); }

  Memory& memory_;
  BookPages pages_;
  const std::atomic<bool>& frozen_;
  std::vector<bool> past_;            // rows of the engine before, and of this one up to next_
  std::uint32_t next_ = 0;            // first row that may never have been taken
  std::vector<std::uint32_t> given_;  // rows to be taken again
};

}  // namespace slate::daemon
