#include "client/session/managed_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

#include "base/clock.h"
#include "base/mutex.h"
#include "client/session/ptx_words.h"
#include "client/session/say.h"

namespace slate::client {
namespace {

constexpr std::int64_t kPauseNs = 20'000;
constexpr std::int64_t kTellAfterNs = 5'000'000'000;

/// The guards that the handler asks. Sessions beyond these places wait for their kernels.
std::array<std::atomic<ManagedGuard*>, 16> guards{};

/// The handler that was there before this file's.
Mutex handler_mutex;
struct sigaction handler_before {};

/// Passes on a fault that is not ours, as if this file had no handler.
void pass_on(int signal, siginfo_t* info, void* context) {
  static thread_local bool passing = false;
  const bool siginfo = (handler_before.sa_flags & SA_SIGINFO) != 0;
  const bool plain =
      !siginfo && (handler_before.sa_handler == SIG_DFL || handler_before.sa_handler == SIG_IGN);
  if (plain || passing) {
    // The access comes again after the return, and then ends the program.
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    ::sigaction(signal, &standard, nullptr);
    return;
  }
  passing = true;
  if (siginfo) {
    handler_before.sa_sigaction(signal, info, context);
  } else {
    handler_before.sa_handler(signal);
  }
  passing = false;
}

void protect(const std::map<std::uint64_t, std::uint64_t>& blocks, int access) {
  for (const auto& [address, bytes] : blocks)
    ::mprotect(reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), bytes, access);
}

/// "atom", "red.relaxed": what is in front of the scope.
bool is_atomic(std::string_view opcode) {
  for (const std::string_view name : {"atom", "red", "multimem.red", "multimem.ld_reduce"}) {
    const std::string_view rest = opcode.substr(std::min(opcode.size(), name.size()));
    if (opcode.starts_with(name) && (rest.empty() || rest.starts_with('.'))) return true;
  }
  return false;
}

}  // namespace

ManagedGuard::ManagedGuard(Watch watch) : watch_(std::move(watch)), owner_(::getpid()) {}

ManagedGuard::~ManagedGuard() {
  stop();
}

void ManagedGuard::add(std::uint64_t address, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  blocks_.emplace(address, bytes);
  has_memory_.store(true, std::memory_order_release);
}

void ManagedGuard::remove(std::uint64_t address) {
  const MutexLock lock(mutex_);
  blocks_.erase(address);
  has_memory_.store(!blocks_.empty(), std::memory_order_release);
}

void ManagedGuard::add_module(std::uint64_t module) {
  const MutexLock lock(mutex_);
  modules_.insert(module);
}

void ManagedGuard::remove_module(std::uint64_t module) {
  const MutexLock lock(mutex_);
  modules_.erase(module);
}

bool ManagedGuard::has_module(std::uint64_t module) const {
  const MutexLock lock(mutex_);
  return modules_.contains(module);
}

/// Puts the handler of this file in front, also of one that the program has set since.
bool ManagedGuard::catch_faults() {
  const MutexLock lock(handler_mutex);
  struct sigaction present {};
  if (::sigaction(SIGSEGV, nullptr, &present) != 0) return false;
  const bool siginfo = (present.sa_flags & SA_SIGINFO) != 0;
  if (siginfo && present.sa_sigaction == &ManagedGuard::on_fault) return true;
  handler_before = present;
  struct sigaction ours {};
  ours.sa_sigaction = &ManagedGuard::on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigemptyset(&ours.sa_mask);
  return ::sigaction(SIGSEGV, &ours, nullptr) == 0;
}

/// False when there is no place: then nothing can be closed.
bool ManagedGuard::enlist() {
  if (enlisted_) return catch_faults();
  for (auto& place : guards) {
    ManagedGuard* nobody = nullptr;
    if (!place.compare_exchange_strong(nobody, this)) continue;
    enlisted_ = true;
    return catch_faults();
  }
  return false;
}

