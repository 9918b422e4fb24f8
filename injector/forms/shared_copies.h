// SharedCopies: a kernel's static shared memory twice, so that a worker's warps can begin the next
// block while others are still at the present one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "injector/analysis/analysis.h"
#include "injector/forms/function_copy.h"
#include "injector/ptx/module.h"

namespace slate::injector {

class SharedCopies {
 public:
  /// Nothing where a block may not begin before the one before has ended, or gains nothing by that:
  /// unless there is one barrier, on every way through the kernel, and shared memory is the
  /// kernel's own, static, and at most kMostBytes. Requires: entry.worker.legal().
  static std::optional<SharedCopies> plan(const ptx::Module& module, const EntryAnalysis& entry);

  static constexpr std::uint64_t kMostBytes = 12 << 10;
  /// Twice so much, with the worker's own, leaves room for as many blocks on an SM as there can be
  /// (16 in the 100 KiB of sm_86 and sm_89, 32 in 228 KiB).
  static constexpr std::uint64_t kFreeBytes = 2 << 10;
  /// Whether the second copy may cost blocks on an SM, according to the threads of a block.
  bool may_cost_blocks() const { return bytes_ > kFreeBytes; }

  // Templates. The register ~copy holds the present copy's address.
  std::string declaration() const;
  std::string begin() const;
  std::string change() const;  // to the other copy
  /// Makes the kernel use the copy at ~copy.
  void redirect(const ptx::Function& function, FunctionCopy& copy) const;

 private:
  std::uint64_t offset_of(const ptx::Operand& operand) const;

  std::uint64_t bytes_ = 0;  // of one
  std::uint32_t align_ = 4;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> places_;  // variable, offset
};

}  // namespace slate::injector
