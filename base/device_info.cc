// The peaks of a device from what its driver says of clocks and widths. Pure functions, any thread.
#include "base/device_info.h"

namespace slate {
namespace {

// The driver's CUdevice_attribute numbers.
constexpr int kClockRate = 13;        // kHz
constexpr int kMemoryClockRate = 36;  // kHz
constexpr int kMemoryBusWidth = 37;   // bits
constexpr int kCapabilityMajor = 75;
constexpr int kCapabilityMinor = 76;

// Nominal: what two host cores do with kernels that do little else, so that the intensities of
// kernels on sim are between 0 and about 1. The clocks in its attributes are those of a GPU.
constexpr double kSimulatedGflops = 0.5;
constexpr double kSimulatedGbytes = 3;

/// Single-precision lanes of an SM: the throughput of 32-bit additions and multiplications in the
/// CUDA C++ programming guide's table of arithmetic instructions.
int lanes(int major, int minor) {
  if (major == 7 || (major == 6 && minor == 0) || (major == 8 && minor == 0)) return 64;
  return major >= 5 ? 128 : 0;
}

}  // namespace

double peak_gflops(const DeviceInfo& info) {
  if (info.is_simulated != 0) return kSimulatedGflops;
  const int per_sm = lanes(info.attributes[kCapabilityMajor], info.attributes[kCapabilityMinor]);
  return 2e-6 * per_sm * sm_count(info) * info.attributes[kClockRate];
}

double peak_gbytes(const DeviceInfo& info) {
  if (info.is_simulated != 0) return kSimulatedGbytes;
  // Both edges of the clock carry data.
  return 2e-6 * info.attributes[kMemoryClockRate] * (info.attributes[kMemoryBusWidth] / 8.0);
}

void state_what_slate_gives(DeviceInfo& info) {
  struct Ability {
    int attribute;  // of the runtime's cudaDeviceAttr
    std::int32_t value;
  };
  // HostNativeAtomicSupported: kernels and host work on one managed integer only where the link has
  // atomics.
  const std::int32_t link_has_atomics = info.attributes[86];
  const Ability abilities[] = {
      {83, 1},  // ManagedMemory: of host memory, at one address
      {88, 0},  // PageableMemoryAccess: kernels run in another process than the program
      {89, link_has_atomics},  // ConcurrentManagedAccess
      {91, 0},                 // CanUseHostPointerForRegisteredMem: the address differs
      {95, 1},                 // CooperativeLaunch
      {100, 0},                // PageableMemoryAccessUsesHostPageTables
      {101, 0},                // DirectManagedMemAccessFromHost: there is none on the device
      {103, 0},  // HandleTypePosixFileDescriptorSupported: mapped memory is not exported
      {110, 0},  // GPUDirectRDMAWithCUDAVMMSupported, as 116
      {113, 0},  // HostRegisterReadOnlySupported: its pages are replaced, which takes writing
      {115, 1},  // MemoryPoolsSupported
      {116, 0},  // GPUDirectRDMASupported: memory is the daemon's
      {119, 0},  // MemoryPoolSupportedHandleTypes: pools are not shared between programs
      {124, 0},  // DmaBufSupported, as 116
      {125, 1},  // IpcEventSupport
      {128, 0},  // HandleTypeFabricSupported, as 103
      {129, 0},  // UnifiedFunctionPointers
      {132, 0},  // MulticastSupported: it takes several devices
      {141, 0},  // HostNumaVirtualMemoryManagementSupported: mapped memory is the device's
      {142, 0},  // HostNumaMemoryPoolsSupported: so are pools
      {144, 0},  // HostMemoryPoolsSupported
      {145, 0},  // HostVirtualMemoryManagementSupported
  };
  for (const Ability& each : abilities) info.attributes[each.attribute] = each.value;
}

}  // namespace slate
