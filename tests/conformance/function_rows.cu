// Launches, questions about kernels, occupancy, symbols.
#include "conformance.h"

namespace conformance {

__global__ void two_parameters(int* out, double value) {
  if (out != nullptr) *out = static_cast<int>(value);
}

namespace {

__global__ void with_shared(int* out) {
  __shared__ int words[1024];
  words[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = words[(threadIdx.x + 1) % 32];
}

__global__ void __launch_bounds__(128) bounded(int* out) {
  *out = 1;
}

__device__ int variable[4];
__constant__ float constant[8];

void not_a_kernel() {}
const void* const kNotAKernel = reinterpret_cast<const void*>(&not_a_kernel);

cudaError_t launch(dim3 grid, dim3 block, std::size_t shared = 0) {
  int* out = nullptr;
  double value = 1;
  void* arguments[] = {&out, &value};
  return cudaLaunchKernel(reinterpret_cast<const void*>(two_parameters), grid, block, arguments,
                          shared, nullptr);
}

cudaError_t launch_with(cudaLaunchAttributeID id, cudaLaunchAttributeValue value) {
  cudaLaunchAttribute attribute{};
  attribute.id = id;
  attribute.val = value;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  config.attrs = &attribute;
  config.numAttrs = 1;
  int* out = nullptr;
  double number = 1;
  void* arguments[] = {&out, &number};
  return cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(two_parameters), arguments);
}

}  // namespace

void launch_rows() {
  ROW("cudaLaunchKernel/normal", launch(dim3(2), dim3(32)));
  ROW("cudaLaunchKernel/no-blocks", launch(dim3(0), dim3(32)));
  ROW("cudaLaunchKernel/no-threads", launch(dim3(1), dim3(0)));
  ROW("cudaLaunchKernel/many-threads", launch(dim3(1), dim3(2000)));
  ROW("cudaLaunchKernel/deep-block", launch(dim3(1), dim3(1, 1, 65)));
  ROW("cudaLaunchKernel/high-grid", launch(dim3(1, 65536), dim3(1)));
  ROW("cudaLaunchKernel/much-shared", launch(dim3(1), dim3(1), 1 << 20));
  ROW("cudaLaunchKernel/not-a-kernel",
      cudaLaunchKernel(kNotAKernel, dim3(1), dim3(1), nullptr, 0, nullptr));
  ROW("cudaLaunchKernel/null", cudaLaunchKernel(nullptr, dim3(1), dim3(1), nullptr, 0, nullptr));
  bounded<<<1, 256>>>(nullptr);
  ROW("cudaLaunchKernel/beyond-launch-bounds", cudaPeekAtLastError());
  cudaLaunchAttributeValue value{};
  ROW("cudaLaunchKernelExC/ignore", launch_with(cudaLaunchAttributeIgnore, value));
  value.priority = -1;
  ROW("cudaLaunchKernelExC/priority", launch_with(cudaLaunchAttributePriority, value));
  value.clusterDim = {1, 1, 1};
  ROW("cudaLaunchKernelExC/cluster-of-one",
      launch_with(cudaLaunchAttributeClusterDimension, value));
  ROW("cudaLaunchKernelExC/null", cudaLaunchKernelExC(nullptr, kNotAKernel, nullptr));
  ROW("cudaDeviceSynchronize/after-launches", cudaDeviceSynchronize());
}

void function_rows() {
  const void* const kernel = reinterpret_cast<const void*>(with_shared);
  cudaFuncAttributes attributes{};
  ROW("cudaFuncGetAttributes/normal", cudaFuncGetAttributes(&attributes, kernel),
      std::to_string(attributes.sharedSizeBytes) + " " +
          std::to_string(attributes.maxThreadsPerBlock));
  std::printf("cudaFuncGetAttributes/registers@: %d\n", attributes.numRegs);
  ROW("cudaFuncGetAttributes/bounded",
      cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(bounded)),
      std::to_string(attributes.maxThreadsPerBlock));
  ROW("cudaFuncGetAttributes/null", cudaFuncGetAttributes(nullptr, kernel));
  ROW("cudaFuncGetAttributes/not-a-kernel", cudaFuncGetAttributes(&attributes, kNotAKernel));
  ROW("cudaFuncSetAttribute/shared",
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
  ROW("cudaFuncSetAttribute/too-much-shared",
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20));
  ROW("cudaFuncSetAttribute/negative",
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, -1));
  ROW("cudaFuncSetAttribute/carveout",
      cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
  ROW("cudaFuncSetAttribute/bad-carveout",
      cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 101));
  ROW("cudaFuncSetAttribute/unknown",
      cudaFuncSetAttribute(kernel, unknown<cudaFuncAttribute>(99), 1));
  ROW("cudaFuncSetCacheConfig/normal", cudaFuncSetCacheConfig(kernel, cudaFuncCachePreferShared));
  ROW("cudaFuncSetCacheConfig/unknown", cudaFuncSetCacheConfig(kernel, unknown<cudaFuncCache>(9)));
  std::size_t offset = 99, size = 99;
  const void* const two = reinterpret_cast<const void*>(two_parameters);
  ROW("cudaFuncGetParamInfo/second", cudaFuncGetParamInfo(two, 1, &offset, &size),
      std::to_string(offset) + " " + std::to_string(size));
  ROW("cudaFuncGetParamInfo/beyond", cudaFuncGetParamInfo(two, 2, &offset, &size));
  int blocks = -1;
  ROW("cudaOccupancyMaxActiveBlocksPerMultiprocessor/normal@",
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 256, 0),
      std::to_string(blocks));
  ROW("cudaOccupancyMaxActiveBlocksPerMultiprocessor/zero",
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 0, 0));
  ROW("cudaOccupancyMaxActiveBlocksPerMultiprocessor/null",
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, kernel, 256, 0));
  ROW("cudaOccupancyMaxActiveBlocksPerMultiprocessor/too-wide",
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 4096, 0),
      std::to_string(blocks));
  std::size_t room = 0;
  ROW("cudaOccupancyAvailableDynamicSMemPerBlock/normal@",
      cudaOccupancyAvailableDynamicSMemPerBlock(&room, two, 2, 128), std::to_string(room));
  ROW("cudaOccupancyAvailableDynamicSMemPerBlock/null",
      cudaOccupancyAvailableDynamicSMemPerBlock(nullptr, two, 2, 128));
}

