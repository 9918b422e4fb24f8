// Launches of kernels, with their arguments one by one or in one packed buffer.
#include <array>
#include <span>

#include "client/driver/front.h"
#include "client/driver/packed.h"
#include "client/occupancy/launch_rules.h"
#include "client/session/program_launches.h"

namespace slate::driver {
namespace {

struct Call {
  std::array<unsigned, 3> grid, block;
  unsigned shared = 0;
  CUstream stream = nullptr;
  void** arguments = nullptr;
  void** extra = nullptr;
  client::LaunchChanges changes{};
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

CUresult launch(CUfunction handle, const Call& call) noexcept {
  return with_context([&](Session& session) -> Answer {
    if (auto ok = session.earlier_error(); !ok) return std::unexpected<Failure>(ok.error());
    auto loaded = launched_kernel(session, handle);
    if (!loaded) return std::unexpected(loaded.error());
    const client::Function& function = **loaded;
    auto stream = stream_id(session, call.stream);
    if (!stream) return std::unexpected(stream.error());
    const client::LaunchConfig config =
        client::changed({call.grid, call.block, call.shared, *stream}, call.changes);
    if (config.cooperative || config.cluster[0] != 0) [[unlikely]] {
      if (auto ok = client::check_special(session, function, config); !ok) return ok;
    }
    if (call.extra == nullptr) [[likely]]
      return client::launch_kernel(session, handle, function, config, call.arguments);
    if (call.arguments != nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto block = packed_arguments(call.extra);
    if (!block) return std::unexpected(block.error());
    return launch_packed(session, handle, function, config, *block);
  });
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
                           {true}});
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
      const CUlaunchAttribute& its = config->attrs[i];
      if (auto ok = client::apply_attribute(number_of(its.id), its.value, call.changes); !ok)
        return ok;
    }
    return {};
  });
  return weighed != CUDA_SUCCESS ? weighed : launch(function, call);
}

}  // extern "C"
