// Partitions: groups of SMs as green contexts. A partition joins some units. The SMs of a unit lie
// far apart where the driver allows it: neighbours, of one GPC, share its way to the memory, and
// eight of them take all of it (H200: 32 SMs read 0.82 of what all of them read, 0.95 when spread).
// No cluster of blocks may fit on such a partition. Where the driver does not cut so finely, units
// are the smallest groups it makes, which clusters fit on, and what is left over. A green
// context shares the primary context's functions, events and memory and is never made current: only
// its streams are used. Any thread; one at a time is let in, because the driver does not lock a
// green context. Once a module with dynamic parallelism is loaded, kernels of every partition may
// use two SMs more (cuda.h).
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/result.h"
#include "device/cuda/context.h"
#include "device/cuda/sm_probe.h"

namespace slate::cuda {

class Partitions {
 public:
  using Units = std::vector<std::vector<std::uint32_t>>;

  /// Requires: `context` outlives it.
  explicit Partitions(Context& context) : context_(context) {}
  Partitions(const Partitions&) = delete;
  Partitions& operator=(const Partitions&) = delete;
  /// Destroys those that are left. Requires: as destroy().
  ~Partitions();

  // As in device::Device.
  Result<Units> units();
  Result<CUgreenCtx> create(std::uint32_t first_unit, std::uint32_t unit_count);
  void destroy(CUgreenCtx green);
  /// kInvalidHandle for a partition that there is not.
  Result<CUstream> create_stream(CUgreenCtx green, int priority);

 private:
  /// The device in parts, of one split: the driver joins no others.
  struct Cut {
    std::vector<CUdevResource> parts;
    std::vector<std::size_t> ends;  // of each unit, in parts
    bool has_remainder = false;     // the last part is what no group was left of
  };

  // All with mutex_ held.
  Result<void> ensure_units();
  Result<Units> find_units();
  Result<Units> look_at_units();
  Result<Cut> smallest_groups();
  Result<Cut> spread(const Cut& groups);
  Result<Cut> split(unsigned int size, unsigned int flags);
  std::span<CUdevResource> parts_of(std::uint32_t first, std::uint32_t count);
  Result<CUgreenCtx> make_green(std::span<CUdevResource> parts);
  Result<CUgreenCtx> join(std::uint32_t first, std::uint32_t count);
  Result<CUgreenCtx> carve(std::uint32_t first, std::uint32_t count);
  Result<CUstream> make_stream(CUgreenCtx green, int priority);
  Result<std::vector<std::uint32_t>> sms_of(SmProbe& probe, CUgreenCtx green, std::uint32_t count);
  std::vector<std::uint32_t> sms_of_units(std::uint32_t first, std::uint32_t count) const;
  void destroy_green(CUgreenCtx green);

  Context& context_;
  std::mutex mutex_;
  std::optional<Error> refusal_;  // why this device cannot be partitioned, once that is known
  CUdevResource whole_{};
  Cut cut_;
  Units units_;  // empty until found
  std::set<CUgreenCtx> greens_;
};

}  // namespace slate::cuda
