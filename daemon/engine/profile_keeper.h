// ProfileKeeper: keeps the executor's profiles on disk. It loads them at the start. A thread of its
// own saves changes every kPeriod and at the end.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "daemon/engine/executor.h"
#include "daemon/profile/profile_store.h"

namespace slate::daemon {

class ProfileKeeper {
 public:
  static constexpr std::chrono::seconds kPeriod{5};

  /// `executor` outlives it. Nothing is kept with an empty `directory`, or one that cannot be used
  /// (which is logged).
  ProfileKeeper(Executor& executor, const std::filesystem::path& directory,
                const std::string& device);
  /// Saves the last changes.
  ~ProfileKeeper();

  /// The first call loads what other engines have saved since the start, which may be long ago for
  /// a spare engine. One thread. Requires: the executor has no client yet.
  void session_comes();

 private:
  void load() SLATE_REQUIRES(store_mutex_);
  void run();
  bool save() SLATE_REQUIRES(store_mutex_);

  Executor& executor_;
  bool session_came_ = false;  // session_comes() only
  Mutex store_mutex_;          // locked before the executor's
  std::optional<ProfileStore> store_ SLATE_PT_GUARDED_BY(store_mutex_);
  ProfileChangeFinder finder_ SLATE_GUARDED_BY(store_mutex_);
  bool warned_ SLATE_GUARDED_BY(store_mutex_) = false;
  Mutex mutex_;
  CondVar wake_;
  bool ending_ SLATE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace slate::daemon
