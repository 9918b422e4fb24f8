#include "client/occupancy/launch_rules.h"

#include <array>
#include <cstdint>
#include <utility>

#include "client/occupancy/occupancy.h"
#include "client/session/graph_shape.h"
#include "client/session/process.h"

namespace slate::client {
namespace {

constexpr int kClusterLaunch = 120;  // CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH

std::uint64_t count(const std::array<std::uint32_t, 3>& size) {
  return std::uint64_t{size[0]} * size[1] * size[2];
}

/// Prepares `work` to replace a node's.
Allowed<void> take_over(Session& session, const Work& old, Work& work) {
  if (!inherit(old, work)) return refuse(Refusal::kInvalidValue);
  const auto* const kernel = std::get_if<KernelNode>(&work);
  if (kernel == nullptr) return {};
  const auto function = function_of(session, kernel->kernel);
  if (!function) return std::unexpected(function.error());
  // With the clusters that it has from the old work.
  if (auto ok = check_launch(session.device(), **function, kernel->config); !ok) return ok;
  return check_special(session, **function, kernel->config);
}

}  // namespace

Allowed<void> check_special(Session& session, const Function& function,
                            const LaunchConfig& config) {
  if (count(config.cluster) > 1 && session.device().attributes[kClusterLaunch] == 0) {
    return std::unexpected<Refused>(
        Error{ErrorCode::kNotSupported, "this device has no thread block clusters"});
  }
  if (!config.cooperative) return {};
  const std::uint64_t threads = count(config.block);
  if (threads == 0 || threads > function.info.max_threads_per_block) return {};  // said elsewhere
  const auto room = static_cast<std::uint64_t>(active_blocks(
      session.device(), function, static_cast<int>(threads), config.dynamic_shared_bytes));
  if (count(config.grid) > room * static_cast<std::uint64_t>(sm_count(session.device()))) {
    return std::unexpected<Refused>(
        Error{ErrorCode::kCooperativeTooLarge, "not all blocks of the grid can be resident"});
  }
  return {};
}

Allowed<void> change_node(Session& session, NodeHandle node, Work work) {
  return change_work(node, std::move(work),
                     [&](Work& next, const Work& old) { return take_over(session, old, next); });
}

Allowed<void> change_copy(Session& session, ExecHandle exec, NodeHandle node, Work work) {
  return with_copy(exec, node, [&](Node& copy) -> Allowed<void> {
    if (auto ok = take_over(session, copy.work, work); !ok) return ok;
    return replace_work(session, copy, std::move(work));
  });
}

}  // namespace slate::client
