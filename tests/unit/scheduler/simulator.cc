// The virtual clock: jump to the next arrival, end, report or decision, and let everything on the
// device progress at its rate until then.
#include "tests/unit/scheduler/simulator.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "scheduler/forms.h"

namespace slate::scheduler::test {
namespace {
constexpr double kNeverMs = std::numeric_limits<double>::infinity();
constexpr double kRestartMs = 0.05;
constexpr double kBit = 1e-9;  // ms: less than this is the same moment
}  // namespace

Simulator::Simulator(Policy& policy, ProfileTable& profiles, const Machine& machine,
                     const Settings& settings, std::uint64_t seed)
    : policy_(policy), profiles_(profiles), machine_(machine), settings_(settings), random_(seed) {}

Time Simulator::at(double ms) const {
  return Time{} + std::chrono::hours(1) + std::chrono::nanoseconds(std::llround(ms * 1e6));
}

KernelId Simulator::next_id(const Session& session) const {
  return session.ids[session.outcome.started % session.ids.size()];
}

KernelId Simulator::kernel_id(const ModelKernel& kernel, double scale) {
  KernelKey key;
  key.name = kernel.name;
  key.code = static_cast<std::uint64_t>(scale * 1000);
  key.grid_bucket = grid_bucket(kernel.blocks);
  return profiles_.find_or_add(key);
}

std::size_t Simulator::add(const Program& program) {
  Session& session = sessions_.emplace_back();
  session.id = 100 + sessions_.size() * 3;
  session.program = program;
  session.next_arrival = std::max(now_, program.begin_ms);
  session.idle_since = now_;
  for (const ModelKernel* each : program.kernels) {
    session.ids.push_back(kernel_id(*each, program.scale));
  }
  return sessions_.size() - 1;
}

const ModelKernel& Simulator::next_kernel(const Session& session) const {
  const auto& all = session.program.kernels;
  return *all[session.outcome.started % all.size()];
}

Simulator::Session* Simulator::find(SessionId id) {
  for (Session& session : sessions_) {
    if (session.id == id) return &session;
  }
  return nullptr;
}

void Simulator::arrive(Session& session) {
  session.pending.push_back(now_);
  ++session.outcome.launched;
  changed_ = true;
}

void Simulator::arrivals() {
  for (Session& session : sessions_) {
    const Program& program = session.program;
    if (session.ended) continue;
    while (now_ + kBit >= session.next_arrival) {
      if (session.outcome.launched >= program.launches || now_ >= program.end_ms) {
        session.next_arrival = kNeverMs;
      } else if (program.arrivals_ms > 0) {
        std::exponential_distribution<double> apart(1 / program.arrivals_ms);
        arrive(session);
        session.next_arrival = now_ + apart(random_);
      } else if (session.pending.size() + session.started.size() < program.depth) {
        arrive(session);
      } else {
        session.next_arrival = kNeverMs;  // until one ends
      }
    }
  }
}

void Simulator::build_view() {
  views_.clear();
  for (Session& session : sessions_) {
    if (session.ended && session.started.empty()) continue;
    SessionView& view = views_.emplace_back();
    view.id = session.id;
    view.weight = session.program.weight;
    view.user = session.program.user;
    view.user_weight = session.program.user_weight;
    view.priority = session.program.priority;
    view.idle_since = at(session.idle_since);
    if (head_waits(session)) {
      const ModelKernel& kernel = next_kernel(session);
      view.waiting = WaitingLaunch{.kernel = next_id(session),
                                   .blocks = kernel.blocks,
                                   .blocks_started = session.sliced,
                                   .wave = kernel.wave,
                                   .worker_legal = kernel.worker_legal,
                                   .slice_legal = kernel.slice_legal,
                                   .since = at(session.pending.front())};
    }
    RunningWork& running = view.running;
    if (session.started.empty()) continue;
    if (session.held) {
      running.launches = session.held->launches;
      running.expected = session.held->launches * expected_time(profiles_, session.held->kernel,
                                                                session.held->part, settings_);
    }
    const Launch& newest = session.started.back();
    running.launches += static_cast<std::uint32_t>(session.started.size());
    for (const Launch& launch : session.started) {
      running.expected += expected_time(profiles_, launch.id, launch.part, settings_);
    }
    running.kernel = newest.id;
    running.form = newest.form;
    running.placement = newest.placement;
    running.tag = newest.tag;
    running.started = at(newest.started_at);
    const Launch& oldest = session.started.front();
    running.resizable = oldest.form == Form::kWorker;
    for (const Launch& launch : session.started) {
      // What is queued behind a resizable launch is not on the device.
      if (running.resizable || launch.form == Form::kWorker) continue;
      running.fixed = true;
      running.fixed_filled +=
          filled_by({.blocks = launch.kernel->blocks, .wave = launch.kernel->wave});
      running.uncertain |= !profiles_.kernel(launch.id).best_alone().known();
    }
    running.fixed_since = at(std::max(oldest.started_at, session.last_end));
    if (running.resizable) {
      running.placement = oldest.placement;
      running.blocks = oldest.kernel->blocks;
      running.blocks_done =
          static_cast<std::uint64_t>(oldest.done * static_cast<double>(oldest.kernel->blocks));
    }
  }
}

void Simulator::carry_out(const Resize& resize) {
  Session* session = find(resize.session);
  SLATE_CHECK(session && !session->started.empty());
  Launch& launch = session->started.front();
  SLATE_CHECK(launch.form == Form::kWorker);
  SLATE_CHECK(resize.placement.end() <= machine_.units);
  if (launch.placement == resize.placement) return;
  if (launch.begun) launch.resized = true;
  // Its workers have to be launched again.
  if (launch.begun && launch.placement.empty()) launch.stalled_until = now_ + kRestartMs;
  // Whoever waited for it no longer does, even when it comes back.
  if (launch.placement.empty() || resize.placement.empty()) launch.waited_until = serial_;
  launch.placement = resize.placement;
  ++resizes_;
  changed_ = true;
}

void Simulator::carry_out(const Start& start) {
  Session* session = find(start.session);
  SLATE_CHECK(session && !session->pending.empty());  // it must wait
  SLATE_CHECK(!start.placement.empty() && start.placement.end() <= machine_.units);
  const ModelKernel& kernel = next_kernel(*session);
  SLATE_CHECK(start.form == Form::kNative || (start.form == Form::kSlice && kernel.slice_legal) ||
              (start.form == Form::kWorker && kernel.worker_legal && kernel.blocks > kernel.wave));
  SLATE_CHECK(session->sliced == 0 || start.form == Form::kSlice);
  Launch& launch = session->started.emplace_back();
  launch.serial = ++serial_;
  launch.kernel = &kernel;
  launch.id = next_id(*session);
  launch.form = start.form;
  launch.placement = start.placement;
  launch.alone = start.alone;
  launch.tag = start.tag;
  launch.work = kernel.native_ms * session->program.scale;
  if (start.form == Form::kSlice) {
    const std::uint64_t left = kernel.blocks - session->sliced;
    const std::uint64_t size = start.slice_blocks == 0 ? left : start.slice_blocks;
    SLATE_CHECK(size <= left);
    launch.part = static_cast<double>(size) / static_cast<double>(kernel.blocks);
    launch.last = size == left;
    launch.work *= launch.part;
    session->sliced = launch.last ? 0 : session->sliced + size;
  }
  if (jitter > 0) {
    launch.work *= 1 + jitter * std::uniform_real_distribution<double>(-1, 1)(random_);
  }
  launch.queued_at = session->pending.front();
  launch.started_at = now_;
  Outcome& outcome = session->outcome;
  if (launch.last) {
    session->pending.pop_front();
    ++outcome.started;
  }
  // A launch waits from when it comes to the head of the queue.
  const double head = std::max(launch.queued_at, session->idle_since);
  outcome.longest_wait_ms = std::max(outcome.longest_wait_ms, now_ - head);
  if (outcome.first_start_ms < 0) outcome.first_start_ms = now_;
  session->idle_since = now_;
  session->next_at = now_ + next_after_ms;
  changed_ = true;
  if (on_start) on_start(static_cast<std::size_t>(session->id - 100) / 3 - 1, start);
}

bool Simulator::decide_once() {
  build_view();
  decided_.clear();
  ++decisions_;
  policy_.decide(View{.now = at(now_), .machine = machine_, .sessions = views_}, decided_);
  for (std::size_t i = 0; i < decided_.start.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      SLATE_CHECK(decided_.start[i].session != decided_.start[j].session);
    }
  }
  for (const Resize& resize : decided_.resize) carry_out(resize);
  for (const Start& start : decided_.start) carry_out(start);
  again_ = decided_.again == kNever ? kNeverMs : Milliseconds(decided_.again - at(0)).count();
  return !decided_.start.empty();
}

