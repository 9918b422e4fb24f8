// Residency: how much of the device's memory each session has, and which session's turn it is where
// not all of it fits (scheduler/memory_turns.h). It counts bytes and moves nothing: each session's
// thread moves its own memory (segment_backing.h, memory_gate.h). Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "daemon/engine/residency/host_pool.h"
#include "scheduler/memory_turns.h"
#include "scheduler/memory_wait.h"

namespace slate::daemon {

/// More than 25 functions, as the account of each session and the queue of those that wait change
/// together, under one mutex.
class Residency {
 public:
  struct Settings {
    std::uint64_t capacity = 0;  // bytes of device memory for all sessions
    std::uint64_t swap = 0;      // the most bytes on the host
    std::uint64_t piece = 0;     // bytes that move at once; a multiple of the device's granularity
    double overhead = 0.05;      // most part of the time that exchanges may take
    // For tests: whether all memory leaves in front of each command, and clean memory is compared
    // with its copy.
    bool evicts_always = false;
    // From when a host without memory was asked, until it is asked again; and the longest wait for
    // it.
    std::chrono::milliseconds full_host_look{1'000}, full_host_wait{10'000};
  };
  struct TenantSpec {
    std::uint64_t session = 0;
    double weight = 1;
    int priority = 0;
    std::function<void()> wake;  // makes the session's thread look at asked()
    std::function<bool()> busy;  // whether work of the session is under way
  };
  struct Counts {
    std::uint64_t capacity = 0, used = 0;       // bytes of the device
    std::uint64_t moved_out = 0, moved_in = 0;  // bytes since the start
    std::uint64_t clean_out = 0;                // the part of moved_out that was not copied
    std::uint64_t evictions = 0;                // times that a session was asked to leave
    std::uint64_t copied_in = 0;                // the part of moved_in that had contents
    double out_ms = 0, in_ms = 0;               // time that moves have taken
    double bytes_per_ms = 0;                    // of exchanges, by which turns are long enough
    HostPool::Counts host;
  };

  /// One session's part.
  class Tenant {
   public:
    Tenant(TenantSpec spec, scheduler::Time now) : spec_(std::move(spec)), wait_(now) {}
    /// Whether a command has to look at its memory first. Any thread.
    bool looks() const { return looks_.load(std::memory_order_relaxed); }
    /// Bytes on the device, and whether a command waits for more. Any thread.
    std::uint64_t on_device() const { return shown_.load(std::memory_order_relaxed); }
    bool waits() const { return waits_.load(std::memory_order_relaxed); }

   private:
    friend class Residency;
    const TenantSpec spec_;
    std::atomic<bool> looks_{false}, waits_{false};
    std::atomic<std::uint64_t> shown_{0};
    // Under the residency's mutex. In bytes.
    std::uint64_t charged_ = 0;  // on the device or not
    std::uint64_t taken_ = 0;    // on the device
    std::uint64_t locked_ = 0;   // the part of it that must stay
    std::uint64_t leaving_ = 0;  // the part of it that was asked to leave
    scheduler::MemoryWait wait_;
    bool is_whole_ = true;  // as of set_whole()
  };

  /// Hears of each move. Any thread.
  using Listener =
      std::function<void(std::uint64_t session, bool out, std::uint64_t bytes, double ms)>;
  /// `device` outlives it. `listener` may be empty.
  Residency(device::Device& device, Settings settings, HostPool::Settings host,
            Listener listener = {});
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;

  HostPool& host() { return host_; }
  const Settings& settings() const { return settings_; }
  Counts counts() const;

  /// What happens to a session's memory, for the status. Any thread.
  struct Motion {
    bool leaves = false, comes = false;
    /// The sessions whose memory has to leave first; else those whose turn it is, or comes first.
    std::vector<std::uint64_t> waits_for{};
  };
  Motion motion(const Tenant& tenant) const;

  std::shared_ptr<Tenant> enter(TenantSpec spec);
  /// Requires: nothing is charged.
  void leave(const std::shared_ptr<Tenant>& tenant);

