// BoundFacts: what the text of one function says that bounds of its numbers are found by.
// Requires: the arguments outlive it. Thread: one.
#pragma once

#include "injector/fence/addresses.h"
#include "injector/fence/conditions.h"
#include "injector/fence/counters.h"
#include "injector/fence/drifts.h"
#include "injector/fence/loops.h"
#include "injector/fence/register_writes.h"

namespace slate::injector {

struct BoundFacts {
  const ptx::Function& function;
  const ControlFlow& flow;
  const Registers& registers;
  const Addresses& addresses;
  const Loops& loops;
  const RegisterWrites writes{function, flow, registers};
  Conditions conditions{function, flow, registers, addresses, writes};
  const Counters counters{function, flow, registers, addresses, writes};
  Drifts drifts{function, flow, registers, writes, loops};
};

}  // namespace slate::injector
