// SharedCopies: a kernel's static shared memory twice, so that a worker's warps can begin the next
// block while others are still in the present one. Immutable. Thread: any.
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
  /// The plan for a kernel. Returns nullopt where a block may not begin before the one before has
  /// ended, or gains nothing by that. There must be one barrier, on every path through the kernel;
  /// and shared memory must be the kernel's own, static, and at most kMostBytes. Requires:
  /// entry.worker.legal().
  static std::optional<SharedCopies> plan(const ptx::Module& module, const EntryAnalysis& entry);

  static constexpr std::uint64_t kMostBytes = 12 << 10;
  /// Bytes of which two copies, with the worker's own, leave room for as many blocks on an SM as
  /// there can be: 16 in the 100 KiB of sm_86 and sm_89, 32 in 228 KiB.
  static constexpr std::uint64_t kFreeBytes = 2 << 10;
  /// Whether the second copy may cost blocks on an SM, depending on the threads of a block.
  bool may_cost_blocks() const { return bytes_ > kFreeBytes; }

  // Templates. The register ~copy holds the present copy's address.
  std::string declaration() const;
  std::string begin() const;
  std::string change() const;  // to the other copy
  /// Lets the kernel use the copy at ~copy.
  void redirect(const ptx::Function& function, FunctionCopy& copy) const;

 private:
  std::uint64_t offset_of(const ptx::Operand& operand) const;

  std::uint64_t bytes_ = 0;  // bytes of one copy
  std::uint32_t align_ = 4;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> places_;  // variable, offset
};

}  // namespace slate::injector
