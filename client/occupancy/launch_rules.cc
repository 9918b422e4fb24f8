#include "client/occupancy/launch_rules.h"

#include <array>
#include <cstdint>

#include "client/occupancy/occupancy.h"
#include "client/session/process.h"

namespace slate::client {
namespace {

// CU_DEVICE_ATTRIBUTE_*
constexpr int kMaxSharedPerBlockOptin = 97;
constexpr int kClusterLaunch = 120;

std::uint64_t count(const std::array<std::uint32_t, 3>& size) {
  return std::uint64_t{size[0]} * size[1] * size[2];
}

Allowed<void> check_cluster(const DeviceInfo& device, const LaunchConfig& config) {
  constexpr std::uint64_t kPortable = 8;
  const std::uint64_t blocks = count(config.cluster);
  if (device.attributes[kClusterLaunch] == 0 && blocks > 1) {
    return std::unexpected<Refused>(
        Error{ErrorCode::kNotSupported, "this device has no thread block clusters"});
  }
  if (blocks > kPortable) return refuse(Refusal::kClusterTooLarge);
  for (std::size_t i = 0; i < 3; ++i) {
    if (config.grid[i] % config.cluster[i] != 0) {
      return std::unexpected<Refused>(
          Error{ErrorCode::kInvalidConfiguration, "the grid is no multiple of its clusters"});
    }
  }
  return {};
}

}  // namespace

Allowed<void> check_special(Session& session, const Function& function,
                            const LaunchConfig& config) {
  if (count(config.cluster) > 0) {
    if (auto ok = check_cluster(session.device(), config); !ok) return ok;
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

Allowed<void> take_over(Session& session, const Work& old, Work& work) {
  if (!inherit(old, work)) return refuse(Refusal::kInvalidValue);
  const auto* const kernel = std::get_if<KernelNode>(&work);
  if (kernel == nullptr) return {};
  const auto function = function_of(session, kernel->kernel);
  if (!function) return std::unexpected(function.error());
  return check_special(session, **function, kernel->config);
}

Allowed<void> set_dynamic_shared(Session& session, Function& function, int bytes) {
  const int most = session.device().attributes[kMaxSharedPerBlockOptin];
  const int room = most - static_cast<int>(function.info.static_shared_bytes);
  if (bytes < 0 || bytes > room) return refuse(Refusal::kInvalidValue);
  auto done = session.kernels().set_max_dynamic_shared(function, static_cast<std::uint32_t>(bytes));
  if (!done) return std::unexpected<Refused>(done.error());
  return {};
}

}  // namespace slate::client
