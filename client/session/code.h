// Code: what a program registered before main() (fat binaries, kernels, variables), and its state
// in the present session. Nothing is unpacked or sent before it is used. Registered things outlive
// sessions: after a reset their next use loads them anew. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "client/session/fatbin.h"
#include "client/session/session.h"

namespace slate::client {

struct FatBinary {
  const void* wrapper = nullptr;  // null when there is an image
  bool is_library = false;        // whether it is code loaded at run time
  std::optional<Image> image;     // a library's without a wrapper; else only until it is sent
  bool has_names = false;         // whether the next and a library's variables are known
  std::vector<std::string> kernel_names;  // of a library, in the order of its image
  std::uint64_t session = 0;              // session of the module; 0: none yet
  std::uint64_t module = 0;               // 0: that session refused it
  std::optional<Error> refusal;           // why that session refused it; it is not asked again
};

/// A kernel's handle. Never destroyed, as programs keep it in static variables.
struct Kernel {
  static constexpr std::uint64_t kMark = 0x6c656e72656b2e73;

  const std::uint64_t mark = kMark;  // difference from what else a program may take for a kernel
  FatBinary* binary = nullptr;
  std::string name;  // mangled name, as in the PTX
  std::atomic<Function*> function{nullptr};
  std::vector<std::unique_ptr<Function>> made;  // one for each session that used it
};

struct Variable {
  FatBinary* binary = nullptr;
  std::string name;
  std::uint64_t bytes = 0;    // size by the host compiler
  std::uint64_t session = 0;  // session of `address`
  std::uint64_t address = 0;
  std::uint64_t absent_in = 0;  // session whose module does not have it
};

/// A __managed__ variable. Host code reads and writes it through a pointer of its own.
struct ManagedVariable {
  FatBinary* binary = nullptr;
  std::string name;
  void** host = nullptr;  // the host code's pointer
  std::uint64_t bytes = 0;
  std::uint64_t session = 0;  // session of its memory
  std::uint64_t address = 0;
  std::unique_ptr<std::byte[]> plain;  // its memory while no session has it
  std::unique_ptr<void*> own;          // pointer of a library's variable, which has no host code
};

class Code {
 public:
  // Registration, by the host's pointers: a wrapper, a kernel's stub, a variable's shadow.
  FatBinary* add_binary(const void* wrapper);
  void add_kernel(FatBinary* binary, const void* host, const char* name);
  void add_variable(FatBinary* binary, const void* host, const char* name, std::uint64_t bytes);
  void add_managed(FatBinary* binary, void** host, const char* name, std::uint64_t bytes);
  /// Forgets what `binary` registered; unloads its modules if `session` (may be null) has them.
  void remove_binary(FatBinary* binary, Session* session);

  /// The kernel registered under this pointer, or at this address of its own; null when there is
  /// none.
  Kernel* find_kernel(const void* host) const;
  Variable* find_variable(const void* host) const;

  /// The kernel in this session; loads its fat binary on first use.
  Result<Function*> function(Session& session, Kernel& kernel) {
    Function* known = kernel.function.load(std::memory_order_acquire);
    if (known != nullptr && known->session == session.serial()) [[likely]]
      return known;
    return load_function(session, kernel);
  }
  // Libraries: code loaded at run time. remove_binary() ends them.
  FatBinary* add_library(Image image);
  /// As above, with a wrapper that stays as it is. It is unpacked when it is needed first.
  FatBinary* add_lazy_library(const void* wrapper);
  bool is_library(const FatBinary* binary) const;
  /// The names of the library's kernels.
  Result<std::vector<std::string>> library_kernels(Session& session, FatBinary& library);
  /// kSymbolNotFound when the library has no such kernel or variable.
  Result<Kernel*> library_kernel(Session& session, FatBinary& library, const std::string& name);
  Result<Range> library_variable(Session& session, FatBinary& library, const std::string& name);
  Result<Range> library_managed(Session& session, FatBinary& library, const std::string& name);

  /// Loads the fat binary, so that its managed variables have their places.
  Result<void> load(Session& session, FatBinary& binary);
  /// The managed variable that begins at this address in this session.
  std::optional<Range> find_managed(Session& session, std::uint64_t address) const;
  /// Moves the managed variables that this session has, or none has, to plain memory with their
  /// contents. So host code can go on using them without a session.
  void detach_managed(const Session* session);
  /// The variable's place on the device in this session.
  Result<Range> place(Session& session, Variable& variable);
  /// Finds the places of the variables of all loaded modules, to look up an unknown pointer. Quick
  /// when no module was loaded since the last call.
  void place_all(Session& session);

  /// fork(): lock before, unlock after on both sides, so that the child finds no half-made change.
  void lock_for_fork() SLATE_ACQUIRE(loading_mutex_, names_mutex_);
  void unlock_after_fork(bool in_child)
      SLATE_RELEASE(loading_mutex_, names_mutex_) SLATE_NO_THREAD_SAFETY_ANALYSIS;

 private:
  Result<Function*> load_function(Session& session, Kernel& kernel);
  Result<void> load_binary(Session& session, FatBinary& binary) SLATE_REQUIRES(loading_mutex_);
  FatBinary* add_library_with(const void* wrapper);
  /// Valid until the image is sent.
  Result<const Image*> image_of(Session& session, FatBinary& binary) SLATE_REQUIRES(loading_mutex_);
  void learn_names(FatBinary& library, const Image& image) SLATE_REQUIRES(loading_mutex_);
  Result<void> send_image(Session& session, FatBinary& binary) SLATE_REQUIRES(loading_mutex_);
  Result<void> place_managed(Session& session, FatBinary& binary) SLATE_REQUIRES(loading_mutex_);
  Result<Range> place_locked(Session& session, Variable& variable) SLATE_REQUIRES(loading_mutex_);

  mutable SharedMutex names_mutex_;
  std::unordered_map<const void*, Kernel*> kernels_ SLATE_GUARDED_BY(names_mutex_);
  std::unordered_map<const void*, std::unique_ptr<Variable>> variables_
      SLATE_GUARDED_BY(names_mutex_);
  std::vector<std::unique_ptr<FatBinary>> binaries_ SLATE_GUARDED_BY(names_mutex_);
  std::vector<std::unique_ptr<Kernel>> all_kernels_ SLATE_GUARDED_BY(names_mutex_);
  // Guards what changes inside FatBinary, Kernel and the variables, and the list.
  mutable Mutex loading_mutex_;
  std::atomic<bool> may_have_unplaced_{false};  // changed with loading_mutex_ held
  std::vector<ManagedVariable> managed_ SLATE_GUARDED_BY(loading_mutex_);
};

}  // namespace slate::client
