#include "daemon/engine/profile_keeper.h"

#include <utility>

#include "base/log.h"

namespace slate::daemon {

ProfileKeeper::ProfileKeeper(Executor& executor, const std::filesystem::path& directory,
                             const std::string& device)
    : executor_(executor) {
  if (directory.empty()) return;
  auto store = ProfileStore::open(directory, device, executor.machine().sm_count);
  if (!store) {
    log_warning("profiles of kernels are not kept: {}", store.error().message);
    return;
  }
  store_ = std::move(*store);
  load();
  thread_ = std::thread([this] { run(); });
}

ProfileKeeper::~ProfileKeeper() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ProfileKeeper::session_comes() {
  // Before the lock, which is held while profiles are written to the disk.
  if (std::exchange(session_came_, true) || !store_) return;
  const MutexLock lock(store_mutex_);
  if (save() && store_->changed_by_others()) load();
}

/// The rows that were read are not saved again: they would look newer than rows that came since,
/// and replace them.
void ProfileKeeper::load() {
  Result<std::size_t> loaded = 0;
  executor_.with_profiles([&](scheduler::ProfileTable& table) SLATE_REQUIRES(store_mutex_) {
    table.clear();
    loaded = store_->load(table);
    finder_.find(table);
  });
  if (!loaded) log_warning("profiles of kernels are not read: {}", loaded.error().message);
}

void ProfileKeeper::run() {
  bool last = false;
  while (!last) {
    {
      MutexLock lock(mutex_);
      wake_.wait_for(lock, kPeriod, [this]() SLATE_REQUIRES(mutex_) { return ending_; });
      last = ending_;
    }
    const MutexLock lock(store_mutex_);
    save();
  }
}

/// False if what has changed could not be saved: next time.
bool ProfileKeeper::save() {
  ProfileChanges changes;
  executor_.with_profiles([&](scheduler::ProfileTable& table)
                              SLATE_REQUIRES(store_mutex_) { changes = finder_.find(table); });
  const auto saved = store_->save(changes);
  if (saved) return true;
  finder_.not_saved();
  if (!warned_) log_warning("profiles of kernels are not saved: {}", saved.error().message);
  warned_ = true;
  return false;
}

}  // namespace slate::daemon
