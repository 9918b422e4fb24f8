// inject(): a module with every form that its kernels can take, beside the kernels themselves. All
// forms live in one module, so that they share its global and constant variables.
//
// Pure function, any thread. Time: about that of parsing the text, see docs/results.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "injector/analysis/analysis.h"
#include "injector/forms/work.h"
#include "injector/ptx/module.h"

namespace slate::injector {

enum class Form : std::uint8_t { kNative, kWorker, kSlice, kProfile };
inline constexpr std::size_t kFormCount = 4;
std::string_view form_name(Form form);  // "native", "worker", "slice", "profile"

struct RegisterLimit {
  std::uint32_t most = 0;  // .maxnreg
  bool lean = true;        // nothing is to live across a block, where that is possible
};

struct InjectOptions {
  bool worker = true;
  bool slice = true;
  bool profile = false;
  /// For a device that runs what an assembler makes of the text: kernels with
  /// EntryAnalysis::may_fuse are settled first (settled_sums.h), the native one included.
  bool settle_sums = false;
  /// By kernel: the most registers its worker form may use.
  std::map<std::string, RegisterLimit, std::less<>> most_registers;
};

struct KernelForms {
  std::string name;
  std::uint32_t sm = 0;  // of the text's target
  std::string worker;    // the entry's name; empty where the form was not asked for or is not legal
  /// The worker form with the kernel's shared memory once: for blocks of so few threads that twice
  /// as much would cost blocks on an SM. Same protocol, so that one can take over from the other.
  /// Empty where `worker` never costs any.
  std::string compact_worker;
  std::string slice;
  std::string profile;
  std::vector<Work> work;  // of the profile form, by counter; see launch_work()
  /// Sums are left to the assembler although it was to be settled.
  bool sums_open = false;
  EntryAnalysis analysis;  // its `name` is a view into the module
};

struct InjectedModule {
  std::string ptx;
  std::vector<KernelForms> kernels;  // in text order
};

/// Which forms inject() would make of each kernel, but for profile forms that turn out too large.
/// kInternal if a pass contradicts itself.
Result<ModuleAnalysis> judge(const ptx::Module& module);

/// kInternal if a pass contradicts itself.
Result<InjectedModule> inject(const ptx::Module& module, const InjectOptions& options);

}  // namespace slate::injector
