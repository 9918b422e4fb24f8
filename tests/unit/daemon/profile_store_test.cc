#include "daemon/profile/profile_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "daemon/profile/program_store.h"
#include "tests/unit/daemon/temporary_directory.h"

namespace slate::daemon {
namespace {

namespace fs = std::filesystem;
using scheduler::Form;
using scheduler::KernelKey;
using scheduler::Placement;
using scheduler::ProfileTable;
using scheduler::Sharing;

KernelKey key(const std::string& name, std::uint64_t code = 0xfedcba9876543210ull) {
  return {.code = code, .name = name, .block = {32, 8, 1}, .grid_bucket = 17};
}

/// Two kernels with all that a row can hold, a pair of them, and a pair of one with itself.
ProfileTable full_table() {
  ProfileTable table;
  const auto a = table.find_or_add(key("a"));
  const auto b = table.find_or_add(key("b"));
  auto& row = table.kernel(a);
  row.blocks = 1ull << 40;
  row.alone[0] = {.ms = 1.25, .samples = 7};
  row.alone[1] = {.ms = 1.5, .samples = 3};
  row.placed[0][{.first = 0, .count = 5}] = {.ms = 2.5, .samples = 2};
  row.placed[1][{.first = 5, .count = 12, .blocks_per_sm = 3}] = {.ms = 0.1, .samples = 9};
  row.task_size = 4;
  row.tasks[4] = {.ms = 1.5, .samples = 4};
  row.tasks[8] = {.ms = 1.75, .samples = 2};
  row.flops = 1e12;
  row.bytes = 0;
  row.compute_override = 0.25;
  table.kernel(b).alone[0] = {.ms = 9, .samples = 1};
  table.set_group({.kernels = {a, b},
                   .sharing = Sharing::kPlaced,
                   .forms = {Form::kNative, Form::kWorker},
                   .placements = {{.first = 0, .count = 5}, {.first = 5, .count = 12}},
                   .makespan = 0.625,
                   .samples = 11});
  table.set_group({.kernels = {b, b},
                   .sharing = Sharing::kTogether,
                   .forms = {},
                   .placements = {},
                   .makespan = 0.9,
                   .samples = 2,
                   .pinned = true});
  table.set_group(
      {.kernels = {a, a},
       .sharing = Sharing::kTogether,
       .forms = {Form::kNative, Form::kNative},
       .placements = {{.first = 0, .count = 17}, {.first = 0, .count = 17, .ahead = true}},
       .makespan = 0.75,
       .samples = 3});
  return table;
}

class ProfileStoreTest : public testing::Test {
 protected:
  /// full_table() without what a user has said, as it is saved now.
  static ProfileTable save_table(ProfileStore& store, ProfileChangeFinder& finder) {
    ProfileTable table = full_table();
    table.kernel(0).compute_override.reset();
    EXPECT_TRUE(store.save(finder.find(table)));
    return table;
  }
  ProfileStore open(const std::string& device = "Fast One", std::uint32_t sms = 132) {
    auto store = ProfileStore::open(directory_, device, sms);
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  }
  ProfileTable loaded(const std::string& device = "Fast One", std::uint32_t sms = 132) {
    ProfileTable table;
    EXPECT_TRUE(open(device, sms).load(table));
    return table;
  }
  void save(const ProfileTable& table) {
    const auto saved = open().save(ProfileChangeFinder().find(table));
    EXPECT_TRUE(saved) << saved.error().message;
  }
  fs::path file() const { return directory_ / "slate.db"; }
  int files_like(const std::string& part) const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      if (entry.path().filename().string().find(part) != std::string::npos) ++count;
    }
    return count;
  }

  TemporaryDirectory temporary_;
  const fs::path directory_ = temporary_.path() / "state";
};