bool Simulator::head_waits(const Session& session) const {
  return !session.pending.empty() && now_ + kBit >= session.next_at;
}

/// Some have come to the heads of their queues since the last decision.
bool Simulator::heads_come() const {
  return std::ranges::any_of(sessions_, [&](const Session& session) {
    return head_waits(session) && session.next_at > decided_at_;
  });
}

void Simulator::decide() {
  decided_at_ = now_;
  std::uint32_t rounds = 0;
  do {
    changed_ = false;
    const bool started = decide_once();
    arrivals();
    if (!started && !changed_) break;
    SLATE_CHECK(++rounds < 100'000);
  } while (true);
  // Deadlock: somebody waits and nothing will ever happen.
  bool waits = false, runs = false;
  for (const Session& session : sessions_) {
    waits |= !session.ended && (head_waits(session) || !session.started.empty());
    for (const Launch& launch : session.started) runs |= !launch.placement.empty();
  }
  SLATE_CHECK(!waits || runs || again_ != kNeverMs);
  if (again_ <= now_ + kBit) again_ = now_ + 1e-3;
}

bool Simulator::may_begin(const Session& session, const Launch& launch) const {
  if (!launch.alone) return true;
  for (const Session& other : sessions_) {
    if (&other == &session) continue;
    for (const Launch& earlier : other.started) {
      if (earlier.serial < launch.serial && launch.serial > earlier.waited_until &&
          !earlier.placement.empty()) {
        return false;
      }
    }
  }
  return true;
}

void Simulator::begin_launches() {
  for (Session& session : sessions_) {
    if (session.started.empty() || session.started.front().begun) continue;
    Launch& launch = session.started.front();
    if (launch.placement.empty() || !may_begin(session, launch)) continue;
    launch.begun = true;
    launch.began_at = now_;
  }
}

void Simulator::set_rates() {
  on_device_.clear();
  occupants_.clear();
  for (Session& session : sessions_) {
    if (session.started.empty()) continue;
    Launch& launch = session.started.front();
    launch.rate = 0;
    if (!launch.begun || launch.placement.empty() || now_ + kBit < launch.stalled_until) continue;
    on_device_.push_back(&launch);
    occupants_.push_back({launch.kernel, launch.form, launch.placement});
  }
  rates_.resize(on_device_.size());
  rates_of(occupants_, machine_, rates_);
  for (std::size_t i = 0; i < rates_.size(); ++i) {
    on_device_[i]->rate = rates_[i] * clock / on_device_[i]->work;
  }
}

double Simulator::next_event() const {
  double next = again_;
  for (const Session& session : sessions_) {
    if (!session.ended) next = std::min(next, session.next_arrival);
    if (!session.pending.empty() && session.next_at > now_ + kBit)
      next = std::min(next, session.next_at);
  }
  bool reports = false;
  for (const Session& session : sessions_) {
    if (session.started.empty() || session.started.front().placement.empty()) continue;
    const double stalled = session.started.front().stalled_until;
    if (stalled > now_ + kBit) next = std::min(next, stalled);
  }
  for (const Launch* launch : on_device_) {
    if (launch->rate > 0) next = std::min(next, now_ + (1 - launch->done) / launch->rate);
    reports |= launch->form == Form::kWorker;
  }
  if (reports) next = std::min(next, next_report_);
  return next;
}

void Simulator::advance(double to) {
  for (Launch* launch : on_device_) launch->done += launch->rate * (to - now_);
  now_ = to;
}

void Simulator::endings() {
  for (Session& session : sessions_) {
    if (session.started.empty()) continue;
    const Launch launch = session.started.front();
    if (!launch.begun || launch.done < 1 - 1e-7) continue;
    session.started.pop_front();
    const Completion completion{.session = session.id,
                                .kernel = launch.id,
                                .form = launch.form,
                                .placement = launch.placement,
                                .tag = launch.tag,
                                .launches = 1,
                                .blocks = launch.kernel->blocks,
                                .part = launch.part,
                                .device_time = Milliseconds(now_ - launch.began_at),
                                .started = at(launch.began_at),
                                .ended = at(now_),
                                .resized = launch.resized};
    Outcome& outcome = session.outcome;
    if (launch.last) ++outcome.ended;
    outcome.work_ms += launch.part * launch.kernel->native_ms * session.program.scale /
                       launch.kernel->best_speed();
    outcome.last_end_ms = session.last_end = now_;
    outcome.device_ms += now_ - launch.began_at;
    outcome.longest_device_ms = std::max(outcome.longest_device_ms, now_ - launch.began_at);
    if (session.started.empty() && session.pending.empty()) session.idle_since = now_;
    if (launch.last && session.program.arrivals_ms <= 0 && !session.ended)
      session.next_arrival = now_ + session.program.gap_ms;
    notice(session, completion);
  }
}

void Simulator::deliver(Session& session, const Completion& completion) {
  changed_ = true;
  policy_.finished(completion);
  if (on_end) on_end(static_cast<std::size_t>(session.id - 100) / 3 - 1, completion);
}

void Simulator::notice(Session& session, const Completion& completion) {
  std::optional<Completion>& held = session.held;
  const bool joins = held && held->kernel == completion.kernel && held->form == completion.form &&
                     held->placement == completion.placement && held->part == completion.part &&
                     !completion.resized;
  if (held && !joins) {
    deliver(session, *held);
    held.reset();
  }
  if (!held) {
    held = completion;
  } else {
    held->device_time =
        (held->device_time * held->launches + completion.device_time) / (held->launches + 1);
    ++held->launches;
    held->ended = completion.ended;
  }
  if (held->launches < merge && !session.started.empty() && !held->resized) return;
  deliver(session, *held);
  held.reset();
}

void Simulator::report_progress() {
  if (now_ + kBit < next_report_) return;
  next_report_ = now_ + progress_every_ms;
  for (Session& session : sessions_) {
    if (session.started.empty()) continue;
    const Launch& launch = session.started.front();
    if (launch.form != Form::kWorker || !launch.begun || launch.placement.empty()) continue;
    policy_.progressed({.session = session.id,
                        .kernel = launch.id,
                        .placement = launch.placement,
                        .tag = launch.tag,
                        .blocks_done = static_cast<std::uint64_t>(
                            launch.done * static_cast<double>(launch.kernel->blocks)),
                        .blocks = launch.kernel->blocks,
                        .at = at(now_)});
    changed_ = true;
  }
}

void Simulator::run_until(double ms) {
  while (true) {
    arrivals();
    endings();
    report_progress();
    if (changed_ || now_ + kBit >= again_ || heads_come()) decide();
    begin_launches();
    set_rates();
    const double next = std::max(now_, next_event());
    if (next > ms) {
      if (ms > now_) advance(ms);
      return;
    }
    advance(next);
  }
}

void Simulator::end_session(std::size_t program) {
  Session& session = sessions_[program];
  session.ended = true;
  session.pending.clear();
  session.next_arrival = kNeverMs;
  if (session.started.empty()) policy_.session_ended(session.id);
  changed_ = true;
}

void Simulator::drain(double ms) {
  const auto busy = [&] {
    return std::ranges::any_of(sessions_, [](const Session& s) {
      return !s.pending.empty() || !s.started.empty() || s.next_arrival < kNeverMs;
    });
  };
  while (busy() && now_ < ms) run_until(std::min(ms, now_ + 10));
}

double Simulator::progress(std::size_t program) const {
  const Session& session = sessions_[program];
  return session.started.empty() ? 0 : session.started.front().done;
}

Placement Simulator::placement(std::size_t program) const {
  const Session& session = sessions_[program];
  return session.started.empty() ? Placement{} : session.started.front().placement;
}

}  // namespace slate::scheduler::test
