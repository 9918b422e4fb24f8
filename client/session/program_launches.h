// Launches as programs ask for them, in all of CUDA's APIs. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "client/session/captures.h"
#include "client/session/graph_work.h"
#include "client/session/kernels.h"
#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

/// Launches a kernel, or captures that. `named`: the kernel as the program names it.
inline Allowed<void> launch_kernel(Session& session, const void* named, const Function& function,
                                   const LaunchConfig& config, const void* const* arguments) {
  if (session.captures().takes(config.stream)) [[unlikely]] {
    auto work = kernel_work(session, named, config, arguments);
    if (!work) return std::unexpected(work.error());
    if (auto taken = session.captures().add(config.stream, std::move(*work))) return *taken;
  }
  return session.kernels().launch(function, config, arguments);
}

/// What a launch's attributes change of it: as in LaunchConfig.
struct LaunchChanges {
  bool cooperative = false;
  std::array<std::uint32_t, 3> cluster{0, 0, 0};
  bool overlaps = false;
};
inline LaunchConfig changed(LaunchConfig launch, const LaunchChanges& changes) {
  launch.cooperative = changes.cooperative;
  launch.cluster = changes.cluster;
  launch.overlaps = changes.overlaps;
  return launch;
}
/// Takes from an attribute what changes the launch. `number`: CU_LAUNCH_ATTRIBUTE_*. `value`: the
/// union of values, in which CUDA's APIs have members of the same names.
template <typename Value>
Allowed<void> apply_attribute(int number, const Value& value, LaunchChanges& launch) {
  switch (number) {
    case 0:   // ignored
    case 1:   // access policy window
    case 3:   // synchronization policy
    case 5:   // preference of the scheduling of clusters
    case 8:   // priority
    case 9:   // map of memory synchronization domains
    case 10:  // memory synchronization domain
    case 14:  // preferred carveout of shared memory
    case 16:  // scheduling for NVLink
      return {};
    case 2:
      launch.cooperative = value.cooperative != 0;
      return {};
    case 4: {
      const auto& size = value.clusterDim;
      if (size.x == 0 || size.y == 0 || size.z == 0) return refuse(Refusal::kInvalidValue);
      launch.cluster = {size.x, size.y, size.z};
      return {};
    }
    case 6:
      launch.overlaps = value.programmaticStreamSerializationAllowed != 0;
      return {};
    case 7:   // programmatic event
    case 11:  // preferred size of clusters
    case 12:  // event at the launch's completion
    case 13:  // a node that the device can update
      return std::unexpected<Refused>(
          Error{ErrorCode::kNotSupported,
                "launch attribute " + std::to_string(number) + " is not supported yet"});
    default:
      return refuse(Refusal::kInvalidValue);
  }
}

}  // namespace slate::client
