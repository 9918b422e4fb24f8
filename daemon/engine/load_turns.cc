#include "daemon/engine/load_turns.h"

namespace slate::daemon {

Result<LoadTurns::Turn> LoadTurns::begin(const Loader& loader, std::uint64_t bytes) {
  MutexLock lock(mutex_);
  const LoadQueue::Ticket ticket = queue_.join(loader.uid, bytes);
  while (!queue_.try_begin(ticket)) {
    changed_.wait_for(lock, kAskAgain);
    lock.unlock();
    const bool is_over = loader.is_over && loader.is_over();
    if (is_over) {
      end(ticket);
      return fail(ErrorCode::kIo, "nobody waits for the module any more");
    }
    lock.lock();
  }
  lock.unlock();
  // The next image may begin beside this one.
  changed_.notify_all();
  return Turn(this, End{ticket});
}

void LoadTurns::end(LoadQueue::Ticket ticket) {
  {
    const MutexLock lock(mutex_);
    queue_.leave(ticket);
  }
  changed_.notify_all();
}

}  // namespace slate::daemon
