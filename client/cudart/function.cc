// Questions about kernels, their settings, and occupancy.
#include "client/cudart/front.h"
#include "client/occupancy/launch_rules.h"
#include "client/occupancy/occupancy.h"

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

cudaError_t occupancy(int* blocks, const void* symbol, int block_size, std::size_t dynamic_shared,
                      unsigned flags) {
  return about_function(symbol, [&](Session& session, client::Function& function) -> Answer {
    if (blocks == nullptr || block_size <= 0 ||
        (flags & ~unsigned{cudaOccupancyDisableCachingOverride}) != 0) {
      return deny(cudaErrorInvalidValue);
    }
    *blocks = client::active_blocks(session.device(), function, block_size, dynamic_shared);
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
    return give(value, session.kernels().ask_about_clusters(function, asked, largest));
  });
}

Answer set_attribute(Session& session, client::Function& function, int attribute, int value) {
  return session.kernels().set_attribute(function, static_cast<FunctionAttribute>(attribute),
                                         value);
}

}  // namespace
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
    const auto cluster = client::required_cluster(function);
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
    return client::tell_parameter(function, index, offset, size);
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
    const auto left =
        client::available_dynamic_shared(session.device(), function, blocks, block_size);
    if (!left) return deny(cudaErrorInvalidValue);
    *bytes = *left;
    return {};
  });
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                            cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

}  // extern "C"
