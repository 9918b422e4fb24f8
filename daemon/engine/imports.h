// Imports: memory of other sessions that this session has open, at the addresses that it has there.
// Closed memory stays held until no work uses it. The caller waits for that work.
//
// Thread: the session's, but for finish_close().
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "daemon/engine/exports.h"

namespace slate::daemon {

class Imports {
 public:
  using Ranges = std::shared_ptr<const std::vector<device::AddressRange>>;
  static constexpr std::size_t kMost = 4096;

  explicit Imports(std::shared_ptr<Exports> exports) : exports_(std::move(exports)) {}
  /// Requires: release() was called.
  ~Imports();
  Imports(const Imports&) = delete;
  Imports& operator=(const Imports&) = delete;

  /// Opens the memory; every open is counted.
  Result<ipc::ImportReply> open(const ipc::ShareHandle& handle, uid_t uid);
  /// Closes it once; kInvalidValue when no open import begins there. After the last close (a count
  /// of 0) comes finish_close(), or release().
  Result<ipc::ImportReply> close(device::Address address);
  /// Any thread. Requires: closed, and no unfinished work uses the memory.
  void finish_close(device::Address address);
  /// Lets go of everything, closed or not. Requires: no unfinished work uses it.
  void release();

  /// Whether the bytes lie in one open import.
  bool owns(device::Address address, std::uint64_t bytes) const;
  /// The ranges of the imports and `others`, by rising address; null for nothing.
  Ranges with(const Ranges& others);

 private:
  struct Import {
    Exports::Memory memory;
    std::uint64_t count;
  };

  static void let_go_of(const Exports::Memory& memory) { memory.owner->let_go(memory.range.base); }

  const std::shared_ptr<Exports> exports_;
  std::map<device::Address, Import> open_;
  Mutex mutex_;
  std::multimap<device::Address, Exports::Memory> closed_ SLATE_GUARDED_BY(mutex_);
  Ranges others_, merged_;  // the ranges that merged_ was made of, and merged_
};

}  // namespace slate::daemon
