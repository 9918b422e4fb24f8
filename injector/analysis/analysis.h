// Analysis: which forms each kernel of a module can take. For a form that it cannot take, the
// reason in one sentence with the line of the PTX. It errs only towards refusing. It changes no
// text (injector/forms does). Rules and reasons: docs/injector.md.
//
// Pure functions. Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "injector/analysis/effort.h"
#include "injector/analysis/facts.h"
#include "injector/analysis/reach.h"
#include "injector/analysis/undefined.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// Whether a kernel can take a form.
struct Verdict {
  std::string why_not;  // empty: the form is legal
  bool legal() const { return why_not.empty(); }
};

/// What is known of one kernel.
struct EntryAnalysis {
  std::uint32_t function = 0;  // index into Module::functions
  std::string_view name;
  Verdict worker;
  Verdict slice;
  Verdict profile;
  /// What the profile form runs without counting it; empty: it counts all.
  std::string uncounted;
  /// Why an assembler may choose the bits that the kernel computes (analysis/contraction.h); empty:
  /// it may not.
  std::string may_fuse;

  /// A read of an undefined register in the kernel, or in a function that it may call. Then the
  /// kernel takes no form: each form would find another value in the register.
  std::optional<UndefinedRead> undefined;

  /// Which memory it can reach, and what it does there. Not complete in a module with our own
  /// names.
  Reach reach;

  /// Whether threads may leave the kernel while others go on to a barrier. The worker form must
  /// then count the threads that are left (exit drain).
  bool drains = false;
  /// Whether threads may leave early, but the worker form is made of a kernel whose threads leave
  /// together (forms/late_exits.h, which alone sets this). Then `drains` is false.
  bool late_exits = false;
  /// Whether blocks use shared memory or barriers, so that all threads of a worker must meet
  /// between two blocks.
  bool separates_blocks = false;
  /// Whether the worker form is right only if no warp spans two rows of the block: block.x is a
  /// multiple of 32, or the block has one row.
  bool needs_whole_rows = false;
  /// Whether it is right only if block.x is a multiple of 32 and the grid has fewer than 2^31
  /// threads along x: a thread's number along the grid then says which warp it is in.
  bool needs_whole_warps = false;
  /// Whether no block can learn anything from another one while the kernel runs, so that blocks may
  /// start in any order.
  bool independent_blocks = false;
  /// Whether waits for asynchronous copies are added at the end of each block.
  bool copies_asynchronously = false;
  bool calls = false;  // whether it calls functions that were not inlined
  /// Whether device functions that were not inlined read %ctaid.
  bool functions_read_block_index = false;

  std::uint32_t barriers = 0;
  std::uint32_t warp_wide = 0;
  std::uint64_t static_shared_bytes = 0;  // bytes as declared, without padding
  std::uint64_t parameter_bytes = 0;
};

struct ModuleAnalysis {
  std::vector<EntryAnalysis> entries;    // entries with a body, in text order
  std::vector<FunctionFacts> functions;  // by index into Module::functions
  Effort effort;                         // cost so far, and its limit
};

/// Whether names that begin with kReservedPrefix are refused, or are our own in a rewritten module.
enum class OwnNames : std::uint8_t { kRefused, kExpected };

/// Analyses all kernels at a cost of at most Effort::for_text(), or `effort`. Kernels for which
/// that is not enough take no form.
ModuleAnalysis analyse(const ptx::Module& module, OwnNames names = OwnNames::kRefused);
ModuleAnalysis analyse(const ptx::Module& module, OwnNames names, Effort effort);

/// Most bytes that the forms add to a kernel. A kernel without room for them stays native.
inline constexpr std::uint64_t kAddedSharedBytes = 96;
inline constexpr std::uint64_t kAddedParameterBytes = 136;
inline constexpr std::uint64_t kProfileParameterBytes = 16;
inline constexpr std::uint64_t kProfileSharedBytes = 8;  // for kernels that call functions
inline constexpr std::uint64_t kIndexSharedBytes = 24;   // where functions read the block index
inline constexpr std::uint64_t kMostStaticSharedBytes = 48 << 10;
inline constexpr std::uint64_t kMostParameterBytes = 32764;
inline constexpr std::uint64_t kMostOldParameterBytes = 4352;  // before PTX 8.1
/// Beginning of our names. A module that has such names already is left alone.
inline constexpr std::string_view kReservedPrefix = "__slate_";

}  // namespace slate::injector
