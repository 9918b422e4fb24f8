// Writes a snapshot of the trace as Chrome's trace-event JSON. First the events become launches
// with intervals (launches_of). Then every part writes its tracks: the sessions with their kernels,
// the units of SMs with the sessions on them, and the scheduler's decisions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/kernel_name.h"
#include "daemon/engine/trace.h"

namespace slate::daemon {
namespace {

using scheduler::Form;
using scheduler::Machine;
using scheduler::Placement;
using scheduler::Time;

/// Shorter pauses of one session on its SMs are those between two launches, and not drawn.
constexpr auto kSmallestGap = std::chrono::microseconds(20);

constexpr int kSchedulerTrack = 1;
constexpr int kMachineTrack = 2;
constexpr int kFirstSessionTrack = 10;
constexpr int kFirstWaitingLane = 1;
constexpr int kFirstKernelLane = 1000;
constexpr int kMemoryLane = 2000;

std::string in_quotes(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Part of a launch's time on the device, with one placement.
struct Hold {
  std::uint64_t session = 0;
  Placement placement;
  Time begin{}, end{};
};

/// A launch, as far as the snapshot knows it.
struct Life {
  TraceLaunch launch;
  std::optional<Time> waits, starts, ends;
  double device_ms = 0;
  std::uint32_t launches = 1;
  std::vector<std::pair<Time, Placement>> changes;  // of the placement, after the start
  Time begin{}, end{};                              // on the device, once started
  bool started() const { return starts.has_value(); }
};

void take(Life& life, const TraceEvent& event) {
  switch (event.kind) {
    case TraceKind::kWaits:
      life.waits = event.at;
      break;
    case TraceKind::kStarts:
      life.starts = event.at;
      life.launch = event.launch;
      break;
    case TraceKind::kEnds:
      life.ends = event.at;
      life.device_ms = event.device_ms;
      life.launches = event.launches;
      break;
    default:
      life.changes.emplace_back(event.at, event.launch.placement);
  }
}

/// When it was on the device. A launch that was queued behind others began later than it was given
/// to the device; one whose start the ring has forgotten was there from the beginning.
void settle(Life& life, const TraceSnapshot& snapshot) {
  const bool start_forgotten = !life.waits && !life.starts && !life.launch.placement.empty();
  if (start_forgotten) life.starts = snapshot.events.front().at;
  if (!life.starts) return;
  life.end = std::max(life.ends.value_or(snapshot.now), *life.starts);
  life.begin = *life.starts;
  if (!life.ends || life.device_ms <= 0 || !life.changes.empty()) return;
  const auto ran = std::chrono::duration_cast<Time::duration>(
      std::chrono::duration<double, std::milli>(life.device_ms));
  life.begin = std::clamp(life.end - ran, life.begin, life.end);
}

std::vector<Life> launches_of(const TraceSnapshot& snapshot) {
  std::vector<Life> lives;
  std::unordered_map<std::uint64_t, std::size_t> by_launch;
  for (const TraceEvent& event : snapshot.events) {
    if (event.kind < TraceKind::kWaits || event.kind > TraceKind::kResumed) continue;
    const auto [place, is_new] = by_launch.try_emplace(event.launch.launch, lives.size());
    if (is_new) lives.emplace_back().launch = event.launch;
    take(lives[place->second], event);
  }
  for (Life& life : lives) settle(life, snapshot);
  std::ranges::stable_sort(lives, {}, &Life::begin);
  return lives;
}

std::vector<Hold> holds_of(const std::vector<Life>& lives) {
  std::vector<Hold> holds;
  std::map<std::pair<std::uint64_t, Placement>, std::size_t> latest;
  const auto add = [&](const Hold& hold) {
    if (hold.placement.empty() || hold.end <= hold.begin) return;
    Placement units = hold.placement;
    units.blocks_per_sm = 0;
    units.ahead = false;
    const auto [place, is_new] = latest.try_emplace({hold.session, units}, holds.size());
    if (!is_new && hold.begin <= holds[place->second].end + kSmallestGap) {
      holds[place->second].end = std::max(holds[place->second].end, hold.end);
      return;
    }
    place->second = holds.size();
    holds.push_back(hold);
  };
  for (const Life& life : lives) {
    if (!life.started()) continue;
    Hold hold{life.launch.session, life.launch.placement, life.begin, life.end};
    for (const auto& [at, placement] : life.changes) {
      const Time change = std::clamp(at, hold.begin, life.end);
      hold.end = change;
      add(hold);
      hold.begin = change;
      hold.placement = placement;
    }
    hold.end = life.end;
    add(hold);
  }
  return holds;
}

/// Finds room beside one another for what overlaps: Perfetto wants the slices of a track apart.
class Lanes {
 public:
  int lane(Time begin, Time end) {
    const auto free =
        std::ranges::find_if(busy_until_, [&](const Time& until) { return until <= begin; });
    const auto index = free - busy_until_.begin();
    if (free == busy_until_.end()) {
      busy_until_.push_back(end);
    } else {
      *free = end;
    }
    return static_cast<int>(index);
  }
  int count() const { return static_cast<int>(busy_until_.size()); }

 private:
  std::vector<Time> busy_until_;
};

class Writer {
 public:
  Writer(const TraceSnapshot& snapshot, const Machine& machine)
      : snapshot_(snapshot), machine_(machine), lives_(launches_of(snapshot)) {
    for (const std::string& name : snapshot.names)
      names_.push_back(in_quotes(std::string(short_kernel_name(demangle(name)))));
  }

  std::string write() {
    out_ = fmt::format(
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"monotonic_us\":{:.0f}}},\"traceEvents\":["
        "\n",
        length({}, snapshot_.start));
    write_heads();
    write_scheduler();
    write_launches();
    write_moves();
    write_holders();
    out_.resize(out_.size() - 2);  // the last comma
    out_ += "\n]}\n";
    return std::move(out_);
  }

 private:
  struct Lane {
    Lanes waiting, kernels;
  };
  using Counts = std::map<std::uint64_t, std::uint32_t>;

  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += ",\n";
  }
  double us(Time at) const {
    return std::chrono::duration<double, std::micro>(at - snapshot_.start).count();
  }
  static double length(Time begin, Time end) {
    return std::chrono::duration<double, std::micro>(end - begin).count();
  }
  const std::string& name(std::uint32_t number) const {
    return names_[number < names_.size() ? number : 0];
  }
  int track(std::uint64_t session) {
    return tracks_.try_emplace(session, kFirstSessionTrack + static_cast<int>(tracks_.size()))
        .first->second;
  }
  std::string session_name(std::uint64_t session) const {
    const auto found = snapshot_.sessions.find(session);
    if (found == snapshot_.sessions.end()) return fmt::format("\"session {}\"", session);
    const std::string& program = name(found->second.name);
    return fmt::format("{} (session {}, pid {})\"", program.substr(0, program.size() - 1), session,
                       found->second.pid);
  }
  void head(int pid, const std::string& quoted_name) {
    line(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", pid, quoted_name);
    line(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})", pid,
         pid);
  }
  void thread(int pid, int tid, const std::string& text) {
    line(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})", pid, tid,
         text);
    line(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
         pid, tid, tid);
  }

  void write_heads();
  void write_scheduler();
  void write_launches();
  void write_moves();
  void write_kernel(const Life& life, int lane);
  void write_holders();
  void write_counts(Time at, Counts& shown);
  void write_unit(std::uint32_t unit, Time at);

  const TraceSnapshot& snapshot_;
  const Machine& machine_;
  const std::vector<Life> lives_;
  std::vector<std::string> names_;  // quoted
  std::map<std::uint64_t, int> tracks_;
  std::vector<Counts> held_;                        // by unit: holds a session
  std::vector<std::pair<Time, std::string>> unit_;  // by unit: holders as drawn, and since when
  std::vector<bool> touched_;                       // by unit: by the changes at one time
  std::string out_;
};

