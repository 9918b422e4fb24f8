// Indices: addresses that are a pointer among the kernel's parameters, plus a number of elements
// that fits in 32 bits. One comparison of that number then does for a comparison of addresses. It
// errs only towards not knowing. Pure functions on values. Thread: any.
#pragma once

#include <cstdint>
#include <optional>

#include "injector/analysis/registers.h"
#include "injector/fence/addresses.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// The address is [pointer] + offset + (index << shift).
struct IndexedAddress {
  const ptx::Operand* pointer = nullptr;  // in brackets: the parameter
  std::int64_t offset = 0;                // bytes
  const ptx::Operand* index = nullptr;    // register
  bool is_wide = false;      // whether it has 64 bits, into which a load has put 32 or fewer
  std::uint32_t reader = 0;  // instruction that reads the index
  std::uint32_t shift = 0;
  bool is_signed = false;  // whether the index becomes one of 64 bits with its sign
};

/// A register of 32 bits plus a constant, modulo 2^32.
struct AddedIndex {
  std::uint32_t number = 0;  // of the register
  std::uint32_t reader = 0;  // instruction that reads it
  std::int64_t added = 0;
};

/// What an index of 32 bits is: the first register on the way back that is not itself another one
/// plus a constant.
std::optional<AddedIndex> added_index(const ptx::Function& function, const Registers& registers,
                                      const Addresses& addresses, const IndexedAddress& indexed);

/// Of register `base`, as instruction `at` finds it.
std::optional<IndexedAddress> indexed_address(const ptx::Function& function,
                                              const Registers& registers,
                                              const Addresses& addresses, std::uint32_t base,
                                              std::uint32_t at);

}  // namespace slate::injector
