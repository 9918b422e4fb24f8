// SharedClearing: how much of a block's shared memory is cleared at the kernel's beginning, and
// how. Where the launch's block is known, variables that the block surely fills, or does not read,
// are left out. Others are cleared without a barrier, if no thread clears what another one stores
// in front of its first barrier. Plain data and pure functions. Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "injector/fence/accesses.h"
#include "injector/fence/rehearsal.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// A read or an atomic, by an address that may lead to shared memory.
struct SharedRead {
  std::uint32_t at = 0;                     // index of the instruction
  const ptx::Variable* variable = nullptr;  // that it stays in; null: it may go anywhere
};

/// A block's shared memory has a multiple of so many bytes: of 128 or 256, as the hardware has it.
inline constexpr std::uint32_t kSharedUnit = 128;

struct SharedClearing {
  /// Bytes [first, end) of a variable, which are cleared by pieces: the thread of number n has
  /// piece n, n + threads, and so on.
  struct Part {
    const ptx::Variable* variable = nullptr;
    std::uint64_t first = 0, end = 0;
    std::uint32_t piece = 16;  // bytes
  };
  bool is_whole = true;  // all of the block's memory is cleared, and a barrier follows
  std::vector<Part> parts{};
  std::uint32_t threads = 0;
  ThreadStep::Index block{};
  bool may_end_first = false;  // whether a thread may end in front of its first barrier
  /// Bytes of all variables, which lie side by side from the beginning, where some may be read
  /// outside of known variables. The block's memory must end less than kSharedUnit behind them, and
  /// what is behind them is cleared, too; else the whole is. A multiple of 4. None: nothing is read
  /// there.
  std::optional<std::uint64_t> expected{};
};

/// Requires: the rehearsal is complete. `stores`: the instructions that only store, by addresses
/// that may lead to shared memory. `reads`: all others by such addresses. `ends`: by instruction,
/// whether the fence may end a thread there.
SharedClearing shared_clearing(const SharedVariables& variables, const Rehearsal& rehearsal,
                               std::span<const std::uint32_t> stores,
                               std::span<const SharedRead> reads, const std::vector<bool>& ends,
                               const ThreadStep::Index& block);

}  // namespace slate::injector
