// Launches, by handle (13.x stubs) and by host function (12.x stubs and the public functions).
#include <cstring>
#include <string>

#include "client/cudart/capture.h"
#include "client/cudart/front.h"

namespace slate::cudart {
namespace {

struct LaunchArguments {
  dim3 grid, block;
  std::size_t shared;
  cudaStream_t stream;
  DefaultStream zero;
  void** arguments;
};

/// `symbol`: the kernel, as a host function or a handle.
Answer launch(Session& session, const void* symbol, const client::Function& function,
              const LaunchArguments& call) {
  auto stream = stream_id(session, call.stream, call.zero);
  if (!stream) return std::unexpected(stream.error());
  auto taken = capture_made(session, *stream, [&] {
    cudaKernelNodeParams params{};
    params.func = const_cast<void*>(symbol);
    params.gridDim = call.grid;
    params.blockDim = call.block;
    params.sharedMemBytes = static_cast<unsigned>(call.shared);
    params.kernelParams = call.arguments;
    return kernel_work(session, params);
  });
  if (taken) [[unlikely]]
    return *taken;
  const client::LaunchConfig config{{call.grid.x, call.grid.y, call.grid.z},
                                    {call.block.x, call.block.y, call.block.z},
                                    call.shared,
                                    *stream};
  return session.launch(function, config, call.arguments);
}

cudaError_t launch_handle(cudaKernel_t handle, const LaunchArguments& call) {
  if (handle == nullptr) return remember(cudaErrorInvalidDeviceFunction);
  return with_device([&](Session& session) -> Answer {
    if (auto ok = session.earlier_error(); !ok) return std::unexpected<Failure>(ok.error());
    auto& kernel = *reinterpret_cast<client::Kernel*>(handle);
    client::Function* function = kernel.function.load(std::memory_order_acquire);
    if (function == nullptr || function->session != session.serial()) [[unlikely]] {
      auto loaded = function_of(session, handle);
      if (!loaded) return std::unexpected(loaded.error());
      function = *loaded;
    }
    return launch(session, handle, *function, call);
  });
}

cudaError_t launch_symbol(const void* symbol, const LaunchArguments& call) {
  return with_device([&](Session& session) -> Answer {
    if (auto ok = session.earlier_error(); !ok) return std::unexpected<Failure>(ok.error());
    auto function = function_of(session, symbol);
    if (!function) return std::unexpected(function.error());
    return launch(session, symbol, **function, call);
  });
}

/// Whether a launch with this attribute is the same launch without it.
cudaError_t weigh(const cudaLaunchAttribute& attribute) {
  // As a number, since a program may ask for an attribute that this version does not know.
  int id = 0;
  std::memcpy(&id, &attribute.id, sizeof(id));
  switch (id) {
    case cudaLaunchAttributeIgnore:
    case cudaLaunchAttributeAccessPolicyWindow:
    case cudaLaunchAttributeSynchronizationPolicy:
    case cudaLaunchAttributeClusterSchedulingPolicyPreference:
    case cudaLaunchAttributeProgrammaticStreamSerialization:  // an earlier start, which is only
                                                              // allowed
    case cudaLaunchAttributePriority:
    case cudaLaunchAttributeMemSyncDomainMap:
    case cudaLaunchAttributeMemSyncDomain:
    case cudaLaunchAttributePreferredSharedMemoryCarveout:
    case cudaLaunchAttributeNvlinkUtilCentricScheduling:
      return cudaSuccess;
    case cudaLaunchAttributeCooperative:
      return attribute.val.cooperative == 0 ? cudaSuccess : cudaErrorNotSupported;
    case cudaLaunchAttributeClusterDimension: {
      const auto& size = attribute.val.clusterDim;
      return size.x * size.y * size.z <= 1 ? cudaSuccess : cudaErrorNotSupported;
    }
    case cudaLaunchAttributePreferredClusterDimension:
    case cudaLaunchAttributeProgrammaticEvent:
    case cudaLaunchAttributeLaunchCompletionEvent:
    case cudaLaunchAttributeDeviceUpdatableKernelNode:
      return cudaErrorNotSupported;
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t launch_extended(const cudaLaunchConfig_t* config, const void* symbol, void** arguments,
                            DefaultStream zero) {
  return answer([&]() -> Answer {
    if (config == nullptr || (config->numAttrs > 0 && config->attrs == nullptr)) {
      return deny(cudaErrorInvalidValue);
    }
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      const cudaError_t verdict = weigh(config->attrs[i]);
      if (verdict == cudaErrorNotSupported) {
        return std::unexpected<Failure>(Error{
            ErrorCode::kNotSupported, "launch attribute " +
                                          std::to_string(static_cast<int>(config->attrs[i].id)) +
                                          " is not supported yet"});
      }
      if (verdict != cudaSuccess) return deny(verdict);
    }
    const cudaError_t result =
        launch_symbol(symbol, {config->gridDim, config->blockDim, config->dynamicSmemBytes,
                               config->stream, zero, arguments});
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

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  return launch_extended(config, function, arguments, DefaultStream::kLegacy);
}

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* function,
                                     void** arguments) {
  return launch_extended(config, function, arguments, DefaultStream::kPerThread);
}

}  // extern "C"
