// Launches of kernels, with their arguments one by one or in one packed buffer.
#include <array>
#include <cstring>
#include <span>
#include <string>

#include "client/driver/front.h"
#include "client/driver/packed.h"
#include "client/occupancy/launch_rules.h"
#include "client/session/graph_work.h"

namespace slate::driver {
namespace {

struct Call {
  std::array<unsigned, 3> grid, block;
  unsigned shared = 0;
  CUstream stream = nullptr;
  void** arguments = nullptr;
  void** extra = nullptr;
  bool cooperative = false;
  std::array<unsigned, 3> cluster{0, 0, 0};
  bool overlaps = false;
};

Answer launch_packed(Session& session, const void* kernel, const client::Function& function,
                     const client::LaunchConfig& config, std::span<const std::byte> block) {
  if (session.captures().takes(config.stream)) [[unlikely]] {
    auto work = client::packed_kernel_work(session, kernel, config, block);
    if (!work) return std::unexpected<Failure>(work.error());
    if (auto taken = session.captures().add(config.stream, std::move(*work))) return *taken;
  }
  return session.kernels().launch_packed(function, config, block);
}

Answer launch_with(Session& session, const void* kernel, const client::Function& function,
                   const client::LaunchConfig& config, const void* const* arguments) {
  if (session.captures().takes(config.stream)) [[unlikely]] {
    auto work = client::kernel_work(session, kernel, config, arguments);
    if (!work) return std::unexpected<Failure>(work.error());
    if (auto taken = session.captures().add(config.stream, std::move(*work))) return *taken;
  }
  return session.kernels().launch(function, config, arguments);
}

CUresult launch(CUfunction handle, const Call& call) noexcept {
  return with_context([&](Session& session) -> Answer {
    if (auto ok = session.earlier_error(); !ok) return std::unexpected<Failure>(ok.error());
    auto loaded = launched_kernel(session, handle);
    if (!loaded) return std::unexpected(loaded.error());
    const client::Function& function = **loaded;
    auto stream = stream_id(session, call.stream);
    if (!stream) return std::unexpected(stream.error());
    const client::LaunchConfig config{call.grid,        call.block,   call.shared,  *stream,
                                      call.cooperative, call.cluster, call.overlaps};
    if (call.cooperative || call.cluster[0] != 0) [[unlikely]] {
      if (auto ok = client::check_special(session, function, config); !ok) return ok;
    }
    if (call.extra == nullptr) [[likely]]
      return launch_with(session, handle, function, config, call.arguments);
    if (call.arguments != nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto block = packed_arguments(call.extra);
    if (!block) return std::unexpected(block.error());
    return launch_packed(session, handle, function, config, *block);
  });
}

/// Takes from the attribute what changes the launch.
Answer weigh(const CUlaunchAttribute& attribute, Call& call) {
  // As a number, since a program may ask for an attribute that this version does not know.
  int id = 0;
  std::memcpy(&id, &attribute.id, sizeof(id));
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      return {};
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      call.overlaps = attribute.value.programmaticStreamSerializationAllowed != 0;
      return {};
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      call.cooperative = attribute.value.cooperative != 0;
      return {};
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
      const auto& size = attribute.value.clusterDim;
      if (size.x == 0 || size.y == 0 || size.z == 0) return deny(CUDA_ERROR_INVALID_VALUE);
      call.cluster = {size.x, size.y, size.z};
      return {};
    }
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      return std::unexpected<Failure>(
          Error{ErrorCode::kNotSupported,
                "launch attribute " + std::to_string(id) + " is not supported yet"});
    default:
      return deny(CUDA_ERROR_INVALID_VALUE);
  }
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void** arguments, void** extra) {
  return launch(
      function,
      {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, stream, arguments, extra});
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared, CUstream stream,
                                   void** arguments) {
  return launch(function, {{grid_x, grid_y, grid_z},
                           {block_x, block_y, block_z},
                           shared,
                           stream,
                           arguments,
                           nullptr,
                           true});
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments,
                          void** extra) {
  if (config == nullptr || (config->numAttrs > 0 && config->attrs == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  Call call{{config->gridDimX, config->gridDimY, config->gridDimZ},
            {config->blockDimX, config->blockDimY, config->blockDimZ},
            config->sharedMemBytes,
            config->hStream,
            arguments,
            extra};
  const CUresult weighed = answer([&]() -> Answer {
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      if (auto ok = weigh(config->attrs[i], call); !ok) return ok;
    }
    return {};
  });
  return weighed != CUDA_SUCCESS ? weighed : launch(function, call);
}

}  // extern "C"
