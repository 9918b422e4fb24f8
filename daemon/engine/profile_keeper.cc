#include "daemon/engine/profile_keeper.h"

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
  Result<std::size_t> loaded = 0;
  executor_.with_profiles([&](scheduler::ProfileTable& table) { loaded = store->load(table); });
  if (!loaded) log_warning("profiles of kernels are not read: {}", loaded.error().message);
  thread_ = std::thread([this, opened = std::move(*store)]() mutable { run(std::move(opened)); });
}

ProfileKeeper::~ProfileKeeper() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ProfileKeeper::run(ProfileStore store) {
  ProfileChangeFinder finder;
  bool warned = false;
  bool last = false;
  while (!last) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, kPeriod, [this] { return ending_; });
      last = ending_;
    }
    ProfileChanges changes;
    executor_.with_profiles([&](scheduler::ProfileTable& table) { changes = finder.find(table); });
    if (changes.empty()) continue;
    const auto saved = store.save(changes);
    if (saved) continue;
    finder.not_saved();
    if (!warned) log_warning("profiles of kernels are not saved: {}", saved.error().message);
    warned = true;
  }
}

}  // namespace slate::daemon