TEST_F(ProfileStoreTest, WhatWasSavedIsLoaded) {
  const ProfileTable before = full_table();
  save(before);
  const ProfileTable after = loaded();
  ASSERT_EQ(after.size(), 2u);
  const auto a = after.find(key("a"));
  const auto b = after.find(key("b"));
  ASSERT_TRUE(a && b);
  const auto& row = after.kernel(*a);
  EXPECT_EQ(row.blocks, 1ull << 40);
  EXPECT_EQ(row.alone[0].ms, 1.25);
  EXPECT_EQ(row.alone[0].samples, 7u);
  EXPECT_EQ(row.alone[1].ms, 1.5);
  EXPECT_FALSE(row.alone[2].known());
  ASSERT_EQ(row.placed[1].size(), 1u);
  EXPECT_EQ(row.placed[1].begin()->first, (Placement{.first = 5, .count = 12, .blocks_per_sm = 3}));
  EXPECT_EQ(row.placed[1].begin()->second.samples, 9u);
  EXPECT_EQ(row.task_size, 4u);
  ASSERT_EQ(row.tasks.size(), 2u);
  EXPECT_EQ(row.tasks.at(8).ms, 1.75);
  EXPECT_EQ(row.tasks.at(8).samples, 2u);
  EXPECT_EQ(row.flops, 1e12);
  EXPECT_EQ(row.bytes, 0);
  EXPECT_EQ(row.instructions, -1);
  EXPECT_EQ(row.compute_override, 0.25);
  EXPECT_FALSE(row.memory_override);
  const auto* const pair = after.group({std::min(*a, *b), std::max(*a, *b)});
  ASSERT_NE(pair, nullptr);
  EXPECT_EQ(pair->sharing, Sharing::kPlaced);
  EXPECT_EQ(pair->makespan, 0.625);
  EXPECT_EQ(pair->samples, 11u);
  const std::size_t of_a = *a < *b ? 0 : 1;
  EXPECT_EQ(pair->forms[of_a], Form::kNative);
  EXPECT_EQ(pair->placements[1 - of_a], (Placement{.first = 5, .count = 12}));
  const auto* const ahead = after.group({*a, *a});
  ASSERT_NE(ahead, nullptr);
  EXPECT_FALSE(ahead->placements[0].ahead);
  EXPECT_TRUE(ahead->placements[1].ahead);
  const auto* const twice = after.group({*b, *b});
  ASSERT_NE(twice, nullptr);
  EXPECT_EQ(twice->sharing, Sharing::kTogether);
  EXPECT_TRUE(twice->placements.empty());
  EXPECT_TRUE(twice->pinned);
  EXPECT_FALSE(pair->pinned);
}

TEST_F(ProfileStoreTest, GroupsFollowTheIdsOfTheProcessThatLoadsThem) {
  save(full_table());
  ProfileTable table;
  const auto b = table.find_or_add(key("b"));  // first here, second where it was saved
  ASSERT_TRUE(open().load(table));
  const auto a = *table.find(key("a"));
  const auto* const pair = table.group({b, a});
  ASSERT_NE(pair, nullptr);
  EXPECT_EQ(pair->forms, (std::vector{Form::kWorker, Form::kNative}));
  EXPECT_EQ(pair->placements[0], (Placement{.first = 5, .count = 12}));
}

TEST_F(ProfileStoreTest, OnlyWhatHasChangedIsSavedAgain) {
  ProfileTable table = full_table();
  ProfileChangeFinder finder;
  EXPECT_EQ(finder.find(table).kernels.size(), 2u);
  EXPECT_TRUE(finder.find(table).empty());
  table.kernel(1).alone[0].add(8);
  const auto changes = finder.find(table);
  ASSERT_EQ(changes.kernels.size(), 1u);
  EXPECT_EQ(changes.kernels[0].key.name, "b");
  EXPECT_TRUE(changes.groups.empty());
}

