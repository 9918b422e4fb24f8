// ProfileStore: the profile table of one device on disk. It takes copies of changed rows: the
// engine copies under the lock of its table and writes without it.
// Thread: one background thread, never a session's. Several engines may share the file; the last to
// save a row wins.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/profile/database.h"
#include "scheduler/profile.h"

namespace slate::daemon {

/// A scheduler::GroupProfile by the keys of its kernels, which stay valid beyond a process.
struct StoredGroup {
  std::vector<scheduler::KernelKey> kernels;  // in the order of the process's ids
  scheduler::GroupProfile group;  // the profile; its ids mean nothing outside the process
};

/// Rows to write.
struct ProfileChanges {
  std::vector<scheduler::KernelProfile> kernels;
  std::vector<StoredGroup> groups;
  std::vector<scheduler::KernelKey> forgotten;  // kernels to delete, with their groups
  std::vector<std::vector<scheduler::KernelKey>> forgotten_groups;
  bool empty() const {
    return kernels.empty() && groups.empty() && forgotten.empty() && forgotten_groups.empty();
  }
};

/// Finds the rows that have changed since its last call.
class ProfileChangeFinder {
 public:
  /// Copies of the rows that are new or have changed; the first time, of all that say something.
  /// Takes time by the size of the table. Requires: the caller holds the table's lock.
  ProfileChanges find(const scheduler::ProfileTable& table);
  /// The last find() was not saved: the next one returns its rows again, the forgotten ones too.
  void not_saved();

 private:
  std::vector<std::uint64_t> kernels_;  // fingerprints by KernelId; 0: the row says nothing
  std::map<std::vector<scheduler::KernelId>, std::uint64_t> groups_;
  // What the last find() returned.
  std::vector<scheduler::KernelId> newest_kernels_;
  std::vector<std::vector<scheduler::KernelId>> newest_groups_;
};

class ProfileStore {
 public:
  /// Opens the store. Rows of another device name or number of SMs are other rows. Errors as
  /// Database::open().
  static Result<ProfileStore> open(const std::filesystem::path& directory,
                                   const std::string& device, std::uint32_t sm_count);

  /// Adds the stored rows to `table`, and returns the number of kernels. Rows that were measured
  /// already stay as they are. Invalid rows are left out.
  Result<std::size_t> load(scheduler::ProfileTable& table);
  /// Whether another process has written to the file since load().
  bool changed_by_others();
  /// Writes all of it or nothing. Beyond 20,000 kernels, it deletes the oldest rows of the users
  /// with the most rows.
  Result<void> save(const ProfileChanges& changes);

 private:
  ProfileStore(Database database, std::int64_t device)
      : database_(std::move(database)), device_(device) {}

  Result<std::int64_t> save_kernel(const scheduler::KernelProfile& kernel);
  Result<void> save_times(std::int64_t row, const scheduler::KernelProfile& kernel);
  Result<void> save_group(const StoredGroup& group);
  Result<void> forget(const ProfileChanges& changes);
  Result<void> prune();
  Result<std::optional<std::int64_t>> row_of(const scheduler::KernelKey& key);
  Result<std::optional<std::string>> members_of(const std::vector<scheduler::KernelKey>& keys);
  Result<void> load_times(std::map<std::int64_t, scheduler::KernelProfile>& rows);
  Result<std::int64_t> version();
  Result<void> load_groups(const std::map<std::int64_t, scheduler::KernelId>& ids,
                           scheduler::ProfileTable& table);

  Database database_;
  std::int64_t device_;
  std::optional<std::int64_t> loaded_version_;
};

}  // namespace slate::daemon
