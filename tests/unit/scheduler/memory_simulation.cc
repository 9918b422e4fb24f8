#include "memory_simulation.h"

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace slate::scheduler {
namespace {

constexpr double kTickMs = 0.1;
constexpr double kFillMs = 1.5, kCheckMs = 2, kCopiesMs = 0.3;  // of one buffer; of a round
constexpr double kLongWaitMs = 20;  // a wait for room that is no part of a move

/// A coroutine that another one awaits, or that is resumed by resume().
class Task {
 public:
  struct promise_type {
    std::coroutine_handle<> after = std::noop_coroutine();
    Task get_return_object() { return Task(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct Final {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) noexcept {
        return ended.promise().after;
      }
      void await_resume() noexcept {}
    };
    Final final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  using Handle = std::coroutine_handle<promise_type>;
  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }
  bool await_ready() const { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> after) {
    handle_.promise().after = after;
    return handle_;
  }
  void await_resume() {}
  Handle handle() const { return handle_; }

 private:
  Handle handle_;
};

enum class Where { kBlank, kDevice, kHost };
struct Piece {
  std::uint64_t bytes;
  Where where = Where::kBlank;
  bool clean = false;
};
struct Buffer {
  std::vector<Piece> pieces;
  bool is_one = false;
  std::uint64_t used = 0;
};

/// As Residency::Tenant and SegmentBacking.
struct Session {
  std::uint64_t id = 0;
  SimulatedProgram program;
  std::vector<Buffer> buffers;
  std::deque<double> kernels;  // what is left of each, the first one runs
  std::uint64_t taken = 0, leaving = 0;
  bool ended = false;
  std::optional<MemoryWait> wait;  // from its begin on
  std::uint64_t uses = 0, turn_use = 0, working_set = 0;
};
// Functions, as g++ 12 takes no list in an awaited call.
using Needs = std::set<std::size_t>;
Needs just(std::size_t one) {
  return {one};
}
Needs both(std::size_t one, std::size_t other) {
  return {one, other};
}

class Simulation {
 public:
  Simulation(const std::vector<SimulatedProgram>& programs, const SimulatedDevice& device)
      : device_(device) {
    for (const SimulatedProgram& each : programs) {
      auto session = std::make_unique<Session>();
      session->id = sessions_.size() + 1;
      session->program = each;
      sessions_.push_back(std::move(session));
    }
  }

  SimulatedRun run(double most_ms) {
    std::vector<Task> tasks;
    for (const auto& each : sessions_) tasks.push_back(live(*each));
    for (const Task& each : tasks) ready_.push_back(each.handle());
    while (now_ms_ < most_ms) {
      auto resumed = std::exchange(ready_, {});
      for (const std::coroutine_handle<> each : resumed) each.resume();
      if (std::ranges::all_of(sessions_, [](const auto& each) { return each->ended; })) {
        run_.all_ended = true;
        break;
      }
      step();
    }
    run_.ms = now_ms_;
    return run_;
  }

 private:
  struct Tick {
    Simulation& simulation;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> handle) { simulation.ready_.push_back(handle); }
    void await_resume() const {}
  };
  Tick tick() { return {*this}; }
  struct Move {
    bool out;
    double left;
  };

  Time now() const {
    return Time(std::chrono::duration_cast<Time::duration>(Milliseconds(1e6 + now_ms_)));
  }

  /// Kernels share the device, moves share their way of the link.
  void step() {
    const auto running =
        std::ranges::count_if(sessions_, [](const auto& each) { return !each->kernels.empty(); });
    for (const auto& each : sessions_) {
      if (each->kernels.empty()) continue;
      each->kernels.front() -= kTickMs / static_cast<double>(running);
      if (each->kernels.front() <= 0) each->kernels.pop_front();
    }
    const auto out = std::ranges::count_if(moves_, [](const Move* each) { return each->out; });
    const auto in = static_cast<long>(moves_.size()) - out;
    for (Move* const each : moves_) {
      const double rate = each->out ? device_.out : out > 0 ? device_.in_beside_out : device_.in;
      each->left -= kTickMs * rate / static_cast<double>(each->out ? out : in);
    }
    now_ms_ += kTickMs;
  }

  Task sleep(Session& session, double ms) {
    const double end = now_ms_ + ms;
    while (now_ms_ < end) {
      co_await tend(session);
      co_await tick();
    }
  }

  Task copy(bool out, std::uint64_t bytes) {
    Move move{out, static_cast<double>(bytes)};
    moves_.push_back(&move);
    while (move.left > 0) co_await tick();
    std::erase(moves_, &move);
  }

  Task drain(Session& session) {
    while (!session.kernels.empty()) co_await tick();
  }

  Task tend(Session& session) {
    if (session.leaving > 0) co_await move_out(session, session.leaving, Needs());
  }

  // What SegmentBacking does.
  static std::uint64_t on_device(const Buffer& buffer) {
    std::uint64_t bytes = 0;
    for (const Piece& piece : buffer.pieces)
      bytes += piece.where == Where::kDevice ? piece.bytes : 0;
    return bytes;
  }
  static std::uint64_t missing(const Session& session, const Needs& needs) {
    std::uint64_t bytes = 0;
    for (const std::size_t each : needs) {
      for (const Piece& piece : session.buffers[each].pieces)
        bytes += piece.where != Where::kDevice ? piece.bytes : 0;
    }
    return bytes;
  }
  static std::uint64_t spare(const Session& session, const Needs& needs) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < session.buffers.size(); ++i)
      if (!needs.contains(i)) bytes += on_device(session.buffers[i]);
    return bytes;
  }

  Task move_out(Session& session, std::uint64_t bytes, Needs needed) {
    co_await drain(session);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < session.buffers.size(); ++i) order.push_back(i);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return std::pair(needed.contains(a), session.buffers[a].used) <
             std::pair(needed.contains(b), session.buffers[b].used);
    });
    const double begin = now_ms_;
    std::uint64_t left = 0, copied = 0;
    for (const std::size_t each : order) {
      Buffer& buffer = session.buffers[each];
      if (left >= bytes) break;
      if (buffer.is_one) {
        const std::uint64_t all = on_device(buffer);
        co_await copy(true, all);
        for (Piece& piece : buffer.pieces) piece.where = Where::kHost;
        buffer.is_one = false;
        give(session, all);
        left += all, copied += all;
        continue;
      }
      for (const bool clean : {true, false}) {
        for (Piece& piece : buffer.pieces) {
          if (left >= bytes || piece.where != Where::kDevice || piece.clean != clean) continue;
          if (!clean) {
            co_await copy(true, piece.bytes);
            copied += piece.bytes;
          }
          piece.where = Where::kHost;
          give(session, piece.bytes);
          left += piece.bytes;
        }
      }
    }
    session.leaving = 0;
    run_.copied_out += copied;
    rates_.note(true, copied, now_ms_ - begin);
  }

  // What MemoryGate does.
  Task pass(Session& session, Needs needs, Needs written) {
    const double begin = now_ms_;
    const bool looks = waiting_ > 0 || session.leaving > 0 || !is_whole(session);
    if (!looks) co_return;
    session.wait->use(now());
    co_await make_present(session, needs);
    ++session.uses;
    for (const std::size_t each : needs) session.buffers[each].used = session.uses;
    for (const std::size_t each : written)
      for (Piece& piece : session.buffers[each].pieces) piece.clean = false;
    run_.longest_wait_ms = std::max(run_.longest_wait_ms, now_ms_ - begin);
  }

  static bool is_whole(const Session& session) {
    return std::ranges::all_of(session.buffers, [](const Buffer& buffer) {
      return std::ranges::all_of(buffer.pieces, [](const Piece& piece) {
        return piece.where == Where::kDevice && !piece.clean;
      });
    });
  }

  Needs wanted(Session& session, const Needs& command) {
    if (session.wait->begins_turn() && session.uses >= session.turn_use)
      session.working_set = std::exchange(session.turn_use, session.uses + 1);
    Needs more = command;
    for (std::size_t i = 0; i < session.buffers.size(); ++i) {
      const Buffer& buffer = session.buffers[i];
      if (buffer.used >= session.working_set) more.insert(i);
    }
    const std::uint64_t bytes = session.taken - spare(session, more) + missing(session, more);
    return bytes <= device_.capacity ? more : command;
  }

  Task make_present(Session& session, Needs needs) {
    while (true) {
      if (session.leaving > 0) co_await move_out(session, session.leaving, needs);
      if (missing(session, needs) == 0) co_return;
      bool all = false;
      co_await fetch(session, wanted(session, needs), all);
      if (all) co_return;
    }
  }

  Task fetch(Session& session, Needs needs, bool& all) {
    co_await drain(session);
    begin_wait(session, missing(session, needs), spare(session, needs));
    bool begun = false;
    double begin = 0;
    std::uint64_t copied = 0;
    all = true;
    for (const std::size_t each : needs) {
      for (Piece& piece : session.buffers[each].pieces) {
        if (piece.where == Where::kDevice || !all) continue;
        const double asked_ms = now_ms_;
        all = false;
        while (session.leaving == 0 && !all) {
          all = take(session, piece.bytes);
          if (!all) co_await tick();
        }
        if (begun && now_ms_ - asked_ms > kLongWaitMs) begin += now_ms_ - asked_ms;
        if (!all) break;
        if (!std::exchange(begun, true)) begin = now_ms_;
        if (piece.where == Where::kHost) {
          co_await copy(false, piece.bytes);
          copied += piece.bytes;
          piece.clean = true;
        }
        piece.where = Where::kDevice;
      }
    }
    rates_.note(false, copied, now_ms_ - begin);
    end_wait(session);
  }

  // What Residency does.
  std::uint64_t used() const {
    std::uint64_t bytes = 0;
    for (const auto& each : sessions_) bytes += each->taken;
    return bytes;
  }
  void give(Session& session, std::uint64_t bytes) {
    session.taken -= bytes;
    session.leaving = session.leaving > bytes ? session.leaving - bytes : 0;
  }
  void begin_wait(Session& session, std::uint64_t missing, std::uint64_t spare) {
    session.wait->begin(now(), missing, spare);
    if (waiting_++ > 0) return;
    for (const auto& each : sessions_) {
      if (each->wait) each->wait->use(now());
    }
  }
  void end_wait(Session& session) {
    session.wait->end(now(), session.leaving > 0);
    --waiting_;
  }

  MemoryDecision decide() {
    std::vector<SessionMemory> sessions;
    for (const auto& each : sessions_) {
      if (!each->wait || each->ended) continue;
      sessions.push_back(each->wait->memory(now(), {.taken = each->taken, .leaving = each->leaving},
                                            !each->kernels.empty()));
      sessions.back().session = each->id;
    }
    const MemoryRules rules{.capacity = device_.capacity,
                            .bytes_per_ms = rates_.bytes_per_ms(),
                            .overhead = device_.overhead};
    auto decision = decide_memory(sessions, rules, now());
    for (const MemoryLeave& leave : decision.leave) {
      Session& session = *sessions_[leave.session - 1];
      session.leaving += leave.bytes;
      if (leave.session != decision.next) session.wait->end_turn();
    }
    return decision;
  }

  bool take(Session& session, std::uint64_t bytes) {
    const auto decision = decide();
    if (decision.next != session.id || used() + bytes > device_.capacity || session.leaving > 0) {
      const bool comes =
          std::ranges::any_of(sessions_, [](const auto& each) { return each->leaving > 0; });
      if (decision.next != session.id || !comes) session.wait->block(now());
      return false;
    }
    session.wait->take(now(), bytes);
    session.taken += bytes;
    return true;
  }

  void add(Session& session) {
    const std::uint64_t bytes = session.program.buffer_bytes;
    Buffer buffer{.pieces = {}, .used = ++session.uses};
    if (waiting_ == 0 && used() + bytes <= device_.capacity) {
      session.taken += bytes;
      buffer.is_one = true;
    }
    for (std::uint64_t at = 0; at < bytes; at += device_.piece)
      buffer.pieces.push_back(
          {std::min(device_.piece, bytes - at), buffer.is_one ? Where::kDevice : Where::kBlank});
    session.buffers.push_back(std::move(buffer));
  }

  // What the program does.
  Task launch(Session& session, Needs needs, std::size_t written, double ms) {
    Needs writes;
    writes.insert(written);
    co_await pass(session, std::move(needs), std::move(writes));
    session.kernels.push_back(ms);
  }

  Task synchronize(Session& session) {
    while (!session.kernels.empty()) {
      if (session.leaving > 0) co_await tend(session);
      co_await tick();
    }
    co_await tend(session);
  }

  Task live(Session& session) {
    const SimulatedProgram& program = session.program;
    co_await sleep(session, program.start_ms);
    session.wait.emplace(now());
    const auto count = static_cast<std::size_t>(program.buffers);
    for (std::size_t i = 0; i < count; ++i) {
      co_await sleep(session, program.malloc_ms);
      add(session);
    }
    for (std::size_t i = 0; i < count; ++i) co_await launch(session, just(i), i, kFillMs);
    co_await synchronize(session);
    for (int round = 0; round < program.rounds; ++round) {
      for (std::size_t parity = 0; parity < 2; ++parity) {
        for (std::size_t i = parity; i < count; i += 2)
          co_await launch(session, both(i, i ^ 1), i, program.kernel_ms);
        co_await synchronize(session);
      }
      co_await launch(session, both(0, 1), 0, kCopiesMs);
      co_await synchronize(session);
      co_await sleep(session, program.gap_ms);
    }
    for (std::size_t i = 0; i < count; ++i) {
      co_await launch(session, just(i), i, kCheckMs);
      co_await synchronize(session);
    }
    for (Buffer& buffer : session.buffers) give(session, on_device(buffer));
    session.buffers.clear();
    session.ended = true;
  }

  const SimulatedDevice device_;
  double now_ms_ = 0;
  ExchangeRates rates_;
  std::uint32_t waiting_ = 0;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<std::coroutine_handle<>> ready_;
  std::vector<Move*> moves_;
  SimulatedRun run_;
};

}  // namespace

SimulatedRun simulate_memory(const std::vector<SimulatedProgram>& programs,
                             const SimulatedDevice& device, double most_ms) {
  return Simulation(programs, device).run(most_ms);
}

}  // namespace slate::scheduler
