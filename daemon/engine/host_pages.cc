#include "daemon/engine/host_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/sizes.h"

namespace slate::daemon {
namespace {

constexpr unsigned kThreads = 4;
/// Bytes that a thread takes at once: nobody else in the process can map memory meanwhile.
constexpr std::uint64_t kPagesAtOnce = 16 << 20;
constexpr std::uint64_t kGrain = 2 << 20;  // threads' parts are multiples of it

}  // namespace

/// By the mapping: one writing to the descriptor would keep the others from it.
Result<void> take_pages(std::byte* memory, std::uint64_t bytes) {
  const std::uint64_t part = round_up((bytes + kThreads - 1) / kThreads, kGrain);
  std::atomic<bool> refused{false};
  std::vector<std::thread> takers;
  for (std::uint64_t from = 0; from < bytes; from += part) {
    takers.emplace_back([&refused, at = memory + from, size = std::min(part, bytes - from)] {
      for (std::uint64_t done = 0; done < size && !refused.load(); done += kPagesAtOnce) {
        const std::uint64_t step = std::min(kPagesAtOnce, size - done);
        if (::madvise(at + done, step, MADV_POPULATE_WRITE) != 0) refused.store(true);
      }
    });
  }
  for (std::thread& taker : takers) taker.join();
  if (refused.load()) return fail(ErrorCode::kOutOfMemory, "the host has no memory left");
  return {};
}

}  // namespace slate::daemon
