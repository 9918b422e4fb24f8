#include "device/sim/occupancy.h"

#include <fmt/format.h>

#include <algorithm>

namespace slate::sim {
namespace {

using device::Dim3;

constexpr std::uint32_t kSubPartitions = 4;  // of an SM; a warp lives in one, with its registers
constexpr std::uint32_t kRegisterGranularity = 256;  // per warp
constexpr std::uint32_t kSharedGranularity = 128;    // per block

constexpr std::uint32_t round_up(std::uint32_t value, std::uint32_t to) {
  return (value + to - 1) / to * to;
}

std::uint32_t registers_per_warp(const device::FunctionInfo& function) {
  const std::uint32_t registers = std::min(function.registers, kMaxRegistersPerThread);
  return round_up(registers * 32, kRegisterGranularity);
}

// The hardware checks a launch as if all sub-partitions were given the same number of warps.
bool registers_fit(std::uint32_t per_warp, std::uint32_t warps) {
  return per_warp * round_up(warps, kSubPartitions) <= kRegistersPerSm;
}

bool beyond(Dim3 dim, Dim3 most) {
  return dim.x == 0 || dim.y == 0 || dim.z == 0 || dim.x > most.x || dim.y > most.y ||
         dim.z > most.z;
}

std::string text(Dim3 dim) {
  return fmt::format("({}, {}, {})", dim.x, dim.y, dim.z);
}

}  // namespace

BlockCost block_cost(const device::FunctionInfo& function, std::uint32_t threads,
                     std::uint32_t dynamic_shared_bytes) {
  BlockCost cost;
  cost.warps = round_up(threads, 32) / 32;
  const std::uint32_t per_warp = registers_per_warp(function);
  cost.registers = per_warp * cost.warps;
  cost.shared_bytes =
      round_up(function.static_shared_bytes + dynamic_shared_bytes + kReservedSharedPerBlock,
               kSharedGranularity);
  if (!registers_fit(per_warp, cost.warps)) return cost;
  std::uint32_t blocks = std::min(kBlocksPerSm, kWarpsPerSm / cost.warps);
  if (per_warp > 0) {
    const std::uint32_t warps = kRegistersPerSm / kSubPartitions / per_warp * kSubPartitions;
    blocks = std::min(blocks, warps / cost.warps);
  }
  cost.occupancy = std::min(blocks, kSharedPerSm / cost.shared_bytes);
  return cost;
}

Result<BlockCost> check_launch(const device::FunctionInfo& function, Dim3 grid, Dim3 block,
                               std::uint32_t dynamic_shared_bytes, Dim3 required) {
  if (beyond(grid, kMaxGrid)) {
    return fail(ErrorCode::kInvalidConfiguration,
                fmt::format("{}: grid {} is outside (1, 1, 1) to {}", function.name, text(grid),
                            text(kMaxGrid)));
  }
  const std::uint32_t most_threads = std::min(kMaxThreadsPerBlock, function.max_threads_per_block);
  if (beyond(block, kMaxBlock) || block.count() > most_threads) {
    return fail(ErrorCode::kInvalidConfiguration,
                fmt::format("{}: block {} is outside (1, 1, 1) to {} or above {} threads",
                            function.name, text(block), text(kMaxBlock), most_threads));
  }
  if (required.count() > 0 && block != required) {
    return fail(ErrorCode::kInvalidConfiguration,
                fmt::format("{}: block {}, but the kernel was compiled for {} (.reqntid)",
                            function.name, text(block), text(required)));
  }
  const std::uint32_t most_shared =
      std::min(function.max_dynamic_shared_bytes, kSharedPerBlockOptIn);
  if (dynamic_shared_bytes > most_shared ||
      function.static_shared_bytes + dynamic_shared_bytes > kSharedPerBlockOptIn) {
    return fail(
        ErrorCode::kInvalidValue,
        fmt::format("{}: {} bytes of dynamic shared memory beside {} static ones; at most {} "
                    "may be asked for",
                    function.name, dynamic_shared_bytes, function.static_shared_bytes,
                    most_shared));
  }
  const auto threads = static_cast<std::uint32_t>(block.count());
  const BlockCost cost = block_cost(function, threads, dynamic_shared_bytes);
  if (cost.occupancy == 0) {
    return fail(ErrorCode::kOutOfResources,
                fmt::format("{}: {} threads of {} registers do not fit on an SM of {} registers",
                            function.name, threads, function.registers, kRegistersPerSm));
  }
  return cost;
}

}  // namespace slate::sim