void Writer::write_heads() {
  head(kSchedulerTrack, "\"scheduler\"");
  head(kMachineTrack, "\"SMs\"");
  for (const auto& [session, about] : snapshot_.sessions)
    head(track(session), session_name(session));
  for (const Life& life : lives_) {
    if (tracks_.contains(life.launch.session)) continue;
    head(track(life.launch.session), session_name(life.launch.session));
  }
  for (std::uint32_t unit = 0; unit < machine_.units; ++unit) {
    thread(kMachineTrack, static_cast<int>(unit) + 1,
           "SMs " + scheduler::sms_text({.first = unit, .count = 1}, machine_));
  }
}

void Writer::write_scheduler() {
  thread(kSchedulerTrack, 1, "decisions");
  thread(kSchedulerTrack, 2, "sessions");
  for (const TraceEvent& event : snapshot_.events) {
    if (event.kind == TraceKind::kDecision || event.kind == TraceKind::kPolicy) {
      const std::string score = event.score > 0 && std::isfinite(event.score)
                                    ? fmt::format(R"(,"args":{{"score":{:.3f}}})", event.score)
                                    : "";
      line(R"({{"ph":"i","s":"t","cat":"{}","name":{},"ts":{:.3f},"pid":{},"tid":1{}}})",
           event.kind == TraceKind::kPolicy ? "policy" : "decision",
           in_quotes(std::string(event.reason)), us(event.at), kSchedulerTrack, score);
    } else if (event.kind <= TraceKind::kSessionEnds) {
      const bool begins = event.kind == TraceKind::kSessionBegins;
      line(
          R"({{"ph":"i","s":"t","cat":"session","name":"session {} {}","ts":{:.3f},"pid":{},"tid":2}})",
          event.launch.session, begins ? "begins" : "ends", us(event.at), kSchedulerTrack);
    }
  }
}

