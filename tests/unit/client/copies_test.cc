#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "client/session/address_copy.h"
#include "tests/unit/client/fake_engine.h"

namespace slate::client {
namespace {

using ipc::CommandType;

/// A fake engine whose device memory is one vector, at an address of its own.
class CopiesTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBase = 0x700000000000;

  CopiesTest() : memory(24 << 20) {
    engine.handle(CommandType::kCopy,
                  [this](const ipc::Command& command) { move(*command.as<ipc::Copy>()); });
    engine.handle(CommandType::kCopyInline, [this](const ipc::Command& command) {
      std::span<const std::byte> bytes;
      const auto copy = *command.as<ipc::CopyInline>(&bytes);
      std::memcpy(memory.data() + (copy.address - kBase), bytes.data(), bytes.size());
    });
    engine.handle(CommandType::kFill, [this](const ipc::Command& command) {
      const auto fill = *command.as<ipc::Fill>();
      for (std::uint64_t row = 0; row < fill.height; ++row) {
        for (std::uint64_t at = 0; at < fill.width; at += fill.element) {
          std::memcpy(memory.data() + (fill.to - kBase) + row * fill.pitch + at, &fill.value,
                      fill.element);
        }
      }
    });
  }

  /// Between a slot and the device's memory.
  void move(const ipc::Copy& copy) {
    const bool to_device = copy.from.is(PlaceKind::kSlot);
    const Place& slot = to_device ? copy.from : copy.to;
    const Place& there = to_device ? copy.to : copy.from;
    EXPECT_LE(copy.box.bytes(), ipc::kStagingSlotBytes);
    std::byte* packed = engine.channel->staging(slot.part).data() + slot.address;
    for (std::uint64_t row = 0; row < copy.box.height; ++row, packed += copy.box.width) {
      std::byte* device = memory.data() + (there.address - kBase) + row * there.pitch;
      std::memcpy(to_device ? device : packed, to_device ? packed : device, copy.box.width);
    }
    engine.channel->finish_staging(slot.part, slot.object);
  }
  /// The commands so far that copied from the host's memory to the device, or back.
  std::size_t staged(bool to_device) {
    std::size_t count = 0;
    for (const ipc::Command& command : engine.all(CommandType::kCopy)) {
      const auto copy = *command.as<ipc::Copy>();
      if ((to_device ? copy.from : copy.to).is(PlaceKind::kSlot)) ++count;
    }
    return count;
  }

  static std::vector<std::byte> pattern(std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = std::byte((i * 7 + i / 253) & 0xff);
    return bytes;
  }

