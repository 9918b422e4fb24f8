// ProfileTable: what is known of kernels, gathered while they run. Rows are kernels with a block
// shape and a bucket of grid sizes; pair rows say how two of them ran best together. In memory; the
// daemon keeps it in SQLite.
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

using KernelId = std::uint32_t;  // index into the table; as long as the process lives
using Time = std::chrono::steady_clock::time_point;
using Milliseconds = std::chrono::duration<double, std::milli>;
inline constexpr Time kNever = Time::max();

struct KernelKey {
  std::uint64_t code = 0;  // hash of the module's text
  std::string name;        // as in the module
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t grid_bucket = 0;  // grid_bucket() of its blocks
  auto operator<=>(const KernelKey&) const = default;
};

/// Quarters of a power of two: grids of one bucket differ by less than a fifth.
std::uint32_t grid_bucket(std::uint64_t blocks);

/// A running median-like estimate of a time: quick to follow a change, slow to follow one outlier.
struct TimeEstimate {
  double ms = 0;  // of one launch; 0: never measured
  std::uint32_t samples = 0;
  double spread = 0;  // usual distance of a measurement from it, as a part of it
  bool known() const { return samples > 0; }
  /// By how much of it the true mean may well differ.
  double doubt() const;
  void add(double measured_ms, std::uint32_t count = 1);
};

/// One kernel's row. Speeds are of one launch; intensities are fractions of the device's peaks.
struct KernelProfile {
  KernelKey key;
  std::uint64_t blocks = 0;                     // of the grid last seen in this bucket
  std::array<TimeEstimate, 3> alone{};          // by Form, on the whole device
  std::map<Placement, TimeEstimate> placed[3];  // by Form, beside others or not, on part of it
  std::map<std::uint32_t, TimeEstimate> tasks;  // worker form alone, by blocks a task
  std::uint32_t task_size = 0;                  // the best of them, once found; 0: the usual number
  double flops = -1;                            // per launch, by the profile form; -1: unknown
  double bytes = -1;                            // to and from global memory, per launch
  double instructions = -1;                     // per launch, of threads
  // By the administrator, in place of what is measured.
  std::optional<double> compute_override, memory_override;
  std::optional<Form> form_override;
  // Which forms the kernel has and what they cost, or why it has none; empty: not known yet. For
  // people, and not kept on disk.
  std::string forms;
  // The user whose launch made the row: where rows are too many, each user loses his own.
  std::optional<std::uint32_t> owner;

  /// The quickest form alone, of those measured; native if none was.
  Form best_form() const;
  /// Alone in its quickest form; unknown when never measured.
  const TimeEstimate& best_alone() const { return alone[static_cast<std::size_t>(best_form())]; }
};

/// How kernels share the device.
enum class Sharing : std::uint8_t {
  kAlone,     // one after the other
  kTogether,  // each on the whole device, the hardware mixes their blocks
  kPlaced,    // each on its own SMs
};

/// How one set of kernels ran best together; `kernels` in rising order, the others alike.
struct GroupProfile {
  std::vector<KernelId> kernels;
  Sharing sharing = Sharing::kAlone;
  std::vector<Form> forms;
  std::vector<Placement> placements;
  double makespan = 0;  // estimated, over one after the other natively: below 1 is a gain
  std::uint32_t samples = 0;
  bool pinned = false;  // by the administrator: kept, whatever it is like
};

class ProfileTable {
 public:
  /// The row of `key`, made if there is none.
  KernelId find_or_add(const KernelKey& key);
  std::optional<KernelId> find(const KernelKey& key) const;
  /// Rows that differ in the size of the grid alone are a family, told by its first row.
  KernelId family(KernelId id) const { return families_of_[id]; }
  std::span<const KernelId> rows_of_family(KernelId id) const;
  /// Of one launch alone in the row's quickest form: measured, or scaled by the number of blocks
  /// from the most similar grid of the family. Unknown when none was measured.
  std::optional<Milliseconds> alone(KernelId id) const;
  /// FLOP/s and bytes/s over the machine's peaks; nullopt: unknown. Where a row's work was never
  /// counted, by that of the most similar grid of the family, scaled by the number of blocks.
  std::optional<double> compute_intensity(KernelId id, const Machine& machine) const;
  std::optional<double> memory_intensity(KernelId id, const Machine& machine) const;
  KernelProfile& kernel(KernelId id) { return kernels_[id]; }
  const KernelProfile& kernel(KernelId id) const { return kernels_[id]; }
  std::size_t size() const { return kernels_.size(); }

  /// Groups are of families. `kernels` are families in rising order.
  const GroupProfile* group(const std::vector<KernelId>& kernels) const;
  void set_group(GroupProfile group);
  /// The group with its kernels' families in rising order, as group() wants them.
  GroupProfile ordered(const GroupProfile& group) const;
  const std::map<std::vector<KernelId>, GroupProfile>& groups() const { return groups_; }
  /// Forgets all that was measured, or what concerns one kernel. Rows, and so ids, stay; so do the
  /// administrator's overrides.
  void clear();
  void forget(KernelId id);
  void forget_group(const std::vector<KernelId>& kernels);
  /// Rises when rows or groups were changed by hand: policies look again.
  std::uint64_t edits() const { return edits_; }
  void edited() { ++edits_; }

 private:
  template <typename Holds>
  const KernelProfile* nearest(KernelId id, Holds holds) const;
  std::optional<double> intensity(KernelId id, double KernelProfile::*amount,
                                  const std::optional<double>& set, double peak) const;

  std::vector<KernelProfile> kernels_;
  std::vector<KernelId> families_of_;  // by row
  std::map<KernelKey, KernelId> by_key_;
  std::map<KernelKey, std::vector<KernelId>> families_;  // by the key without the grid
  std::map<std::vector<KernelId>, GroupProfile> groups_;
  std::uint64_t edits_ = 0;
};

}  // namespace slate::scheduler
