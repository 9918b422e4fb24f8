// Questions about kernels, their settings, and occupancy (by NVIDIA's own calculator,
// cuda_occupancy.h).
#include <cuda_occupancy.h>

#include <algorithm>
#include <climits>

#include "client/cudart/front.h"
#include "client/cudart/occupancy.h"
#include "client/cudart/properties.h"

namespace slate::cudart {
namespace {

/// Runs `body` with the session and the loaded kernel.
template <typename Body>
cudaError_t about_function(const void* symbol, const Body& body) {
  return with_session([&](Session& session) -> Answer {
    auto function = loaded_function(session, symbol);
    if (!function) return std::unexpected(function.error());
    return body(session, **function);
  });
}

cudaOccDeviceProp occupancy_device(const DeviceInfo& info) {
  cudaDeviceProp properties;
  fill_properties(info, properties);
  return cudaOccDeviceProp(properties);
}

/// What CUDA counts with: the allowance, but no less than a kernel gets that has asked for none.
std::size_t dynamic_shared_for_occupancy(const DeviceInfo& info, const client::Function& function) {
  const auto plain = static_cast<std::size_t>(info.attributes[cudaDevAttrMaxSharedMemoryPerBlock]);
  const std::size_t fixed = function.info.static_shared_bytes;
  return std::max<std::size_t>(function.max_dynamic_shared, plain > fixed ? plain - fixed : 0);
}

cudaOccFuncAttributes occupancy_function(const DeviceInfo& info, const client::Function& function) {
  cudaOccFuncAttributes attributes;
  attributes.maxThreadsPerBlock = static_cast<int>(function.info.max_threads_per_block);
  attributes.numRegs = static_cast<int>(function.info.registers);
  attributes.sharedSizeBytes = function.info.static_shared_bytes;
  attributes.partitionedGCConfig = PARTITIONED_GC_OFF;
  attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  attributes.maxDynamicSharedSizeBytes = dynamic_shared_for_occupancy(info, function);
  attributes.numBlockBarriers = 1;
  return attributes;
}

cudaError_t occupancy(int* blocks, const void* symbol, int block_size, std::size_t dynamic_shared,
                      unsigned flags) {
  return about_function(symbol, [&](Session& session, client::Function& function) -> Answer {
    if (blocks == nullptr || block_size <= 0 ||
        (flags & ~unsigned{cudaOccupancyDisableCachingOverride}) != 0) {
      return deny(cudaErrorInvalidValue);
    }
    *blocks = active_blocks(session.device(), function, block_size, dynamic_shared);
    return {};
  });
}

/// `largest`: the size of the largest cluster, else the number of clusters.
cudaError_t ask_about_clusters(int* value, const void* symbol, const cudaLaunchConfig_t* config,
                               bool largest) {
  return about_function(symbol, [&](Session& session, client::Function& function) -> Answer {
    if (value == nullptr || config == nullptr ||
        (config->numAttrs > 0 && config->attrs == nullptr)) {
      return deny(cudaErrorInvalidValue);
    }
    client::LaunchConfig asked{{config->gridDim.x, config->gridDim.y, config->gridDim.z},
                               {config->blockDim.x, config->blockDim.y, config->blockDim.z},
                               config->dynamicSmemBytes};
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      if (config->attrs[i].id != cudaLaunchAttributeClusterDimension) continue;
      const auto& size = config->attrs[i].val.clusterDim;
      asked.cluster = {size.x, size.y, size.z};
    }
    if (auto ok = client::check_launch(session.device(), function, asked); !ok)
      return std::unexpected<Failure>(ok.error());
    const auto answer = session.kernels().ask_about_clusters(function, asked, largest);
    if (!answer) return std::unexpected<Failure>(answer.error());
    *value = static_cast<int>(*answer);
    return {};
  });
}

Answer set_attribute(Session& session, client::Function& function, int attribute, int value) {
  switch (attribute) {
    // The numbers are the driver's.
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
    case cudaFuncAttributePreferredSharedMemoryCarveout:
    case cudaFuncAttributeRequiredClusterWidth:
    case cudaFuncAttributeRequiredClusterHeight:
    case cudaFuncAttributeRequiredClusterDepth:
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
    case cudaFuncAttributeClusterSchedulingPolicyPreference:
      return session.kernels().set_attribute(function, static_cast<FunctionAttribute>(attribute),
                                             value);
    default:
      return deny(cudaErrorInvalidValue);
  }
}

}  // namespace

int active_blocks(const DeviceInfo& device, const client::Function& function, int block_size,
                  std::size_t dynamic_shared) {
  if (block_size > static_cast<int>(function.info.max_threads_per_block) ||
      dynamic_shared > dynamic_shared_for_occupancy(device, function)) {
    return 0;
  }
  const cudaOccDeviceProp properties = occupancy_device(device);
  const cudaOccFuncAttributes attributes = occupancy_function(device, function);
  cudaOccDeviceState state;
  state.carveoutConfig = function.shared_carveout;
  cudaOccResult result{};
  const auto found = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes,
                                                             &state, block_size, dynamic_shared);
  return found == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : 0;
}

}  // namespace slate::cudart

using namespace slate::cudart;
using namespace slate;

