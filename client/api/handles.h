// The live modules and kernels of slate.h, and their handles. A handle is a number that is never
// reused, so that a stale one is recognised. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "client/api/names.h"
#include "client/api/outcome.h"
#include "client/session/session.h"

namespace slate::api {

struct Module {
  // Constant once the module is registered:
  slate_module* handle = nullptr;
  std::uint64_t session = 0;  // Session::serial()
  std::uint64_t id = 0;       // id in that session
  PtxNames names;
  WrittenNames written;
  std::string log;
  std::vector<std::uint64_t> managed;  // variables in memory that the host reaches too

  Mutex mutex;  // held while the daemon is asked
  // Kernels by their names in the PTX.
  std::map<std::string, slate_kernel*> kernels SLATE_GUARDED_BY(mutex);
  std::map<std::string, ipc::GlobalReply> variables SLATE_GUARDED_BY(mutex);

  // Held shared from the check of `unloaded` until a launch is sent. So no launch follows the
  // command that unloads.
  SharedMutex life;
  bool unloaded = false;  // changes under both mutexes
};

struct Kernel {
  std::shared_ptr<Module> module;
  std::string name;  // name in the PTX
  std::unique_ptr<client::Function> function;
};

class Handles {
 public:
  /// Made at the first call and never destroyed, as programs may call slate in exit handlers.
  static Handles& get();

  /// Adds the module and sets `module->handle`.
  slate_module* add(const std::shared_ptr<Module>& module);
  /// Adds a kernel. Null when its module is not registered any more.
  slate_kernel* add(std::shared_ptr<Kernel> kernel);
  /// Removes the module and its kernels. Null when the table does not have the module.
  std::shared_ptr<Module> remove(slate_module* module);

  Outcome<std::shared_ptr<Module>> find(slate_module* module) const;
  Outcome<std::shared_ptr<Kernel>> find(slate_kernel* kernel) const;

 private:
  Handles();
  std::uintptr_t next_number() SLATE_REQUIRES(mutex_);

  // Guards all below; held for short times. No shared_mutex, as a child of fork() cannot unlock
  // one.
  mutable Mutex mutex_;
  std::uintptr_t last_number_ SLATE_GUARDED_BY(mutex_) = 0;
  std::unordered_map<const slate_module*, std::shared_ptr<Module>> modules_
      SLATE_GUARDED_BY(mutex_);
  std::unordered_map<const slate_kernel*, std::shared_ptr<Kernel>> kernels_
      SLATE_GUARDED_BY(mutex_);
};

/// The process's session, if it has `module`; else SLATE_ERROR_SESSION_ENDED.
Outcome<client::Session*> session_of(const Module& module);

}  // namespace slate::api
