// ObjectRecords: what the program made a texture or surface of, by the number that kernels take. It
// is kept to be told again, in the front's own structs. Of the present session only. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "base/mutex.h"
#include "client/session/process.h"
#include "client/session/session.h"

namespace slate::client {

/// `Record` has a member `session`, the serial of the session that the object belongs to.
template <typename Record>
class ObjectRecords {
 public:
  /// One for the process, never destroyed.
  static ObjectRecords& get() {
    static auto* const records = new ObjectRecords;
    return *records;
  }
  void add(std::uint64_t number, const Record& record) {
    const MutexLock lock(mutex_);
    records_.insert_or_assign(number, record);
  }
  std::optional<Record> find(const Session& session, std::uint64_t number) {
    const MutexLock lock(mutex_);
    const auto found = records_.find(number);
    if (found == records_.end() || found->second.session != session.serial()) return std::nullopt;
    return found->second;
  }
  /// True for the one call that takes it out.
  bool remove(const Session& session, std::uint64_t number) {
    const MutexLock lock(mutex_);
    const auto found = records_.find(number);
    if (found == records_.end() || found->second.session != session.serial()) return false;
    records_.erase(found);
    return true;
  }

 private:
  Mutex& mutex_ = Process::get().tables_mutex();
  std::unordered_map<std::uint64_t, Record> records_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::client
