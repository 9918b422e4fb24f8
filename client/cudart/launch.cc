// Launches, by handle (13.x stubs) and by host function (12.x stubs and the public functions).
#include "client/cudart/front.h"
#include "client/occupancy/launch_rules.h"
#include "client/session/program_launches.h"

namespace slate::cudart {
namespace {

struct LaunchArguments {
  dim3 grid, block;
  std::size_t shared;
  cudaStream_t stream;
  DefaultStream zero;
  void** arguments;
  client::LaunchChanges changes{};
};

/// `symbol`: the kernel, as a host function or a handle.
Answer launch(Session& session, const void* symbol, const client::Function& function,
              const LaunchArguments& call) {
  auto stream = stream_id(session, call.stream, call.zero);
  if (!stream) return std::unexpected(stream.error());
  const client::LaunchConfig config = client::changed({{call.grid.x, call.grid.y, call.grid.z},
                                                       {call.block.x, call.block.y, call.block.z},
                                                       call.shared,
                                                       *stream},
                                                      call.changes);
  if (config.cooperative || config.cluster[0] != 0) [[unlikely]] {
    if (auto ok = client::check_special(session, function, config); !ok) return ok;
  }
  return client::launch_kernel(session, symbol, function, config, call.arguments);
}

cudaError_t launch_handle(cudaKernel_t handle, const LaunchArguments& call) {
  if (handle == nullptr) return remember(cudaErrorInvalidDeviceFunction);
  return with_device([&](Session& session) -> Answer {
    if (auto ok = session.earlier_error(); !ok) return std::unexpected<Failure>(ok.error());
    auto& kernel = *reinterpret_cast<client::Kernel*>(handle);
    client::Function* function = kernel.function.load(std::memory_order_acquire);
    if (function == nullptr || function->session != session.serial()) [[unlikely]] {
      auto loaded = loaded_function(session, handle);
      if (!loaded) return std::unexpected(loaded.error());
      function = *loaded;
    }
    return launch(session, handle, *function, call);
  });
}

cudaError_t launch_symbol(const void* symbol, const LaunchArguments& call) {
  return with_device([&](Session& session) -> Answer {
    if (auto ok = session.earlier_error(); !ok) return std::unexpected<Failure>(ok.error());
    auto function = loaded_function(session, symbol);
    if (!function) return std::unexpected(function.error());
    return launch(session, symbol, **function, call);
  });
}

cudaError_t launch_extended(const cudaLaunchConfig_t* config, const void* symbol, void** arguments,
                            DefaultStream zero) {
  return answer([&]() -> Answer {
    if (config == nullptr || (config->numAttrs > 0 && config->attrs == nullptr)) {
      return deny(cudaErrorInvalidValue);
    }
    LaunchArguments call{
        config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream, zero,
        arguments};
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      const cudaLaunchAttribute& its = config->attrs[i];
      if (auto ok = client::apply_attribute(number_of(its.id), its.val, call.changes); !ok)
        return ok;
    }
    const cudaError_t result = launch_symbol(symbol, call);
    if (result != cudaSuccess) return deny(result);
    return {};
  });
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;

extern "C" {

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared, cudaStream_t stream) {
  return launch_handle(kernel, {grid, block, shared, stream, DefaultStream::kLegacy, arguments});
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                    std::size_t shared, cudaStream_t stream) {
  return launch_handle(kernel, {grid, block, shared, stream, DefaultStream::kPerThread, arguments});
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared, cudaStream_t stream) {
  return launch_symbol(function, {grid, block, shared, stream, DefaultStream::kLegacy, arguments});
}

cudaError_t cudaLaunchKernel_ptsz(const void* function, dim3 grid, dim3 block, void** arguments,
                                  std::size_t shared, cudaStream_t stream) {
  return launch_symbol(function,
                       {grid, block, shared, stream, DefaultStream::kPerThread, arguments});
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                        void** arguments, std::size_t shared, cudaStream_t stream) {
  return launch_symbol(function,
                       {grid, block, shared, stream, DefaultStream::kLegacy, arguments, {true}});
}

cudaError_t cudaLaunchCooperativeKernel_ptsz(const void* function, dim3 grid, dim3 block,
                                             void** arguments, std::size_t shared,
                                             cudaStream_t stream) {
  return launch_symbol(function,
                       {grid, block, shared, stream, DefaultStream::kPerThread, arguments, {true}});
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  return launch_extended(config, function, arguments, DefaultStream::kLegacy);
}

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* function,
                                     void** arguments) {
  return launch_extended(config, function, arguments, DefaultStream::kPerThread);
}

}  // extern "C"