extern "C" {

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* symbol) {
  if (attributes == nullptr) return remember(cudaErrorInvalidValue);
  return about_function(symbol, [&](Session&, client::Function& function) -> Answer {
    const ipc::FunctionReply& info = function.info;
    *attributes = {};
    attributes->sharedSizeBytes = info.static_shared_bytes;
    attributes->constSizeBytes = info.constant_bytes;
    attributes->localSizeBytes = info.local_bytes;
    attributes->maxThreadsPerBlock = static_cast<int>(info.max_threads_per_block);
    attributes->numRegs = static_cast<int>(info.registers);
    attributes->ptxVersion = static_cast<int>(info.ptx_version);
    attributes->binaryVersion = static_cast<int>(info.binary_version);
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(function.max_dynamic_shared);
    attributes->preferredShmemCarveout = function.shared_carveout;
    attributes->clusterDimMustBeSet = static_cast<int>(info.needs_cluster);
    std::uint32_t cluster[3];
    for (int i = 0; i < 3; ++i)
      cluster[i] = info.cluster[i] != 0 ? info.cluster[i] : function.cluster[i].load();
    attributes->requiredClusterWidth = static_cast<int>(cluster[0]);
    attributes->requiredClusterHeight = static_cast<int>(cluster[1]);
    attributes->requiredClusterDepth = static_cast<int>(cluster[2]);
    attributes->nonPortableClusterSizeAllowed = function.non_portable_clusters;
    attributes->clusterSchedulingPolicyPreference = function.cluster_scheduling;
    return {};
  });
}

cudaError_t cudaFuncSetAttribute(const void* symbol, cudaFuncAttribute attribute, int value) {
  const int number = attribute;
  return about_function(symbol, [&](Session& session, client::Function& function) -> Answer {
    return set_attribute(session, function, number, value);
  });
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute,
                                            int value, int device) {
  const int number = attribute;
  if (device != 0) return remember(cudaErrorInvalidDevice);
  return about_function(kernel, [&](Session& session, client::Function& function) -> Answer {
    return set_attribute(session, function, number, value);
  });
}

cudaError_t cudaOccupancyMaxActiveClusters(int* count, const void* symbol,
                                           const cudaLaunchConfig_t* config) {
  return ask_about_clusters(count, symbol, config, false);
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* symbol,
                                                 const cudaLaunchConfig_t* config) {
  return ask_about_clusters(size, symbol, config, true);
}

cudaError_t cudaFuncSetCacheConfig(const void* symbol, cudaFuncCache config) {
  const int number = config;
  return about_function(symbol, [&](Session&, client::Function&) -> Answer {
    if (number < cudaFuncCachePreferNone || number > cudaFuncCachePreferEqual) {
      return deny(cudaErrorInvalidValue);
    }
    return {};  // a hint
  });
}

cudaError_t cudaFuncSetSharedMemConfig(const void* symbol, cudaSharedMemConfig config) {
  const int number = config;
  return about_function(symbol, [&](Session&, client::Function&) -> Answer {
    if (number < cudaSharedMemBankSizeDefault || number > cudaSharedMemBankSizeEightByte) {
      return deny(cudaErrorInvalidValue);
    }
    return {};  // without effect on every GPU since Maxwell
  });
}

cudaError_t cudaFuncGetName(const char** name, const void* symbol) {
  return about_function(symbol, [&](Session&, client::Function&) -> Answer {
    auto kernel = kernel_of(symbol);
    if (!kernel) return std::unexpected(kernel.error());
    if (name == nullptr) return deny(cudaErrorInvalidValue);
    *name = (*kernel)->name.c_str();
    return {};
  });
}

cudaError_t cudaFuncGetParamInfo(const void* symbol, std::size_t index, std::size_t* offset,
                                 std::size_t* size) {
  return about_function(symbol, [&](Session&, client::Function& function) -> Answer {
    if (offset == nullptr || index >= function.parameters.size()) {
      return deny(cudaErrorInvalidValue);
    }
    *offset = function.parameters[index].first;
    if (size != nullptr) *size = function.parameters[index].second;
    return {};
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* symbol,
                                                          int block_size,
                                                          std::size_t dynamic_shared) {
  return occupancy(blocks, symbol, block_size, dynamic_shared, cudaOccupancyDefault);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* symbol,
                                                                   int block_size,
                                                                   std::size_t dynamic_shared,
                                                                   unsigned flags) {
  return occupancy(blocks, symbol, block_size, dynamic_shared, flags);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* symbol,
                                                      int blocks, int block_size) {
  return about_function(symbol, [&](Session& session, client::Function& function) -> Answer {
    if (bytes == nullptr || blocks <= 0 || block_size <= 0) return deny(cudaErrorInvalidValue);
    const cudaOccDeviceProp device = occupancy_device(session.device());
    const cudaOccFuncAttributes attributes = occupancy_function(session.device(), function);
    cudaOccDeviceState state;
    state.carveoutConfig = function.shared_carveout;
    if (cudaOccAvailableDynamicSMemPerBlock(bytes, &device, &attributes, &state, blocks,
                                            block_size) != CUDA_OCC_SUCCESS) {
      return deny(cudaErrorInvalidValue);
    }
    return {};
  });
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                            cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

}  // extern "C"
