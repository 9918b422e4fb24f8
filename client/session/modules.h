// Modules: a session's code in the daemon. Kernels may call functions that the driver has built in,
// such as printf and malloc. Their modules are sent with slate's own functions, and get the
// addresses of the session's ring (printing.h) and heap (kernel_heap.h). Thread-safe.
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

/// A variable of a module in managed memory.
struct PlacedVariable {
  std::string_view name;
  std::uint64_t address = 0;
};

class Modules {
 public:
  explicit Modules(Session& session) : session_(session) {}

  /// Loads a module; `placed` are its variables in managed memory. kOutOfMemory also when its
  /// kernels call malloc and there is no memory for the heap.
  Result<std::uint64_t> load(const Image& image, std::span<const PlacedVariable> placed = {});
  Result<void> unload(std::uint64_t module);
  /// Also adds the variable to the table of memory.
  Result<ipc::GlobalReply> find_global(std::uint64_t module, const std::string& name);

  // Settings of the device, which all sessions share. The value is a minimum.
  /// A thread's stack in kernels of modules loaded later.
  Result<void> raise_stack(std::uint64_t bytes);
  /// The size of the heap of the driver's own malloc.
  Result<void> raise_drivers_heap(std::uint64_t bytes);
  /// The number of launches by kernels that may wait for their turn.
  Result<void> raise_pending_launches(std::uint64_t count);

  // For the functions that slate adds to modules:
  /// The address of a variable that is not the program's.
  Result<std::uint64_t> variable_of(std::uint64_t module, std::string_view name);
  /// Writes an address into such a variable, ahead of all later work.
  Result<void> write_address(std::uint64_t variable, std::uint64_t address);

 private:
  /// `source`: for an ELF, the PTX for its kernels' forms.
  Result<std::uint64_t> send(ImageKind kind, std::span<const std::byte> bytes,
                             std::span<const PlacedVariable> placed,
                             std::span<const std::byte> source = {});
  Result<bool> send_all(std::uint64_t module, ImageKind kind, std::span<const std::byte> bytes,
                        std::span<const PlacedVariable> placed, std::span<const std::byte> source);
  Result<bool> offer(std::uint64_t module, ImageKind kind, std::span<const std::byte> bytes);
  Result<void> post_chunks(ipc::ModuleLoad& load, std::span<const std::byte> bytes);
  Result<std::uint64_t> load_text(const Image& image, std::span<const PlacedVariable> placed);
  Result<void> raise_limit(std::uint32_t limit, std::uint64_t value);

  Session& session_;
};

}  // namespace slate::client
