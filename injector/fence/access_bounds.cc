#include "injector/fence/access_bounds.h"

#include <algorithm>

#include "injector/fence/bound_values.h"

namespace slate::injector {

bool hold(const AccessBounds& bounds, const LaunchValues& launch) {
  BoundValues values(launch);
  values.reserve(bounds.steps.size());
  return std::ranges::all_of(bounds.steps,
                             [&](const BoundStep& step) { return values.add(step); }) &&
         std::ranges::all_of(bounds.claims,
                             [&](const BoundClaim& claim) { return values.holds(claim); });
}

}  // namespace slate::injector