TEST_F(ProfileStoreTest, WhatWasNotSavedIsFoundAgain) {
  ProfileChangeFinder finder;
  ProfileStore store = open();
  ProfileTable table = save_table(store, finder);
  table.kernel(1).alone[0].add(8);
  finder.find(table);
  finder.not_saved();
  table.forget(0);
  finder.find(table);
  finder.not_saved();
  const ProfileChanges changes = finder.find(table);
  EXPECT_EQ(changes.kernels.size(), 1u);
  EXPECT_EQ(changes.forgotten.size(), 1u);
  EXPECT_EQ(changes.forgotten_groups.size(), 2u);
  EXPECT_TRUE(changes.groups.empty());
  ASSERT_TRUE(store.save(changes));
  const ProfileTable after = loaded();
  EXPECT_FALSE(after.find(key("a")));
  EXPECT_EQ(after.groups().size(), 1u);
  EXPECT_TRUE(finder.find(table).empty());
}

TEST_F(ProfileStoreTest, RowsThatSayNothingAreNotSaved) {
  ProfileTable table;
  table.find_or_add(key("seen once"));
  EXPECT_TRUE(ProfileChangeFinder().find(table).empty());
}

TEST_F(ProfileStoreTest, ARowSavedTwiceIsOneRowWithTheNewValues) {
  ProfileTable table = full_table();
  save(table);
  table.kernel(0).alone[1] = {};
  table.kernel(0).placed[0].clear();
  table.kernel(0).task_size = 8;
  save(table);
  const ProfileTable after = loaded();
  ASSERT_EQ(after.size(), 2u);
  const auto& row = after.kernel(*after.find(key("a")));
  EXPECT_EQ(row.task_size, 8u);
  EXPECT_FALSE(row.alone[1].known());
  EXPECT_TRUE(row.placed[0].empty());
  EXPECT_EQ(after.groups().size(), 3u);
}

TEST_F(ProfileStoreTest, WhatIsForgottenInMemoryIsForgottenOnDisk) {
  ProfileChangeFinder finder;
  ProfileStore store = open();
  ProfileTable table = save_table(store, finder);
  table.forget(0);
  ASSERT_TRUE(store.save(finder.find(table)));
  const ProfileTable after = loaded();
  EXPECT_FALSE(after.find(key("a")));
  EXPECT_TRUE(after.find(key("b")));
  EXPECT_EQ(after.groups().size(), 1u);  // b with itself
  table.clear();
  ASSERT_TRUE(store.save(finder.find(table)));
  EXPECT_EQ(loaded().size(), 0u);
}

TEST_F(ProfileStoreTest, AnotherDeviceHasRowsOfItsOwn) {
  save(full_table());
  EXPECT_EQ(loaded("Slow One").size(), 0u);
  EXPECT_EQ(loaded("Fast One", 66).size(), 0u);
  EXPECT_EQ(loaded().size(), 2u);
}

TEST_F(ProfileStoreTest, OtherCodeOrBlocksAreOtherRows) {
  ProfileTable table;
  for (const std::uint64_t code : {1, 2})
    table.kernel(table.find_or_add(key("a", code))).task_size = static_cast<std::uint32_t>(code);
  KernelKey wide = key("a", 1);
  wide.block[0] = 64;
  table.kernel(table.find_or_add(wide)).task_size = 3;
  save(table);
  EXPECT_EQ(loaded().size(), 3u);
}

TEST_F(ProfileStoreTest, LoadingKeepsWhatWasMeasuredMeanwhile) {
  save(full_table());
  ProfileTable table;
  table.kernel(table.find_or_add(key("b"))).alone[0].add(77);
  ASSERT_TRUE(open().load(table));
  EXPECT_EQ(table.kernel(*table.find(key("b"))).alone[0].ms, 77);
  EXPECT_EQ(table.kernel(*table.find(key("a"))).task_size, 4u);
}

TEST_F(ProfileStoreTest, ADamagedFileIsMovedAsideAndANewOneBegun) {
  save(full_table());
  std::ofstream(file(), std::ios::trunc)
      << "this is no database, and long enough to be one " << std::string(5000, 'x');
  EXPECT_EQ(loaded().size(), 0u);
  EXPECT_EQ(files_like(".damaged-"), 1);
  save(full_table());
  EXPECT_EQ(loaded().size(), 2u);
}

