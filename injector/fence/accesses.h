// What one instruction does that the fence has to check: accesses to memory, ends of a thread,
// handles, computed jumps. Instructions that are not known here are refused. Pure functions.
// Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "injector/fence/fence_table.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// Where an access goes by its text. kGeneric: by an address that may be anywhere. kHandle: the use
/// of a texture or surface, whose handle stands in place of an address.
enum class MemorySpace : std::uint8_t { kGlobal, kGeneric, kShared, kLocal, kConst, kHandle };

/// One access by `address`, an operand in brackets: of `bytes` bytes, plus `scale` times the value
/// of the register `amount`. Then no bytes mean no access.
struct Access {
  const ptx::Operand* address = nullptr;
  MemorySpace space = MemorySpace::kGeneric;
  std::uint32_t bytes = 0;
  std::uint32_t align = 1;  // power of two of which the address must be a multiple
  bool writes = false;
  const ptx::Operand* amount = nullptr;
  std::uint32_t scale = 1;
  bool aligns_amount = false;  // whether `scale` times `amount` must be a multiple of `align`
  std::uint32_t most = 0;      // most bytes whatever `amount` is; 0: not known
  std::uint32_t lanes = 32;    // only the first lanes of a warp do it
};

struct InstructionEffect {
  std::string why_not;  // why it cannot be fenced; empty: it can
  std::vector<Access> accesses;
  /// Whether the access is a hint, which is left out where it is not surely allowed.
  bool is_hint = false;
  /// Whether the hint is always left out.
  bool is_dropped = false;
  Violation end = Violation::kNone;      // what it ends its thread with
  const ptx::Operand* handle = nullptr;  // register with the handle of a texture or surface
  bool traps_outside = false;            // whether coordinates beyond a surface trap
  bool jumps_by_index = false;           // brx.idx
  bool reads_warp = false;               // whether it reads registers of all lanes of the warp
  bool calls = false;                    // a function of the module
  // Registers with a barrier's number and count of threads.
  const ptx::Operand* barrier = nullptr;
  const ptx::Operand* barrier_threads = nullptr;

  /// Whether the fence may end the thread there, but for accesses, handles and `reads_warp`.
  bool may_end() const {
    return end != Violation::kNone || jumps_by_index || barrier != nullptr ||
           barrier_threads != nullptr;
  }
};

/// Whether generic addresses of the function's parameters may be in use.
bool takes_parameter_address(const ptx::Function& function);

/// The effect of an instruction of a function with a body.
InstructionEffect effect_of(const ptx::Module& module, const ptx::Function& function,
                            const ptx::Instruction& instruction);

}  // namespace slate::injector
