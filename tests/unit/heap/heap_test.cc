// malloc and free of kernels: what they promise, whatever the order in which threads run.
#include <algorithm>
#include <set>

#include "tests/unit/heap/heap_fixture.h"

namespace slate::test {
namespace {

struct Found {
  std::uint64_t given, refused, damaged, misaligned;
};

TEST_P(HeapTest, PiecesDoNotOverlapAndAllComesBack) {
  const std::uint32_t scale = on_gpu() ? 40 : 1;
  for (const auto& [heap_bytes, most] :
       {std::pair{64u << 10, 6000u}, {1u << 20, 40000u}, {1u << 20, 300u}, {8u << 20, 100u}}) {
    SCOPED_TRACE(std::to_string(heap_bytes) + " bytes, pieces of up to " + std::to_string(most));
    make_heap(heap_bytes);
    for (std::uint32_t seed = 1; seed <= 3; ++seed) {
      const device::Address found_at = space_for<Found>(1);
      run("churn", 5 * scale, 96, 12u, most, seed * 7919, found_at);
      const Found found = read<Found>(found_at, 1)[0];
      EXPECT_GT(found.given, 0u);
      EXPECT_EQ(found.damaged, 0u);
      EXPECT_EQ(found.misaligned, 0u);
      if (!on_gpu() && heap_bytes == 8u << 20) {
        EXPECT_EQ(found.refused, 0u);
      }
      EXPECT_TRUE(is_empty());
    }
  }
}

TEST_P(HeapTest, AllOfTheHeapCanBeUsedAndComesBackInAnyOrder) {
  for (const std::uint64_t bytes : {1, 16, 24, 33, 100, 500, 1024, 2048, 2049, 5000, 20000}) {
    SCOPED_TRACE(std::to_string(bytes) + " bytes");
    make_heap(256 << 10);
    const std::uint64_t most = heap().bytes / std::min<std::uint64_t>(bytes, 16) + 1;
    const device::Address pieces = space_for<std::uint64_t>(most);
    const device::Address count_at = space_for<std::uint32_t>(1);
    run("exhaust", 4, 64, bytes, static_cast<std::uint32_t>(most), pieces, count_at);
    const auto count = read<std::uint32_t>(count_at, 1)[0];
    ASSERT_LE(count, most);
    std::vector<std::uint64_t> all = read<std::uint64_t>(pieces, count);
    std::ranges::sort(all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(all[i] % 16, 0u);
      ASSERT_TRUE(heap().contains(all[i], bytes));
      if (i > 0) {
        ASSERT_GE(all[i] - all[i - 1], bytes);
      }
    }
    // 16 bytes are the least that a piece takes.
    const std::uint64_t used = count * std::max<std::uint64_t>(bytes, 16);
    EXPECT_GE(used * 100, heap().bytes * 65);
    run("give_back", 3, 64, pieces, count, 7919u);
    EXPECT_TRUE(is_empty());
  }
}

/// NULL means that there is no room: not that somebody else was just looking for some.
TEST_P(HeapTest, ExactlyAsManyThreadsAsPiecesAreAllServed) {
  for (const std::uint64_t bytes : {16, 32, 64, 128, 512, 1024, 2048, 4096, 8192, 32768}) {
    SCOPED_TRACE(std::to_string(bytes) + " bytes");
    make_heap(128 << 10);
    const auto count = static_cast<std::uint32_t>(heap().bytes / bytes);
    for (const std::uint32_t threads : {64u, 1u}) {
      if (threads == 1 && count > 512) continue;
      const std::uint32_t each = std::min(count, threads);
      const device::Address pieces = space_for<std::uint64_t>(count);
      run("one_each", count / each, each, bytes, pieces);
      const auto all = read<std::uint64_t>(pieces, count);
      EXPECT_EQ(std::ranges::count(all, 0u), 0);
      EXPECT_EQ(std::set(all.begin(), all.end()).size(), count);
      EXPECT_EQ(allocate({1})[0], 0u) << "more than there is";
      run("give_back", 2, 32, pieces, count, 1u);
      EXPECT_TRUE(is_empty());
    }
  }
}

TEST_P(HeapTest, OnePieceMayBeTheWholeHeap) {
  make_heap(1 << 20);
  const auto given =
      allocate({(1 << 20) + 1, ~std::uint64_t{0}, std::uint64_t{1} << 40, 1 << 20, 1});
  EXPECT_EQ(given, (std::vector<std::uint64_t>{0, 0, 0, heap().base, 0}));
  release(given);
  EXPECT_TRUE(is_empty());
  const device::Address count_at = space_for<std::uint32_t>(1);
  run("contend", 3, 64, 4u, heap().bytes, count_at);
  EXPECT_GT(read<std::uint32_t>(count_at, 1)[0], 0u);
  EXPECT_TRUE(is_empty());
}

TEST_P(HeapTest, WhoFindsNoRoomIsToldSoWhileOthersTakeAndGiveBack) {
  make_heap(1 << 20);
  const auto live = allocate({1});
  const device::Address told = space_for<std::uint32_t>(1);
  run("beside", 2, 1, heap().bytes, told);
  EXPECT_EQ(read<std::uint32_t>(told, 1)[0], 1u);
  release(live);
  EXPECT_TRUE(is_empty());
}

TEST_P(HeapTest, NothingIsAPieceTooAndEachIsAnother) {
  make_heap(64 << 10);
  const auto given = allocate({0, 0, 1, 15, 16, 17});
  EXPECT_EQ(std::set(given.begin(), given.end()).size(), 6u);
  for (const std::uint64_t piece : given) EXPECT_TRUE(heap().contains(piece, 1));
  release(given);
  EXPECT_TRUE(is_empty());
}

TEST_P(HeapTest, RoomOfOneSizeServesTheOthers) {
  make_heap(64 << 10);
  // A heap full of 32 byte pieces but for one of them has room for 16 bytes, and for no more.
  const device::Address pieces = space_for<std::uint64_t>(2048);
  run("one_each", 32, 64, std::uint64_t{32}, pieces);
  auto all = read<std::uint64_t>(pieces, 2048);
  ASSERT_EQ(std::ranges::count(all, 0u), 0);
  release({all[700]});
  const auto given = allocate({33, 5000, 16, 16});
  EXPECT_EQ(given, (std::vector<std::uint64_t>{0, 0, all[700], 0}));
  run("give_back", 1, 64, pieces, 2048u, 5u);
  EXPECT_TRUE(is_empty());
}

TEST_P(HeapTest, WhatIsNotAPieceIsNotFreed) {
  make_heap(64 << 10);
  const auto live = allocate({100, 100, 9000, 1});
  release({0, 1, live[0] + 16, live[2] + 1024, live[2] + 16, heap().base - 256,
           heap().base + heap().bytes, ~std::uint64_t{0} - 15, heap().base + 20000});
  release({live[1], live[1]});
  release({live[3], live[3]});
  const auto more = allocate({100, 100, 9000, 1});
  EXPECT_EQ(std::set({live[0], live[2], more[0], more[1], more[2], more[3]}).size(), 6u);
  EXPECT_EQ(std::ranges::count(more, 0u), 0);
  release({live[0], live[2], more[0], more[1], more[2], more[3]});
  EXPECT_TRUE(is_empty());
}

TEST_P(HeapTest, NewAndDeleteAreMallocAndFree) {
  make_heap(256 << 10);
  const device::Address sums = space_for<int>(256);
  run("with_new", 4, 64, sums);
  const auto all = read<int>(sums, 256);
  for (int i = 0; i < 256; ++i) {
    const int last = i % 50;
    EXPECT_EQ(all[i], i + last * (last + 1) / 2);
  }
  EXPECT_TRUE(is_empty());
}

TEST_P(HeapTest, WithoutAHeapThereIsNothing) {
  make_heap(64 << 10);
  const auto before = allocate({64});
  forget_heap();
  EXPECT_EQ(allocate({1, 4000}), (std::vector<std::uint64_t>{0, 0}));
  release(before);
}

}  // namespace
}  // namespace slate::test
