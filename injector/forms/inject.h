// inject(): a module with every form that its kernels can take, beside the kernels themselves. All
// forms live in one module, so that they share its global and constant variables. A pure function;
// it takes about as long as parsing the text. Thread: any.
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
std::string_view form_name(Form form);  // returns "native", "worker", "slice", "profile"

/// Limit of registers for a worker form.
struct RegisterLimit {
  std::uint32_t most = 0;  // .maxnreg
  bool lean = true;        // whether no register lives across a block, where that is possible
};

struct InjectOptions {
  bool worker = true;
  bool slice = true;
  bool profile = false;
  /// Whether kernels with EntryAnalysis::may_fuse are settled first (settled_sums.h), the native
  /// one included. For a device that runs what an assembler makes of the text.
  bool settle_sums = false;
  /// For each kernel the most registers that its worker form may use.
  std::map<std::string, RegisterLimit, std::less<>> most_registers;
};

/// The forms of one kernel; a name is empty where the form was not asked for or is not legal.
struct KernelForms {
  std::string name;
  std::uint32_t sm = 0;  // architecture of the text's target
  std::string worker;    // name of the entry
  /// The worker form with the kernel's shared memory once, for blocks of so few threads that two
  /// copies would cost blocks on an SM. Its protocol is that of `worker`, so that one can take over
  /// from the other. Empty where `worker` never costs any.
  std::string compact_worker;
  std::string slice;
  std::string profile;
  std::vector<Work> work;  // work of a count of each counter of the profile form; see launch_work()
  /// Whether sums are left to the assembler although the kernel was to be settled.
  bool sums_open = false;
  EntryAnalysis analysis;  // its `name` is a view into the module
};

struct InjectedModule {
  std::string ptx;
  std::vector<KernelForms> kernels;  // in text order
};

/// The analysis of the forms that inject() would make of each kernel, except that profile forms may
/// turn out too large. Errors: kInternal if a pass contradicts itself.
Result<ModuleAnalysis> judge(const ptx::Module& module);

/// Makes the forms. Errors: kInternal if a pass contradicts itself.
Result<InjectedModule> inject(const ptx::Module& module, const InjectOptions& options);

}  // namespace slate::injector
