// Imports: memory of other sessions that this one has open, at the addresses that it has there.
// Session thread, but for let_go_of().
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "daemon/engine/exports.h"

namespace slate::daemon {

class Imports {
 public:
  using Ranges = std::shared_ptr<const std::vector<device::AddressRange>>;
  static constexpr std::size_t kMost = 4096;

  explicit Imports(std::shared_ptr<Exports> exports) : exports_(std::move(exports)) {}

  /// Opening twice is counted.
  Result<ipc::ImportReply> open(const ipc::ShareHandle& handle, uid_t uid);
  /// kInvalidValue when no open import begins there. With the last close, `memory` is what
  /// let_go_of() takes when no work uses it any more.
  Result<ipc::ImportReply> close(device::Address address, Exports::Memory& memory);
  static void let_go_of(const Exports::Memory& memory) { memory.owner->let_go(memory.range.base); }
  /// Requires: no unfinished work uses any of it.
  void release();

  /// True if the bytes lie in one of them.
  bool owns(device::Address address, std::uint64_t bytes) const;
  /// These and `others`, by rising address; null for nothing.
  Ranges with(const Ranges& others);

 private:
  struct Import {
    Exports::Memory memory;
    std::uint64_t count;
  };

  const std::shared_ptr<Exports> exports_;
  std::map<device::Address, Import> open_;
  Ranges others_, merged_;  // what the latter was made of
};

}  // namespace slate::daemon
