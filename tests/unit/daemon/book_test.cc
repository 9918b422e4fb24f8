#include "daemon/book.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <random>

#include "ipc/commands.h"

namespace slate::daemon {
namespace {

using ipc::CommandType;

/// The book as another process opens it.
std::unique_ptr<Book> opened_again(const Book& book) {
  auto again = Book::from_fd(UniqueFd(::fcntl(book.fd(), F_DUPFD_CLOEXEC, 0)));
  EXPECT_TRUE(again) << again.error().message;
  return std::move(*again);
}

ipc::Command command(std::size_t bytes, std::byte filler = std::byte{7}) {
  return {.header = {.bytes = 0,
                     .type = CommandType::kLaunch,
                     .reply_slot = ipc::kNoReply,
                     .reply_sequence = 0,
                     .body_bytes = static_cast<std::uint32_t>(bytes)},
          .body = std::vector<std::byte>(bytes, filler)};
}

std::vector<std::uint64_t> positions(const std::vector<Book::Open>& all) {
  std::vector<std::uint64_t> found;
  for (const Book::Open& open : all) {
    if (!open.done) found.push_back(open.position);
  }
  return found;
}

class BookTest : public testing::Test {
 protected:
  std::unique_ptr<Book> book_ = std::move(*Book::make());
};

TEST_F(BookTest, EntriesAreThereForTheNextEngineInTheirOrder) {
  book_->put_value(BookKind::kSegment, 2, BookSegment{10, 0});
  book_->put_value(BookKind::kBlock, 1, BookBlock{5, 0});
  book_->put_value(BookKind::kSegment, 3, BookSegment{30, 1});
  book_->put_value(BookKind::kSegment, 2, BookSegment{20, 1});
  book_->drop(BookKind::kBlock, 1);
  const auto entries = opened_again(*book_)->entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].first, Book::Key(BookKind::kSegment, 2)) << "it came first";
  EXPECT_EQ(entries[0].second.as<BookSegment>()->bytes, 20u) << "and was replaced";
  EXPECT_EQ(entries[1].first, Book::Key(BookKind::kSegment, 3));
  EXPECT_FALSE(Book::Entry{}.as<BookBlock>().has_value());
}

TEST_F(BookTest, AFullLogIsWrittenAnewWithWhatIsInForce) {
  const std::vector<std::byte> payload(1 << 16, std::byte{3});
  book_->put(BookKind::kImage, 1, payload);
  for (std::uint64_t i = 0; i < 1000; ++i) book_->put(BookKind::kImage, 2 + i % 3, payload);
  EXPECT_FALSE(book_->why_not()) << *book_->why_not();
  const auto entries = opened_again(*book_)->entries();
  ASSERT_EQ(entries.size(), 4u);
  for (const auto& [key, entry] : entries) EXPECT_EQ(entry.payload, payload) << key.second;
}

TEST_F(BookTest, MoreThanTheLogHoldsBindsTheSession) {
  const std::vector<std::byte> payload(1 << 16);
  for (std::uint64_t i = 0; i < 100; ++i) book_->put(BookKind::kImage, i, payload);
  EXPECT_TRUE(opened_again(*book_)->why_not());
}

TEST_F(BookTest, TheFirstReasonThatBindsTheSessionCounts) {
  EXPECT_FALSE(book_->why_not());
  book_->forbid("it has arrays");
  book_->forbid("it has textures");
  EXPECT_EQ(opened_again(*book_)->why_not(), "it has arrays");
}

TEST_F(BookTest, ATimeOfAnEventCountsWithItsLastRecordingOnly) {
  EventTimes& times = book_->times();
  const std::uint32_t row = times.take();
  EXPECT_FALSE(times.time(row));
  times.recorded(row, {10, 2});
  EXPECT_FALSE(times.time(row));
  times.reached(row, 10);
  const auto first = times.time(row);
  ASSERT_TRUE(first);
  times.reached(row, 10);
  EXPECT_EQ(times.time(row), first) << "it was known";
  times.recorded(row, {20, 3});
  times.reached(row, 10);
  EXPECT_FALSE(times.time(row)) << "of the recording before";
  times.reached(row, 20);
  times.set(row, 77);
  const auto next = opened_again(*book_);
  const auto last = next->times().take_again(row);
  EXPECT_EQ(last.position, 20u);
  EXPECT_EQ(last.stream, 3u);
  EXPECT_EQ(next->times().time(row), 77);
  book_->freeze();
  times.set(row, 78);
  EXPECT_EQ(next->times().time(row), 77);
}

TEST_F(BookTest, AnEventWhoseTimeWasLostGetsThePresentOne) {
  const std::uint32_t row = book_->times().take();
  book_->times().recorded(row, {10, 2});
  const auto next = opened_again(*book_);
  EXPECT_EQ(next->times().take_again(row).position, 10u);
  EXPECT_TRUE(next->times().time(row));
}

TEST_F(BookTest, RowsOfEventsAreThoseThatNoEventHas) {
  for (std::uint32_t row = 0; row < EventTimes::kRows; ++row) ASSERT_EQ(book_->times().take(), row);
  EXPECT_EQ(book_->times().take(), EventTimes::kNoRow);
  book_->times().give(5);
  EXPECT_EQ(book_->times().take(), 5u);
  const auto next = opened_again(*book_);
  for (const std::uint32_t row : {1u, 4u, 2u}) (void)next->times().take_again(row);
  EXPECT_EQ(next->times().take(), 0u);
  EXPECT_EQ(next->times().take(), 3u);
  next->times().give(2);
  EXPECT_EQ(next->times().take(), 2u);
  EXPECT_EQ(next->times().take(), 5u);
}

