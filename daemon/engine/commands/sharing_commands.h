// SharingCommands: memory of other sessions of the same user that this session has open, and the
// commands on it. Session thread.
#pragma once

#include "daemon/engine/commands/call.h"
#include "daemon/engine/commands/part_context.h"
#include "daemon/engine/imports.h"

namespace slate::daemon {

class SharingCommands {
 public:
  explicit SharingCommands(const PartContext& context)
      : context_(context), imports_(context.exports) {}

  Result<void> on(const Call<ipc::CommandType::kMemoryImport>& call);
  Result<void> on(const Call<ipc::CommandType::kMemoryImportClose>& call);

  bool owns(device::Address address, std::uint64_t bytes) const {
    return imports_.owns(address, bytes);
  }
  Imports& imports() { return imports_; }
  /// Requires: no unfinished work uses the memory.
  void release() { imports_.release(); }

 private:
  const PartContext& context_;
  Imports imports_;
};

}  // namespace slate::daemon