  std::vector<std::byte> memory;
  FakeEngine engine;
};

TEST_F(CopiesTest, ALongCopyArrivesWholeBothWays) {
  const auto source = pattern((11 << 20) + 12345);
  Session& session = *engine.session;
  const Place there = Place::on_device(kBase + 64, source.size());
  const Box shape{source.size()};
  ASSERT_TRUE(session.copies().copy(there, Place::on_host(source.data(), source.size()), shape, 0));
  std::vector<std::byte> back(source.size());
  ASSERT_TRUE(session.copies().copy(Place::on_host(back.data(), back.size()), there, shape, 0));
  EXPECT_EQ(back, source);
  EXPECT_EQ(staged(true), 12u);
}

TEST_F(CopiesTest, RowsArePackedInTheSlotAndKeepTheirPitches) {
  constexpr std::uint64_t kWidth = 1000, kHeight = 5000, kHostPitch = 1100, kPitch = 1536;
  const auto source = pattern(kHostPitch * kHeight);
  Session& session = *engine.session;
  ASSERT_TRUE(session.copies().copy(Place::on_device(kBase, kPitch),
                                    Place::on_host(source.data(), kHostPitch), {kWidth, kHeight},
                                    0));
  std::vector<std::byte> back(kHostPitch * kHeight, std::byte{0xee});
  ASSERT_TRUE(session.copies().copy(Place::on_host(back.data(), kHostPitch),
                                    Place::on_device(kBase, kPitch), {kWidth, kHeight}, 0));
  for (std::uint64_t row = 0; row < kHeight; ++row) {
    ASSERT_EQ(std::memcmp(back.data() + row * kHostPitch, source.data() + row * kHostPitch, kWidth),
              0)
        << row;
    ASSERT_EQ(back[row * kHostPitch + kWidth], std::byte{0xee}) << "between the rows, " << row;
  }
  EXPECT_EQ(memory[kWidth], std::byte{0}) << "between the rows on the device";
}

TEST_F(CopiesTest, ARowLongerThanASlotIsCut) {
  constexpr std::uint64_t kWidth = ipc::kStagingSlotBytes + 100, kPitch = kWidth + 28;
  const auto source = pattern(kWidth * 3);
  Session& session = *engine.session;
  ASSERT_TRUE(session.copies().copy(Place::on_device(kBase, kPitch),
                                    Place::on_host(source.data(), kWidth), {kWidth, 3}, 0));
  std::vector<std::byte> back(kWidth * 3);
  ASSERT_TRUE(session.copies().copy(Place::on_host(back.data(), kWidth),
                                    Place::on_device(kBase, kPitch), {kWidth, 3}, 0));
  EXPECT_EQ(back, source);
}

TEST_F(CopiesTest, TouchingRowsAreOneRow) {
  const auto source = pattern(4096);
  ASSERT_TRUE(engine.session->copies().copy(Place::on_device(kBase, 64),
                                            Place::on_host(source.data(), 64), {64, 64}, 0));
  const auto sent = engine.wait_for(CommandType::kCopy).as<ipc::Copy>();
  EXPECT_EQ(sent->box, (Box{4096}));
}

TEST_F(CopiesTest, NothingToCopySendsNothing) {
  std::byte byte{};
  Session& session = *engine.session;
  EXPECT_TRUE(
      session.copies().copy(Place::on_device(kBase, 8), Place::on_host(&byte, 8), {0, 3}, 0));
  EXPECT_TRUE(
      session.copies().copy(Place::on_host(&byte, 8), Place::on_device(kBase, 8), {8, 0}, 0));
  EXPECT_TRUE(session.copies().fill(Place::on_device(kBase), 1, {0, 0}, 0));
  ASSERT_TRUE(session.memory().info());  // a round trip
  EXPECT_TRUE(engine.all(CommandType::kCopy).empty());
  EXPECT_TRUE(engine.all(CommandType::kFill).empty());
}

TEST_F(CopiesTest, ManyThreadsCopyingBackDoNotStarveEachOther) {
  const auto source = pattern(memory.size());
  memory = source;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 12; ++t) {
    threads.emplace_back([&, t] {
      const std::size_t size = 5 << 20;
      const std::size_t offset = static_cast<std::size_t>(t) << 20;
      std::vector<std::byte> back(size);
      const auto ok = engine.session->copies().copy(
          Place::on_host(back.data(), size), Place::on_device(kBase + offset, size), {size}, 0);
      if (!ok || std::memcmp(back.data(), source.data() + offset, size) != 0) ++wrong;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(CopiesTest, FewBytesTravelInTheirCommand) {
  const auto source = pattern(ipc::kMostInlineBytes + 1);
  Session& session = *engine.session;
  const std::uint64_t most = ipc::kMostInlineBytes;
  ASSERT_TRUE(session.copies().copy(Place::on_device(kBase, most),
                                    Place::on_host(source.data(), most), {most}, 0));
  ASSERT_TRUE(session.copies().copy(Place::on_device(kBase + 4096, most + 1),
                                    Place::on_host(source.data(), most + 1), {most + 1}, 0));
  std::vector<std::byte> back(most + 1);
  ASSERT_TRUE(session.copies().copy(Place::on_host(back.data(), most),
                                    Place::on_device(kBase, most), {most}, 0));
  EXPECT_EQ(std::memcmp(back.data(), source.data(), most), 0);
  EXPECT_EQ(engine.all(CommandType::kCopyInline).size(), 1u);
  EXPECT_EQ(staged(true), 1u);
}

TEST_F(CopiesTest, EightThreadsOfMixedCommandsGetTheirOwnData) {
  constexpr std::size_t kRegion = 256 << 10;
  std::atomic<int> wrong{0};
  const auto work = [&](unsigned thread) {
    Session& session = *engine.session;
    std::minstd_rand random(thread + 1);
    const auto stream = session.streams().create(ipc::kStreamNonBlocking, 0);
    const auto event = session.events().create(ipc::kEventNoTiming);
    const std::uint64_t base = kBase + thread * kRegion;
    std::vector<std::byte> model(kRegion), back(kRegion);
    bool good =
        stream && event && session.copies().fill(Place::on_device(base), 0, {kRegion}, *stream);
    for (int i = 0; good && i < 60; ++i) {
      const std::size_t size = 1 + random() % (i % 3 == 0 ? kRegion : 900);
      const std::size_t at = random() % (kRegion - size + 1);
      const auto value = static_cast<std::uint8_t>(random());
      if (i % 2 == 0) {
        std::memset(model.data() + at, value, size);
        good =
            session.copies().fill(Place::on_device(base + at), value, {size}, *stream).has_value();
      } else {
        for (std::size_t k = 0; k < size; ++k) model[at + k] = static_cast<std::byte>(value + k);
        good = session.copies()
                   .copy(Place::on_device(base + at, size), Place::on_host(model.data() + at, size),
                         {size}, *stream)
                   .has_value();
      }
      good = good && session.events().record(*event, *stream);
      if (i % 10 != 9) continue;
      good = good && session.waiting().synchronize(ipc::TargetKind::kEvent, *event) &&
             session.waiting().finished(ipc::TargetKind::kStream, *stream).value_or(false) &&
             session.copies().copy(Place::on_host(back.data(), kRegion),
                                   Place::on_device(base, kRegion), {kRegion}, *stream) &&
             back == model;
    }
    good = good && session.events().destroy(*event) && session.streams().destroy(*stream);
    if (!good) ++wrong;
  };
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 8; ++thread) threads.emplace_back(work, thread);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(CopiesTest, ValuesOfSeveralBytesAreOneFill) {
  Session& session = *engine.session;
  engine.answer(CommandType::kMemoryAllocate, ipc::AddressReply{kBase});
  ASSERT_TRUE(session.memory().allocate(4096));
  const auto fill = [&](std::uint64_t offset, std::size_t pitch, std::size_t width,
                        std::size_t height, std::size_t element) {
    FillCall call{reinterpret_cast<void*>(kBase + offset), pitch, 0x11223344, width, height};
    call.element = element;
    return fill_rows(session, call, 0).has_value();
  };
  ASSERT_TRUE(fill(8, 64, 8, 2, 4));
  ASSERT_TRUE(fill(258, 6, 6, 1, 2));
  EXPECT_FALSE(fill(2, 64, 8, 1, 4)) << "not aligned";
  EXPECT_FALSE(fill(0, 6, 4, 2, 4)) << "nor the second row";
  EXPECT_FALSE(fill(0, 64, 6, 1, 4)) << "not of whole values";
  ASSERT_TRUE(session.waiting().synchronize(ipc::TargetKind::kStream, 0));
  EXPECT_EQ(engine.all(CommandType::kFill).size(), 2u);
  std::vector<std::byte> expected(512);
  const std::uint32_t word = 0x11223344;
  for (const std::size_t at : {8, 12, 72, 76}) std::memcpy(&expected[at], &word, 4);
  for (const std::size_t at : {258, 260, 262}) std::memcpy(&expected[at], &word, 2);
  EXPECT_EQ(std::vector(memory.begin(), memory.begin() + 512), expected);
}

class TakenCopiesTest : public CopiesTest {
 protected:
  static constexpr std::size_t kBytes = 2048;  // more than goes inside a command
  TakenCopiesTest() {
    engine.publishes = false;
    engine.handle(CommandType::kSynchronize, [](const ipc::Command&) {});  // answered by finish()
  }

  Result<bool> take() { return session.copies().take_to_device(kBase, source, 0); }
  /// All work is over.
  void finish() {
    engine.handle(CommandType::kSynchronize, [this](const ipc::Command& c) { engine.reply(c); });
    for (const auto& command : engine.all(CommandType::kSynchronize)) engine.reply(command);
    for (std::uint32_t slot = 0; slot < ipc::kProgressSlots; ++slot)
      engine.channel->publish_completed(slot, 1 << 20);
  }

  Session& session = *engine.session;
  std::vector<std::byte> source = pattern(kBytes);
};

TEST_F(TakenCopiesTest, AnotherCopyOfItsKindIsNotInTheWay) {
  EXPECT_TRUE(take().value());
  EXPECT_TRUE(take().value());
  ASSERT_TRUE(session.copies().fill(Place::on_device(kBase), 1, {8}, 0));
  EXPECT_FALSE(take().value()) << "what may write the source is";
}

TEST_F(TakenCopiesTest, WorkSentBetweenTheLookAndTheCopyIsWaitedFor) {
  // The stream has its part of the slots, so that the copy stops where it has looked.
  constexpr std::uint32_t kPart = ipc::kLeastStagingSlots - 1;
  engine.handle(CommandType::kCopy, [](const ipc::Command&) {});
  const auto filler = pattern(kPart * (128 << 10));
  const std::uint64_t size = filler.size();
  ASSERT_TRUE(session.copies().copy(Place::on_device(kBase, size),
                                    Place::on_host(filler.data(), size), {size}, 0));
  engine.channel->publish_completed(0, engine.raw.status().ring_tail);
  std::atomic<bool> returned{false};
  std::thread copies([&] {
    EXPECT_TRUE(take().value());
    returned = true;
  });
  while (engine.raw.status().staging_held.load() == 0) std::this_thread::yield();
  ASSERT_TRUE(session.copies().fill(Place::on_device(kBase), 1, {8}, 0));  // another thread's
  for (std::uint32_t slot = 0; slot < kPart; ++slot) engine.channel->finish_staging(slot, 1);
  while (staged(true) <= kPart) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(take().value()) << "its source may be what that work writes";
  EXPECT_FALSE(returned);
  finish();
  copies.join();
}

TEST_F(TakenCopiesTest, AllWhoComeToWaitForThemWait) {
  ASSERT_TRUE(take().value());
  std::atomic<int> waited{0};
  const auto wait = [&] {
    EXPECT_TRUE(session.copies().settle_taken());
    ++waited;
  };
  std::thread first(wait), second(wait);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(waited, 0);
  finish();
  first.join();
  second.join();
  EXPECT_TRUE(take().value());
}

/// Takes every error that is not a copy's own, as another thread of the program may.
class OtherThread {
 public:
  explicit OtherThread(Session& session)
      : thread_([this, &session] {
          while (!done_) (void)session.check();
        }) {}
  ~OtherThread() {
    done_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

TEST_F(CopiesTest, ARefusedCopyLeavesItsDestinationAndItsOwnCallSaysSo) {
  Session& session = *engine.session;
  const auto stale = pattern(4096);
  ASSERT_TRUE(session.copies().copy(Place::on_device(kBase, 4096),
                                    Place::on_host(stale.data(), 4096), {4096}, 0));
  engine.handle(CommandType::kCopy, [this](const ipc::Command& command) {
    const Place slot = command.as<ipc::Copy>()->to;
    engine.channel->finish_staging(slot.part, slot.object, ErrorCode::kOutOfMemory);
  });
  const OtherThread other(session);
  for (int i = 0; i < 100; ++i) {
    std::vector<std::byte> back(4096, std::byte{0xee});
    const auto copied = session.copies().copy(Place::on_host(back.data(), 4096),
                                              Place::on_device(kBase, 4096), {4096}, 0);
    ASSERT_FALSE(copied);
    EXPECT_EQ(copied.error().code, ErrorCode::kOutOfMemory);
    EXPECT_EQ(back, std::vector<std::byte>(4096, std::byte{0xee}));
  }
}

TEST_F(CopiesTest, ARefusedPartLeavesItsPartOfTheDestination) {
  Session& session = *engine.session;
  engine.handle(CommandType::kCopy, [this](const ipc::Command& command) {
    const auto copy = *command.as<ipc::Copy>();
    if (copy.from.address < kBase + (2 << 20)) return move(copy);
    engine.channel->finish_staging(copy.to.part, copy.to.object, ErrorCode::kOutOfMemory);
  });
  const std::uint64_t bytes = 4 << 20;
  std::vector<std::byte> back(bytes, std::byte{0xee});
  EXPECT_FALSE(session.copies().copy(Place::on_host(back.data(), bytes),
                                     Place::on_device(kBase, bytes), {bytes}, 0));
  for (std::uint64_t i = 2 << 20; i < bytes; ++i) ASSERT_EQ(back[i], std::byte{0xee}) << i;
}

TEST_F(CopiesTest, ASessionThatFailsEndsACopy) {
  engine.handle(CommandType::kCopy, [this](const ipc::Command&) {
    engine.channel->fail({ErrorCode::kIllegalAddress, "a kernel went wild"});
  });
  std::vector<std::byte> back(5 << 20);
  const auto outcome =
      engine.session->copies().copy(Place::on_host(back.data(), back.size()),
                                    Place::on_device(kBase, back.size()), {back.size()}, 0);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kIllegalAddress);
  EXPECT_FALSE(engine.session->copies().copy(Place::on_device(kBase, 8),
                                             Place::on_host(back.data(), 8), {8}, 0));
}

}  // namespace
}  // namespace slate::client