TEST_F(BookTest, CommandsAreOpenUntilTheirStreamHasPassedThem) {
  const std::uint32_t a = book_->take_stream(), b = book_->take_stream();
  ASSERT_NE(a, b);
  book_->write(100, a, command(8), true);
  book_->write(200, b, command(8), true);
  book_->write(300, a, command(8), true);
  book_->done(a, 100);
  EXPECT_EQ(positions(book_->open()), (std::vector<std::uint64_t>{200, 300}));
  book_->done(b, 200);
  book_->done(b, 150);  // it never goes back
  EXPECT_EQ(positions(opened_again(*book_)->open()), (std::vector<std::uint64_t>{300}));
}

TEST_F(BookTest, WhatCameBehindAnOpenCommandIsKeptAlsoWhenItIsDone) {
  const std::uint32_t a = book_->take_stream(), b = book_->take_stream();
  book_->write(100, a, command(8), true);
  book_->write(200, b, command(8), true);
  book_->done(b, 200);
  book_->write(300, b, command(8), true);
  const auto all = book_->open();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(all[1].done) << "it may have written what the first one reads";
}

TEST_F(BookTest, WaitingCommandsAreOpenUntilTheyAreClosed) {
  const std::uint32_t row = book_->take_stream();
  book_->write(100, Book::kNoStream, command(8), true);
  book_->write(200, row, command(8), false);
  book_->done(row, 150);
  auto next = opened_again(*book_);
  EXPECT_EQ(positions(next->open()), (std::vector<std::uint64_t>{100, 200}));
  EXPECT_FALSE(next->open()[1].begun);
  next->begun(200);
  EXPECT_TRUE(next->open()[1].begun);
  next->close(100);
  next->done(row, 200);
  EXPECT_TRUE(next->open().empty());
}

TEST_F(BookTest, ARefusedCommandIsNotOpen) {
  book_->write(100, 0, command(8), true);
  book_->refused(100);
  EXPECT_TRUE(book_->open().empty());
}

TEST_F(BookTest, TheNextEngineGoesOnBehindTheLastCommandThatCounts) {
  book_->taken(100);
  EXPECT_EQ(opened_again(*book_)->resume_at(), 100u);
  book_->write(200, 0, command(8), true);
  EXPECT_EQ(opened_again(*book_)->resume_at(), 200u) << "the device may have begun it";
}

TEST_F(BookTest, AStreamThatTakesTheRowOfAnotherOneHasNoneOfItsCommands) {
  const std::uint32_t row = book_->take_stream();
  book_->write(100, row, command(8), true);
  book_->taken(100);
  book_->done(row, 100);
  book_->give_stream(row);
  ASSERT_EQ(book_->take_stream(), row);
  EXPECT_TRUE(book_->open().empty());
  book_->write(200, row, command(8), true);
  EXPECT_EQ(positions(book_->open()), (std::vector<std::uint64_t>{200}));
}

TEST_F(BookTest, AFrozenBookStaysAsItIs) {
  book_->write(100, 0, command(8), true);
  book_->freeze();
  book_->done(0, 100);
  book_->taken(100);
  book_->put_value(BookKind::kBlock, 1, BookBlock{});
  const auto next = opened_again(*book_);
  EXPECT_EQ(positions(next->open()), (std::vector<std::uint64_t>{100}));
  EXPECT_EQ(next->taken(), 0u);
  EXPECT_TRUE(next->entries().empty());
}

/// Any history, read by another process at any time, gives the commands that are not done.
TEST_F(BookTest, TheJournalIsRightAfterAnyHistory) {
  std::minstd_rand random(1);
  std::map<std::uint64_t, std::pair<std::uint32_t, std::size_t>> open;  // stream and bytes
  constexpr std::uint32_t kRows = 5;
  std::uint64_t position = 0;
  for (int step = 0; step < 60'000; ++step) {
    position += 16;
    const auto row = static_cast<std::uint32_t>(random() % kRows);
    const std::size_t bytes = random() % 100 == 0 ? random() % 60'000 : random() % 300;
    book_->write(position, row, command(bytes, static_cast<std::byte>(position)), true);
    open[position] = {row, bytes};
    // One stream is behind the others by far.
    if (row != 0 || random() % 500 == 0) {
      const std::uint64_t upto = position - std::min<std::uint64_t>(position, random() % 2000);
      book_->done(row, upto);
      std::erase_if(
          open, [&](const auto& each) { return each.second.first == row && each.first <= upto; });
    }
    if (step % 1000 != 0) continue;
    const auto all = opened_again(*book_)->open();
    std::size_t seen = 0;
    for (const Book::Open& each : all) {
      if (each.done) continue;
      ++seen;
      ASSERT_TRUE(open.contains(each.position)) << step;
      EXPECT_EQ(each.stream, open[each.position].first);
      EXPECT_EQ(each.command.body,
                command(open[each.position].second, static_cast<std::byte>(each.position)).body);
    }
    ASSERT_EQ(seen, open.size()) << step;
  }
  EXPECT_FALSE(book_->why_not()) << *book_->why_not();
}

TEST_F(BookTest, MoreWorkThanTheJournalHoldsBindsTheSession) {
  for (std::uint64_t i = 1; i < 10'000; ++i) book_->write(i * 16, 0, command(1000), true);
  EXPECT_TRUE(book_->why_not());
}

}  // namespace
}  // namespace slate::daemon
