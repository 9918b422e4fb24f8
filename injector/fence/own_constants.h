// OwnConstants: the constants that a bounded copy reads from constant memory of its own module, as
// the program's kernel does. Behind tabulate_variables() it would read the program's own from
// global memory, which takes longer. The host fills them with the program's contents. Pure
// functions. Thread: any.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "injector/fence/addresses.h"
#include "injector/fence/plan.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// The copy's own variable for a row of the table.
std::string own_constant(std::uint32_t row);

/// Instructions by index, in text order.
struct OwnConstants {
  std::vector<std::uint32_t> rows;       // rows of the table, rising
  std::vector<std::uint32_t> addresses;  // loads of an address from the table
  std::vector<std::uint32_t> reads;      // loads of a constant by such an address

  bool empty() const { return reads.empty(); }
};

/// All constants of a function, or none. None: one of its addresses leads elsewhere than into an
/// unchecked read, may be another one's, or leaves the function. `plan`: the function's. `tabled`:
/// as PlanOptions::tabled.
OwnConstants find_own_constants(const ptx::Function& function, const Plan& plan,
                                std::span<const TabledVariable> tabled);

}  // namespace slate::injector
