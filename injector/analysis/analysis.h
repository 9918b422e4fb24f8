// Analysis: which forms each kernel of a module can take, and for each that it cannot, why not, in
// one sentence with the line of the PTX. Errs only towards refusing. Rules and reasons: the design
// notes in docs/injector.md.
//
// Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "injector/analysis/effort.h"
#include "injector/analysis/facts.h"
#include "injector/analysis/undefined.h"
#include "injector/ptx/module.h"

namespace slate::injector {

struct Verdict {
  std::string why_not;  // empty: the form is legal
  bool legal() const { return why_not.empty(); }
};

struct EntryAnalysis {
  std::uint32_t function = 0;  // index into Module::functions
  std::string_view name;
  Verdict worker;
  Verdict slice;
  Verdict profile;
  /// What the profile form runs without counting it; empty: it counts all.
  std::string uncounted;
  /// Why an assembler may choose what bits the kernel computes (analysis/contraction.h); empty: it
  /// may not.
  std::string may_fuse;

  /// Of the kernel, or of a function that it may call. Then it takes no form: each would find
  /// another value in the register.
  std::optional<UndefinedRead> undefined;

  /// Threads may leave the kernel while others go on to a barrier: the worker form must count those
  /// who are left ("exit drain").
  bool drains = false;
  /// They may, but the worker form is made of a kernel whose threads wait for one another to leave
  /// (forms/late_exits.h, which alone sets this). Then `drains` is false.
  bool late_exits = false;
  /// Blocks use shared memory or barriers, so that a worker must have all its threads together
  /// between two of them.
  bool separates_blocks = false;
  /// The worker form is right only if no warp spans two rows of the block: block.x is a multiple of
  /// 32, or the block has one row.
  bool needs_whole_rows = false;
  /// The same if block.x is a multiple of 32 and the grid has less than 2^31 threads along x: a
  /// thread's number along the grid says which warp it is in.
  bool needs_whole_warps = false;
  /// No block can learn anything from another one while the kernel runs, so blocks may start in any
  /// order.
  bool independent_blocks = false;
  /// Waits for its asynchronous copies are added at the end of each block.
  bool copies_asynchronously = false;
  bool calls = false;  // functions that were not inlined
  /// Device functions that were not inlined read %ctaid.
  bool functions_read_block_index = false;

  std::uint32_t barriers = 0;
  std::uint32_t warp_wide = 0;
  std::uint64_t static_shared_bytes = 0;  // as declared, without padding
  std::uint64_t parameter_bytes = 0;
};

struct ModuleAnalysis {
  std::vector<EntryAnalysis> entries;    // of entries with a body, in text order
  std::vector<FunctionFacts> functions;  // by index into Module::functions
  Effort effort;                         // what it has cost, and what more there may be
};

/// Whether names that begin with kReservedPrefix are a reason to refuse, or are ours, in a module
/// that was rewritten.
enum class OwnNames : std::uint8_t { kRefused, kExpected };

/// May cost what Effort::for_text() says. Kernels that it is not enough for take no form.
ModuleAnalysis analyse(const ptx::Module& module, OwnNames names = OwnNames::kRefused);
ModuleAnalysis analyse(const ptx::Module& module, OwnNames names, Effort effort);

/// What the forms add to a kernel at most. A kernel without room for it stays native.
inline constexpr std::uint64_t kAddedSharedBytes = 96;
inline constexpr std::uint64_t kAddedParameterBytes = 136;
inline constexpr std::uint64_t kProfileParameterBytes = 16;
inline constexpr std::uint64_t kProfileSharedBytes = 8;  // of kernels that call functions
inline constexpr std::uint64_t kIndexSharedBytes = 24;   // where functions read the block's index
inline constexpr std::uint64_t kMostStaticSharedBytes = 48 << 10;
inline constexpr std::uint64_t kMostParameterBytes = 32764;
inline constexpr std::uint64_t kMostOldParameterBytes = 4352;  // before PTX 8.1
/// Names that begin so are ours; a module that has some already is left alone.
inline constexpr std::string_view kReservedPrefix = "__slate_";

}  // namespace slate::injector
