// The device, its limits and settings, versions, peers, last errors.
#include "conformance.h"

namespace conformance {
namespace {

void queries() {
  int number = 0;
  ROW("cudaGetDeviceCount/null", cudaGetDeviceCount(nullptr));
  ROW("cudaGetDeviceCount/normal", cudaGetDeviceCount(&number), number >= 1 ? "some" : "none");
  ROW("cudaGetDevice/null", cudaGetDevice(nullptr));
  ROW("cudaGetDevice/normal", cudaGetDevice(&number), std::to_string(number));
  ROW("cudaSetDevice/normal", cudaSetDevice(0));
  ROW("cudaSetDevice/beyond", cudaSetDevice(99));
  ROW("cudaSetDevice/negative", cudaSetDevice(-1));
  cudaDeviceProp properties;
  ROW("cudaGetDeviceProperties/null", cudaGetDeviceProperties(nullptr, 0));
  ROW("cudaGetDeviceProperties/beyond", cudaGetDeviceProperties(&properties, 99));
  ROW("cudaGetDeviceProperties/normal", cudaGetDeviceProperties(&properties, 0),
      "warp " + std::to_string(properties.warpSize));
  ROW("cudaDeviceGetAttribute/null", cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0));
  ROW("cudaDeviceGetAttribute/unknown",
      cudaDeviceGetAttribute(&number, unknown<cudaDeviceAttr>(99999), 0));
  ROW("cudaDeviceGetAttribute/beyond", cudaDeviceGetAttribute(&number, cudaDevAttrWarpSize, 99));
  // Same numbers by both ways.
  const std::pair<cudaDeviceAttr, long long> same[] = {
      {cudaDevAttrMultiProcessorCount, properties.multiProcessorCount},
      {cudaDevAttrMaxThreadsPerBlock, properties.maxThreadsPerBlock},
      {cudaDevAttrMaxSharedMemoryPerBlock, static_cast<long long>(properties.sharedMemPerBlock)},
      {cudaDevAttrMaxRegistersPerBlock, properties.regsPerBlock},
      {cudaDevAttrL2CacheSize, properties.l2CacheSize},
      {cudaDevAttrComputeCapabilityMajor, properties.major}};
  int equal = 0;
  for (const auto& [attribute, value] : same) {
    cudaDeviceGetAttribute(&number, attribute, 0);
    equal += number == value;
  }
  value_row("cudaDeviceGetAttribute/as-properties", equal);
  for (int attribute = 1; attribute < 148; ++attribute) {
    const cudaError_t error =
        cudaDeviceGetAttribute(&number, unknown<cudaDeviceAttr>(attribute), 0);
    cudaGetLastError();
    std::printf("cudaDeviceGetAttribute/%d@: %s %d\n", attribute, cudaGetErrorName(error), number);
  }
  std::size_t free_bytes = 0, total = 0;
  ROW("cudaMemGetInfo/normal", cudaMemGetInfo(&free_bytes, &total),
      free_bytes <= total && total > 0 ? "sensible" : "not sensible");
  ROW("cudaDeviceGetByPCIBusId/bad", cudaDeviceGetByPCIBusId(&number, "nonsense"));
  char text[32];
  ROW("cudaDeviceGetPCIBusId/normal", cudaDeviceGetPCIBusId(text, sizeof(text), 0));
  ROW("cudaDeviceGetByPCIBusId/back", cudaDeviceGetByPCIBusId(&number, text),
      std::to_string(number));
  ROW("cudaDeviceGetPCIBusId/short", cudaDeviceGetPCIBusId(text, 4, 0));
  ROW("cudaDeviceGetPCIBusId/null", cudaDeviceGetPCIBusId(nullptr, 32, 0));
}

void settings() {
  std::size_t value = 0;
  ROW("cudaDeviceGetLimit/null", cudaDeviceGetLimit(nullptr, cudaLimitStackSize));
  ROW("cudaDeviceGetLimit/stack", cudaDeviceGetLimit(&value, cudaLimitStackSize),
      std::to_string(value));
  ROW("cudaDeviceGetLimit/heap", cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize),
      std::to_string(value));
  ROW("cudaDeviceGetLimit/unknown", cudaDeviceGetLimit(&value, unknown<cudaLimit>(99)));
  ROW("cudaDeviceSetLimit/stack", cudaDeviceSetLimit(cudaLimitStackSize, 4096));
  ROW("cudaDeviceGetLimit/stack-after", cudaDeviceGetLimit(&value, cudaLimitStackSize),
      std::to_string(value));
  ROW("cudaDeviceSetLimit/huge-stack", cudaDeviceSetLimit(cudaLimitStackSize, 1ull << 40));
  ROW("cudaDeviceSetLimit/unknown", cudaDeviceSetLimit(unknown<cudaLimit>(99), 1));
  cudaFuncCache config;
  ROW("cudaDeviceGetCacheConfig/normal", cudaDeviceGetCacheConfig(&config), std::to_string(config));
  ROW("cudaDeviceGetCacheConfig/null", cudaDeviceGetCacheConfig(nullptr));
  ROW("cudaDeviceSetCacheConfig/normal", cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
  ROW("cudaDeviceSetCacheConfig/unknown", cudaDeviceSetCacheConfig(unknown<cudaFuncCache>(9)));
  unsigned flags = 0;
  ROW("cudaGetDeviceFlags/null", cudaGetDeviceFlags(nullptr));
  ROW("cudaSetDeviceFlags/unknown", cudaSetDeviceFlags(0x8000));
  ROW("cudaSetDeviceFlags/two-schedules",
      cudaSetDeviceFlags(cudaDeviceScheduleSpin | cudaDeviceScheduleYield));
  ROW("cudaSetDeviceFlags/normal", cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
  ROW("cudaGetDeviceFlags/after", cudaGetDeviceFlags(&flags),
      std::to_string(flags & cudaDeviceScheduleMask));
  int least = 0, greatest = 0;
  ROW("cudaDeviceGetStreamPriorityRange/normal",
      cudaDeviceGetStreamPriorityRange(&least, &greatest),
      std::to_string(least) + " " + std::to_string(greatest));
  ROW("cudaDeviceGetStreamPriorityRange/nulls", cudaDeviceGetStreamPriorityRange(nullptr, nullptr));
  ROW("cudaCtxResetPersistingL2Cache/normal", cudaCtxResetPersistingL2Cache());
}

void peers() {
  int can = -1;
  ROW("cudaDeviceCanAccessPeer/self", cudaDeviceCanAccessPeer(&can, 0, 0), std::to_string(can));
  ROW("cudaDeviceCanAccessPeer/null", cudaDeviceCanAccessPeer(nullptr, 0, 0));
  ROW("cudaDeviceCanAccessPeer/beyond", cudaDeviceCanAccessPeer(&can, 0, 99));
  ROW("cudaDeviceEnablePeerAccess/self", cudaDeviceEnablePeerAccess(0, 0));
  ROW("cudaDeviceEnablePeerAccess/beyond", cudaDeviceEnablePeerAccess(99, 0));
  ROW("cudaDeviceEnablePeerAccess/flags", cudaDeviceEnablePeerAccess(0, 1));
  ROW("cudaDeviceDisablePeerAccess/self", cudaDeviceDisablePeerAccess(0));
  ROW("cudaDeviceDisablePeerAccess/beyond", cudaDeviceDisablePeerAccess(99));
  ROW("cudaDeviceGetP2PAttribute/self",
      cudaDeviceGetP2PAttribute(&can, cudaDevP2PAttrAccessSupported, 0, 0));
  ROW("cudaDeviceGetP2PAttribute/null",
      cudaDeviceGetP2PAttribute(nullptr, cudaDevP2PAttrAccessSupported, 0, 0));
  ROW("cudaDeviceGetP2PAttribute/beyond",
      cudaDeviceGetP2PAttribute(&can, cudaDevP2PAttrAccessSupported, 0, 99));
}

void errors() {
  std::printf("cudaGetErrorName/unknown: %s\n", cudaGetErrorName(unknown<cudaError_t>(12345)));
  std::printf("cudaGetErrorString/normal: %s\n", cudaGetErrorString(cudaErrorInvalidValue));
  cudaSetDevice(99);
  const std::string peeked = cudaGetErrorName(cudaPeekAtLastError());
  const std::string got = cudaGetErrorName(cudaGetLastError());
  const std::string again = cudaGetErrorName(cudaGetLastError());
  std::printf("cudaGetLastError/clears: %s %s %s\n", peeked.c_str(), got.c_str(), again.c_str());
  cudaSetDevice(99);
  cudaSetDevice(0);
  std::printf("cudaGetLastError/success-keeps: %s\n", cudaGetErrorName(cudaGetLastError()));
  int version = 0;
  ROW("cudaRuntimeGetVersion/normal", cudaRuntimeGetVersion(&version), std::to_string(version));
  ROW("cudaRuntimeGetVersion/null", cudaRuntimeGetVersion(nullptr));
  ROW("cudaDriverGetVersion/null", cudaDriverGetVersion(nullptr));
}

}  // namespace

void device_rows() {
  queries();
  settings();
  peers();
  errors();
}

}  // namespace conformance
