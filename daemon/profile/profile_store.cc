#include "daemon/profile/profile_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

namespace slate::daemon {
namespace {

using scheduler::Form;
using scheduler::GroupProfile;
using scheduler::KernelId;
using scheduler::KernelKey;
using scheduler::KernelProfile;
using scheduler::Placement;
using scheduler::Sharing;
using scheduler::TimeEstimate;

constexpr int kMostKernels = 20'000;

constexpr std::string_view kSelectRow =
    "SELECT id FROM kernel WHERE device = ? AND code = ? AND name = ? AND block_x = ? AND "
    "block_y = ? AND block_z = ? AND grid_bucket = ?";
constexpr std::string_view kSaveRow =
    "INSERT INTO kernel (device, code, name, block_x, block_y, block_z, grid_bucket, blocks, "
    "task_size, flops, bytes, instructions, compute_override, memory_override, form_override, "
    "saved, owner) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, "
    "?17) "
    "ON CONFLICT (device, code, name, block_x, block_y, block_z, grid_bucket) DO UPDATE SET "
    "blocks = ?8, task_size = ?9, flops = ?10, bytes = ?11, instructions = ?12, "
    "compute_override = ?13, memory_override = ?14, form_override = ?15, saved = ?16 "
    "RETURNING id";
constexpr std::string_view kLoadRows =
    "SELECT id, code, name, block_x, block_y, block_z, grid_bucket, blocks, task_size, flops, "
    "bytes, instructions, compute_override, memory_override, form_override, owner FROM kernel "
    "WHERE device = ?";

Statement& bind_key(Statement& statement, std::int64_t device, const KernelKey& key) {
  statement.bind(device).bind(key.code).bind(key.name);
  for (const std::uint32_t side : key.block) statement.bind(side);
  return statement.bind(key.grid_bucket);
}

/// How rows say that an amount is unknown.
std::optional<double> known(double amount) {
  return amount >= 0 ? std::optional(amount) : std::nullopt;
}

std::optional<double> real_of(const Statement& row, int column) {
  return row.is_null(column) ? std::nullopt : std::optional(row.real(column));
}

std::optional<Form> form_of(const Statement& row, int column) {
  const std::int64_t number = row.integer(column);
  if (row.is_null(column) || number < 0 || number > 2) return std::nullopt;
  return static_cast<Form>(number);
}

std::optional<TimeEstimate> time_of(const Statement& row, int column) {
  const TimeEstimate time{.ms = row.real(column), .samples = row.small(column + 1)};
  if (!std::isfinite(time.ms) || time.ms <= 0 || time.samples == 0) return std::nullopt;
  return time;
}

KernelProfile kernel_of(const Statement& row) {
  KernelProfile kernel;
  kernel.key = {.code = row.bits(1),
                .name = row.text(2),
                .block = {row.small(3), row.small(4), row.small(5)},
                .grid_bucket = row.small(6)};
  kernel.blocks = row.bits(7);
  kernel.task_size = row.small(8);
  kernel.flops = real_of(row, 9).value_or(-1);
  kernel.bytes = real_of(row, 10).value_or(-1);
  kernel.instructions = real_of(row, 11).value_or(-1);
  kernel.compute_override = real_of(row, 12);
  kernel.memory_override = real_of(row, 13);
  kernel.form_override = form_of(row, 14);
  if (!row.is_null(15)) kernel.owner = row.small(15);
  return kernel;
}

bool was_measured(const KernelProfile& kernel) {
  return std::ranges::any_of(kernel.alone, &TimeEstimate::known) ||
         std::ranges::any_of(kernel.placed, [](const auto& times) { return !times.empty(); });
}

}  // namespace

Result<ProfileStore> ProfileStore::open(const std::filesystem::path& directory,
                                        const std::string& device, std::uint32_t sm_count) {
  auto database = Database::open(directory);
  if (!database) return std::unexpected(database.error());
  auto insert = database->prepare(
      "INSERT INTO device (name, sm_count) VALUES (?, ?) ON CONFLICT DO UPDATE SET name = name "
      "RETURNING id");
  if (!insert) return std::unexpected(insert.error());
  insert->bind(device).bind(sm_count);
  if (!insert->step()) return std::unexpected(insert->ok().error());
  const std::int64_t id = insert->integer(0);
  if (auto done = insert->run(); !done) return std::unexpected(done.error());
  return ProfileStore(std::move(*database), id);
}

/// A number that changes with what others write, not with what we do.
Result<std::int64_t> ProfileStore::version() {
  auto select = database_.prepare("PRAGMA data_version");
  if (!select) return std::unexpected(select.error());
  if (!select->step()) return std::unexpected(select->ok().error());
  return select->integer(0);
}

bool ProfileStore::changed_by_others() {
  const auto now = version();
  return now && loaded_version_ != *now;
}

Result<std::size_t> ProfileStore::load(scheduler::ProfileTable& table) {
  const auto before = version();
  if (before) loaded_version_ = *before;
  auto rows = database_.prepare(kLoadRows);
  if (!rows) return std::unexpected(rows.error());
  rows->bind(device_);
  std::map<std::int64_t, KernelProfile> kernels;
  while (rows->step()) kernels.emplace(rows->integer(0), kernel_of(*rows));
  if (auto ok = rows->ok(); !ok) return std::unexpected(ok.error());
  if (auto done = load_times(kernels); !done) return std::unexpected(done.error());
  std::map<std::int64_t, KernelId> ids;
  for (auto& [row, kernel] : kernels) {
    const KernelId id = table.find_or_add(kernel.key);
    ids[row] = id;
    if (!was_measured(table.kernel(id))) table.kernel(id) = std::move(kernel);
  }
  if (auto done = load_groups(ids, table); !done) return std::unexpected(done.error());
  return kernels.size();
}

Result<void> ProfileStore::load_times(std::map<std::int64_t, KernelProfile>& rows) {
  auto alone = database_.prepare("SELECT kernel, form, ms, samples FROM alone_time");
  if (!alone) return std::unexpected(alone.error());
  while (alone->step()) {
    const auto kernel = rows.find(alone->integer(0));
    const auto form = form_of(*alone, 1);
    const auto time = time_of(*alone, 2);
    if (kernel != rows.end() && form && time)
      kernel->second.alone[static_cast<std::size_t>(*form)] = *time;
  }
  if (auto ok = alone->ok(); !ok) return ok;
  auto tasks = database_.prepare("SELECT kernel, size, ms, samples FROM task_time");
  if (!tasks) return std::unexpected(tasks.error());
  while (tasks->step()) {
    const auto kernel = rows.find(tasks->integer(0));
    const auto time = time_of(*tasks, 2);
    if (kernel != rows.end() && time && tasks->small(1) != 0)
      kernel->second.tasks[tasks->small(1)] = *time;
  }
  if (auto ok = tasks->ok(); !ok) return ok;
  auto placed = database_.prepare(
      "SELECT kernel, form, first_unit, unit_count, blocks_per_sm, ms, samples FROM placed_time");
  if (!placed) return std::unexpected(placed.error());
  while (placed->step()) {
    const auto kernel = rows.find(placed->integer(0));
    const auto form = form_of(*placed, 1);
    const auto time = time_of(*placed, 5);
    const Placement placement{placed->small(2), placed->small(3), placed->small(4)};
    if (kernel != rows.end() && form && time)
      kernel->second.placed[static_cast<std::size_t>(*form)][placement] = *time;
  }
  return placed->ok();
}

Result<void> ProfileStore::load_groups(const std::map<std::int64_t, KernelId>& ids,
                                       scheduler::ProfileTable& table) {
  auto rows = database_.prepare(
      "SELECT g.id, g.sharing, g.makespan, g.samples, m.kernel, m.form, m.first_unit, "
      "m.unit_count, m.blocks_per_sm, m.ahead, g.pinned FROM kernel_group g JOIN group_member m "
      "ON m.kernel_group = g.id WHERE g.device = ? ORDER BY g.id, m.position");
  if (!rows) return std::unexpected(rows.error());
  rows->bind(device_);
  std::map<std::int64_t, GroupProfile> groups;
  while (rows->step()) {
    const auto id = ids.find(rows->integer(4));
    if (id == ids.end() || rows->integer(1) < 0 || rows->integer(1) > 2) continue;
    GroupProfile& group = groups[rows->integer(0)];
    group.sharing = static_cast<Sharing>(rows->integer(1));
    group.makespan = rows->real(2);
    group.samples = rows->small(3);
    group.pinned = rows->integer(10) != 0;
    group.kernels.push_back(id->second);
    if (const auto form = form_of(*rows, 5)) group.forms.push_back(*form);
    if (!rows->is_null(6))
      group.placements.push_back(
          {rows->small(6), rows->small(7), rows->small(8), rows->integer(9) != 0});
  }
  if (auto ok = rows->ok(); !ok) return ok;
  for (auto& [row, group] : groups) {
    GroupProfile sorted = table.ordered(group);
    if (table.group(sorted.kernels) == nullptr) table.set_group(std::move(sorted));
  }
  return {};
}

Result<void> ProfileStore::save(const ProfileChanges& changes) {
  if (changes.empty()) return {};
  auto transaction = Transaction::begin(database_);
  if (!transaction) return std::unexpected(transaction.error());
  if (auto done = forget(changes); !done) return done;
  for (const KernelProfile& kernel : changes.kernels) {
    const auto row = save_kernel(kernel);
    if (!row) return std::unexpected(row.error());
    if (auto done = save_times(*row, kernel); !done) return done;
  }
  for (const StoredGroup& group : changes.groups) {
    if (auto done = save_group(group); !done) return done;
  }
  if (auto done = prune(); !done) return done;
  return transaction->commit();
}

Result<std::int64_t> ProfileStore::save_kernel(const KernelProfile& kernel) {
  auto insert = database_.prepare(kSaveRow);
  if (!insert) return std::unexpected(insert.error());
  bind_key(*insert, device_, kernel.key).bind(kernel.blocks).bind(kernel.task_size);
  insert->bind(known(kernel.flops)).bind(known(kernel.bytes)).bind(known(kernel.instructions));
  insert->bind(kernel.compute_override).bind(kernel.memory_override);
  if (kernel.form_override) {
    insert->bind(static_cast<std::int64_t>(*kernel.form_override));
  } else {
    insert->bind_null();
  }
  insert->bind(std::int64_t{std::time(nullptr)});
  insert->bind(kernel.owner);
  if (!insert->step()) return std::unexpected(insert->ok().error());
  const std::int64_t row = insert->integer(0);
  if (auto done = insert->run(); !done) return std::unexpected(done.error());
  return row;
}

Result<void> ProfileStore::save_times(std::int64_t row, const KernelProfile& kernel) {
  // All of a row's times change together when it is forgotten or measured anew.
  for (const char* table : {"alone_time", "task_time", "placed_time"}) {
    auto remove = database_.prepare(fmt::format("DELETE FROM {} WHERE kernel = ?", table));
    if (!remove) return std::unexpected(remove.error());
    if (auto done = remove->bind(row).run(); !done) return done;
  }
  auto alone = database_.prepare("INSERT INTO alone_time VALUES (?, ?, ?, ?)");
  if (!alone) return std::unexpected(alone.error());
  auto tasks = database_.prepare("INSERT INTO task_time VALUES (?, ?, ?, ?)");
  if (!tasks) return std::unexpected(tasks.error());
  for (const auto& [size, time] : kernel.tasks) {
    tasks->again().bind(row).bind(size).bind(time.ms).bind(time.samples);
    if (auto done = tasks->run(); !done) return done;
  }
  auto placed = database_.prepare("INSERT INTO placed_time VALUES (?, ?, ?, ?, ?, ?, ?)");
  if (!placed) return std::unexpected(placed.error());
  for (std::uint32_t form = 0; form < kernel.alone.size(); ++form) {
    if (const TimeEstimate& time = kernel.alone[form]; time.known()) {
      alone->again().bind(row).bind(form).bind(time.ms).bind(time.samples);
      if (auto done = alone->run(); !done) return done;
    }
    for (const auto& [place, time] : kernel.placed[form]) {
      placed->again().bind(row).bind(form).bind(place.first).bind(place.count);
      placed->bind(place.blocks_per_sm).bind(time.ms).bind(time.samples);
      if (auto done = placed->run(); !done) return done;
    }
  }
  return {};
}

Result<std::optional<std::int64_t>> ProfileStore::row_of(const KernelKey& key) {
  auto select = database_.prepare(kSelectRow);
  if (!select) return std::unexpected(select.error());
  if (bind_key(*select, device_, key).step()) return select->integer(0);
  if (auto ok = select->ok(); !ok) return std::unexpected(ok.error());
  return std::nullopt;
}

/// The text that names a group; nullopt when a kernel of it is not stored.
Result<std::optional<std::string>> ProfileStore::members_of(const std::vector<KernelKey>& keys) {
  std::vector<std::int64_t> rows;
  for (const KernelKey& key : keys) {
    const auto row = row_of(key);
    if (!row) return std::unexpected(row.error());
    if (!*row) return std::nullopt;
    rows.push_back(**row);
  }
  std::ranges::sort(rows);
  return fmt::format("{}", fmt::join(rows, " "));
}

Result<void> ProfileStore::save_group(const StoredGroup& stored) {
  const auto members = members_of(stored.kernels);
  if (!members) return std::unexpected(members.error());
  if (!*members) return {};
  const GroupProfile& group = stored.group;
  auto insert = database_.prepare(
      "INSERT INTO kernel_group (device, members, sharing, makespan, samples, pinned) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (device, members) DO UPDATE SET sharing = ?3, "
      "makespan = ?4, samples = ?5, pinned = ?6 RETURNING id");
  if (!insert) return std::unexpected(insert.error());
  insert->bind(device_).bind(**members).bind(static_cast<std::int64_t>(group.sharing));
  insert->bind(group.makespan).bind(group.samples).bind(std::int64_t{group.pinned});
  if (!insert->step()) return std::unexpected(insert->ok().error());
  const std::int64_t row = insert->integer(0);
  if (auto done = insert->run(); !done) return done;
  auto member = database_.prepare("INSERT OR REPLACE INTO group_member VALUES (?,?,?,?,?,?,?,?)");
  if (!member) return std::unexpected(member.error());
  for (std::size_t i = 0; i < stored.kernels.size(); ++i) {
    const auto kernel = row_of(stored.kernels[i]);
    if (!kernel) return std::unexpected(kernel.error());
    member->again().bind(row).bind(std::uint64_t{i}).bind(**kernel);
    if (i < group.forms.size()) {
      member->bind(static_cast<std::int64_t>(group.forms[i]));
    } else {
      member->bind_null();
    }
    if (i < group.placements.size()) {
      const Placement& place = group.placements[i];
      member->bind(place.first).bind(place.count).bind(place.blocks_per_sm);
    } else {
      member->bind_null().bind_null().bind_null();
    }
    member->bind(std::int64_t{i < group.placements.size() && group.placements[i].ahead});
    if (auto done = member->run(); !done) return done;
  }
  return {};
}

Result<void> ProfileStore::forget(const ProfileChanges& changes) {
  auto remove_group =
      database_.prepare("DELETE FROM kernel_group WHERE device = ? AND members = ?");
  if (!remove_group) return std::unexpected(remove_group.error());
  for (const auto& keys : changes.forgotten_groups) {
    const auto members = members_of(keys);
    if (!members) return std::unexpected(members.error());
    if (!*members) continue;
    if (auto done = remove_group->again().bind(device_).bind(**members).run(); !done) return done;
  }
  auto remove = database_.prepare("DELETE FROM kernel WHERE id = ?");
  if (!remove) return std::unexpected(remove.error());
  for (const KernelKey& key : changes.forgotten) {
    const auto row = row_of(key);
    if (!row) return std::unexpected(row.error());
    if (!*row) continue;
    if (auto done = remove->again().bind(**row).run(); !done) return done;
  }
  return {};
}

/// Every user's newest row comes before anybody's second newest, and so on: who makes up kernels
/// without end pushes out his own rows, and no others while these are few.
Result<void> ProfileStore::prune() {
  auto count = database_.prepare("SELECT count(*) FROM kernel WHERE device = ?");
  if (!count) return std::unexpected(count.error());
  count->bind(device_);
  if (!count->step()) return std::unexpected(count->ok().error());
  if (count->integer(0) <= kMostKernels) return {};
  auto remove = database_.prepare(
      "DELETE FROM kernel WHERE device = ?1 AND id IN (SELECT id FROM (SELECT id, saved, "
      "row_number() OVER (PARTITION BY owner ORDER BY saved DESC, id DESC) AS place FROM kernel "
      "WHERE device = ?1) ORDER BY place, saved DESC, id DESC LIMIT -1 OFFSET ?2)");
  if (!remove) return std::unexpected(remove.error());
  remove->bind(device_).bind(std::int64_t{kMostKernels});
  return remove->run();
}

}  // namespace slate::daemon
