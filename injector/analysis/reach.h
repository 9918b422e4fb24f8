// Reach: which memory a kernel can reach, what it reads and writes there, and what else it does
// that outlasts it. Pointers are named by where they lie in the launch's parameters; restart.h asks
// with the parameters of a launch. Shared memory and the threads' own are not part of it: they end
// with the block. It errs only towards reaching more. Pure functions. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "injector/analysis/effort.h"
#include "injector/analysis/facts.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// 8 bytes of the parameters, which may be a pointer.
struct ParameterWord {
  std::uint32_t offset = 0;     // bytes from the first parameter
  std::uint32_t extent = 0;     // any 8 bytes of so many from `offset`; 0: those at it
  std::uint32_t parameter = 0;  // the parameter's number, from 0
  std::uint32_t within = 0;     // bytes from the parameter's beginning

  bool operator==(const ParameterWord&) const = default;
};

/// Memory that is reached in one way, and the line of the first instruction that does each thing to
/// it. 0: none does.
struct ReachedMemory {
  enum class Kind : std::uint8_t {
    kParameters,  // by a pointer: one of `words`, to which the others are added as numbers
    kVariable,    // a variable of the module; `words` are added as numbers
    kOwn,         // shared memory or the thread's own, if `words` are numbers
    kTexture,     // by a handle of a texture or surface, the only one of `words`
    kUnknown,     // by a pointer from memory, or by one that is not followed
  };
  Kind kind = Kind::kUnknown;
  std::string variable;  // name in the PTX
  std::vector<ParameterWord> words;
  bool is_constant = false;  // no kernel writes it
  std::uint32_t read = 0;
  std::uint32_t written = 0;
  std::uint32_t atomic = 0;   // both at once
  std::uint32_t ordered = 0;  // volatile, or with an order that others see
  std::uint32_t hinted = 0;   // prefetched and the like

  /// "parameter 2", "parameter 2 + 8", "variable v", "memory by a pointer that is not known" ...
  std::string description() const;
};

/// What a kernel does besides reading and writing.
enum class Effect : std::uint8_t {
  kPrints,
  kAllocates,           // allocates or frees memory
  kLaunches,            // launches kernels
  kCallsUnknown,        // calls code that is not in the module
  kCallsPointer,        // calls through a pointer
  kStartsDependents,    // lets the launch behind it start early
  kUnknownInstruction,  // an instruction of unknown meaning
  kUndefined,           // may read a register that nothing has written
  kChance,              // chance may decide what is written where
  // From here on: told, but no reason against running the kernel again.
  kReadsTime,
  kReadsPlace,    // %smid and the like
  kWaitsForGrid,  // has what grid-wide barriers need
  kCount,
};
inline constexpr auto kFirstHarmless = Effect::kReadsTime;
/// "prints", "allocates or frees memory" ...
std::string_view sentence_of(Effect effect);
std::string_view name_of(Effect effect);  // "prints", for programs

struct Reach {
  std::vector<ReachedMemory> memory;
  /// For each Effect the line of the first instruction; 0: none. Of an effect beyond the end, none.
  std::vector<std::uint32_t> effects;
  /// Offsets of parameters that the text uses as pointers, rising. Others may be pointers, too.
  std::vector<std::uint32_t> pointers;
  /// Whether the analysis came to its end. If not, the kernel may reach, and do, anything.
  bool complete = false;

  std::uint32_t line(Effect effect) const {
    const auto index = static_cast<std::size_t>(effect);
    return index < effects.size() ? effects[index] : 0;
  }
  void add(Effect effect, std::uint32_t line);
  /// Whether all that the kernel does to memory is in `memory`.
  bool is_closed() const;
  /// Whether it may write a constant of some module, other than by a pointer among its parameters.
  bool may_write_constants() const;
  /// Whether all addresses are computed from the kernel's parameters and its module's variables.
  bool from_arguments() const;
};

/// The reach of a kernel. Not complete where `effort` is spent.
Reach find_reach(const ptx::Module& module, std::uint32_t kernel,
                 const std::vector<FunctionFacts>& facts, Effort& effort);

}  // namespace slate::injector
