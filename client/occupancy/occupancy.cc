#include "client/occupancy/occupancy.h"

#include <cuda_occupancy.h>

#include <algorithm>

namespace slate::client {
namespace {

/// CU_DEVICE_ATTRIBUTE_*
enum Attribute {
  kMaxThreadsPerBlock = 1,
  kMaxSharedPerBlock = 8,
  kWarpSize = 10,
  kMaxRegistersPerBlock = 12,
  kMaxThreadsPerSm = 39,
  kMajor = 75,
  kMinor = 76,
  kMaxSharedPerSm = 81,
  kMaxRegistersPerSm = 82,
  kMaxSharedPerBlockOptin = 97,
  kReservedSharedPerBlock = 111,
};

cudaOccDeviceProp device_of(const DeviceInfo& info) {
  cudaOccDeviceProp device;
  device.computeMajor = info.attributes[kMajor];
  device.computeMinor = info.attributes[kMinor];
  device.maxThreadsPerBlock = info.attributes[kMaxThreadsPerBlock];
  device.maxThreadsPerMultiprocessor = info.attributes[kMaxThreadsPerSm];
  device.regsPerBlock = info.attributes[kMaxRegistersPerBlock];
  device.regsPerMultiprocessor = info.attributes[kMaxRegistersPerSm];
  device.warpSize = info.attributes[kWarpSize];
  device.sharedMemPerBlock = static_cast<std::size_t>(info.attributes[kMaxSharedPerBlock]);
  device.sharedMemPerMultiprocessor = static_cast<std::size_t>(info.attributes[kMaxSharedPerSm]);
  device.numSms = sm_count(info);
  device.sharedMemPerBlockOptin =
      static_cast<std::size_t>(info.attributes[kMaxSharedPerBlockOptin]);
  device.reservedSharedMemPerBlock =
      static_cast<std::size_t>(info.attributes[kReservedSharedPerBlock]);
  return device;
}

/// What CUDA counts with: the allowance, but no less than a kernel gets that has asked for none.
std::size_t dynamic_shared_for_occupancy(const DeviceInfo& info, const Function& function) {
  const auto plain = static_cast<std::size_t>(info.attributes[kMaxSharedPerBlock]);
  const std::size_t fixed = function.info.static_shared_bytes;
  return std::max<std::size_t>(function.max_dynamic_shared, plain > fixed ? plain - fixed : 0);
}

cudaOccFuncAttributes attributes_of(const DeviceInfo& info, const Function& function) {
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

cudaOccDeviceState state_of(const Function& function) {
  cudaOccDeviceState state;
  state.carveoutConfig = function.shared_carveout;
  return state;
}

}  // namespace

int active_blocks(const DeviceInfo& device, const Function& function, int block_size,
                  std::size_t dynamic_shared) {
  if (block_size > static_cast<int>(function.info.max_threads_per_block) ||
      dynamic_shared > dynamic_shared_for_occupancy(device, function)) {
    return 0;
  }
  const cudaOccDeviceProp properties = device_of(device);
  const cudaOccFuncAttributes attributes = attributes_of(device, function);
  const cudaOccDeviceState state = state_of(function);
  cudaOccResult result{};
  const auto found = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes,
                                                             &state, block_size, dynamic_shared);
  return found == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : 0;
}

std::optional<std::size_t> available_dynamic_shared(const DeviceInfo& device,
                                                    const Function& function, int blocks,
                                                    int block_size) {
  const cudaOccDeviceProp properties = device_of(device);
  const cudaOccFuncAttributes attributes = attributes_of(device, function);
  const cudaOccDeviceState state = state_of(function);
  std::size_t bytes = 0;
  if (cudaOccAvailableDynamicSMemPerBlock(&bytes, &properties, &attributes, &state, blocks,
                                          block_size) != CUDA_OCC_SUCCESS) {
    return std::nullopt;
  }
  return bytes;
}

std::optional<BlockChoice> best_block_size(const DeviceInfo& device, const Function& function,
                                           SharedOfBlock shared_of, std::size_t dynamic_shared,
                                           int most) {
  const cudaOccDeviceProp properties = device_of(device);
  cudaOccFuncAttributes attributes = attributes_of(device, function);
  if (most > 0) attributes.maxThreadsPerBlock = std::min(attributes.maxThreadsPerBlock, most);
  const cudaOccDeviceState state = state_of(function);
  BlockChoice choice;
  if (cudaOccMaxPotentialOccupancyBlockSize(&choice.blocks, &choice.block_size, &properties,
                                            &attributes, &state, shared_of,
                                            dynamic_shared) != CUDA_OCC_SUCCESS) {
    return std::nullopt;
  }
  return choice;
}

}  // namespace slate::client
