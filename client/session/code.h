// Code: what a program registered before main() — fat binaries, kernels, variables — and what
// became of it in the present session. Nothing is unpacked or sent before it is used. Registered
// things outlive sessions: after a reset they are loaded anew on their next use. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "client/session/fatbin.h"
#include "client/session/session.h"

namespace slate::client {

struct FatBinary {
  const void* wrapper = nullptr;          // of the program's own code
  std::optional<Image> image;             // of code loaded at run time
  std::vector<std::string> kernel_names;  // likewise
  std::uint64_t session = 0;              // whose module this is; 0: none yet
  std::uint64_t module = 0;               // 0: that session refused it
  std::optional<Error> refusal;           // why that session has none: it will not be asked again
};

/// A kernel's handle. Never destroyed, as programs keep it in static variables.
struct Kernel {
  FatBinary* binary = nullptr;
  std::string name;  // mangled, as in the PTX
  std::atomic<Function*> function{nullptr};
  std::vector<std::unique_ptr<Function>> made;  // one a session that used it
};

struct Variable {
  FatBinary* binary = nullptr;
  std::string name;
  std::uint64_t bytes = 0;    // as the host compiler saw it
  std::uint64_t session = 0;  // whose `address` is
  std::uint64_t address = 0;
};

/// A __managed__ variable: host code reads and writes it through a pointer of its own.
struct ManagedVariable {
  FatBinary* binary = nullptr;
  std::string name;
  void** host = nullptr;  // that pointer
  std::uint64_t bytes = 0;
  std::uint64_t session = 0;  // whose memory it is in
  std::uint64_t address = 0;
  std::unique_ptr<std::byte[]> plain;  // instead, while no session has it
  std::unique_ptr<void*> own;          // a library's has no host code
};

class Code {
 public:
  // Registration. The pointers are the host's: a wrapper, the stub of a kernel, the shadow of a
  // variable.
  FatBinary* add_binary(const void* wrapper);
  void add_kernel(FatBinary* binary, const void* host, const char* name);
  void add_variable(FatBinary* binary, const void* host, const char* name, std::uint64_t bytes);
  void add_managed(FatBinary* binary, void** host, const char* name, std::uint64_t bytes);
  /// Forgets what `binary` registered; unloads its modules if `session` has them (may be null).
  void remove_binary(FatBinary* binary, Session* session);

  /// Null when nothing was registered under this pointer. A kernel is found under its own address
  /// too.
  Kernel* find_kernel(const void* host) const;
  Variable* find_variable(const void* host) const;

  /// The kernel in this session; loads its fat binary on first use.
  Result<Function*> function(Session& session, Kernel& kernel) {
    Function* known = kernel.function.load(std::memory_order_acquire);
    if (known != nullptr && known->session == session.serial()) [[likely]]
      return known;
    return load_function(session, kernel);
  }
  // Libraries: code that comes at run time. They go by remove_binary().
  FatBinary* add_library(Image image);
  bool is_library(const FatBinary* binary) const;
  /// kSymbolNotFound when the library has no such kernel or variable.
  Result<Kernel*> library_kernel(Session& session, FatBinary& library, const std::string& name);
  Result<Range> library_variable(Session& session, FatBinary& library, const std::string& name);
  Result<Range> library_managed(Session& session, FatBinary& library, const std::string& name);

  /// Loads the fat binary, so that its managed variables have their places.
  Result<void> load(Session& session, FatBinary& binary);
  /// The managed variable that begins at this address in this session.
  std::optional<Range> find_managed(Session& session, std::uint64_t address) const;
  /// Gives managed variables that this session has, or that none has, plain memory with their
  /// contents: host code goes on using them when there is no session.
  void detach_managed(const Session* session);
  /// The variable's place on the device in this session.
  Result<Range> place(Session& session, Variable& variable);
  /// Finds the places of all variables of all modules loaded so far, for a pointer that nobody
  /// knows. Quick when none was loaded since the last time.
  void place_all(Session& session);

  /// fork(): lock before, unlock after on both sides, so that the child finds no half-made change.
  void lock_for_fork();
  void unlock_after_fork(bool in_child);

 private:
  Result<Function*> load_function(Session& session, Kernel& kernel);
  Result<void> load_binary(Session& session, FatBinary& binary);
  Result<void> send_image(Session& session, FatBinary& binary);
  Result<void> place_managed(Session& session, FatBinary& binary);
  Result<Range> place_locked(Session& session, Variable& variable);

  mutable std::shared_mutex names_mutex_;  // guards the maps and lists
  std::unordered_map<const void*, Kernel*> kernels_;
  std::unordered_map<const void*, std::unique_ptr<Variable>> variables_;
  std::vector<std::unique_ptr<FatBinary>> binaries_;
  std::vector<std::unique_ptr<Kernel>> all_kernels_;
  // Guards what changes inside FatBinary, Kernel and the variables, and the list.
  mutable std::mutex loading_mutex_;
  std::atomic<bool> may_have_unplaced_{false};  // changed with loading_mutex_ held
  std::vector<ManagedVariable> managed_;
};

}  // namespace slate::client