void Writer::write_launches() {
  std::map<std::uint64_t, Lane> lanes;
  for (const Life& life : lives_) {
    Lane& lane = lanes[life.launch.session];
    const int pid = track(life.launch.session);
    const Time waited_until = life.starts.value_or(life.ends.value_or(snapshot_.now));
    if (life.waits && waited_until > *life.waits) {
      line(R"({{"ph":"X","cat":"waiting","name":{},"ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{}}})",
           name(life.launch.kernel), us(*life.waits), length(*life.waits, waited_until), pid,
           kFirstWaitingLane + lane.waiting.lane(*life.waits, waited_until));
    }
    if (life.started()) {
      write_kernel(life, kFirstKernelLane + lane.kernels.lane(life.begin, life.end));
    }
  }
  for (const auto& [session, lane] : lanes) {
    for (int i = 0; i < lane.waiting.count(); ++i)
      thread(track(session), kFirstWaitingLane + i, "waiting");
    for (int i = 0; i < lane.kernels.count(); ++i)
      thread(track(session), kFirstKernelLane + i, "kernels");
  }
}

void Writer::write_moves() {
  std::set<int> named;
  for (const TraceEvent& event : snapshot_.events) {
    const bool out = event.kind == TraceKind::kMovedOut;
    if (!out && event.kind != TraceKind::kMovedIn) continue;
    const int pid = track(event.launch.session);
    const double took = event.device_ms * 1000;
    if (named.insert(pid).second) thread(pid, kMemoryLane, "memory");
    line(
        R"({{"ph":"X","cat":"memory","name":"{}","ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{},"args":{{"bytes":{}}}}})",
        out ? "out" : "in", us(event.at) - took, took, pid, kMemoryLane, event.launch.blocks);
  }
}

