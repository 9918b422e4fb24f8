// What a session's waits for memory, and its moves, mean for decide_memory() (memory_turns.h).
// MemoryWait: one session's waits, and its turn. ExchangeRates: how fast memory changes places.
// Pure: the caller says what happens, and when. Sizes are in bytes. Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "scheduler/memory_turns.h"

namespace slate::scheduler {

class MemoryWait {
 public:
  /// The session begins, and a turn with it.
  explicit MemoryWait(Time now) : turn_(now), used_(now) {}

  /// A command waits for what is `missing`. Of the session's others, `spare` could leave.
  void begin(Time now, std::uint64_t missing, std::uint64_t spare);
  /// `must_leave`: whether the session was asked to leave meanwhile. If not all has come, the next
  /// wait continues this one.
  void end(Time now, bool must_leave);
  /// The session cannot go on before another one's turn has ended.
  void block(Time now) { blocked_ = now; }
  /// There is room for so much of what is missing.
  void take(Time now, std::uint64_t bytes);
  /// There was no room after all.
  void untake(std::uint64_t bytes) { missing_ += bytes; }
  /// So much of what is missing need not come.
  void do_without(std::uint64_t bytes);
  /// The session uses its memory.
  void use(Time now) { used_ = now; }
  /// The session was asked to leave, and not for what it waits for itself.
  void end_turn() { turn_.reset(); }

  bool is_waiting() const { return is_waiting_; }
  /// Whether the next wait begins a turn.
  bool begins_turn() const { return !turn_; }
  std::uint64_t missing() const { return missing_; }
  /// Whether it has begun to take memory.
  bool fetches() const { return fetches_; }
  /// Whether all that it waits for has room. It is on its way, and about to be used.
  bool arrives() const { return is_waiting_ && missing_ == 0; }

  /// The session's memory on the device.
  struct Holding {
    std::uint64_t taken = 0;
    std::uint64_t leaving = 0;  // the part of it that was asked to leave
    std::uint64_t locked = 0;   // the part of it that must stay
  };
  /// For decide_memory(), without the session's number, weight and priority. `busy`: whether its
  /// work is under way.
  SessionMemory memory(Time now, const Holding& holding, bool busy) const;

 private:
  std::uint64_t missing_ = 0, spare_ = 0;  // as SessionMemory has them, and the next two
  bool fetches_ = false;
  std::optional<Time> turn_;
  bool is_waiting_ = false;
  bool begins_ = false;     // whether the turn counts from the end of this wait
  bool continues_ = false;  // whether the next wait continues the last one
  Time since_{}, used_{};   // as SessionMemory has them
  Time begun_{};            // begin of the newest wait, or of the newest part of it
  Time blocked_{};          // newest block()
};

class ExchangeRates {
 public:
  /// A move of so many bytes took so long.
  void note(bool out, std::uint64_t bytes, double ms);
  /// Bytes a millisecond of an exchange: the way out, and the way back.
  double bytes_per_ms() const;

 private:
  double out_ = 50e6;
  double in_ = 35e6;  // while the other way is in use, too
};

}  // namespace slate::scheduler
