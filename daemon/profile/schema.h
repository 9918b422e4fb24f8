// The tables of slate's database. Included by database.cc only. A change that an older slate cannot
// read raises kSchemaVersion and gets a migration in database.cc.
#pragma once

#include <iterator>

namespace slate::daemon {

inline constexpr int kSchemaVersion = 3;
/// Steps to the next version, from 1 on.
inline constexpr const char* kMigrations[] = {
    "ALTER TABLE group_member ADD COLUMN ahead INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE kernel ADD COLUMN owner INTEGER"};
static_assert(std::size(kMigrations) == kSchemaVersion - 1);

inline constexpr const char* kSchema = R"sql(
CREATE TABLE device (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  sm_count INTEGER NOT NULL,
  UNIQUE (name, sm_count));

-- scheduler::KernelProfile. NULL: unknown.
CREATE TABLE kernel (
  id INTEGER PRIMARY KEY,
  device INTEGER NOT NULL REFERENCES device (id),
  code INTEGER NOT NULL,
  name TEXT NOT NULL,
  block_x INTEGER NOT NULL,
  block_y INTEGER NOT NULL,
  block_z INTEGER NOT NULL,
  grid_bucket INTEGER NOT NULL,
  blocks INTEGER NOT NULL,
  task_size INTEGER NOT NULL,
  flops REAL,
  bytes REAL,
  instructions REAL,
  compute_override REAL,
  memory_override REAL,
  form_override INTEGER,
  saved INTEGER NOT NULL,  -- seconds since 1970; of whoever has most, the oldest rows go first
  owner INTEGER,           -- uid
  UNIQUE (device, code, name, block_x, block_y, block_z, grid_bucket));
CREATE INDEX kernel_by_age ON kernel (device, saved);

CREATE TABLE alone_time (
  kernel INTEGER NOT NULL REFERENCES kernel (id) ON DELETE CASCADE,
  form INTEGER NOT NULL,
  ms REAL NOT NULL,
  samples INTEGER NOT NULL,
  PRIMARY KEY (kernel, form)) WITHOUT ROWID;

-- The worker form on the whole device, by blocks a task.
CREATE TABLE task_time (
  kernel INTEGER NOT NULL REFERENCES kernel (id) ON DELETE CASCADE,
  size INTEGER NOT NULL,
  ms REAL NOT NULL,
  samples INTEGER NOT NULL,
  PRIMARY KEY (kernel, size)) WITHOUT ROWID;

CREATE TABLE placed_time (
  kernel INTEGER NOT NULL REFERENCES kernel (id) ON DELETE CASCADE,
  form INTEGER NOT NULL,
  first_unit INTEGER NOT NULL,
  unit_count INTEGER NOT NULL,
  blocks_per_sm INTEGER NOT NULL,
  ms REAL NOT NULL,
  samples INTEGER NOT NULL,
  PRIMARY KEY (kernel, form, first_unit, unit_count, blocks_per_sm)) WITHOUT ROWID;

-- scheduler::GroupProfile. `members`: the ids of its kernels in rising order, with blanks between.
CREATE TABLE kernel_group (
  id INTEGER PRIMARY KEY,
  device INTEGER NOT NULL REFERENCES device (id),
  members TEXT NOT NULL,
  sharing INTEGER NOT NULL,
  makespan REAL NOT NULL,
  samples INTEGER NOT NULL,
  pinned INTEGER NOT NULL,
  UNIQUE (device, members));

CREATE TABLE group_member (
  kernel_group INTEGER NOT NULL REFERENCES kernel_group (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  kernel INTEGER NOT NULL REFERENCES kernel (id) ON DELETE CASCADE,
  form INTEGER,        -- these NULL where the group has none
  first_unit INTEGER,
  unit_count INTEGER,
  blocks_per_sm INTEGER,
  ahead INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (kernel_group, position)) WITHOUT ROWID;
CREATE INDEX group_member_by_kernel ON group_member (kernel);

-- A group does not outlive its kernels.
CREATE TRIGGER group_loses_member AFTER DELETE ON group_member BEGIN
  DELETE FROM kernel_group WHERE id = OLD.kernel_group;
END;

-- What `slatectl set --program` keeps. NULL: as configured.
CREATE TABLE program (
  name TEXT NOT NULL,
  uid INTEGER NOT NULL,
  weight REAL,
  priority INTEGER,
  by_administrator INTEGER NOT NULL,
  PRIMARY KEY (name, uid)) WITHOUT ROWID;
)sql";

}  // namespace slate::daemon
