#include "ipc/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/spin.h"
#include "ipc/shared_memory.h"
#include "tests/unit/ipc/channel_pair.h"

namespace slate::ipc {
namespace {

/// Answers like an engine until the client is gone: allocations echo the size, copies finish their
/// slot.
class EchoEngine {
 public:
  explicit EchoEngine(EngineChannel& channel) : thread_([this, &channel] { serve(channel); }) {}
  ~EchoEngine() { thread_.join(); }
  std::uint64_t posts() const { return posts_; }

 private:
  void serve(EngineChannel& channel) {
    Command command;
    while (true) {
      const auto woken = channel.wait();
      if (woken == EngineChannel::Wait::kPeerGone || woken == EngineChannel::Wait::kStopped) return;
      while (true) {
        auto popped = channel.try_pop(command);
        ASSERT_TRUE(popped);
        if (!*popped) break;
        answer(channel, command);
      }
    }
  }
  void answer(EngineChannel& channel, const Command& command) {
    const CommandHeader& header = command.header;
    if (header.type == CommandType::kMemoryAllocate) {
      const AddressReply reply{command.as<MemoryAllocate>()->bytes};
      if (reply.address == 13) {
        channel.reply_error(header.reply_slot, header.reply_sequence,
                            {ErrorCode::kOutOfMemory, "thirteen"});
      } else {
        channel.reply(header.reply_slot, header.reply_sequence, bytes_of(reply));
      }
    } else if (header.type == CommandType::kCopy) {
      const auto copy = *command.as<Copy>();
      std::memset(channel.staging(copy.to.part).data(), static_cast<int>(copy.from.address & 0xff),
                  copy.box.width);
      channel.finish_staging(copy.to.part, copy.to.object);
    } else {
      ++posts_;
    }
  }
  std::atomic<std::uint64_t> posts_{0};
  std::thread thread_;
};

Result<std::uint64_t> echo(ClientChannel& client, std::uint64_t value) {
  AddressReply reply{};
  auto ok = client.call(CommandType::kMemoryAllocate, bytes_of(MemoryAllocate{value}), {},
                        std::as_writable_bytes(std::span(&reply, 1)));
  if (!ok) return std::unexpected(ok.error());
  return reply.address;
}

TEST(ChannelTest, CallReturnsTheReplyOfItsOwnCommand) {
  auto pair = make_channel_pair();
  EchoEngine engine(*pair.engine);
  for (std::uint64_t i = 100; i < 1100; ++i) ASSERT_EQ(*echo(*pair.client, i), i);
  pair.client.reset();
}

TEST(ChannelTest, TheEngineSeesAThreadThatWaitsAwake) {
  auto pair = make_channel_pair();
  bool seen = false;
  int asked = 0;
  EXPECT_EQ(pair.client->spin_until([&] {
    seen |= pair.engine->client_waits();
    return ++asked == 3;
  }),
            may_spin());
  EXPECT_EQ(seen, may_spin());
  EXPECT_FALSE(pair.engine->client_waits());
}

TEST(ChannelTest, ErrorReplyCarriesCodeAndText) {
  auto pair = make_channel_pair();
  EchoEngine engine(*pair.engine);
  auto reply = echo(*pair.client, 13);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(reply.error().message, "thirteen");
  pair.client.reset();
}

TEST(ChannelTest, EightThreadsGetTheirOwnReplies) {
  auto pair = make_channel_pair();
  EchoEngine engine(*pair.engine);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 400; ++i) {
        const std::uint64_t value = 1000 + t * 1'000'000 + i;
        ASSERT_EQ(*echo(*pair.client, value), value);
        ASSERT_TRUE(pair.client->post(CommandType::kFill, bytes_of(Fill{})));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_TRUE(echo(*pair.client, 1));
  EXPECT_EQ(engine.posts(), 8u * 400u);
  pair.client.reset();
}

TEST(ChannelTest, PostsBeyondTheRingWaitForRoomAndAllArrive) {
  auto pair = make_channel_pair();
  EchoEngine engine(*pair.engine);
  const std::vector<std::byte> tail(4096);
  for (int i = 0; i < 2000; ++i)
    ASSERT_TRUE(pair.client->post(CommandType::kLaunch, bytes_of(Launch{}), tail));
  ASSERT_TRUE(echo(*pair.client, 1));
  EXPECT_EQ(engine.posts(), 2000u);
  pair.client.reset();
}

TEST(ChannelTest, StagingSlotIsNotReusedBeforeItsCopyFinished) {
  auto pair = make_channel_pair();
  EchoEngine engine(*pair.engine);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 200; ++i) {
        auto staging = pair.client->acquire_staging();
        ASSERT_TRUE(staging);
        const std::uint64_t value = (t * 50 + i) & 0xff;
        const Copy copy{
            Place::in_slot(staging->slot, staging->sequence), Place::on_device(value), {64}, 0};
        ASSERT_TRUE(pair.client->post(CommandType::kCopy, bytes_of(copy)));
        ASSERT_TRUE(pair.client->wait_staging(*staging));
        for (int b = 0; b < 64; ++b) ASSERT_EQ(staging->memory[b], static_cast<std::byte>(value));
        pair.client->release_staging(*staging, true);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  pair.client.reset();
}

TEST(ChannelTest, ProgressOnlyGrowsAndStaysInTheTable) {
  auto pair = make_channel_pair();
  EXPECT_TRUE(pair.client->completed(5, 0));
  pair.engine->publish_completed(5, 160);
  pair.engine->publish_completed(5, 32);
  EXPECT_TRUE(pair.client->completed(5, 160));
  EXPECT_FALSE(pair.client->completed(5, 161));
  EXPECT_FALSE(pair.client->completed(4, 1));
  pair.engine->publish_completed(kNoProgress, 16);
  pair.engine->publish_completed(~0u, 16);
}

TEST(ChannelTest, APostTellsThePositionThatTheEngineSees) {
  auto pair = make_channel_pair();
  Command command;
  const std::vector<std::byte> tail(40'000);
  for (int i = 0; i < 20; ++i) {  // more than once around
    PlaceNote note;
    ASSERT_TRUE(pair.client->post(CommandType::kLaunch, bytes_of(Launch{}), tail, &note));
    ASSERT_TRUE(*pair.engine->try_pop(command));
    ASSERT_EQ(pair.engine->position(), note.position);
  }
}

TEST(ChannelTest, SlotsThatAreNotGrantedAreNotUsed) {
  auto pair = make_channel_pair();
  pair.engine->grant_staging(2);
  const auto first = pair.client->try_acquire_staging(),
             second = pair.client->try_acquire_staging();
  ASSERT_TRUE(first && second);
  EXPECT_LT(first->slot, 2u);
  EXPECT_LT(second->slot, 2u);
  EXPECT_FALSE(pair.client->try_acquire_staging());
  pair.client->release_staging(*first, true);
  EXPECT_FALSE(pair.client->try_acquire_staging()) << "its copy is not over";
  pair.engine->finish_staging(first->slot, first->sequence);
  EXPECT_TRUE(pair.client->try_acquire_staging());
}

TEST(ChannelTest, MemoryComesWithItsNumber) {
  auto pair = make_channel_pair();
  EXPECT_FALSE(pair.client->receive_memory(1)) << "none was sent";
  const auto memory = make_shared_memory("test", 8192);
  ASSERT_TRUE(memory);
  ASSERT_EQ(::pwrite(memory->get(), "there", 6, 5000), 6);
  ASSERT_TRUE(pair.engine->send_memory(7, memory->get()));
  const auto received = pair.client->receive_memory(7);
  ASSERT_TRUE(received) << received.error().message;
  char text[6] = {};
  ASSERT_EQ(::pread(received->get(), text, 6, 5000), 6);
  EXPECT_STREQ(text, "there");
  EXPECT_NE(::fcntl(received->get(), F_GETFD) & FD_CLOEXEC, 0) << "not for children's programs";
  ASSERT_TRUE(pair.engine->send_memory(8, memory->get()));
  EXPECT_EQ(pair.client->receive_memory(9).error().code, ErrorCode::kProtocol);
}

TEST(ChannelTest, OfMemoryThatWasSentTwiceTheLastCounts) {
  auto pair = make_channel_pair();
  const auto lost = make_shared_memory("lost", 4096), good = make_shared_memory("good", 8192);
  ASSERT_TRUE(lost && good);
  ASSERT_TRUE(pair.engine->send_memory(6, lost->get())) << "by an engine that died then";
  ASSERT_TRUE(pair.engine->send_memory(7, lost->get()));
  ASSERT_TRUE(pair.engine->send_memory(7, good->get()));
  const auto received = pair.client->receive_memory(7);
  ASSERT_TRUE(received) << received.error().message;
  EXPECT_EQ(::lseek(received->get(), 0, SEEK_END), 8192);
  EXPECT_FALSE(pair.client->receive_memory(7)) << "nothing is left";
}

TEST(ChannelTest, AFrozenEngineSendsNoMemory) {
  auto pair = make_channel_pair();
  const auto memory = make_shared_memory("test", 4096);
  ASSERT_TRUE(memory);
  pair.engine->freeze();
  EXPECT_FALSE(pair.engine->send_memory(7, memory->get()));
  EXPECT_FALSE(pair.client->receive_memory(7)) << "none was sent";
}

TEST(ChannelTest, AClientThatTakesNoMemoryHoldsNobodyUp) {
  auto pair = make_channel_pair();
  const auto memory = make_shared_memory("test", 4096);
  ASSERT_TRUE(memory);
  int sent = 0;
  while (sent < 100'000 && pair.engine->send_memory(1, memory->get())) ++sent;
  EXPECT_GT(sent, 0);
  EXPECT_LT(sent, 100'000) << "refused, not waited for";
}

TEST(ChannelTest, ACommandIsSeenEvenIfItsWakeByteGotLost) {
  auto pair = make_channel_pair();
  auto woken = std::async(std::launch::async, [&] { return pair.engine->wait(); });
  // The client then believes that the engine is awake.
  while (pair.raw->status.engine_sleeps.exchange(0) == 0) std::this_thread::yield();
  ASSERT_TRUE(pair.client->post(CommandType::kFill, bytes_of(Fill{})));
  if (woken.wait_for(std::chrono::seconds(10)) != std::future_status::ready) pair.engine->stop();
  EXPECT_EQ(woken.get(), EngineChannel::Wait::kCommand);
}

TEST(ChannelTest, ATimeoutBeyondASecondIsKept) {
  auto pair = make_channel_pair();
  const auto start = now_ns();
  EXPECT_EQ(pair.engine->wait(std::chrono::milliseconds(1200)), EngineChannel::Wait::kTimeout);
  EXPECT_GE(now_ns() - start, 1'200'000'000);
}

TEST(ChannelTest, EngineSeesTheClientGo) {
  auto pair = make_channel_pair();
  pair.client.reset();
  EXPECT_EQ(pair.engine->wait(), EngineChannel::Wait::kPeerGone);
}

TEST(ChannelTest, StopEndsTheEnginesWait) {
  auto pair = make_channel_pair();
  std::thread stopper([&] { pair.engine->stop(); });
  EXPECT_EQ(pair.engine->wait(), EngineChannel::Wait::kStopped);
  stopper.join();
}

TEST(ChannelTest, CallFailsWithinASecondWhenTheEngineDies) {
  auto pair = make_channel_pair();
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    pair.engine.reset();
  });
  const auto start = now_ns();
  auto reply = echo(*pair.client, 1);
  killer.join();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);
  EXPECT_LT(now_ns() - start, 1'000'000'000);
}

TEST(ChannelTest, PostsFailSoonAfterTheEngineDied) {
  auto pair = make_channel_pair();
  pair.engine.reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  auto ok = pair.client->post(CommandType::kFill, bytes_of(Fill{}));
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().code, ErrorCode::kUnavailable);
}

TEST(ChannelTest, FailedSessionEndsWaitsWithItsFirstError) {
  auto pair = make_channel_pair();
  std::thread failer([&] {
    pair.engine->fail({ErrorCode::kIllegalAddress, "kernel k, block (0,0,0)"});
    pair.engine->end("later");
  });
  auto reply = echo(*pair.client, 1);
  failer.join();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kIllegalAddress);
  EXPECT_EQ(reply.error().message, "kernel k, block (0,0,0)");
  EXPECT_EQ(pair.client->check().error().code, ErrorCode::kIllegalAddress);
}

TEST(ChannelTest, FirstAsyncErrorIsKeptAndTakenOnce) {
  auto pair = make_channel_pair();
  pair.engine->set_async_error({ErrorCode::kInvalidHandle, "no such stream"});
  pair.engine->set_async_error({ErrorCode::kInvalidValue, "later"});
  EXPECT_EQ(pair.client->take_async_error().code, ErrorCode::kInvalidHandle);
  EXPECT_EQ(pair.client->take_async_error().code, ErrorCode::kNone);
}

TEST(ChannelTest, AnAsyncErrorComesWithItsReasonAsFarAsThereIsRoom) {
  auto pair = make_channel_pair();
  pair.engine->set_async_error({ErrorCode::kInvalidHandle, "no such stream"});
  EXPECT_EQ(pair.client->take_async_error().message, "no such stream");
  pair.engine->set_async_error({ErrorCode::kInvalidValue, std::string(1000, 'x')});
  EXPECT_EQ(pair.client->take_async_error().message, std::string(kMostAsyncText - 1, 'x'));
}

TEST(ChannelTest, ARefusalBelongsToItsSlot) {
  auto pair = make_channel_pair();
  const auto refused = *pair.client->acquire_staging();
  const auto other = *pair.client->acquire_staging();
  pair.engine->finish_staging(refused.slot, refused.sequence, ErrorCode::kOutOfMemory);
  pair.engine->finish_staging(other.slot, other.sequence);
  EXPECT_TRUE(pair.client->wait_staging(other));
  EXPECT_EQ(pair.client->wait_staging(refused).error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(pair.client->take_async_error().code, ErrorCode::kNone);
  pair.client->release_staging(refused, true);
  const auto next = *pair.client->acquire_staging();
  ASSERT_EQ(next.slot, refused.slot);
  pair.engine->finish_staging(next.slot, next.sequence);
  EXPECT_TRUE(pair.client->wait_staging(next)) << "that was the copy before";
}

TEST(ChannelTest, TheEndOfASessionIsToldOnce) {
  auto pair = make_channel_pair();
  std::vector<std::string> told;
  pair.client->on_end([&](const Error& error) { told.push_back(error.message); });
  EXPECT_TRUE(pair.client->check());
  pair.engine->fail({ErrorCode::kIllegalAddress, "kernel k"});
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(pair.client->check());
  EXPECT_EQ(told, std::vector<std::string>{"kernel k"});
}

TEST(ChannelTest, ASessionThatItsOwnProgramLeftIsNotToldToHaveEnded) {
  auto pair = make_channel_pair();
  bool told = false;
  pair.client->on_end([&](const Error&) { told = true; });
  pair.client->abandon();
  EXPECT_FALSE(pair.client->check());
  EXPECT_FALSE(told);
}

TEST(ChannelTest, OneStreamsCopiesLeaveSlotsToOthers) {
  auto pair = make_channel_pair();
  constexpr std::uint64_t kBusy = 5, kIdle = 6;
  const auto post = [&](const ClientChannel::Staging& staging) {
    pair.client->release_staging(staging, true);  // its copy does not end
  };
  for (std::uint32_t i = 0; i + 1 < kLeastStagingSlots; ++i)
    post(*pair.client->acquire_staging(kBusy));
  EXPECT_FALSE(pair.client->try_acquire_staging(kBusy)) << "it has its part";
  const auto first = pair.client->try_acquire_staging(kIdle);
  ASSERT_TRUE(first);
  post(*first);
  // And the next one waits for that copy, not for the busy stream's, which are older.
  std::thread engine([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    pair.engine->finish_staging(first->slot, first->sequence);
  });
  const auto second = pair.client->acquire_staging(kIdle);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->slot, first->slot);
  engine.join();
}

}  // namespace
}  // namespace slate::ipc
