// Which rows of the profile table have changed, by a fingerprint of each.
#include <bit>

#include "daemon/profile/profile_store.h"

namespace slate::daemon {
namespace {

using scheduler::GroupProfile;
using scheduler::KernelProfile;
using scheduler::Placement;
using scheduler::TimeEstimate;

constexpr std::uint64_t kUnsaved = 2;  // is no row's fingerprint

class Fingerprint {
 public:
  Fingerprint& add(std::uint64_t value) {
    // Fowler, Noll and Vo's multiplication, on words; then the high bits back into the low ones.
    hash_ = (hash_ ^ value) * 0x100000001b3ull;
    hash_ ^= hash_ >> 29;
    return *this;
  }
  Fingerprint& add(double value) { return add(std::bit_cast<std::uint64_t>(value)); }
  Fingerprint& add(const TimeEstimate& time) {
    return add(time.ms).add(std::uint64_t{time.samples});
  }
  Fingerprint& add(const Placement& placement) {
    return add(std::uint64_t{placement.first} << 32 | placement.count)
        .add(std::uint64_t{placement.blocks_per_sm} << 1 | (placement.ahead ? 1 : 0));
  }
  Fingerprint& add(const std::optional<double>& value) {
    return value ? add(std::uint64_t{1}).add(*value) : add(std::uint64_t{0});
  }
  /// Never even: 0 stands for nothing.
  std::uint64_t value() const { return hash_ | 1; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325ull;
};

bool says_something(const KernelProfile& row) {
  for (const TimeEstimate& time : row.alone) {
    if (time.known()) return true;
  }
  for (const auto& times : row.placed) {
    if (!times.empty()) return true;
  }
  return row.task_size != 0 || row.flops >= 0 || row.bytes >= 0 || row.instructions >= 0 ||
         row.compute_override || row.memory_override || row.form_override;
}

std::uint64_t fingerprint(const KernelProfile& row) {
  if (!says_something(row)) return 0;
  Fingerprint print;
  print.add(row.blocks).add(std::uint64_t{row.task_size});
  print.add(row.flops).add(row.bytes).add(row.instructions);
  print.add(row.compute_override).add(row.memory_override);
  if (row.form_override) print.add(static_cast<std::uint64_t>(*row.form_override) + 1);
  for (const TimeEstimate& time : row.alone) print.add(time);
  for (const auto& [size, time] : row.tasks) print.add(std::uint64_t{size}).add(time);
  for (const auto& times : row.placed) {
    print.add(std::uint64_t{times.size()});
    for (const auto& [placement, time] : times) print.add(placement).add(time);
  }
  return print.value();
}

std::uint64_t fingerprint(const GroupProfile& group) {
  Fingerprint print;
  print.add(static_cast<std::uint64_t>(group.sharing)).add(group.makespan);
  print.add(std::uint64_t{group.samples}).add(std::uint64_t{group.pinned});
  for (const auto form : group.forms) print.add(static_cast<std::uint64_t>(form));
  for (const Placement& placement : group.placements) print.add(placement);
  return print.value();
}

std::vector<scheduler::KernelKey> keys_of(const scheduler::ProfileTable& table,
                                          const std::vector<scheduler::KernelId>& ids) {
  std::vector<scheduler::KernelKey> keys;
  for (const auto id : ids) keys.push_back(table.kernel(id).key);
  return keys;
}

}  // namespace

ProfileChanges ProfileChangeFinder::find(const scheduler::ProfileTable& table) {
  ProfileChanges changes;
  newest_kernels_.clear();
  newest_groups_.clear();
  kernels_.resize(table.size(), 0);
  for (scheduler::KernelId id = 0; id < table.size(); ++id) {
    const KernelProfile& row = table.kernel(id);
    const std::uint64_t now = fingerprint(row);
    if (now == kernels_[id]) continue;
    if (now != 0) {
      changes.kernels.push_back(row);
    } else {
      changes.forgotten.push_back(row.key);
    }
    kernels_[id] = now;
    newest_kernels_.push_back(id);
  }
  for (const auto& [ids, group] : table.groups()) {
    const std::uint64_t now = fingerprint(group);
    std::uint64_t& before = groups_[ids];
    if (now == before) continue;
    changes.groups.push_back({keys_of(table, ids), group});
    before = now;
    newest_groups_.push_back(ids);
  }
  std::erase_if(groups_, [&](const auto& known) {
    if (table.group(known.first) != nullptr) return false;
    changes.forgotten_groups.push_back(keys_of(table, known.first));
    newest_groups_.push_back(known.first);
    return true;
  });
  return changes;
}

void ProfileChangeFinder::not_saved() {
  for (const scheduler::KernelId id : newest_kernels_) kernels_[id] = kUnsaved;
  for (const auto& ids : newest_groups_) groups_[ids] = kUnsaved;
}

}  // namespace slate::daemon
