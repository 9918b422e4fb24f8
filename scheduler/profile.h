// ProfileTable: what is known of kernels, gathered while they run. A row is a kernel with a block
// shape and a bucket of grid sizes. A group says how a set of kernels ran best together. In memory
// only; the daemon keeps it in SQLite.
//
// Thread: any, under the caller's lock; the engine's is the executor's.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "scheduler/placement.h"

namespace slate::scheduler {

using KernelId = std::uint32_t;  // row index, valid as long as the process lives
using Time = std::chrono::steady_clock::time_point;
using Milliseconds = std::chrono::duration<double, std::milli>;
inline constexpr Time kNever = Time::max();

/// A duration in ticks of the caller's clock.
inline Time::duration ticks(Milliseconds time) {
  return std::chrono::duration_cast<Time::duration>(time);
}

struct KernelKey {
  std::uint64_t code = 0;  // hash of the module's text
  std::string name;        // name of the kernel in the module
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t grid_bucket = 0;  // grid_bucket() of the grid's blocks
  auto operator<=>(const KernelKey&) const = default;
};

/// Index of the bucket for a grid: quarters of a power of two. Grids of one bucket differ by less
/// than a fifth.
std::uint32_t grid_bucket(std::uint64_t blocks);

/// Estimate of a time, like a running median: quick to follow a change, slow to follow one outlier.
struct TimeEstimate {
  double ms = 0;  // ms of one launch; 0: never measured
  /// Number of launches measured.
  std::uint32_t samples = 0;
  double spread = 0;  // usual distance of a measurement from `ms`, as a part of `ms`
  bool known() const { return samples > 0; }
  /// Likely error of `ms`, as a part of `ms`; 0 without samples.
  double doubt() const;
  /// Adds a measurement that is the mean of `count` launches. Ignores times that are not positive.
  void add(double measured_ms, std::uint32_t count = 1);
};

/// What is known of one row. Times are ms of one launch, intensities fractions of the device's
/// peaks.
struct KernelProfile {
  KernelKey key;
  std::uint64_t blocks = 0;                     // blocks of the grid seen last in this bucket
  std::array<TimeEstimate, 3> alone{};          // times on the whole device, by Form
  std::map<Placement, TimeEstimate> placed[3];  // times on a part of the device, by Form
  /// Times of the worker form alone, by blocks of a task.
  std::map<std::uint32_t, TimeEstimate> tasks;
  std::uint32_t task_size = 0;  // best task size in blocks, once found; 0: the usual number
  double flops = -1;            // FLOPs of a launch, counted by the profile form; -1: unknown
  double bytes = -1;            // bytes of a launch from and to global memory; -1: unknown
  double instructions = -1;     // instructions of a launch's threads; -1: unknown
  // Values set by the administrator, which outrank what is measured.
  std::optional<double> compute_override, memory_override;
  std::optional<Form> form_override;
  // The forms that the kernel has and their cost, or why it has none; empty: unknown yet. Text for
  // people, not kept on disk.
  std::string forms;
  // User whose launch made the row. When rows are too many, each user's own are dropped.
  std::optional<std::uint32_t> owner;

  /// The quickest form alone among those measured; native if none was. A form set by the
  /// administrator outranks it once it was measured.
  Form best_form() const;
  /// Time alone in best_form(); !known() if never measured.
  const TimeEstimate& best_alone() const { return alone[static_cast<std::size_t>(best_form())]; }
};

/// How kernels share the device.
enum class Sharing : std::uint8_t {
  kAlone,     // one after the other
  kTogether,  // each on the whole device, where the hardware mixes their blocks
  kPlaced,    // each on its own SMs
};

/// How a set of kernels ran best together. `kernels` are families in rising order; forms and
/// placements have the same order.
struct GroupProfile {
  std::vector<KernelId> kernels;
  Sharing sharing = Sharing::kAlone;
  std::vector<Form> forms;
  std::vector<Placement> placements;
  double makespan = 0;  // estimate over the time one after the other, natively: below 1 is a gain
  std::uint32_t samples = 0;
  bool pinned = false;  // whether the administrator set it: then it is kept, however it performs
};

class ProfileTable {
 public:
  /// Returns the row of `key`, and makes it if there is none.
  KernelId find_or_add(const KernelKey& key);
  std::optional<KernelId> find(const KernelKey& key) const;
  /// The family of a row, named by its first row. Rows of one family differ only in the size of the
  /// grid.
  KernelId family(KernelId id) const { return families_of_[id]; }
  std::span<const KernelId> rows_of_family(KernelId id) const;
  /// Time of one launch alone in the row's quickest form. Where the row was not measured, the time
  /// of the most similar grid of the family, scaled by the number of blocks; nullopt if there is
  /// none.
  std::optional<Milliseconds> alone(KernelId id) const;
  /// FLOP/s and bytes/s of one launch alone as fractions of the machine's peaks; nullopt: unknown.
  /// Where the row's work was never counted, the work of the most similar grid of the family
  /// counts, scaled by the number of blocks.
  std::optional<double> compute_intensity(KernelId id, const Machine& machine) const;
  std::optional<double> memory_intensity(KernelId id, const Machine& machine) const;
  KernelProfile& kernel(KernelId id) { return kernels_[id]; }
  const KernelProfile& kernel(KernelId id) const { return kernels_[id]; }
  std::size_t size() const { return kernels_.size(); }

  /// The group of `kernels`, which are families in rising order; null if none is known. The pointer
  /// is valid until the groups change.
  const GroupProfile* group(const std::vector<KernelId>& kernels) const;
  /// Stores the group under its families, in place of an older one.
  void set_group(GroupProfile group);
  /// The group with its families in rising order, as group() wants them.
  GroupProfile ordered(const GroupProfile& group) const;
  const std::map<std::vector<KernelId>, GroupProfile>& groups() const { return groups_; }
  /// Forgets all that was measured, or only of one row and its groups, or one group. Rows, ids and
  /// the administrator's overrides stay.
  void clear();
  void forget(KernelId id);
  void forget_group(const std::vector<KernelId>& kernels);
  /// Number that rises when rows or groups were changed by hand; then policies regroup.
  std::uint64_t edits() const { return edits_; }
  void edited() { ++edits_; }

 private:
  template <typename Holds>
  const KernelProfile* nearest(KernelId id, Holds holds) const;
  std::optional<double> intensity(KernelId id, double KernelProfile::*amount,
                                  const std::optional<double>& set, double peak) const;

  std::vector<KernelProfile> kernels_;
  std::vector<KernelId> families_of_;  // family of each row
  std::map<KernelKey, KernelId> by_key_;
  std::map<KernelKey, std::vector<KernelId>> families_;  // rows by their key without the grid
  std::map<std::vector<KernelId>, GroupProfile> groups_;
  std::uint64_t edits_ = 0;
};

}  // namespace slate::scheduler
