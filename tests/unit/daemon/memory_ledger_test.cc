#include "daemon/engine/memory_ledger.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(later.left(), kTotal / 2) << "his even part, as far as the device has it";
  EXPECT_TRUE(later.take(60));
  EXPECT_FALSE(greedy.take(1)) << "he is beyond his part";
  greedy.give(600);
  EXPECT_TRUE(later.take(440));
  EXPECT_TRUE(greedy.take(100));
  EXPECT_FALSE(greedy.take(100)) << "the reserve is left";
  EXPECT_EQ(ledger.used(), (std::map<uid_t, std::uint64_t>{{1, 440}, {2, 500}}));
  greedy.give(440);
  later.give(500);
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
    EXPECT_FALSE(stays.take(501));
    goes.give(700);
  }
  EXPECT_TRUE(stays.take(kTotal));
  stays.give(kTotal);
}

}  // namespace
}  // namespace slate::daemon
