// ObjectRecords: what the program made a texture or surface of, by the number that kernels take. It
// is kept to be told again, in the front's own structs. Of the present session only. Thread-safe.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/mutex.h"
#include "client/session/process.h"
#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

template <typename Record>
class ObjectRecords {
 public:
  /// One for the process, never destroyed.
  static ObjectRecords& get() {
    static auto* const records = new ObjectRecords;
    return *records;
  }
  void add(const Session& session, std::uint64_t number, const Record& record) {
    const MutexLock lock(mutex_);
    records_.insert_or_assign(number, Owned{session.serial(), record});
  }
  /// kInvalidValue for a number that is none.
  Allowed<Record> find(const Session& session, std::uint64_t number) {
    const MutexLock lock(mutex_);
    const auto found = records_.find(number);
    if (found == records_.end() || found->second.session != session.serial())
      return refuse(Refusal::kInvalidValue);
    return found->second.record;
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
  struct Owned {
    std::uint64_t session;  // serial
    Record record;
  };

  Mutex& mutex_ = Process::get().tables_mutex();
  std::unordered_map<std::uint64_t, Owned> records_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::client
