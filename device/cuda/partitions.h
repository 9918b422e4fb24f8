// Partitions: ranges of units of SMs as green contexts. It makes partitions and their streams; it
// does not choose them (the scheduler does).
// - The SMs of a unit lie far apart where the driver allows it. Neighbours, of one GPC, share its
//   way to the memory, and eight of them saturate it (H200: 32 SMs read 0.82 of what all of them
//   read, 0.95 when spread). No cluster of blocks may fit on such a partition.
// - Where the driver does not cut so finely, units are the smallest groups that it makes, on which
//   clusters fit, and what is left over.
// - A green context shares the primary context's functions, events and memory, and is never made
//   current: only its streams are used.
// - Once a module with dynamic parallelism is loaded, kernels of every partition may use two SMs
//   more (cuda.h).
// Thread: any. Calls are serialised, because the driver does not lock a green context.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "device/cuda/context.h"
#include "device/cuda/sm_probe.h"

namespace slate::cuda {

class Partitions {
 public:
  /// Numbers of the SMs of each unit.
  using Units = std::vector<std::vector<std::uint32_t>>;

  /// Requires: `context` outlives it.
  explicit Partitions(Context& context) : context_(context) {}
  Partitions(const Partitions&) = delete;
  Partitions& operator=(const Partitions&) = delete;
  /// Destroys the partitions that are left. Requires: as destroy().
  ~Partitions();

  // As the methods of device::Device of the same names.
  Result<Units> units();
  Result<CUgreenCtx> create(std::uint32_t first_unit, std::uint32_t unit_count);
  void destroy(CUgreenCtx green);
  /// A stream of the partition; the nearest priority that the GPU knows. Errors: kInvalidHandle for
  /// a partition that does not exist.
  Result<CUstream> create_stream(CUgreenCtx green, int priority);

 private:
  /// The device in parts of one split: the driver joins parts of one split only.
  struct Cut {
    std::vector<CUdevResource> parts;
    std::vector<std::size_t> ends;  // index in `parts` behind the last part of each unit
    bool has_remainder = false;     // whether the last part is what was left for no group
  };

  Result<void> ensure_units() SLATE_REQUIRES(mutex_);
  Result<Units> find_units() SLATE_REQUIRES(mutex_);
  /// Runs the probe on each unit of `cut_` to find its SMs.
  Result<Units> look_at_units() SLATE_REQUIRES(mutex_);
  /// A split into the smallest groups that the driver makes, each a unit.
  Result<Cut> smallest_groups() SLATE_REQUIRES(mutex_);
  /// Units of the same size from pairs of SMs all over the device.
  Result<Cut> spread(const Cut& groups) SLATE_REQUIRES(mutex_);
  /// A split into groups of `size` SMs, or the next size that the driver makes.
  Result<Cut> split(unsigned int size, unsigned int flags) SLATE_REQUIRES(mutex_);
  std::span<CUdevResource> parts_of(std::uint32_t first, std::uint32_t count)
      SLATE_REQUIRES(mutex_);
  Result<CUgreenCtx> make_green(std::span<CUdevResource> parts) SLATE_REQUIRES(mutex_);
  /// A green context of the units, in the first way that this driver knows.
  Result<CUgreenCtx> join(std::uint32_t first, std::uint32_t count) SLATE_REQUIRES(mutex_);
  /// The units as one group of another split, if that has the same SMs.
  Result<CUgreenCtx> carve(std::uint32_t first, std::uint32_t count) SLATE_REQUIRES(mutex_);
  Result<CUstream> make_stream(CUgreenCtx green, int priority) SLATE_REQUIRES(mutex_);
  /// Numbers of the SMs that the green context has, measured.
  Result<std::vector<std::uint32_t>> sms_of(SmProbe& probe, CUgreenCtx green, std::uint32_t count)
      SLATE_REQUIRES(mutex_);
  std::vector<std::uint32_t> sms_of_units(std::uint32_t first, std::uint32_t count) const
      SLATE_REQUIRES(mutex_);
  void destroy_green(CUgreenCtx green) SLATE_REQUIRES(mutex_);

  Context& context_;
  Mutex mutex_;
  // Why this device cannot be partitioned, once known.
  std::optional<Error> refusal_ SLATE_GUARDED_BY(mutex_);
  CUdevResource whole_ SLATE_GUARDED_BY(mutex_){};
  Cut cut_ SLATE_GUARDED_BY(mutex_);
  Units units_ SLATE_GUARDED_BY(mutex_);  // empty until found
  std::set<CUgreenCtx> greens_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::cuda
