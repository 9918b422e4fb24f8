// DeviceMemory: the device memory of a session, and what it shares with its user's other sessions.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <string>

#include "base/mutex.h"
#include "client/session/allocation_table.h"
#include "client/session/pools.h"
#include "client/session/wire.h"

namespace slate::client {

class Session;

/// Tags of the ranges in DeviceMemory::table().
inline constexpr std::uint32_t kTagMemory = 1;           // of allocate()
inline constexpr std::uint32_t kTagGlobal = 2;           // a module's variable
inline constexpr std::uint32_t kTagManaged = 3;          // of allocate_managed(): host memory too
inline constexpr std::uint32_t kTagManagedVariable = 4;  // a managed variable
inline constexpr std::uint32_t kTagImported = 5;         // memory of another session
inline constexpr std::uint32_t kTagMapped = 6;           // of VirtualMemory::map()

class DeviceMemory {
 public:
  explicit DeviceMemory(Session& session);

  AllocationTable& table() { return table_; }
  Pools& pools() { return pools_; }

  Result<std::uint64_t> allocate(std::uint64_t bytes);
  /// Frees an allocation. For managed memory it waits for all work. kInvalidValue when no
  /// allocation begins at `address`.
  Result<void> free(std::uint64_t address);
  Result<ipc::MemoryInfoReply> info();

  // Sharing, by handles that travel between programs.
  Result<ipc::ShareHandle> export_memory(std::uint64_t address);
  /// Whether export_memory() returned this handle.
  bool has_exported(const ipc::ShareHandle& handle) const;
  /// Opens the whole allocation; returns it, and how often it is open here.
  Result<ipc::ImportReply> import_memory(const ipc::ShareHandle& handle);
  /// kInvalidValue when nothing imported begins at `address`.
  Result<void> close_import(std::uint64_t address);
  /// Whether this session shares memory with others, or may, in either direction.
  bool is_shared() const { return is_shared_.load(); }

 private:
  Session& session_;
  AllocationTable table_;
  Pools pools_;
  std::atomic<bool> is_shared_{false};
  mutable Mutex imports_mutex_;  // keeps table_'s imports as in the last answer
  std::set<std::string> exported_ SLATE_GUARDED_BY(imports_mutex_);  // exported handles
};

}  // namespace slate::client
