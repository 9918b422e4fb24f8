// The policies by name, for the program that wires the scheduler. A new policy is a row in
// policies.cc.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "scheduler/policy.h"
#include "scheduler/settings.h"

namespace slate::scheduler {

/// Returns every name, such as "fifo".
std::span<const std::string_view> policy_names();

/// Errors: kInvalidValue for a name that is not in policy_names().
/// Requires: `profiles` outlives the policy, which reads it in decide() and writes measured times
/// into it from finished() and progressed().
/// Thread: one, or the caller's lock around every call and every use of `profiles`.
Result<std::unique_ptr<Policy>> make_policy(std::string_view name, const Settings& settings,
                                            const Machine& machine, ProfileTable& profiles);

}  // namespace slate::scheduler
