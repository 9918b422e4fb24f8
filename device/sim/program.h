// Program: one kernel entry decoded for the interpreter, with everything that it can call.
// Immutable; shared by all launches and host threads.
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

/// Where the module's .global and .const variables were placed, by name: device addresses.
using SymbolTable = std::unordered_map<std::string, device::Address>;

/// The value of a pointer to a device function, the same in all kernels of its module; nullopt when
/// the module defines no such function. For the initialisers of .global tables.
std::optional<std::uint64_t> function_address(const ptx::Module& module, std::string_view name);

struct UnknownInstruction {
  std::uint32_t line = 0;
  std::string text;  // opcode with modifiers, or "call NAME" of a function that nobody defines
};

/// What the front of sim needs to know of an entry; the decoded code itself is private to
/// program.cc, warp.cc.
class Program {
 public:
  /// Decodes `entry` of `module`. kInvalidPtx names the line of an unknown instruction only if
  /// `strict`; otherwise such an instruction faults when it is reached (kIllegalInstruction, with
  /// its line), as a kernel may never run it. kLimit for code beyond a GiB. Requires: `module`
  /// outlives the Program (shared ownership).
  static Result<std::shared_ptr<const Program>> decode(std::shared_ptr<const ptx::Module> module,
                                                       const ptx::Function& entry,
                                                       const SymbolTable& symbols,
                                                       bool strict = false);
  virtual ~Program() = default;

  /// Parameters, shared bytes, estimated registers, launch bounds. max_dynamic_shared_bytes is the
  /// 48 KiB default less the static bytes.
  virtual const device::FunctionInfo& info() const = 0;

  /// Of memory that the code takes, about.
  virtual std::uint64_t bytes() const = 0;

  /// Instructions that fault when they are reached, in text order.
  virtual const std::vector<UnknownInstruction>& unknown_instructions() const = 0;
};

}  // namespace slate::sim
