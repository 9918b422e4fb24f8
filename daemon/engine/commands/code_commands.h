// CodeCommands: a session's modules, functions and variables, and the commands on them. Session
// thread, but for module_count().
#pragma once

#include <cstdint>
#include <set>

#include "daemon/engine/commands/call.h"
#include "daemon/engine/commands/host_memory_commands.h"
#include "daemon/engine/commands/memory_commands.h"
#include "daemon/engine/commands/part_context.h"
#include "daemon/engine/module_store.h"

namespace slate::daemon {

class CodeCommands {
 public:
  /// `compiler` and `memory` outlive it. `memory` is charged for modules' variables. `images`:
  /// those that sessions share. `account`: of the engine's memory for code. Null: none.
  CodeCommands(const PartContext& context, Compiler& compiler, MemoryCommands& memory,
               const HostMemoryCommands& host, std::shared_ptr<ImageStore> images,
               std::shared_ptr<MemoryLedger::Account> account);

  Result<void> on(const Call<ipc::CommandType::kModuleLoad>& call);
  Result<void> on(const Call<ipc::CommandType::kModuleOffer>& call);
  Result<void> on(const Call<ipc::CommandType::kModuleUnload>& call);
  Result<void> on(const Call<ipc::CommandType::kVariablePlace>& call);
  Result<void> on(const Call<ipc::CommandType::kFunctionGet>& call);
  Result<void> on(const Call<ipc::CommandType::kFunctionParameters>& call);
  Result<void> on(const Call<ipc::CommandType::kFunctionSet>& call);
  Result<void> on(const Call<ipc::CommandType::kGlobalGet>& call);
  Result<void> on(const Call<ipc::CommandType::kLimitRaise>& call);
  Result<void> on(const Call<ipc::CommandType::kTensorMapEncode>& call);

  /// Another engine had the module's first chunks. The client is asked for all of them again, once
  /// the last one has come.
  void upload_was_lost(std::uint64_t module) { lost_uploads_.insert(module); }
  /// Charges `memory` for modules from now on. Requires: the memory was started.
  void start();
  ModuleStore& modules() { return modules_; }
  bool owns(device::Address address, std::uint64_t bytes) const {
    return modules_.owns(address, bytes);
  }
  /// Number of loaded modules. Any thread.
  std::size_t module_count() const { return modules_.loaded().count(); }
  /// Engine memory of the modules. Any thread.
  std::uint64_t code_memory() const { return modules_.loaded().host_bytes(); }
  /// Requires: no unfinished work uses a module.
  void release() { modules_.release(); }

 private:
  void give_back(device::Address home);
  Result<void> pass_over(const Call<ipc::CommandType::kModuleLoad>& chunk);

  const PartContext& context_;
  MemoryCommands& memory_;
  const std::shared_ptr<MemoryLedger::Account> account_;
  ModuleStore modules_;
  std::set<std::uint64_t> lost_uploads_;
};

}  // namespace slate::daemon
