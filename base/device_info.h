// DeviceInfo: what a device states about itself. Filled by device/, copied into every session's
// shared memory, and read by libslate to answer cudaGetDeviceProperties without a round trip. A
// plain value. Thread: any.
#pragma once

#include <cstdint>
#include <type_traits>

namespace slate {

/// Number of attributes. The index is the driver's CUdevice_attribute, which cudaDeviceAttr shares.
inline constexpr int kDeviceAttributeCount = 160;
inline constexpr int kSmCountAttribute = 16;          // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
inline constexpr int kThreadsPerSmAttribute = 39;     // ..._MAX_THREADS_PER_MULTIPROCESSOR
inline constexpr int kReservedSharedAttribute = 111;  // ..._RESERVED_SHARED_MEMORY_PER_BLOCK

struct DeviceInfo {
  char name[128];  // NUL-terminated, for example "NVIDIA H200"
  std::uint8_t uuid[16];
  char pci_bus_id[16];          // "0000:3b:00.0", empty for sim
  std::uint64_t total_memory;   // bytes
  std::int32_t driver_version;  // 13000 for CUDA 13.0
  std::int32_t is_simulated;    // 1 for sim
  std::int32_t attributes[kDeviceAttributeCount];
};
static_assert(std::is_trivially_copyable_v<DeviceInfo>);
static_assert(sizeof(DeviceInfo) == 128 + 16 + 16 + 8 + 4 + 4 + 4 * kDeviceAttributeCount);

/// Sets attributes to what programs get through slate, whatever the hardware can do. Both devices
/// call it last.
void state_what_slate_gives(DeviceInfo& info);

/// Number of SMs.
inline int sm_count(const DeviceInfo& info) {
  return info.attributes[kSmCountAttribute];
}

/// Bytes of shared memory that the device keeps in front of each block's own. sim keeps none,
/// whatever it tells programs.
inline std::uint32_t reserved_shared(const DeviceInfo& info) {
  const bool keeps = info.is_simulated == 0;
  return keeps ? static_cast<std::uint32_t>(info.attributes[kReservedSharedAttribute]) : 0;
}

/// Threads that the device can hold at a time.
inline std::uint64_t resident_threads(const DeviceInfo& info) {
  return static_cast<std::uint64_t>(sm_count(info)) *
         static_cast<std::uint64_t>(info.attributes[kThreadsPerSmAttribute]);
}

/// Single-precision GFLOP/s at the highest clock, where a fused multiply-add counts as two; 0:
/// unknown.
double peak_gflops(const DeviceInfo& info);
/// GB/s (10^9 bytes) between the device's memory and its caches at the highest clock; 0: unknown.
double peak_gbytes(const DeviceInfo& info);

}  // namespace slate
