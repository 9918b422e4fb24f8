// AddressFlow: from which pointers the addresses of a kernel are computed, through the functions
// that it may call. One answer for each function, whoever calls it. Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "injector/analysis/effort.h"
#include "injector/analysis/facts.h"
#include "injector/analysis/function_flow.h"
#include "injector/analysis/parameter_layout.h"
#include "injector/analysis/roots.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// What a `call` names; null for what is missing.
struct CallParts {
  const ptx::Operand* results = nullptr;
  const ptx::Operand* target = nullptr;
  const ptx::Operand* arguments = nullptr;
};
CallParts parts_of_call(const ptx::Instruction& call);

class AddressFlow {
 public:
  /// Computes all. Requires: module and facts outlive it. Wrong where `effort` is spent.
  AddressFlow(const ptx::Module& module, std::uint32_t kernel,
              const std::vector<FunctionFacts>& facts, Effort& effort);

  /// The kernel, and behind it the functions with bodies that it may call.
  const std::vector<std::unique_ptr<FunctionFlow>>& functions() const { return flows_; }
  const OriginTable& origins() const { return origins_; }
  const ParameterLayout& layout() const { return layout_; }

 private:
  void find_functions(std::uint32_t kernel, const std::vector<FunctionFacts>& facts);
  void solve();
  /// Carries arguments to what this function calls, and results back. Returns whether results are
  /// news to it.
  bool connect(std::uint32_t caller);
  bool connect(std::uint32_t caller, const ptx::Instruction& call);
  bool pass(std::uint32_t caller, std::uint32_t callee, const CallParts& call);
  bool take_results(std::uint32_t caller, const FunctionFlow* callee, const ptx::Operand& results);
  void enqueue(std::uint32_t flow);

  const ptx::Module& module_;
  Effort& effort_;
  ParameterLayout layout_;
  OriginTable origins_;
  KernelMemory memory_;
  std::vector<std::unique_ptr<FunctionFlow>> flows_;
  std::vector<std::uint32_t> flow_of_;                       // by function; kNowhere: not called
  std::vector<std::vector<std::uint32_t>> callers_;          // by flow
  std::vector<std::vector<const ptx::Instruction*>> calls_;  // by flow
  std::vector<std::uint32_t> waiting_;
  std::vector<bool> is_waiting_;  // by flow
};

}  // namespace slate::injector