TEST_F(ProfileStoreTest, APageOfGarbageInTheMiddleIsDamage) {
  save(full_table());
  {
    auto database = Database::open(directory_);
    ASSERT_TRUE(database->run("PRAGMA wal_checkpoint(TRUNCATE)"));
  }
  {
    std::fstream raw(file(), std::ios::in | std::ios::out | std::ios::binary);
    raw.seekp(4096);
    raw << std::string(static_cast<std::size_t>(fs::file_size(file())) - 4096, '\xa5');
  }
  EXPECT_EQ(loaded().size(), 0u);
  EXPECT_EQ(files_like(".damaged-"), 1);
}

TEST_F(ProfileStoreTest, AFileOfVersion1IsTakenOver) {
  save(full_table());
  {
    auto database = Database::open(directory_);
    ASSERT_TRUE(database->run("ALTER TABLE group_member DROP COLUMN ahead"));
    ASSERT_TRUE(database->run("ALTER TABLE kernel DROP COLUMN owner"));
    ASSERT_TRUE(database->run("PRAGMA user_version = 1"));
  }
  const ProfileTable table = loaded();
  EXPECT_EQ(table.size(), 2u);
  ASSERT_EQ(table.groups().size(), 3u);
  for (const auto& [kernels, group] : table.groups()) {
    for (const auto& placement : group.placements) EXPECT_FALSE(placement.ahead);
  }
}

TEST_F(ProfileStoreTest, AFileOfVersion2IsTakenOver) {
  save(full_table());
  {
    auto database = Database::open(directory_);
    ASSERT_TRUE(database->run("ALTER TABLE kernel DROP COLUMN owner"));
    ASSERT_TRUE(database->run("PRAGMA user_version = 2"));
  }
  const ProfileTable table = loaded();
  ASSERT_EQ(table.size(), 2u);
  EXPECT_FALSE(table.kernel(0).owner);
  EXPECT_EQ(table.groups().size(), 3u);
}

TEST_F(ProfileStoreTest, TheFileOfANewerSlateStaysAsItIs) {
  save(full_table());
  ASSERT_TRUE(Database::open(directory_)->run("PRAGMA user_version = 99"));
  const auto refused = ProfileStore::open(directory_, "Fast One", 132);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(files_like(".damaged-"), 0);
  // Nothing of its content was changed: with the version put back all is there.
  {
    std::fstream raw(file(), std::ios::in | std::ios::out | std::ios::binary);
    raw.seekp(60);  // user_version in SQLite's header
    raw << std::string("\0\0\0\3", 4);
  }
  fs::remove(file().string() + "-wal");
  EXPECT_EQ(loaded().size(), 2u);
}

TEST_F(ProfileStoreTest, ADirectoryThatOthersMayWriteToIsNotUsed) {
  fs::create_directory(directory_);
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  EXPECT_EQ(ProfileStore::open(directory_, "d", 1).error().code, ErrorCode::kPermission);
}

TEST_F(ProfileStoreTest, AnUnusableDirectoryIsAnError) {
  std::ofstream(temporary_.path() / "file") << "x";
  EXPECT_FALSE(ProfileStore::open(temporary_.path() / "file" / "state", "d", 1));
  EXPECT_FALSE(ProfileStore::open("", "d", 1));
}

TEST_F(ProfileStoreTest, TwoProcessesSaveAtTheSameTime) {
  constexpr int kRounds = 30;
  const auto write_all = [&](const std::string& name) {
    auto store = ProfileStore::open(directory_, "Fast One", 132);
    if (!store) return false;
    ProfileChangeFinder finder;
    ProfileTable table;
    for (int i = 0; i < kRounds; ++i) {
      table.kernel(table.find_or_add(key(name + std::to_string(i)))).alone[0].add(1 + i);
      table.kernel(table.find_or_add(key("shared"))).alone[0].add(5);
      if (!store->save(finder.find(table))) return false;
    }
    return true;
  };
  const pid_t child = fork();
  if (child == 0) _exit(write_all("child") ? 0 : 1);
  EXPECT_TRUE(write_all("parent"));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(loaded().size(), 2u * kRounds + 1);
}

