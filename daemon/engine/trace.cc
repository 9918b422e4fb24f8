// The ring of the trace. trace_json.cc writes it out.
#include "daemon/engine/trace.h"

#include <algorithm>

namespace slate::daemon {
namespace {

constexpr std::size_t kMostNames = 16 << 10;
constexpr std::size_t kLongestName = 1024;
constexpr std::uint32_t kOther = 0;

}  // namespace

Trace::Trace(std::size_t capacity) : capacity_(capacity), names_{"(other)"} {
  ring_.reserve(capacity);
}

std::uint32_t Trace::name(std::string_view text) {
  const std::string key(text.substr(0, kLongestName));
  const MutexLock lock(mutex_);
  if (const auto found = numbers_.find(key); found != numbers_.end()) return found->second;
  if (capacity_ == 0 || names_.size() >= kMostNames) return kOther;
  const auto number = static_cast<std::uint32_t>(names_.size());
  names_.push_back(key);
  numbers_.emplace(key, number);
  return number;
}

void Trace::add(const TraceEvent& event) {
  if (capacity_ == 0) return;
  const MutexLock lock(mutex_);
  if (ring_.size() < capacity_) {
    ring_.push_back(event);
    return;
  }
  ring_[next_] = event;
  next_ = next_ + 1 == capacity_ ? 0 : next_ + 1;
}

void Trace::session_begins(std::uint64_t session, std::uint32_t program, std::uint32_t pid,
                           scheduler::Time at) {
  if (capacity_ == 0) return;
  {
    const MutexLock lock(mutex_);
    alive_[session] = {program, pid};
  }
  TraceEvent event{.at = at, .kind = TraceKind::kSessionBegins, .launch = {}, .reason = {}};
  event.launch.session = session;
  event.launch.kernel = program;
  event.launch.blocks = pid;
  add(event);
}

void Trace::session_ends(std::uint64_t session, scheduler::Time at) {
  TraceEvent event{.at = at, .kind = TraceKind::kSessionEnds, .launch = {}, .reason = {}};
  event.launch.session = session;
  {
    const MutexLock lock(mutex_);
    const auto found = alive_.find(session);
    if (found == alive_.end()) return;
    event.launch.kernel = found->second.name;
    event.launch.blocks = found->second.pid;
    alive_.erase(found);
  }
  add(event);
}

void Trace::launch_waits(const TraceLaunch& launch, scheduler::Time at) {
  add({.at = at, .kind = TraceKind::kWaits, .launch = launch, .reason = {}});
}

void Trace::launch_starts(const TraceLaunch& launch, scheduler::Time at) {
  add({.at = at, .kind = TraceKind::kStarts, .launch = launch, .reason = {}});
}

void Trace::launch_ends(const TraceLaunch& launch, double device_ms, std::uint32_t launches,
                        scheduler::Time at) {
  add({.at = at,
       .kind = TraceKind::kEnds,
       .launch = launch,
       .device_ms = device_ms,
       .launches = launches,
       .reason = {}});
}

void Trace::memory_moved(std::uint64_t session, bool out, std::uint64_t bytes, double ms,
                         scheduler::Time at) {
  TraceEvent event{.at = at,
                   .kind = out ? TraceKind::kMovedOut : TraceKind::kMovedIn,
                   .launch = {},
                   .device_ms = ms,
                   .reason = {}};
  event.launch.session = session;
  event.launch.blocks = bytes;
  add(event);
}

void Trace::resized(const TraceLaunch& launch, scheduler::Time at) {
  add({.at = at, .kind = TraceKind::kResized, .launch = launch, .reason = {}});
}

void Trace::retreated(const TraceLaunch& launch, scheduler::Time at) {
  TraceLaunch gone = launch;
  gone.placement = {};
  add({.at = at, .kind = TraceKind::kRetreated, .launch = gone, .reason = {}});
}

void Trace::resumed(const TraceLaunch& launch, scheduler::Time at) {
  add({.at = at, .kind = TraceKind::kResumed, .launch = launch, .reason = {}});
}

void Trace::decided(std::string_view reason, double score, scheduler::Time at) {
  if (reason.empty()) return;
  add({.at = at, .kind = TraceKind::kDecision, .launch = {}, .reason = reason, .score = score});
}

void Trace::policy_changed(std::string_view policy, scheduler::Time at) {
  add({.at = at, .kind = TraceKind::kPolicy, .launch = {}, .reason = policy});
}

TraceSnapshot Trace::snapshot(double seconds) const {
  TraceSnapshot result;
  result.start = start_;
  result.now = Clock::now();
  const auto since = seconds > 0
                         ? result.now - std::chrono::duration_cast<Clock::duration>(
                                            std::chrono::duration<double>(std::min(seconds, 1e6)))
                         : scheduler::Time::min();
  const MutexLock lock(mutex_);
  result.names = names_;
  result.sessions = alive_;
  result.events.reserve(ring_.size());
  for (std::size_t i = 0; i < ring_.size(); ++i) {
    const std::size_t index = next_ + i;
    const TraceEvent& event = ring_[index < ring_.size() ? index : index - ring_.size()];
    if (event.at < since) continue;
    result.events.push_back(event);
    if (event.kind == TraceKind::kSessionBegins || event.kind == TraceKind::kSessionEnds)
      result.sessions[event.launch.session] = {event.launch.kernel, event.launch.blocks};
  }
  return result;
}

}  // namespace slate::daemon
