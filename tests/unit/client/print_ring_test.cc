// What the program reads out of the ring that kernels print into; records are written as
// injector/link/printing.h describes them.
#include "client/session/print_ring.h"

#include <gtest/gtest.h>

#include <cstring>

namespace slate::client {
namespace {

constexpr std::uint64_t kBytes = 4096;  // the least that a ring has

class PrintRingTest : public testing::Test {
 protected:
  using Words = std::vector<std::uint64_t>;

  ptx::PrintRingHeader& header() {
    return *reinterpret_cast<ptx::PrintRingHeader*>(memory_.data());
  }
  std::uint64_t& word(std::uint64_t position) {
    return memory_[(sizeof(ptx::PrintRingHeader) + position % kBytes) / 8];
  }
  static void add(Words& words, const std::string& text) {
    Words more(text.size() / 8 + 1);
    std::memcpy(more.data(), text.c_str(), text.size() + 1);
    words.insert(words.end(), more.begin(), more.end());
  }
  /// As a kernel does it: takes a place, fills it, and, if it gets to that, says that it is whole.
  std::uint64_t put(const Words& payload, std::uint64_t flags = 0, bool whole = true) {
    const std::uint64_t position = header().tail;
    const std::uint64_t bytes = (payload.size() + 2) * 8;
    header().tail += bytes;
    word(position + 8) = bytes | flags;
    for (std::size_t i = 0; i < payload.size(); ++i) word(position + 16 + i * 8) = payload[i];
    if (whole) word(position) = ptx::tag_of(position);
    return position;
  }
  std::uint64_t print(const std::string& format, const Words& numbers = {}, bool whole = true) {
    Words payload;
    add(payload, format);
    payload.insert(payload.end(), numbers.begin(), numbers.end());
    return put(payload, 0, whole);
  }
  std::string taken() {
    std::string text;
    for (const Printed& each : ring_.take()) text += each.text;
    return text;
  }

  std::vector<std::uint64_t> memory_ =
      std::vector<std::uint64_t>(PrintRing::memory_for(kBytes) / 8);
  PrintRing ring_{reinterpret_cast<std::byte*>(memory_.data()), kBytes};
};

TEST_F(PrintRingTest, RecordsAreTakenOnceAndInOrder) {
  EXPECT_FALSE(ring_.used());
  EXPECT_EQ(taken(), "");
  print("one\n");
  print("%d and %llx|", {static_cast<std::uint64_t>(-2), 0x123456789a});
  EXPECT_TRUE(ring_.used());
  EXPECT_EQ(taken(), "one\n-2 and 123456789a|");
  EXPECT_EQ(taken(), "");
  print("three");
  EXPECT_EQ(taken(), "three");
}

TEST_F(PrintRingTest, StringsStandInTheRecord) {
  Words payload;
  add(payload, "<%s|%s|%c>");
  add(payload, "eight678");
  add(payload, "");
  payload.push_back('x');
  put(payload);
  EXPECT_EQ(taken(), "<eight678||x>");
}

TEST_F(PrintRingTest, ConversionsWithoutAnArgumentStayAsTheyAre) {
  print("%d %5.1f %s", {7});
  EXPECT_EQ(taken(), "7 %5.1f %s");
}

TEST_F(PrintRingTest, AFailedAssertionIsForStderr) {
  Words payload{12, 1, 2, 3, 4, 5, 6};
  for (const char* each : {"a > b", "file.cu", "void f()"}) add(payload, each);
  put(payload, ptx::kAssertRecord);
  EXPECT_FALSE(ring_.asserted());
  header().asserted = 1;
  EXPECT_TRUE(ring_.asserted());
  const auto printed = ring_.take();
  ASSERT_EQ(printed.size(), 1u);
  EXPECT_TRUE(printed[0].is_error);
  EXPECT_EQ(printed[0].text,
            "file.cu:12: void f(): block: [1,2,3], thread: [4,5,6] Assertion `a > b` failed.\n");
}

TEST_F(PrintRingTest, WhatIsNotWholeYetIsTakenLater) {
  print("a");
  const std::uint64_t slow = print("b", {}, false);
  print("c");
  EXPECT_EQ(taken(), "ac");
  EXPECT_EQ(taken(), "");
  word(slow) = ptx::tag_of(slow);
  print("d");
  EXPECT_EQ(taken(), "bd");
  EXPECT_EQ(taken(), "");
}

TEST_F(PrintRingTest, TheOldestAreOverwritten) {
  std::string all;
  for (int i = 1000; i < 1400; ++i) {  // 400 records of 24 bytes
    print("%d ", {static_cast<std::uint64_t>(i)});
    all += std::to_string(i) + " ";
  }
  const std::string kept = taken();
  EXPECT_GE(kept.size() / 5, kBytes / 32 - 1);
  EXPECT_LT(kept.size(), all.size());
  EXPECT_TRUE(all.ends_with(kept));
}

TEST_F(PrintRingTest, RecordsRunOverTheEndOfTheRing) {
  std::string expected, found;
  for (int i = 0; i < 1000; ++i) {
    print("record %d of a thousand\n", {static_cast<std::uint64_t>(i)});
    expected += "record " + std::to_string(i) + " of a thousand\n";
    if (i % 3 == 0) found += taken();
  }
  EXPECT_EQ(found, expected);
}

TEST_F(PrintRingTest, NonsenseOfAKernelIsSkipped) {
  for (const std::uint64_t size : {0ull, 8ull, 17ull, 1ull << 40, ~0ull}) {
    const std::uint64_t position = header().tail;
    header().tail += 32;
    word(position + 8) = size;
    word(position) = ptx::tag_of(position);
  }
  print("sane");
  EXPECT_EQ(taken(), "sane");
  header().tail = ~0ull;
  EXPECT_EQ(taken(), "");
  header().tail = 8;
  EXPECT_EQ(taken(), "");
  Words open(kBytes / 8 - 2, 0x2525252525252525);  // "%%%%%%%%" without end
  header().tail = ~0ull - kBytes * 4;
  put(open);
  (void)taken();
}

}  // namespace
}  // namespace slate::client
