// ProfileKeeper: what engines that share a file make of one another's rows.
#include "daemon/engine/profile_keeper.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/daemon/executor_fixture.h"
#include "tests/unit/daemon/fake_device.h"
#include "tests/unit/daemon/temporary_directory.h"

namespace slate::daemon {
namespace {

class ProfileKeeperTest : public ExecutorTest {
 protected:
  ProfileKeeperTest() {
    const scheduler::Settings settings;
    start(std::make_unique<FakeDevice>(), policy_maker("fifo", settings), settings);
    save(1);
    keeper_ = std::make_unique<ProfileKeeper>(*executor_, directory_, "Fast One");
  }
  ProfileStore open() {
    return std::move(*ProfileStore::open(directory_, "Fast One", executor_->machine().sm_count));
  }
  /// As another engine that measured this.
  void save(double ms) {
    scheduler::ProfileTable table;
    table.kernel(table.find_or_add(kKey)).alone[0] = {.ms = ms, .samples = 1};
    ASSERT_TRUE(open().save(ProfileChangeFinder().find(table)));
  }
  double time_of(const scheduler::ProfileTable& table) const {
    return table.kernel(*table.find(kKey)).alone[0].ms;
  }
  double saved() {
    scheduler::ProfileTable table;
    EXPECT_TRUE(open().load(table));
    return time_of(table);
  }
  double known() {
    double ms = 0;
    executor_->with_profiles([&](scheduler::ProfileTable& table) { ms = time_of(table); });
    return ms;
  }

  const scheduler::KernelKey kKey{.code = 7, .name = "k"};
  TemporaryDirectory temporary_;
  const std::filesystem::path directory_ = temporary_.path() / "state";
  std::unique_ptr<ProfileKeeper> keeper_;
};

TEST_F(ProfileKeeperTest, WhatWasOnlyReadIsNotWritten) {
  EXPECT_EQ(known(), 1);
  save(2);
  keeper_.reset();  // which saves
  EXPECT_EQ(saved(), 2);
}

TEST_F(ProfileKeeperTest, WhatWasMeasuredIsWritten) {
  executor_->with_profiles([this](scheduler::ProfileTable& table) {
    table.kernel(*table.find(kKey)).alone[0] = {.ms = 3, .samples = 5};
  });
  keeper_.reset();
  EXPECT_EQ(saved(), 3);
}

TEST_F(ProfileKeeperTest, ASpareKnowsAtItsFirstSessionWhatTheOtherHasSaved) {
  save(2);
  keeper_->session_comes();
  EXPECT_EQ(known(), 2);
  save(3);
  keeper_->session_comes();
  EXPECT_EQ(known(), 2) << "by now it has its own";
  keeper_.reset();
  EXPECT_EQ(saved(), 3);
}

}  // namespace
}  // namespace slate::daemon
