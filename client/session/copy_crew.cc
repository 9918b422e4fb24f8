#include "client/session/copy_crew.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <thread>

namespace slate::client {
namespace {

// Below this a helper's start costs more than it saves.
constexpr std::uint64_t kBytesPerThread = 1 << 20;

void* run_body(void* body) {
  (*static_cast<const std::function<void()>*>(body))();
  return nullptr;
}

}  // namespace

int CopyCrew::size_for(std::uint64_t bytes, unsigned cores) {
  if (cores <= 2) return 1;
  const std::uint64_t worth = std::clamp<std::uint64_t>(bytes / kBytesPerThread, 1, kMost);
  return static_cast<int>(std::min<std::uint64_t>(worth, cores / 2));
}

unsigned CopyCrew::cores() {
  static const unsigned count = std::thread::hardware_concurrency();  // heeds the affinity
  return count;
}

void CopyCrew::run(int count, const std::function<void()>& body) {
  std::array<pthread_t, kMost> helpers{};
  int started = 0;
  if (count > 1) {
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);  // ManagedGuard waits in it
    pthread_sigmask(SIG_BLOCK, &all, &before);
    void* const argument = const_cast<std::function<void()>*>(&body);
    while (started < std::min(count, kMost) - 1 &&
           pthread_create(&helpers[started], nullptr, run_body, argument) == 0) {
      ++started;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  body();
  for (int i = 0; i < started; ++i) pthread_join(helpers[i], nullptr);
}

}  // namespace slate::client