void ManagedGuard::delist() {
  for (auto& place : guards) {
    ManagedGuard* self = this;
    place.compare_exchange_strong(self, nullptr);
  }
  enlisted_ = false;
}

bool ManagedGuard::begin() {
  const MutexLock lock(mutex_);
  ++launching_;
  if (stopped_ || blocks_.empty()) return true;
  if (!enlist()) return false;
  if (!closed_.load()) close();
  return true;
}

void ManagedGuard::end(std::uint32_t entry, std::uint64_t mark) {
  const MutexLock lock(mutex_);
  --launching_;
  if (mark == 0) return;
  std::uint64_t& newest = marks_[entry];
  newest = std::max(newest, mark);  // another thread may have been quicker
}

void ManagedGuard::close() {
  closed_.store(true, std::memory_order_release);
  lent_ = false;
  protect(blocks_, PROT_NONE);
}

void ManagedGuard::open() {
  protect(blocks_, PROT_READ | PROT_WRITE);
  closed_.store(false, std::memory_order_release);
}

bool ManagedGuard::under_way() {
  if (stopped_ || watch_.over()) return false;
  return launching_ > 0 || std::ranges::any_of(marks_, [this](const auto& newest) {
           return !watch_.reached(newest.second);
         });
}

void ManagedGuard::try_open() {
  const MutexLock lock(mutex_);
  if (closed_.load() && !under_way()) open();
}

void ManagedGuard::host_function_ended() {
  const MutexLock lock(mutex_);
  if (!lent_) return;
  lent_ = false;
  if (under_way()) close();
}

void ManagedGuard::stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  if (closed_.load()) open();
  delist();
}

ManagedGuard::Turn ManagedGuard::turn_of(std::uint64_t address) {
  const MutexLock lock(mutex_);
  const auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return Turn::kNotOurs;
  const auto& [begin, bytes] = *std::prev(next);
  if (address - begin >= bytes) return Turn::kNotOurs;
  if (!closed_.load()) return Turn::kNow;  // another thread has opened it meanwhile
  // A kernel may be waiting for the function.
  const bool lend = watch_.in_host_function();
  if (!lend && under_way()) return Turn::kNotYet;
  open();
  lent_ = lend;
  return Turn::kNow;
}

/// True when the access may be tried again.
bool ManagedGuard::wait_for(std::uint64_t address) {
  if (owner_ != ::getpid()) return false;
  const std::int64_t start = now_ns();
  for (;;) {
    const Turn turn = turn_of(address);
    if (turn != Turn::kNotYet) return turn == Turn::kNow;
    if (now_ns() - start > kTellAfterNs) {
      say_once(
          "the program has touched managed memory while a kernel with atomics of system scope "
          "runs, and waits for the kernel's end");
    }
    const timespec pause{0, kPauseNs};
    ::nanosleep(&pause, nullptr);
  }
}

void ManagedGuard::on_fault(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const auto& place : guards) {
    ManagedGuard* const guard = place.load(std::memory_order_acquire);
    if (guard == nullptr || !guard->wait_for(address)) continue;
    errno = error;
    return;
  }
  pass_on(signal, info, context);
}

bool has_system_atomics(std::string_view ptx) {
  constexpr std::string_view kScope = ".sys";
  for (std::size_t at = ptx.find(kScope); at != std::string_view::npos;
       at = ptx.find(kScope, at + 1)) {
    const std::string_view rest = ptx.substr(at + kScope.size());
    if (!rest.empty() && rest.front() != '.' && PtxWords::is_word(rest.front())) continue;
    std::size_t begin = at;
    while (begin > 0 && PtxWords::is_word(ptx[begin - 1])) --begin;
    if (is_atomic(ptx.substr(begin, at - begin))) return true;
  }
  return false;
}

bool needs_managed_guard(const DeviceInfo& device) {
  constexpr int kConcurrentManagedAccess = 89;
  return device.attributes[kConcurrentManagedAccess] == 0;
}

}  // namespace slate::client
