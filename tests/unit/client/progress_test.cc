#include "client/session/progress.h"

#include <gtest/gtest.h>

#include <atomic>

#include "client/session/copy_crew.h"
#include "client/session/host_blocks.h"
#include "tests/unit/ipc/channel_pair.h"

namespace slate::client {
namespace {

class ProgressTest : public ::testing::Test {
 protected:
  ipc::ChannelPair pair = ipc::make_channel_pair();
  /// As a command at this place does.
  void note(std::uint32_t entry, std::uint64_t position) { table.note_of(entry).take(position); }

  ProgressTable table{*pair.client};
};

TEST_F(ProgressTest, AStreamIsFinishedWhenItsLastCommandIs) {
  const std::uint32_t entry = table.take(false);
  EXPECT_EQ(table.finished(entry), true) << "nothing was sent";
  note(entry, 160);
  pair.engine->publish_completed(entry, 144);
  EXPECT_EQ(table.finished(entry), false);
  pair.engine->publish_completed(entry, 160);
  EXPECT_EQ(table.finished(entry), true);
}

TEST_F(ProgressTest, TheDefaultStreamIsFinishedWithTheBlockingOnes) {
  const std::uint32_t blocking = table.take(true), apart = table.take(false);
  note(apart, 32);
  EXPECT_EQ(table.finished_all(true), true);
  EXPECT_EQ(table.finished_all(false), false);
  note(blocking, 48);
  EXPECT_EQ(table.finished_all(true), false);
  pair.engine->publish_completed(blocking, 48);
  EXPECT_EQ(table.finished_all(true), true);
}

TEST_F(ProgressTest, TheDefaultStreamsNewestWorkCanBeLeftOut) {
  constexpr std::uint32_t kDefault = 0;
  const std::uint32_t other = table.take(false);
  note(kDefault, 32);
  EXPECT_EQ(table.finished_all_but(32, 32), true);
  EXPECT_EQ(table.finished_all_but(16, 32), false);
  note(kDefault, 64);
  EXPECT_EQ(table.finished_all_but(32, 64), false) << "something came behind it";
  EXPECT_EQ(table.finished_all_but(64, 64), true);
  note(other, 64);
  EXPECT_EQ(table.finished_all_but(64, 64), false) << "another stream's";
  pair.engine->publish_completed(other, 64);
  EXPECT_EQ(table.finished_all_but(64, 64), true);
}

TEST_F(ProgressTest, WhatWasSentBeforeAWaitThatHasEndedIsAskedAboutOncePerWait) {
  const std::uint32_t entry = table.take(true), other = table.take(true);
  note(entry, 320);
  const std::uint64_t mark = ProgressTable::mark_of(entry, 320);
  EXPECT_FALSE(table.may_lag(mark)) << "nobody has waited";
  note(other, 640);
  // The wait for the other stream may have been one for this one, too.
  table.wait_ended(table.newest());
  EXPECT_TRUE(table.may_lag(mark));
  EXPECT_FALSE(table.may_lag(mark)) << "polling stays cheap";
  note(entry, 960);
  EXPECT_FALSE(table.may_lag(ProgressTable::mark_of(entry, 960))) << "sent since";
  table.wait_ended(table.newest());
  EXPECT_TRUE(table.may_lag(mark));
  EXPECT_TRUE(table.may_lag(ProgressTable::mark_of(entry, 960)));
}

TEST_F(ProgressTest, AnEventIsReachedAtItsRecordWhateverComesBehind) {
  const std::uint32_t entry = table.take(true);
  const std::uint64_t mark = ProgressTable::mark_of(entry, 320);
  note(entry, 640);
  pair.engine->publish_completed(entry, 304);
  EXPECT_EQ(table.reached(mark), false);
  pair.engine->publish_completed(entry, 320);
  EXPECT_EQ(table.reached(mark), true);
  EXPECT_EQ(table.finished(entry), false);
  EXPECT_LT(mark, ProgressTable::mark_of(table.take(true), 336)) << "marks order as positions";
}

TEST_F(ProgressTest, WhatAWaitHasShownIsKnownBeforeThePageTellsIt) {
  const std::uint32_t entry = table.take(true), other = table.take(false);
  note(entry, 160);
  note(other, 176);
  ProgressTable::Snapshot sent;
  table.sent(true, sent);
  note(entry, 320);
  table.confirm(sent);
  EXPECT_EQ(table.reached(ProgressTable::mark_of(entry, 160)), true);
  EXPECT_EQ(table.finished(entry), false) << "more was sent meanwhile";
  EXPECT_EQ(table.finished(other), false) << "it was not waited for";
  table.confirm_mark(ProgressTable::mark_of(entry, 320));
  EXPECT_EQ(table.finished(entry), true);
}

TEST_F(ProgressTest, AnEntryIsNotUsedAgainBeforeItsWorkIsDone) {
  const std::uint32_t first = table.take(false);
  note(first, 160);
  table.give_back(first);
  EXPECT_NE(table.take(false), first);
  pair.engine->publish_completed(first, 160);
  EXPECT_EQ(table.take(false), first);
}

TEST_F(ProgressTest, StreamsBeyondTheTableHaveToBeAskedFor) {
  for (std::uint32_t i = 1; i < ipc::kProgressSlots; ++i)
    ASSERT_NE(table.take(false), ipc::kNoProgress);
  const std::uint32_t none = table.take(false);
  ASSERT_EQ(none, ipc::kNoProgress);
  note(none, 16);
  table.give_back(none);
  EXPECT_EQ(table.finished(none), std::nullopt);
  EXPECT_EQ(table.finished_all(false), std::nullopt);
  EXPECT_EQ(table.reached(ProgressTable::mark_of(none, 16)), std::nullopt);
}

TEST(CopyCrewTest, SmallCopiesAndSmallMachinesHaveNoHelpers) {
  EXPECT_EQ(CopyCrew::size_for(1ull << 30, 1), 1);
  EXPECT_EQ(CopyCrew::size_for(1ull << 30, 2), 1);
  EXPECT_EQ(CopyCrew::size_for(1 << 20, 64), 1);
  EXPECT_EQ(CopyCrew::size_for(1ull << 30, 8), 4);
  EXPECT_EQ(CopyCrew::size_for(1ull << 30, 64), CopyCrew::kMost);
}

TEST(CopyCrewTest, EveryMemberRunsTheBodyOnce) {
  for (const int count : {1, 3, CopyCrew::kMost, CopyCrew::kMost + 5}) {
    std::atomic<int> runs{0};
    CopyCrew::run(count, [&] { ++runs; });
    EXPECT_EQ(runs, std::min(count, CopyCrew::kMost));
  }
}

TEST(HostBlocksTest, TheBlockThatARangeTouchesIsFound) {
  HostBlocks blocks;
  blocks.insert({1, 0x10000, 0x1000, 0, false});
  blocks.insert({2, 0x20000, 0x1000, 0, false});
  EXPECT_EQ(blocks.find(0x10fff)->id, 1u);
  EXPECT_FALSE(blocks.find(0x11000));
  EXPECT_FALSE(blocks.find(0xffff));
  EXPECT_EQ(blocks.touching(0xff00, 0x101)->id, 1u);
  EXPECT_EQ(blocks.touching(0x11000, 0x10000)->id, 2u);
  EXPECT_FALSE(blocks.touching(0x11000, 0xf000));
  EXPECT_FALSE(blocks.take(0x10001));
  EXPECT_EQ(blocks.take(0x10000)->id, 1u);
  EXPECT_FALSE(blocks.find(0x10000));
}

}  // namespace
}  // namespace slate::client