void symbol_rows() {
  int words[4] = {1, 2, 3, 4}, back[4] = {};
  float floats[8] = {};
  std::size_t size = 0;
  void* address = nullptr;
  ROW("cudaMemcpyToSymbol/normal", cudaMemcpyToSymbol(variable, words, sizeof(words)));
  ROW("cudaMemcpyFromSymbol/offset", cudaMemcpyFromSymbol(back, variable, 8, 8),
      std::to_string(back[0]) + " " + std::to_string(back[1]));
  ROW("cudaMemcpyToSymbol/constant", cudaMemcpyToSymbol(constant, floats, sizeof(floats)));
  ROW("cudaMemcpyToSymbol/past-end", cudaMemcpyToSymbol(variable, words, 20));
  ROW("cudaMemcpyToSymbol/bad-offset", cudaMemcpyToSymbol(variable, words, 16, 4));
  ROW("cudaMemcpyToSymbol/kind",
      cudaMemcpyToSymbol(variable, words, 16, 0, cudaMemcpyDeviceToHost));
  ROW("cudaMemcpyToSymbol/not-a-symbol", cudaMemcpyToSymbol(kNotAKernel, words, 4));
  ROW("cudaGetSymbolSize/normal", cudaGetSymbolSize(&size, variable), std::to_string(size));
  ROW("cudaGetSymbolSize/null", cudaGetSymbolSize(nullptr, variable));
  ROW("cudaGetSymbolAddress/normal", cudaGetSymbolAddress(&address, variable),
      address != nullptr ? "some" : "none");
  ROW("cudaGetSymbolAddress/not-a-symbol", cudaGetSymbolAddress(&address, kNotAKernel));
}

}  // namespace conformance
