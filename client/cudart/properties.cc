#include "client/cudart/properties.h"

#include <algorithm>
#include <cstring>

namespace slate::cudart {
namespace {

/// Assigns an attribute to a member of whatever integer type.
class Attributes {
 public:
  explicit Attributes(const DeviceInfo& info) : info_(info) {}
  template <typename T>
  void get(T& member, cudaDeviceAttr attribute) const {
    member = static_cast<T>(info_.attributes[attribute]);
  }

 private:
  const DeviceInfo& info_;
};

void fill_launch_limits(const Attributes& from, cudaDeviceProp& to) {
  from.get(to.sharedMemPerBlock, cudaDevAttrMaxSharedMemoryPerBlock);
  from.get(to.regsPerBlock, cudaDevAttrMaxRegistersPerBlock);
  from.get(to.warpSize, cudaDevAttrWarpSize);
  from.get(to.memPitch, cudaDevAttrMaxPitch);
  from.get(to.maxThreadsPerBlock, cudaDevAttrMaxThreadsPerBlock);
  from.get(to.maxThreadsDim[0], cudaDevAttrMaxBlockDimX);
  from.get(to.maxThreadsDim[1], cudaDevAttrMaxBlockDimY);
  from.get(to.maxThreadsDim[2], cudaDevAttrMaxBlockDimZ);
  from.get(to.maxGridSize[0], cudaDevAttrMaxGridDimX);
  from.get(to.maxGridSize[1], cudaDevAttrMaxGridDimY);
  from.get(to.maxGridSize[2], cudaDevAttrMaxGridDimZ);
  from.get(to.totalConstMem, cudaDevAttrTotalConstantMemory);
  from.get(to.sharedMemPerBlockOptin, cudaDevAttrMaxSharedMemoryPerBlockOptin);
  from.get(to.reservedSharedMemPerBlock, cudaDevAttrReservedSharedMemoryPerBlock);
  from.get(to.cooperativeLaunch, cudaDevAttrCooperativeLaunch);
  from.get(to.clusterLaunch, cudaDevAttrClusterLaunch);
}

void fill_chip(const Attributes& from, cudaDeviceProp& to) {
  from.get(to.major, cudaDevAttrComputeCapabilityMajor);
  from.get(to.minor, cudaDevAttrComputeCapabilityMinor);
  from.get(to.multiProcessorCount, cudaDevAttrMultiProcessorCount);
  from.get(to.maxThreadsPerMultiProcessor, cudaDevAttrMaxThreadsPerMultiProcessor);
  from.get(to.maxBlocksPerMultiProcessor, cudaDevAttrMaxBlocksPerMultiprocessor);
  from.get(to.sharedMemPerMultiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  from.get(to.regsPerMultiprocessor, cudaDevAttrMaxRegistersPerMultiprocessor);
  from.get(to.memoryBusWidth, cudaDevAttrGlobalMemoryBusWidth);
  from.get(to.l2CacheSize, cudaDevAttrL2CacheSize);
  from.get(to.persistingL2CacheMaxSize, cudaDevAttrMaxPersistingL2CacheSize);
  from.get(to.accessPolicyMaxWindowSize, cudaDevAttrMaxAccessPolicyWindowSize);
  from.get(to.globalL1CacheSupported, cudaDevAttrGlobalL1CacheSupported);
  from.get(to.localL1CacheSupported, cudaDevAttrLocalL1CacheSupported);
  from.get(to.ECCEnabled, cudaDevAttrEccEnabled);
  from.get(to.concurrentKernels, cudaDevAttrConcurrentKernels);
  from.get(to.asyncEngineCount, cudaDevAttrAsyncEngineCount);
  from.get(to.streamPrioritiesSupported, cudaDevAttrStreamPrioritiesSupported);
  from.get(to.computePreemptionSupported, cudaDevAttrComputePreemptionSupported);
}

void fill_board(const Attributes& from, cudaDeviceProp& to) {
  from.get(to.integrated, cudaDevAttrIntegrated);
  from.get(to.isMultiGpuBoard, cudaDevAttrIsMultiGpuBoard);
  from.get(to.multiGpuBoardGroupID, cudaDevAttrMultiGpuBoardGroupID);
  from.get(to.pciBusID, cudaDevAttrPciBusId);
  from.get(to.pciDeviceID, cudaDevAttrPciDeviceId);
  from.get(to.pciDomainID, cudaDevAttrPciDomainId);
  from.get(to.tccDriver, cudaDevAttrTccDriver);
  from.get(to.deviceNumaConfig, cudaDevAttrNumaConfig);
  from.get(to.deviceNumaId, cudaDevAttrNumaId);
  from.get(to.hostNumaId, cudaDevAttrHostNumaId);
  from.get(to.mpsEnabled, cudaDevAttrMpsEnabled);
  from.get(to.hostNumaMultinodeIpcSupported, cudaDevAttrHostNumaMultinodeIpcSupported);
}

void fill_sharing(const Attributes& from, cudaDeviceProp& to) {
  from.get(to.canMapHostMemory, cudaDevAttrCanMapHostMemory);
  from.get(to.unifiedAddressing, cudaDevAttrUnifiedAddressing);
  from.get(to.managedMemory, cudaDevAttrManagedMemory);
  from.get(to.hostNativeAtomicSupported, cudaDevAttrHostNativeAtomicSupported);
  from.get(to.pageableMemoryAccess, cudaDevAttrPageableMemoryAccess);
  from.get(to.concurrentManagedAccess, cudaDevAttrConcurrentManagedAccess);
  from.get(to.canUseHostPointerForRegisteredMem, cudaDevAttrCanUseHostPointerForRegisteredMem);
  from.get(to.pageableMemoryAccessUsesHostPageTables,
           cudaDevAttrPageableMemoryAccessUsesHostPageTables);
  from.get(to.directManagedMemAccessFromHost, cudaDevAttrDirectManagedMemAccessFromHost);
  from.get(to.hostRegisterSupported, cudaDevAttrHostRegisterSupported);
  from.get(to.hostRegisterReadOnlySupported, cudaDevAttrHostRegisterReadOnlySupported);
  from.get(to.timelineSemaphoreInteropSupported, cudaDevAttrTimelineSemaphoreInteropSupported);
  from.get(to.memoryPoolsSupported, cudaDevAttrMemoryPoolsSupported);
  from.get(to.gpuDirectRDMASupported, cudaDevAttrGPUDirectRDMASupported);
  from.get(to.gpuDirectRDMAFlushWritesOptions, cudaDevAttrGPUDirectRDMAFlushWritesOptions);
  from.get(to.gpuDirectRDMAWritesOrdering, cudaDevAttrGPUDirectRDMAWritesOrdering);
  from.get(to.memoryPoolSupportedHandleTypes, cudaDevAttrMemoryPoolSupportedHandleTypes);
  from.get(to.ipcEventSupported, cudaDevAttrIpcEventSupport);
  from.get(to.sparseCudaArraySupported, cudaDevAttrSparseCudaArraySupported);
  from.get(to.deferredMappingCudaArraySupported, cudaDevAttrDeferredMappingCudaArraySupported);
}

void fill_textures(const Attributes& from, cudaDeviceProp& to) {
  from.get(to.textureAlignment, cudaDevAttrTextureAlignment);
  from.get(to.texturePitchAlignment, cudaDevAttrTexturePitchAlignment);
  from.get(to.maxTexture1D, cudaDevAttrMaxTexture1DWidth);
  from.get(to.maxTexture1DMipmap, cudaDevAttrMaxTexture1DMipmappedWidth);
  from.get(to.maxTexture2D[0], cudaDevAttrMaxTexture2DWidth);
  from.get(to.maxTexture2D[1], cudaDevAttrMaxTexture2DHeight);
  from.get(to.maxTexture2DMipmap[0], cudaDevAttrMaxTexture2DMipmappedWidth);
  from.get(to.maxTexture2DMipmap[1], cudaDevAttrMaxTexture2DMipmappedHeight);
  from.get(to.maxTexture2DLinear[0], cudaDevAttrMaxTexture2DLinearWidth);
  from.get(to.maxTexture2DLinear[1], cudaDevAttrMaxTexture2DLinearHeight);
  from.get(to.maxTexture2DLinear[2], cudaDevAttrMaxTexture2DLinearPitch);
  from.get(to.maxTexture2DGather[0], cudaDevAttrMaxTexture2DGatherWidth);
  from.get(to.maxTexture2DGather[1], cudaDevAttrMaxTexture2DGatherHeight);
  from.get(to.maxTexture3D[0], cudaDevAttrMaxTexture3DWidth);
  from.get(to.maxTexture3D[1], cudaDevAttrMaxTexture3DHeight);
  from.get(to.maxTexture3D[2], cudaDevAttrMaxTexture3DDepth);
  from.get(to.maxTexture3DAlt[0], cudaDevAttrMaxTexture3DWidthAlt);
  from.get(to.maxTexture3DAlt[1], cudaDevAttrMaxTexture3DHeightAlt);
  from.get(to.maxTexture3DAlt[2], cudaDevAttrMaxTexture3DDepthAlt);
  from.get(to.maxTextureCubemap, cudaDevAttrMaxTextureCubemapWidth);
  from.get(to.maxTexture1DLayered[0], cudaDevAttrMaxTexture1DLayeredWidth);
  from.get(to.maxTexture1DLayered[1], cudaDevAttrMaxTexture1DLayeredLayers);
  from.get(to.maxTexture2DLayered[0], cudaDevAttrMaxTexture2DLayeredWidth);
  from.get(to.maxTexture2DLayered[1], cudaDevAttrMaxTexture2DLayeredHeight);
  from.get(to.maxTexture2DLayered[2], cudaDevAttrMaxTexture2DLayeredLayers);
  from.get(to.maxTextureCubemapLayered[0], cudaDevAttrMaxTextureCubemapLayeredWidth);
  from.get(to.maxTextureCubemapLayered[1], cudaDevAttrMaxTextureCubemapLayeredLayers);
  from.get(to.surfaceAlignment, cudaDevAttrSurfaceAlignment);
  from.get(to.maxSurface1D, cudaDevAttrMaxSurface1DWidth);
  from.get(to.maxSurface2D[0], cudaDevAttrMaxSurface2DWidth);
  from.get(to.maxSurface2D[1], cudaDevAttrMaxSurface2DHeight);
  from.get(to.maxSurface3D[0], cudaDevAttrMaxSurface3DWidth);
  from.get(to.maxSurface3D[1], cudaDevAttrMaxSurface3DHeight);
  from.get(to.maxSurface3D[2], cudaDevAttrMaxSurface3DDepth);
  from.get(to.maxSurface1DLayered[0], cudaDevAttrMaxSurface1DLayeredWidth);
  from.get(to.maxSurface1DLayered[1], cudaDevAttrMaxSurface1DLayeredLayers);
  from.get(to.maxSurface2DLayered[0], cudaDevAttrMaxSurface2DLayeredWidth);
  from.get(to.maxSurface2DLayered[1], cudaDevAttrMaxSurface2DLayeredHeight);
  from.get(to.maxSurface2DLayered[2], cudaDevAttrMaxSurface2DLayeredLayers);
  from.get(to.maxSurfaceCubemap, cudaDevAttrMaxSurfaceCubemapWidth);
  from.get(to.maxSurfaceCubemapLayered[0], cudaDevAttrMaxSurfaceCubemapLayeredWidth);
  from.get(to.maxSurfaceCubemapLayered[1], cudaDevAttrMaxSurfaceCubemapLayeredLayers);
}

void fill_identity(const Attributes& from, cudaDeviceProp& to) {
  from.get(to.gpuPciDeviceID, cudaDevAttrGpuPciDeviceId);
  from.get(to.gpuPciSubsystemID, cudaDevAttrGpuPciSubsystemId);
}

}  // namespace

void fill_properties(const DeviceInfo& info, cudaDeviceProp& properties) {
  properties = {};
  std::memcpy(properties.name, info.name, std::min(sizeof(properties.name) - 1, sizeof(info.name)));
  std::memcpy(&properties.uuid, info.uuid, sizeof(info.uuid));
  properties.totalGlobalMem = info.total_memory;
  const Attributes from(info);
  fill_launch_limits(from, properties);
  fill_chip(from, properties);
  fill_board(from, properties);
  fill_sharing(from, properties);
  fill_textures(from, properties);
  fill_identity(from, properties);
}

}  // namespace slate::cudart
