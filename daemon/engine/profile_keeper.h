// ProfileKeeper: keeps the executor's profiles on disk: loads them at the start, and saves what has
// changed every few seconds and at the end, on a thread of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "daemon/engine/executor.h"
#include "daemon/profile/profile_store.h"

namespace slate::daemon {

class ProfileKeeper {
 public:
  static constexpr std::chrono::seconds kPeriod{5};

  /// An empty `directory`, or one that cannot be used (which is logged): nothing is kept.
  /// `executor` outlives it.
  ProfileKeeper(Executor& executor, const std::filesystem::path& directory,
                const std::string& device);
  /// Saves.
  ~ProfileKeeper();

  /// Before the executor has a client. The first call loads anew what other engines have saved
  /// since the start, which may be long ago if this one was started as a spare. One thread.
  void session_comes();

 private:
  void load();
  void run();
  bool save();

  Executor& executor_;
  bool session_came_ = false;  // session_comes() only
  std::mutex store_mutex_;     // guards what follows; before the executor's
  std::optional<ProfileStore> store_;
  ProfileChangeFinder finder_;
  bool warned_ = false;
  std::mutex mutex_;  // guards ending_
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace slate::daemon
