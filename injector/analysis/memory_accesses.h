// MemoryAccess: what one instruction does to memory that outlasts the block, by its text. Shared
// memory and parameters are not such memory; an address without a space may be. Pure functions.
// Thread: any.
#pragma once

#include <cstdint>
#include <vector>

#include "injector/ptx/module.h"

namespace slate::injector {

struct MemoryAccess {
  enum class By : std::uint8_t {
    kAddress,    // a pointer
    kTexture,    // a handle of a texture or surface
    kTensorMap,  // the address of a map that says where the memory is
  };
  By by = By::kAddress;
  const ptx::Operand* place = nullptr;  // the operand in brackets; null: not in the text
  bool reads = false;
  bool writes = false;
  bool atomic = false;       // reads and writes in one
  bool ordered = false;      // others may watch it, or write there, while the kernel runs
  bool is_constant = false;  // memory that no kernel writes
};

/// The accesses of an instruction other than a call. One that neither reads nor writes is a hint,
/// as a prefetch.
std::vector<MemoryAccess> memory_accesses(const ptx::Instruction& instruction);

/// Whether all that the instruction does is known here or is computation: to registers, to memory
/// by memory_accesses(), or to the order of threads.
bool is_understood(const ptx::Instruction& instruction);

/// The memory that a load, store or atomic names. kNone: an address without a space.
ptx::Space space_of(const ptx::Instruction& instruction);

}  // namespace slate::injector
