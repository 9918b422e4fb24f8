// DeviceInfo: what a device tells of itself. Filled by device/, copied verbatim into every
// session's shared memory, read by libslate to answer cudaGetDeviceProperties without a round trip.
#pragma once

#include <cstdint>
#include <type_traits>

namespace slate {

/// Indexed by the driver's CUdevice_attribute numbers, which the runtime's cudaDeviceAttr shares.
inline constexpr int kDeviceAttributeCount = 160;
inline constexpr int kSmCountAttribute = 16;  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT

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

/// Puts what programs get through slate in the place of what the hardware could do. Both devices
/// call it last.
void state_what_slate_gives(DeviceInfo& info);

inline int sm_count(const DeviceInfo& info) {
  return info.attributes[kSmCountAttribute];
}

/// Single-precision GFLOP/s at the highest clock, a fused multiply-add being two; 0: unknown.
double peak_gflops(const DeviceInfo& info);
/// GB/s between the device's memory and its caches at the highest clock; 0: unknown.
double peak_gbytes(const DeviceInfo& info);

}  // namespace slate
