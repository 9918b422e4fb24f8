// Occupancy: the limits of one SM, the checks of a launch, and how many blocks fit, as CUDA
// computes it for compute capability 9.0. Pure arithmetic. Thread: any.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "device/device.h"

namespace slate::sim {

inline constexpr std::uint32_t kMaxThreadsPerBlock = 1024;
inline constexpr device::Dim3 kMaxBlock{1024, 1024, 64};
inline constexpr device::Dim3 kMaxGrid{2147483647, 65535, 65535};
inline constexpr std::uint32_t kThreadsPerSm = 2048;
inline constexpr std::uint32_t kWarpsPerSm = kThreadsPerSm / 32;
inline constexpr std::uint32_t kBlocksPerSm = 32;
inline constexpr std::uint32_t kRegistersPerSm = 65536;
inline constexpr std::uint32_t kMaxRegistersPerThread = 255;
inline constexpr std::uint32_t kSharedPerBlock = 48u << 10;        // bytes, without opting in
inline constexpr std::uint32_t kSharedPerBlockOptIn = 227u << 10;  // bytes at most
inline constexpr std::uint32_t kSharedPerSm = 228u << 10;
/// Bytes taken by the system for each block.
inline constexpr std::uint32_t kReservedSharedPerBlock = 1u << 10;

/// What one block takes of its SM while it is resident.
struct BlockCost {
  std::uint32_t warps = 0;
  std::uint32_t registers = 0;
  std::uint32_t shared_bytes = 0;
  std::uint32_t occupancy = 0;  // blocks of this shape that an otherwise empty SM holds
};

/// The cost of a block of `threads` threads; occupancy is 0 if it does not fit at all. Requires:
/// threads > 0.
BlockCost block_cost(const device::FunctionInfo& function, std::uint32_t threads,
                     std::uint32_t dynamic_shared_bytes);

/// Checks a launch in CUDA's categories. `required`: the only shape of blocks that the kernel
/// takes; zeros: any. Errors: kInvalidConfiguration for dimensions, kInvalidValue for shared
/// memory, kOutOfResources for registers.
Result<BlockCost> check_launch(const device::FunctionInfo& function, device::Dim3 grid,
                               device::Dim3 block, std::uint32_t dynamic_shared_bytes,
                               device::Dim3 required = {0, 0, 0});

}  // namespace slate::sim
