#include "ipc/ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "tests/unit/ipc/channel_pair.h"

namespace slate::ipc {
namespace {

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(seed * 31 + i * 7);
  return data;
}

class RingTest : public testing::Test {
 protected:
  ChannelPair pair_ = make_channel_pair();
  RingProducer producer_{pair_.raw.operator->()};
  RingConsumer consumer_{pair_.raw.operator->()};
  Command command_;
};

TEST_F(RingTest, EmptyRingPopsNothing) {
  EXPECT_TRUE(consumer_.empty());
  auto popped = consumer_.try_pop(command_);
  ASSERT_TRUE(popped);
  EXPECT_FALSE(*popped);
}

TEST_F(RingTest, BodyAndTailArriveTogether) {
  const IdCommand body{42};
  const auto tail = pattern(100, 1);
  ASSERT_TRUE(producer_.try_push(CommandType::kGlobalGet, 3, 9, bytes_of(body), tail));
  ASSERT_TRUE(*consumer_.try_pop(command_));
  EXPECT_EQ(command_.header.type, CommandType::kGlobalGet);
  EXPECT_EQ(command_.header.reply_slot, 3);
  EXPECT_EQ(command_.header.reply_sequence, 9u);
  std::span<const std::byte> rest;
  EXPECT_EQ(command_.as<IdCommand>(&rest)->id, 42u);
  EXPECT_TRUE(std::ranges::equal(rest, tail));
}

TEST_F(RingTest, FullRingRefusesAndLosesNothing) {
  const auto body = pattern(1000, 5);
  int pushed = 0;
  while (producer_.try_push(CommandType::kFill, kNoReply, 0, body, {})) ++pushed;
  EXPECT_GT(pushed, 200);
  for (int i = 0; i < pushed; ++i) {
    ASSERT_TRUE(*consumer_.try_pop(command_));
    EXPECT_TRUE(std::ranges::equal(command_.body, body));
  }
  EXPECT_FALSE(*consumer_.try_pop(command_));
}

TEST_F(RingTest, RecordsOfAnySizeSurviveManyWrapsBetweenThreads) {
  constexpr unsigned kCount = 20'000;
  std::thread producer([this] {
    std::mt19937 random(1);
    for (unsigned i = 0; i < kCount; ++i) {
      const auto body = pattern(random() % (random() % 16 == 0 ? 30'000 : 300), i);
      while (!producer_.try_push(CommandType::kLaunch, kNoReply, i, body, {}))
        std::this_thread::yield();
    }
  });
  std::mt19937 random(1);
  for (unsigned i = 0; i < kCount; ++i) {
    const auto expected = pattern(random() % (random() % 16 == 0 ? 30'000 : 300), i);
    while (true) {
      auto popped = consumer_.try_pop(command_);
      ASSERT_TRUE(popped) << popped.error().message;
      if (*popped) break;
      std::this_thread::yield();
    }
    ASSERT_EQ(command_.header.reply_sequence, i);
    ASSERT_TRUE(std::ranges::equal(command_.body, expected));
  }
  producer.join();
}

TEST_F(RingTest, TailBeyondTheRingIsAProtocolError) {
  pair_.raw->status.ring_tail = kRingBytes + 16;
  auto popped = consumer_.try_pop(command_);
  ASSERT_FALSE(popped);
  EXPECT_EQ(popped.error().code, ErrorCode::kProtocol);
}

TEST_F(RingTest, LengthsThatLieAreProtocolErrors) {
  const CommandHeader bad[] = {
      {0, CommandType::kFill, kNoReply, 0, 0},
      {8, CommandType::kFill, kNoReply, 0, 0},
      {24, CommandType::kFill, kNoReply, 0, 0},
      {64, CommandType::kFill, kNoReply, 0, 0},
      {32, CommandType::kFill, kNoReply, 0, 17},
      {32, CommandType::kFill, kNoReply, 0, 0xffffffff},
      {0xfffffff0, CommandType::kPad, kNoReply, 0, 0},
      {0, CommandType::kPad, kNoReply, 0, 0},
  };
  for (const CommandHeader& header : bad) {
    std::memcpy(pair_.raw->ring, &header, sizeof(header));
    pair_.raw->status.ring_tail = 32;
    RingConsumer consumer(pair_.raw.operator->());
    EXPECT_FALSE(consumer.try_pop(command_)) << header.bytes;
  }
}

TEST_F(RingTest, RandomBytesNeverCrashTheConsumer) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    for (int i = 0; i < 512; i += 8) {
      std::uint64_t value = random();
      if (random() % 2) value &= 0xff0000ff;  // plausible lengths now and then
      std::memcpy(pair_.raw->ring + i, &value, 8);
    }
    pair_.raw->status.ring_tail = random() % 2 ? random() : (random() % 64) * 16;
    RingConsumer consumer(pair_.raw.operator->());
    for (int i = 0; i < 64; ++i) {
      auto popped = consumer.try_pop(command_);
      if (!popped || !*popped) break;
    }
  }
}

}  // namespace
}  // namespace slate::ipc
