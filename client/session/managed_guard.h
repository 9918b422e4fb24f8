// ManagedGuard: keeps the host away from managed memory while kernels with atomics of system scope
// run. Over a link without atomics of its own (PCIe), a kernel's atomics and the host's do not
// exclude each other.
// The host's pages are closed before such a kernel is sent. A thread that touches them gets a
// SIGSEGV. Its handler waits for the kernels and opens the pages. The order of work is the streams'
// task.
//
// Thread-safe. The handler runs in the thread that touched the memory, which holds no lock of this
// class then.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/device_info.h"
#include "base/mutex.h"

namespace slate::client {

class ManagedGuard {
 public:
  /// What the guard asks of its session, from any thread.
  struct Watch {
    std::function<bool(std::uint64_t mark)> reached;  // for a mark of ProgressTable
    std::function<bool()> over;                       // whether the session runs nothing any more
    /// Whether the caller is a function that a stream waits for.
    std::function<bool()> in_host_function;
  };
  explicit ManagedGuard(Watch watch);
  /// Opens all memory.
  ~ManagedGuard();
  ManagedGuard(const ManagedGuard&) = delete;
  ManagedGuard& operator=(const ManagedGuard&) = delete;

  // Blocks of managed memory, whole pages, mapped and open.
  void add(std::uint64_t address, std::uint64_t bytes);
  /// To be called before the block is unmapped. Opens nothing.
  void remove(std::uint64_t address);
  /// Whether there is managed memory. Without it kernels need no Launch: they cannot know the
  /// addresses of what is made after them.
  bool has_memory() const { return has_memory_.load(std::memory_order_acquire); }

  // Modules whose kernels may have such atomics:
  void add_module(std::uint64_t module);
  void remove_module(std::uint64_t module);
  bool has_module(std::uint64_t module) const;

  /// Lives while a kernel that may have such atomics is sent. If it ends without sent(), the kernel
  /// was not sent or is over.
  class Launch {
   public:
    explicit Launch(ManagedGuard& guard) : guard_(guard), guarded_(guard.begin()) {}
    ~Launch() { guard_.end(entry_, mark_); }
    Launch(const Launch&) = delete;
    Launch& operator=(const Launch&) = delete;
    /// False when the memory could not be closed: the caller must wait for the kernel.
    bool guarded() const { return guarded_; }
    /// The kernel was sent: its stream's entry in the ProgressTable, and its mark there.
    void sent(std::uint32_t entry, std::uint64_t mark) {
      entry_ = entry;
      mark_ = mark;
    }

   private:
    ManagedGuard& guard_;
    const bool guarded_;
    std::uint32_t entry_ = 0;
    std::uint64_t mark_ = 0;
  };

  /// Opens the memory if no such kernel is under way. To be called when work was seen to end: the
  /// program may then pass the memory to system calls, which fail where a thread would wait. One
  /// atomic load when nothing is closed.
  void open_if_done() {
    if (closed_.load(std::memory_order_acquire)) [[unlikely]]
      try_open();
  }
  /// After a host function: closes the memory that was open for it, if such a kernel is still under
  /// way.
  void host_function_ended();
  /// The session ends: opens all memory, and closes none from now on.
  void stop();

 private:
  enum class Turn { kNotOurs, kNotYet, kNow };

  static void on_fault(int signal, siginfo_t* info, void* context);
  static bool catch_faults();
  bool enlist() SLATE_REQUIRES(mutex_);
  void delist() SLATE_REQUIRES(mutex_);
  bool begin();
  void end(std::uint32_t entry, std::uint64_t mark);
  void close() SLATE_REQUIRES(mutex_);
  void open() SLATE_REQUIRES(mutex_);
  bool under_way() SLATE_REQUIRES(mutex_);
  void try_open();
  Turn turn_of(std::uint64_t address);
  bool wait_for(std::uint64_t address);

  const Watch watch_;
  const pid_t owner_;  // a forked child has neither the memory nor the session
  std::atomic<bool> closed_{false};
  std::atomic<bool> has_memory_{false};  // changed under mutex_
  mutable Mutex mutex_;                  // guards changes of closed_, too
  // Bytes of the blocks, by address.
  std::map<std::uint64_t, std::uint64_t> blocks_ SLATE_GUARDED_BY(mutex_);
  std::set<std::uint64_t> modules_ SLATE_GUARDED_BY(mutex_);
  /// Marks of the newest such kernels, by progress entry.
  std::map<std::uint32_t, std::uint64_t> marks_ SLATE_GUARDED_BY(mutex_);
  int launching_ SLATE_GUARDED_BY(mutex_) = 0;      // kernels that are being sent
  bool enlisted_ SLATE_GUARDED_BY(mutex_) = false;  // whether the handler knows of this object
  bool lent_ SLATE_GUARDED_BY(mutex_) = false;  // whether the memory is open for a host function
  bool stopped_ SLATE_GUARDED_BY(mutex_) = false;
};

/// Whether PTX has atomics of system scope.
bool has_system_atomics(std::string_view ptx);
/// Whether kernels' atomics of this device and the host's do not exclude each other.
bool needs_managed_guard(const DeviceInfo& device);

}  // namespace slate::client
