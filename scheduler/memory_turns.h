// MemoryTurns: which sessions' memory is on the device, where not all of it fits. Pure: values in,
// a decision out. Idea: FlexGPU (papers: contents that no running kernel uses move to the host).
//
// One waiting session at a time may take memory, the next one. So no two sessions each hold what
// the other needs. Room for it is made by those that lose least:
//
// | what leaves | when |
// | --- | --- |
// | other waiting sessions, the last in the queue first | always |
// | idle sessions, the least recently used first | idle for as long as moving out and back takes |
// | the next session itself | for what its command does not need |
// | sessions of lower priority | always |
// | others of no higher priority, the longest there first | their turn is over |
//
// A turn lasts at least as long as the way out and back of the bytes that end it takes, divided by
// the bound on the overhead. A session that needs more memory during its turn comes before those
// whose turn has not begun. Its turn does not go on while it waits for the turns of others. After a
// long wait a session has the highest priority.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/policy.h"

namespace slate::scheduler {

/// One session's memory. Sizes are in bytes.
struct SessionMemory {
  std::uint64_t session = 0;
  double weight = 1;            // of the session among all; turns are in proportion
  int priority = 0;             // a larger number is a higher priority
  std::uint64_t on_device = 0;  // what it has there, without what is leaving
  std::uint64_t movable = 0;    // the part of it that may leave
  std::uint64_t missing = 0;    // what its waiting command lacks; 0: it does not wait
  std::uint64_t spare = 0;      // the movable part that the waiting command does not need
  bool fetches = false;         // whether it has begun to take memory for that command
  bool busy = false;            // whether work of it is under way
  Time since{};                 // begin of its wait
  std::optional<Time> turn{};   // begin of its turn, later by its waits for others since
                                // then; none: it was asked to leave since
  Time used{};                  // its newest command
};

struct MemoryLeave {
  std::uint64_t session = 0;
  std::uint64_t bytes = 0;  // how much at least has to leave
};

struct MemoryDecision {
  std::optional<std::uint64_t> next;  // the session that may take memory as room comes
  std::uint64_t beyond = 0;           // bytes of what it lacks for which there can never be room
  std::vector<MemoryLeave> leave;
  std::vector<std::uint64_t> holders;  // sessions whose turns keep the next one from having room
  Time again = kNever;                 // when more may leave, if nothing else happens before
};

struct MemoryRules {
  std::uint64_t capacity = 0;   // bytes for all sessions
  std::uint64_t outside = 0;    // bytes taken by what is no session's memory of segments
  double bytes_per_ms = 25e6;   // of exchanges: all of them leave, and all of them come back
  double overhead = 0.05;       // most part of the time that exchanges may take
  Milliseconds ageing{10'000};  // wait after which priorities do not count
};

/// Decides at `now`. The order of `sessions` does not matter.
MemoryDecision decide_memory(std::span<const SessionMemory> sessions, const MemoryRules& rules,
                             Time now);

}  // namespace slate::scheduler
