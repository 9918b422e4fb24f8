#include "scheduler/memory_turns.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace slate::scheduler {
namespace {

/// One decision: the candidates are gone through in the order of the table.
class Choice {
 public:
  Choice(std::span<const SessionMemory> sessions, const MemoryRules& rules, Time now)
      : sessions_(sessions), rules_(rules), now_(now) {}

  MemoryDecision make() {
    for (const SessionMemory& each : sessions_) {
      if (each.missing > 0) least_weight_ = std::min(least_weight_, each.weight);
    }
    for (const SessionMemory& each : sessions_) {
      if (each.missing > 0 && (next_ == nullptr || is_before(each, *next_))) next_ = &each;
    }
    if (next_ == nullptr) return decision_;
    decision_.next = next_->session;
    needed_ = next_->on_device - next_->spare + next_->missing;
    std::uint64_t taken = rules_.outside, least = rules_.outside + needed_;
    for (const SessionMemory& each : sessions_) {
      taken += each.on_device;
      if (&each != next_) least += each.on_device - each.movable;
    }
    if (least > rules_.capacity)
      decision_.beyond = std::min(least - rules_.capacity, next_->missing);
    const std::uint64_t wanted = taken + next_->missing - decision_.beyond;
    if (wanted > rules_.capacity) make_room(wanted - rules_.capacity);
    return decision_;
  }

 private:
  /// Whether `one` comes before `other` in the queue.
  bool is_before(const SessionMemory& one, const SessionMemory& other) const {
    if (is_old(one) != is_old(other)) return is_old(one);
    if (!is_old(one) && one.priority != other.priority) return one.priority > other.priority;
    if (one.fetches != other.fetches) return one.fetches;
    if (is_in_turn(one) != is_in_turn(other)) return is_in_turn(one);
    if (is_in_turn(one) && one.turn != other.turn) return one.turn < other.turn;
    if (one.since != other.since) return one.since < other.since;
    return one.session < other.session;
  }

  /// Of a waiting session.
  bool is_old(const SessionMemory& session) const { return now_ - session.since >= rules_.ageing; }

  /// What leaves without making room enough would have to come back for nothing.
  void make_room(std::uint64_t bytes) {
    short_ = bytes;
    std::vector<const SessionMemory*> waiting, idle, at_work;
    for (const SessionMemory& each : sessions_) {
      if (&each == next_ || each.movable == 0) continue;
      (each.missing > 0 ? waiting : is_idle(each) ? idle : at_work).push_back(&each);
    }
    std::ranges::sort(waiting, [&](auto* a, auto* b) { return is_before(*b, *a); });
    ask(waiting);
    std::ranges::sort(idle, [](auto* a, auto* b) {
      return std::pair(a->used, a->session) < std::pair(b->used, b->session);
    });
    ask(idle);
    leave(*next_, next_->spare);
    std::ranges::sort(at_work, [](auto* a, auto* b) {
      return std::tuple(a->priority, a->turn, a->session) <
             std::tuple(b->priority, b->turn, b->session);
    });
    for (const SessionMemory* each : at_work) {
      if (short_ == 0) break;
      if (has_to_go(*each, bytes)) {
        leave(*each, each->movable);
      } else {
        decision_.holders.push_back(each->session);
      }
    }
    if (short_ > 0) {
      decision_.leave.clear();
    } else {
      decision_.holders.clear();
    }
  }

  bool has_to_go(const SessionMemory& session, std::uint64_t bytes) {
    if (session.priority < next_->priority) return true;
    return (session.priority == next_->priority || is_old(*next_)) && is_over(session, bytes);
  }

  void ask(const std::vector<const SessionMemory*>& candidates) {
    for (const SessionMemory* each : candidates) leave(*each, each->movable);
  }

  void leave(const SessionMemory& session, std::uint64_t most) {
    const std::uint64_t bytes = std::min(most, short_);
    if (bytes == 0) return;
    decision_.leave.push_back({session.session, bytes});
    short_ -= bytes;
  }

  Time after(Time begin, double ms) const {
    return begin + std::chrono::duration_cast<Time::duration>(Milliseconds(ms));
  }

  /// Whether `end` has come. If not, that is when to decide again.
  bool has_come(Time end) {
    if (end <= now_) return true;
    decision_.again = std::min(decision_.again, end);
    return false;
  }

  /// A session that is moved out while it pauses has paused for as long as the way out and back of
  /// what the next one may take takes. What is short at present says little: it shrinks piece by
  /// piece, and the session would have to leave for each short pause.
  bool is_idle(const SessionMemory& session) {
    if (session.busy) return false;
    return has_come(after(session.used, exchange_ms(std::min(session.movable, needed_))));
  }

  /// Whether the turn has been worth an exchange of so many bytes.
  bool is_over(const SessionMemory& session, std::uint64_t bytes) {
    return !session.turn || has_come(end_of_turn(session, bytes));
  }

  /// Of a waiting session. Its turn does not go on while it waits.
  bool is_in_turn(const SessionMemory& session) const {
    const std::uint64_t needed = session.on_device - session.spare + session.missing;
    return session.turn && end_of_turn(session, needed) > session.since;
  }

  /// Requires: it has a turn.
  Time end_of_turn(const SessionMemory& session, std::uint64_t bytes) const {
    const double least = std::min(session.weight, least_weight_);
    const double share = least > 0 ? session.weight / least : 1;
    return after(*session.turn, exchange_ms(bytes) / rules_.overhead * share);
  }

  double exchange_ms(std::uint64_t bytes) const {
    return static_cast<double>(bytes) / rules_.bytes_per_ms;
  }

  const std::span<const SessionMemory> sessions_;
  const MemoryRules& rules_;
  const Time now_;
  const SessionMemory* next_ = nullptr;
  double least_weight_ = std::numeric_limits<double>::max();  // of those that wait
  std::uint64_t needed_ = 0;  // bytes that the next session's command needs
  std::uint64_t short_ = 0;   // bytes for which nobody leaves yet
  MemoryDecision decision_;
};

}  // namespace

MemoryDecision decide_memory(std::span<const SessionMemory> sessions, const MemoryRules& rules,
                             Time now) {
  return Choice(sessions, rules, now).make();
}

}  // namespace slate::scheduler