  /// The session has so many bytes more, wherever they are. May take seconds, as room is made on
  /// the host. Errors: kOutOfMemory without room there for what could have to leave.
  Result<void> charge(Tenant& tenant, std::uint64_t bytes);
  void charge_anyway(Tenant& tenant, std::uint64_t bytes);
  /// The most that charge() would grant now.
  std::uint64_t chargeable(const Tenant& tenant) const;
  void uncharge(Tenant& tenant, std::uint64_t bytes);
  /// Takes room on the device, if there is some and nobody waits for it.
  bool take_at_once(Tenant& tenant, std::uint64_t bytes);
  void take_anyway(Tenant& tenant, std::uint64_t bytes);
  /// Room is free again. `moved`: whether the contents are on the host now.
  void give(Tenant& tenant, std::uint64_t bytes, bool moved);
  void lock(Tenant& tenant, std::uint64_t bytes);
  void unlock(Tenant& tenant, std::uint64_t bytes);
  /// Device memory that is no session's segment.
  void take_outside(std::uint64_t bytes);
  void give_outside(std::uint64_t bytes);
  /// All that the session has is on the device, and nothing of it is clean, or not.
  void set_whole(Tenant& tenant, bool whole);

  // The session's thread.
  /// The session has a command that uses its memory.
  void note_use(Tenant& tenant);
  /// Bytes that have to leave as soon as none of the session's work is under way.
  std::uint64_t asked(Tenant& tenant) const;
  /// Less than was asked for can leave.
  void cannot_leave(Tenant& tenant);
  /// The host had no memory for what was asked to leave.
  void note_host_full();

  /// Whether the next wait begins a turn.
  bool begins_turn(const Tenant& tenant) const;
  /// The most of its memory that can be on the device at once.
  std::uint64_t most_on_device(const Tenant& tenant) const;
  /// A command waits for `missing` bytes. Of the session's others, `spare` could leave.
  void begin_wait(Tenant& tenant, std::uint64_t missing, std::uint64_t spare);
  void end_wait(Tenant& tenant);
  enum class Taken { kYes, kNotYet, kNever };
  /// Takes room for a part of what is missing. Waits up to `timeout` for its turn. kNever: for so
  /// much there can be no room, or there was none for long as the host is full.
  Taken take(Tenant& tenant, std::uint64_t bytes, std::chrono::milliseconds timeout);
  /// Ends a take() for which nothing has come.
  void untake(Tenant& tenant, std::uint64_t bytes);
  /// The device had no memory where there should have been room for so much: somebody else has it.
  void note_full(Tenant& tenant, std::uint64_t bytes);
  /// So much of what was missing is reached on the host instead.
  void do_without(Tenant& tenant, std::uint64_t bytes);

  /// So many bytes leave without a copy.
  void note_clean(std::uint64_t bytes);
  /// A move of so many bytes took so long.
  void note_move(const Tenant& tenant, bool out, std::uint64_t bytes, double ms);

 private:
  std::uint64_t used() const SLATE_REQUIRES(mutex_);
  std::uint64_t host_wanted(std::uint64_t more, std::uint64_t of_one) const SLATE_REQUIRES(mutex_);
  bool may_ask(const scheduler::MemoryDecision& decision) const SLATE_REQUIRES(mutex_);
  scheduler::MemoryDecision decide() SLATE_REQUIRES(mutex_);
  bool is_room_coming() const SLATE_REQUIRES(mutex_);
  void update_looks() SLATE_REQUIRES(mutex_);

  const Settings settings_;
  HostPool host_;
  const Listener listener_;
  mutable Mutex mutex_;
  CondVar room_;
  std::vector<std::shared_ptr<Tenant>> tenants_ SLATE_GUARDED_BY(mutex_);
  std::uint64_t charged_ SLATE_GUARDED_BY(mutex_) = 0;  // by all sessions
  std::uint64_t taken_ SLATE_GUARDED_BY(mutex_) = 0;    // by all sessions
  std::uint64_t outside_ SLATE_GUARDED_BY(mutex_) = 0;
  std::uint64_t unknown_ SLATE_GUARDED_BY(mutex_) = 0;  // bytes of note_full()
  std::uint32_t waiting_ SLATE_GUARDED_BY(mutex_) = 0;  // sessions
  scheduler::ExchangeRates rates_ SLATE_GUARDED_BY(mutex_);
  // Of the newest decision.
  std::optional<std::uint64_t> next_ SLATE_GUARDED_BY(mutex_);
  std::vector<std::uint64_t> holders_ SLATE_GUARDED_BY(mutex_);
  std::optional<scheduler::Time> host_full_ SLATE_GUARDED_BY(mutex_);  // newest note_host_full()
  scheduler::Time host_full_since_ SLATE_GUARDED_BY(mutex_){};
  Counts counts_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::daemon
