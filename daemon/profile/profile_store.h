// ProfileStore: the profile table on disk, for one device. It takes copies of what has changed, so
// that the engine copies under the lock of its table and writes without it. One background thread,
// never the launch path; several engines may share the file, and the last one to save a row wins.
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

/// A scheduler::GroupProfile by the keys of its kernels, which hold beyond a process.
struct StoredGroup {
  std::vector<scheduler::KernelKey> kernels;  // in the order of the process's ids
  scheduler::GroupProfile group;              // its ids mean nothing outside the process
};

/// What is to be written.
struct ProfileChanges {
  std::vector<scheduler::KernelProfile> kernels;
  std::vector<StoredGroup> groups;
  std::vector<scheduler::KernelKey> forgotten;  // with the groups they are in
  std::vector<std::vector<scheduler::KernelKey>> forgotten_groups;
  bool empty() const {
    return kernels.empty() && groups.empty() && forgotten.empty() && forgotten_groups.empty();
  }
};

/// Notices which rows have changed since it last looked.
class ProfileChangeFinder {
 public:
  /// Copies of the rows that are new or have changed; the first time, of all that say something.
  /// Takes time by the size of the table; the caller's lock on it is enough.
  ProfileChanges find(const scheduler::ProfileTable& table);
  /// The next find() returns again what the last one returned, rows that were forgotten included:
  /// it was not saved.
  void not_saved();

 private:
  std::vector<std::uint64_t> kernels_;  // fingerprints by KernelId; 0: says nothing
  std::map<std::vector<scheduler::KernelId>, std::uint64_t> groups_;
  // What the last find() returned.
  std::vector<scheduler::KernelId> newest_kernels_;
  std::vector<std::vector<scheduler::KernelId>> newest_groups_;
};

class ProfileStore {
 public:
  /// Rows of another device name or number of SMs are other rows. Errors as Database::open().
  static Result<ProfileStore> open(const std::filesystem::path& directory,
                                   const std::string& device, std::uint32_t sm_count);

  /// Adds what is stored to `table`; rows that were measured already stay as they are. The number
  /// of kernels. Rows that make no sense are left out.
  Result<std::size_t> load(scheduler::ProfileTable& table);
  /// Whether anybody else has written to the file since load() was called.
  bool changed_by_others();
  /// All of it or nothing. Beyond 20,000 kernels, the oldest rows of the users who have
  /// most are gone afterwards.
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
