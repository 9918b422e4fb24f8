// The policies by name, for whoever wires the scheduler.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "scheduler/policy.h"
#include "scheduler/settings.h"

namespace slate::scheduler {

/// "fifo", "timeslice", "table", "adaptive".
std::span<const std::string_view> policy_names();

/// kInvalidValue for any other name. `profiles` must outlive the policy, which writes measured
/// times into it from finished() and progressed() and reads it in decide(): one thread, or the
/// caller's lock.
Result<std::unique_ptr<Policy>> make_policy(std::string_view name, const Settings& settings,
                                            const Machine& machine, ProfileTable& profiles);

}  // namespace slate::scheduler
