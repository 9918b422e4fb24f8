// TimePage: slots that are given, read and taken back.
#include "daemon/time_page.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "ipc/shared_memory.h"

namespace slate::daemon {
namespace {

using scheduler::ShownTime;

TEST(TimePageTest, WhatOneEngineShowsAnotherReads) {
  const auto page = TimePage::make();
  ASSERT_TRUE(page);
  EXPECT_TRUE((*page)->give(7));
  EXPECT_TRUE((*page)->give(9));
  const auto of_engine = TimePage::from_fd(UniqueFd(::dup((*page)->fd())));
  ASSERT_TRUE(of_engine);
  const auto at = scheduler::Time(std::chrono::nanoseconds(12345678901));
  (*of_engine)->show(7, {.uses = true, .holds = true, .received_ms = 3, .part = 0.5, .at = at});
  std::vector<ShownTime> others;
  (*page)->read_others(9, others);
  ASSERT_EQ(others.size(), 1u);
  EXPECT_TRUE(others[0].uses);
  EXPECT_TRUE(others[0].holds);
  EXPECT_EQ(others[0].received_ms, 3);
  EXPECT_EQ(others[0].part, 0.5);
  EXPECT_EQ(others[0].at, at);
  (*page)->read_others(7, others);
  ASSERT_EQ(others.size(), 1u);
  EXPECT_FALSE(others[0].is_busy()) << "it has shown nothing yet";
}

TEST(TimePageTest, ASlotThatWasTakenBackIsWrittenNoMore) {
  const auto page = TimePage::make();
  ASSERT_TRUE(page);
  EXPECT_TRUE((*page)->give(7));
  (*page)->take_back(7);
  EXPECT_FALSE((*page)->shown_by(7));
  EXPECT_TRUE((*page)->give(8));
  (*page)->show(7, {.uses = true, .holds = false, .received_ms = 3, .part = 0, .at = {}});
  EXPECT_FALSE((*page)->shown_by(8)->uses);
  std::vector<ShownTime> others;
  (*page)->read_others(7, others);
  EXPECT_TRUE(others.empty());
  EXPECT_EQ((*page)->owners(), std::vector<std::uint64_t>{8});
}

TEST(TimePageTest, ASlotBeginsEmptyAndIsGivenOnce) {
  const auto page = TimePage::make();
  ASSERT_TRUE(page);
  EXPECT_TRUE((*page)->give(7));
  (*page)->show(7, {.uses = true, .holds = false, .received_ms = 3, .part = 0, .at = {}});
  EXPECT_TRUE((*page)->give(7));
  EXPECT_EQ((*page)->shown_by(7)->received_ms, 3);
  (*page)->take_back(7);
  EXPECT_TRUE((*page)->give(8));
  EXPECT_EQ((*page)->shown_by(8)->received_ms, 0);
}

TEST(TimePageTest, ThereAreSoManySlots) {
  const auto page = TimePage::make();
  ASSERT_TRUE(page);
  for (std::uint64_t engine = 1; engine <= TimePage::kSlots; ++engine)
    EXPECT_TRUE((*page)->give(engine));
  EXPECT_FALSE((*page)->give(1000));
  (*page)->show(1000, {.uses = true, .holds = false, .received_ms = 3, .part = 0, .at = {}});
  (*page)->take_back(5);
  EXPECT_TRUE((*page)->give(1000));
}

TEST(TimePageTest, MemoryOfAnotherSizeIsNoPage) {
  auto fd = ipc::make_shared_memory("test", 8192);
  ASSERT_TRUE(fd);
  const auto page = TimePage::from_fd(std::move(*fd));
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, ErrorCode::kProtocol);
}

}  // namespace
}  // namespace slate::daemon
