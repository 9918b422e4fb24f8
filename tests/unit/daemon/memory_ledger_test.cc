#include "daemon/engine/memory_ledger.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace slate::daemon {
namespace {

constexpr std::uint64_t kTotal = 1000, kReserve = 60, kAll = ~0ull;

TEST(MemoryLedgerTest, ALoneUserHasAllButTheReserve) {
  MemoryLedger ledger(kTotal, kReserve);
  MemoryLedger::Account account(ledger, 1, kAll);
  EXPECT_EQ(account.left(), kTotal - kReserve);
  EXPECT_TRUE(account.take(900));
  EXPECT_EQ(account.take(41).error().code, ErrorCode::kOutOfMemory);
  EXPECT_TRUE(account.take(40));
  account.give(940);
}

TEST(MemoryLedgerTest, WhoComesLaterFindsTheReserve) {
  MemoryLedger ledger(kTotal, kReserve);
  MemoryLedger::Account greedy(ledger, 1, kAll);
  ASSERT_TRUE(greedy.take(940));
  MemoryLedger::Account later(ledger, 2, kAll);
  EXPECT_EQ(later.left(), 30) << "half of the reserve";
  EXPECT_TRUE(later.take(20));
  EXPECT_EQ(later.left(), 10);
  EXPECT_FALSE(greedy.take(1));
  greedy.give(600);
  EXPECT_TRUE(later.take(580)) << "what is free but for the reserve";
  EXPECT_FALSE(later.take(1));
  EXPECT_FALSE(greedy.take(1)) << "the reserve is not for those who have more than it";
  EXPECT_EQ(ledger.used(), (std::map<uid_t, std::uint64_t>{{1, 340}, {2, 600}}));
  greedy.give(340);
  later.give(600);
}

TEST(MemoryLedgerTest, NoNumberOfGreedyUsersEmptiesTheReserve) {
  MemoryLedger ledger(1 << 20, 1 << 16);
  std::vector<std::unique_ptr<MemoryLedger::Account>> accounts;
  std::vector<std::uint64_t> had;
  for (uid_t user = 1; user <= 8; ++user) {
    accounts.push_back(std::make_unique<MemoryLedger::Account>(ledger, user, kAll));
    had.push_back(accounts.back()->left());
    ASSERT_TRUE(accounts.back()->take(had.back()));
    EXPECT_EQ(accounts.back()->left(), 0);
  }
  EXPECT_EQ(had.front(), (1 << 20) - (1 << 16));
  for (std::size_t i = 1; i < had.size(); ++i) EXPECT_EQ(had[i], (1 << 16) >> i);
  for (std::size_t i = 0; i < had.size(); ++i) accounts[i]->give(had[i]);
}

TEST(MemoryLedgerTest, RootMayHaveWhatIsLeft) {
  MemoryLedger ledger(kTotal, kReserve);
  MemoryLedger::Account greedy(ledger, 1, kAll), root(ledger, 0, kAll);
  ASSERT_TRUE(greedy.take(940));
  EXPECT_EQ(root.left(), 60);
  EXPECT_TRUE(root.take(60));
  greedy.give(940);
  root.give(60);
}

TEST(MemoryLedgerTest, AUsersSessionsShareHisPart) {
  MemoryLedger ledger(kTotal, kReserve);
  MemoryLedger::Account first(ledger, 1, 300), second(ledger, 1, 300), other(ledger, 2, kAll);
  EXPECT_TRUE(first.take(200));
  EXPECT_FALSE(second.take(101));
  EXPECT_TRUE(second.take(100));
  EXPECT_TRUE(other.take(640));
  first.give(200);
  second.give(100);
  other.give(640);
}

TEST(MemoryLedgerTest, WhatAUserLeavesIsEverybodys) {
  MemoryLedger ledger(kTotal, 0);
  MemoryLedger::Account stays(ledger, 1, kAll);
  {
    MemoryLedger::Account goes(ledger, 2, kAll);
    ASSERT_TRUE(goes.take(700));
    EXPECT_FALSE(stays.take(301));
    goes.give(700);
  }
  EXPECT_TRUE(stays.take(kTotal));
  stays.give(kTotal);
}

}  // namespace
}  // namespace slate::daemon
