// Program: one kernel entry decoded for the interpreter, with everything that it can call. The code
// itself is private to the interpreter (code.h). Immutable; shared by all launches and host
// threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "injector/ptx/module.h"

namespace slate::sim {

/// Device addresses of the module's .global and .const variables, by name.
using SymbolTable = std::unordered_map<std::string, device::Address>;

/// The value of a pointer to a device function, the same in all kernels of its module. For the
/// initialisers of .global tables. nullopt when the module defines no such function.
std::optional<std::uint64_t> function_address(const ptx::Module& module, std::string_view name);

/// An instruction that faults when it is reached.
struct UnknownInstruction {
  std::uint32_t line = 0;
  std::string text;  // opcode with modifiers, or "call NAME" of a function without a definition
};

/// The part of an entry that the front of sim needs.
class Program {
 public:
  /// Decodes `entry` of `module`, which the Program shares. An unknown instruction faults when it
  /// is reached (kIllegalInstruction, with its line), as a kernel may never run it. Errors:
  /// kInvalidPtx, naming the line, for an unknown instruction if `strict`; kLimit for code beyond a
  /// GiB.
  static Result<std::shared_ptr<const Program>> decode(std::shared_ptr<const ptx::Module> module,
                                                       const ptx::Function& entry,
                                                       const SymbolTable& symbols,
                                                       bool strict = false);
  virtual ~Program() = default;

  /// Parameters, shared bytes, estimated registers, launch bounds. max_dynamic_shared_bytes is the
  /// 48 KiB default minus the static bytes.
  virtual const device::FunctionInfo& info() const = 0;

  /// About the bytes of host memory that the code takes.
  virtual std::uint64_t bytes() const = 0;

  /// Instructions that fault when they are reached, in the order of the text.
  virtual const std::vector<UnknownInstruction>& unknown_instructions() const = 0;
};

}  // namespace slate::sim
