// Barriers: how the barriers of the block that are `.aligned` stay safe behind the fence. A part of
// a warp that comes to such a barrier is a fault of the device. Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "injector/analysis/control_flow.h"
#include "injector/analysis/effort.h"
#include "injector/analysis/uniformity.h"
#include "injector/ptx/module.h"
#include "injector/ptx/printer.h"

namespace slate::injector {

/// To which instructions the lanes of a warp come together. The function is looked at with the
/// first question.
class Meetings {
 public:
  /// `endings`: by instruction, whether the fence may end a thread there. Requires: the function
  /// outlives it.
  Meetings(const ptx::Function& function, std::vector<bool> endings)
      : function_(function), endings_(std::move(endings)) {}

  /// Whether all lanes that the warp has come to the instruction together.
  bool are_all_together(std::uint32_t instruction);
  /// Whether those do that have not ended by then. The barrier must wait for the whole block: then
  /// it waits for the lanes that are about to end in any case. In front of an aligned barrier that
  /// parted lanes come to, the assembler lets the warp wait for all lanes that have not ended.
  bool are_others_together(std::uint32_t barrier);
  /// Whether all lanes with which the warp has begun come to the instruction together, as the fence
  /// ends none in front of it.
  bool is_complete(std::uint32_t instruction);
  const ControlFlow& flow() { return flows().flow; }
  /// Whether the fence may end a thread at the instruction.
  bool may_end(std::uint32_t instruction) const { return endings_[instruction]; }

 private:
  struct Flows {
    explicit Flows(const ptx::Function& function);
    Effort effort;
    const ControlFlow flow;
    const Uniformity all;
    const ControlFlow staying_flow;  // without the ways of lanes that end
    const Uniformity staying;
  };

  const Flows& flows();
  void find_lacking();
  bool are_together(const Uniformity& uniformity, std::uint32_t instruction);

  const ptx::Function& function_;
  const std::vector<bool> endings_;
  std::unique_ptr<const Flows> flows_;
  // By instruction: whether the fence may have ended a lane when others come there. Empty: not yet
  // looked at.
  std::vector<bool> lacking_;
};

/// What is to change in a function that is no worker. Its aligned barriers stay as they are or lose
/// `.aligned`. Of workers the injector knows that they need none of it. `meetings`: of the
/// function.
std::vector<ptx::Edit> make_barriers_safe(const ptx::Module& module, const ptx::Function& function,
                                          Meetings& meetings);

}  // namespace slate::injector