void Writer::write_kernel(const Life& life, int lane) {
  const int pid = track(life.launch.session);
  const std::string waited =
      life.waits
          ? fmt::format(",\"waited_us\":{:.1f}", std::max(0.0, length(*life.waits, life.begin)))
          : "";
  line(R"({{"ph":"X","cat":"kernel","name":{},"ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{},)"
       R"("args":{{"form":"{}","sms":"{}","blocks":{},"launches":{},"device_ms":{:.4f}{}}}}})",
       name(life.launch.kernel), us(life.begin), length(life.begin, life.end), pid, lane,
       scheduler::form_name(life.launch.form), scheduler::sms_text(life.launch.placement, machine_),
       life.launch.blocks, life.launches, life.device_ms, waited);
  const Placement* before = &life.launch.placement;
  for (const auto& [at, placement] : life.changes) {
    const char* const what = placement.empty() ? "retreat" : before->empty() ? "resume" : "resize";
    line(R"({{"ph":"i","s":"t","cat":"resize","name":"{} to {}","ts":{:.3f},"pid":{},"tid":{},)"
         R"("args":{{"from":"{}","to":"{}"}}}})",
         what, scheduler::sms_text(placement, machine_), us(at), pid, lane,
         scheduler::sms_text(*before, machine_), scheduler::sms_text(placement, machine_));
    before = &placement;
  }
}

/// Sweeps over the beginnings and ends of all holds, and draws each unit's holders and each
/// session's number of SMs whenever they change.
void Writer::write_holders() {
  struct Change {
    Time at;
    const Hold* hold;
    bool begins;
  };
  const std::vector<Hold> holds = holds_of(lives_);
  std::vector<Change> changes;
  for (const Hold& hold : holds) {
    changes.push_back({hold.begin, &hold, true});
    changes.push_back({hold.end, &hold, false});
  }
  std::ranges::stable_sort(changes, {}, &Change::at);
  held_.assign(machine_.units, {});
  unit_.assign(machine_.units, {});
  Counts shown;
  for (std::size_t i = 0; i < changes.size();) {
    const Time at = changes[i].at;
    touched_.assign(machine_.units, false);
    for (; i < changes.size() && changes[i].at == at; ++i) {
      const Hold& hold = *changes[i].hold;
      for (std::uint32_t unit = hold.placement.first;
           unit < std::min(hold.placement.end(), machine_.units); ++unit) {
        touched_[unit] = true;
        if (changes[i].begins) {
          ++held_[unit][hold.session];
        } else if (--held_[unit][hold.session] == 0) {
          held_[unit].erase(hold.session);
        }
      }
    }
    for (std::uint32_t unit = 0; unit < machine_.units; ++unit) {
      if (touched_[unit]) write_unit(unit, at);
    }
    write_counts(at, shown);
  }
}

void Writer::write_counts(Time at, Counts& shown) {
  Counts now;
  for (std::uint32_t unit = 0; unit < machine_.units; ++unit) {
    for (const auto& [session, holds] : held_[unit])
      now[session] += machine_.sms({.first = unit, .count = 1});
  }
  for (const auto& [session, sms] : shown) now.try_emplace(session, 0);
  for (const auto& [session, sms] : now) {
    const auto before = shown.find(session);
    if (before != shown.end() && before->second == sms) continue;
    line(R"({{"ph":"C","name":"SMs held","ts":{:.3f},"pid":{},"args":{{"SMs":{}}}}})", us(at),
         track(session), sms);
  }
  shown = std::move(now);
}

/// Ends the unit's slice, if its holders have changed.
void Writer::write_unit(std::uint32_t unit, Time at) {
  std::string holders;
  for (const auto& [session, holds] : held_[unit]) {
    const std::string one = session_name(session);
    holders += (holders.empty() ? "" : " + ") + one.substr(1, one.size() - 2);
  }
  auto& [since, drawn] = unit_[unit];
  if (holders == drawn) return;
  if (!drawn.empty()) {
    line(R"({{"ph":"X","cat":"sms","name":"{}","ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{}}})",
         drawn, us(since), length(since, at), kMachineTrack, unit + 1);
  }
  since = at;
  drawn = std::move(holders);
}

}  // namespace

std::string chrome_json(const TraceSnapshot& snapshot, const Machine& machine) {
  return Writer(snapshot, machine).write();
}

}  // namespace slate::daemon
