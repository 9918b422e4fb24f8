#include "ipc/mapping_guard.h"

#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>

namespace slate::ipc {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kTaken = 1;  // no address: the entry is being filled

struct Range {
  std::atomic<std::uint64_t> base{0};  // 0: free; written last
  std::atomic<std::uint64_t> bytes{0};
};

// Constant-initialised, and plain memory: a signal's handler reads it.
std::array<Range, MappingGuard::kMost> ranges;
std::atomic<std::size_t> ranges_used{0};
struct sigaction previous;

/// Only calls that a signal's handler may make.
void on_bus_error(int signal, siginfo_t* info, void*) {
  const int kept = errno;
  const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
  const std::size_t used = ranges_used.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < used; ++i) {
    const std::uint64_t base = ranges[i].base.load(std::memory_order_acquire);
    const std::uint64_t bytes = ranges[i].bytes.load(std::memory_order_relaxed);
    if (base <= kTaken || address < base || address - base >= bytes) continue;
    // All that follows is gone as well.
    const std::uint64_t page = address / kPage * kPage;
    void* const zeros =
        ::mmap(reinterpret_cast<void*>(page), base + bytes - page, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    errno = kept;
    if (zeros != MAP_FAILED) return;
    break;
  }
  // None of ours: what would have happened without us.
  ::sigaction(signal, &previous, nullptr);
}

void install_handler() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &previous);
}

}  // namespace

Result<MappingGuard> MappingGuard::make(void* base, std::size_t bytes) {
  static std::once_flag installed;
  std::call_once(installed, install_handler);
  for (std::size_t i = 0; i < kMost; ++i) {
    std::uint64_t free = ranges[i].base.load(std::memory_order_relaxed);
    if (free != 0 || !ranges[i].base.compare_exchange_strong(free, kTaken)) continue;
    ranges[i].bytes.store(bytes, std::memory_order_relaxed);
    ranges[i].base.store(reinterpret_cast<std::uint64_t>(base), std::memory_order_release);
    std::size_t used = ranges_used.load();
    while (used <= i && !ranges_used.compare_exchange_weak(used, i + 1)) {
    }
    return MappingGuard(i);
  }
  return fail(ErrorCode::kLimit, "too much shared memory at a time");
}

MappingGuard::~MappingGuard() {
  if (entry_ != kNone) ranges[entry_].base.store(0, std::memory_order_release);
}

}  // namespace slate::ipc
