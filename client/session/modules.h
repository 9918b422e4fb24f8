// Modules: a session's code as the daemon has it. Modules whose kernels call what the driver has
// built in, as printf and malloc, are sent with functions of slate's own, and told where the
// session's ring (printing.h) and heap (kernel_heap.h) are. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "client/session/fatbin.h"
#include "ipc/commands.h"

namespace slate::client {

class Session;

/// A variable of a module that lies in managed memory.
struct PlacedVariable {
  std::string_view name;
  std::uint64_t address = 0;
};

class Modules {
 public:
  explicit Modules(Session& session) : session_(session) {}

  /// With some of its variables in managed memory. kOutOfMemory also when its kernels call malloc
  /// and there is none left for the heap.
  Result<std::uint64_t> load(const Image& image, std::span<const PlacedVariable> placed = {});
  Result<void> unload(std::uint64_t module);
  /// Also enters the variable in the table of memory.
  Result<ipc::GlobalReply> find_global(std::uint64_t module, const std::string& name);

  // Settings of the device, which all sessions share: at least so much.
  /// A thread's stack in kernels of modules loaded from now on.
  Result<void> raise_stack(std::uint64_t bytes);
  /// What the driver's own malloc has to give.
  Result<void> raise_drivers_heap(std::uint64_t bytes);
  /// Launches by kernels that may wait for their turn.
  Result<void> raise_pending_launches(std::uint64_t count);

  // For what slate adds to modules.
  /// The address of a variable that is not the program's.
  Result<std::uint64_t> variable_of(std::uint64_t module, std::string_view name);
  /// Writes it into such a variable, ahead of all work that comes later.
  Result<void> write_address(std::uint64_t variable, std::uint64_t address);

 private:
  /// `source`: of an ELF, the PTX that its kernels' forms are made from.
  Result<std::uint64_t> send(ImageKind kind, std::span<const std::byte> bytes,
                             std::span<const PlacedVariable> placed,
                             std::span<const std::byte> source = {});
  Result<void> post_chunks(ipc::ModuleLoad& load, std::span<const std::byte> bytes);
  Result<std::uint64_t> load_text(const Image& image, std::span<const PlacedVariable> placed);
  Result<void> raise_limit(std::uint32_t limit, std::uint64_t value);

  Session& session_;
};

}  // namespace slate::client