TEST_F(ProfileStoreTest, TheOldestRowsGoFirst) {
  ProfileStore store = open();
  for (int half = 0; half < 3; ++half) {
    ProfileChanges changes;
    for (int i = 0; i < 7500; ++i) {
      changes.kernels.emplace_back().key = key(std::to_string(half) + "-" + std::to_string(i));
      changes.kernels.back().task_size = 1;
    }
    ASSERT_TRUE(store.save(changes));
  }
  const ProfileTable table = loaded();
  EXPECT_EQ(table.size(), 20'000u);
  EXPECT_TRUE(table.find(key("2-7499")));
  EXPECT_FALSE(table.find(key("0-0")));
}

TEST_F(ProfileStoreTest, AUserWithVeryManyRowsLosesHisOwn) {
  ProfileStore store = open();
  const auto save = [&](std::optional<std::uint32_t> user, int first, int count) {
    ProfileChanges changes;
    for (int i = first; i < first + count; ++i) {
      changes.kernels.emplace_back().key =
          key(std::to_string(user.value_or(0)) + "-" + std::to_string(i));
      changes.kernels.back().task_size = 1;
      changes.kernels.back().owner = user;
    }
    ASSERT_TRUE(store.save(changes));
  };
  save({}, 0, 3000);  // of an older slate
  save(1000, 0, 4000);
  for (int part = 0; part < 3; ++part) save(1001, part * 7000, 7000);
  const ProfileTable table = loaded();
  EXPECT_EQ(table.size(), 20'000u);
  EXPECT_TRUE(table.find(key("0-0")));
  ASSERT_TRUE(table.find(key("1000-0")));
  EXPECT_EQ(table.kernel(*table.find(key("1000-0"))).owner, 1000u);
  EXPECT_FALSE(table.find(key("1001-0")));
  EXPECT_TRUE(table.find(key("1001-20999")));
}

TEST_F(ProfileStoreTest, SettingsOfProgramsAreKeptByProgramAndUser) {
  {
    ProgramStore programs(directory_);
    EXPECT_FALSE(programs.find("train", 1000));
    EXPECT_FALSE(fs::exists(directory_)) << "asking makes nothing";
    ASSERT_TRUE(programs.keep("train", 1000, {.weight = 2.5, .priority = {}}));
    ASSERT_TRUE(
        programs.keep("train", 1001, {.weight = {}, .priority = -3, .by_administrator = true}));
  }
  ProgramStore programs(directory_);
  const auto first = programs.find("train", 1000);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->weight, 2.5);
  EXPECT_FALSE(first->priority);
  EXPECT_FALSE(first->by_administrator);
  EXPECT_EQ(programs.find("train", 1001)->priority, -3);
  EXPECT_TRUE(programs.find("train", 1001)->by_administrator);
  EXPECT_FALSE(programs.find("serve", 1000));
  EXPECT_EQ(programs.forget("train", 1000), true);
  EXPECT_EQ(programs.forget("train", 1000), false);
  EXPECT_FALSE(programs.find("train", 1000));
  EXPECT_TRUE(programs.find("train", 1001));
}

TEST_F(ProfileStoreTest, AUserKeepsOnlySoManyPrograms) {
  ProgramStore programs(directory_);
  for (int i = 0; i < 256; ++i)
    ASSERT_TRUE(programs.keep("p" + std::to_string(i), 1000, {.weight = 2, .priority = {}}));
  EXPECT_EQ(programs.keep("more", 1000, {.weight = 2, .priority = {}}).error().code,
            ErrorCode::kLimit);
  EXPECT_TRUE(programs.keep("p7", 1000, {.weight = 3, .priority = {}}));
  EXPECT_TRUE(programs.keep("more", 1001, {.weight = 2, .priority = {}}));
}

TEST_F(ProfileStoreTest, WithoutAStateDirectoryNothingIsKept) {
  ProgramStore programs(state_directory("none"));
  EXPECT_FALSE(programs.find("train", 1000));
  EXPECT_EQ(programs.keep("train", 1000, {.weight = 2, .priority = {}}).error().code,
            ErrorCode::kNotSupported);
}

}  // namespace
}  // namespace slate::daemon
