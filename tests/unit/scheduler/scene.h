// Scene: a policy by name with settings, a fresh profile table and a simulator around it.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "scheduler/adaptive.h"
#include "scheduler/policies.h"
#include "tests/unit/scheduler/simulator.h"

namespace slate::scheduler::test {

/// A matrix multiplication that takes `ms` and has too many waves to be anything but a worker.
inline ModelKernel lengthy(double ms) {
  ModelKernel made = kernel("MM");
  made.name = "lengthy";
  made.native_ms = ms;
  made.worker = 1;
  made.blocks = 1'000'000;
  return made;
}

struct Scene {
  explicit Scene(std::string_view name, Settings chosen = {}, Machine on = h200(),
                 std::uint64_t seed = 1)
      : settings(chosen),
        machine(on),
        policy(make_policy(name, settings, machine, profiles).value()),
        sim(*policy, profiles, machine, settings, seed) {}

  AdaptivePolicy& adaptive() { return dynamic_cast<AdaptivePolicy&>(*policy); }
  /// Runs until adaptive has settled; the time, or `limit`.
  double settle(double limit_ms) {
    while (adaptive().phase() != AdaptivePolicy::Phase::kSettled && sim.now_ms() < limit_ms) {
      sim.run_until(sim.now_ms() + 0.5);
    }
    return sim.now_ms();
  }
  /// The makespan that the model gives for adaptive's present plan among `members`.
  double plan_makespan(std::initializer_list<const ModelKernel*> members) {
    const Arrangement& plan = adaptive().arrangement();
    if (plan.sharing == Sharing::kAlone) return 1;
    std::vector<const ModelKernel*> order(members);
    std::ranges::stable_sort(order, {}, [&](const ModelKernel* k) { return sim.kernel_id(*k); });
    std::vector<Occupant> occupants;
    std::uint32_t first = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      Placement placement = machine.whole();
      if (plan.sharing == Sharing::kPlaced) placement = {.first = first, .count = plan.units[i]};
      first += plan.units[i];
      occupants.push_back({order[i], plan.forms[i], placement});
    }
    return makespan_of(occupants, machine, settings.floor);
  }

  Settings settings;
  Machine machine;
  ProfileTable profiles;
  std::unique_ptr<Policy> policy;
  Simulator sim;
};

}  // namespace slate::scheduler::test
