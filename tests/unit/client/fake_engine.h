// FakeEngine: the engine's end of a session, played by a thread: it notes every command and answers
// as the test says. Commands that need a reply and have no answer get an empty one.
#pragma once

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "client/session/session.h"
#include "ipc/shared_memory.h"
#include "tests/unit/ipc/channel_pair.h"

namespace slate::client {

/// The limits of an H200, as far as the client looks at them.
inline DeviceInfo test_device() {
  DeviceInfo info{};
  std::strcpy(info.name, "test device");
  const std::map<int, int> attributes{{1, 1024},       {2, 1024},        {3, 1024},   {4, 64},
                                      {5, 2147483647}, {6, 65535},       {7, 65535},  {8, 49152},
                                      {10, 32},        {11, 2147483647}, {12, 65536}, {16, 132},
                                      {39, 2048},      {75, 9},          {76, 0},     {81, 233472},
                                      {82, 65536},     {97, 232448},     {106, 32},   {111, 1024}};
  for (const auto& [number, value] : attributes) info.attributes[number] = value;
  return info;
}

class FakeEngine {
 public:
  using Handler = std::function<void(const ipc::Command&)>;

  FakeEngine() : FakeEngine(ipc::make_channel_pair(test_device())) {}
  explicit FakeEngine(ipc::ChannelPair pair)
      : raw(std::move(pair.raw)),
        channel(std::move(pair.engine)),
        session(std::make_unique<Session>(std::move(pair.client), 1)),
        thread_([this] { serve(); }) {
    answer(ipc::CommandType::kMemoryInfo, ipc::MemoryInfoReply{});
    answer(ipc::CommandType::kModuleOffer, ipc::OfferReply{});
  }
  ~FakeEngine() {
    channel->stop();
    thread_.join();
  }

  /// What to do with commands of a type, in the engine's thread. It has to reply, if there is a
  /// reply.
  void handle(ipc::CommandType type, Handler handler) {
    std::lock_guard lock(mutex_);
    handlers_[type] = std::move(handler);
  }
  template <typename Reply>
  void answer(ipc::CommandType type, const Reply& payload) {
    handle(type, [this, payload](const ipc::Command& command) { reply(command, payload); });
  }
  template <typename Reply>
  void reply(const ipc::Command& command, const Reply& payload) {
    channel->reply(command.header.reply_slot, command.header.reply_sequence,
                   ipc::bytes_of(payload));
  }
  void reply(const ipc::Command& command) {
    channel->reply(command.header.reply_slot, command.header.reply_sequence, {});
  }

  /// Answers requests for host memory with a block at this address on the device.
  void give_memory_at(std::uint64_t address) {
    handle(ipc::CommandType::kHostAllocate, [this, address](const ipc::Command& command) {
      const auto asked = *command.as<ipc::HostAllocate>();
      const auto memory = ipc::make_shared_memory("test", asked.bytes);
      if (!memory || !channel->send_memory(asked.id, memory->get())) std::abort();
      reply(command, ipc::AddressReply{address});
    });
  }

  /// The first command of this type, once it has come.
  ipc::Command wait_for(ipc::CommandType type) {
    std::unique_lock lock(mutex_);
    ipc::Command found;
    came_.wait(lock, [&] {
      for (const ipc::Command& command : commands_) {
        if (command.header.type != type) continue;
        found = command;
        return true;
      }
      return false;
    });
    return found;
  }
  std::vector<ipc::Command> all(ipc::CommandType type) {
    std::lock_guard lock(mutex_);
    std::vector<ipc::Command> found;
    for (const ipc::Command& command : commands_) {
      if (command.header.type == type) found.push_back(command);
    }
    return found;
  }

  std::atomic<bool> publishes{true};  // the progress of streams
  ipc::Segment raw;
  std::unique_ptr<ipc::EngineChannel> channel;
  std::unique_ptr<Session> session;

 private:
  void serve() {
    ipc::Command command;
    while (true) {
      const auto event = channel->wait();
      if (event != ipc::EngineChannel::Wait::kCommand) return;
      while (channel->try_pop(command).value_or(false)) take(command);
    }
  }

  void take(const ipc::Command& command) {
    Handler handler;
    {
      std::lock_guard lock(mutex_);
      commands_.push_back(command);
      const auto at = handlers_.find(command.header.type);
      if (at != handlers_.end()) handler = at->second;
    }
    came_.notify_all();
    if (handler) {
      handler(command);
    } else if (command.header.reply_slot != ipc::kNoReply) {
      reply(command);
    }
    // Work is done when its command is.
    for (std::uint32_t slot = 0; publishes && slot < ipc::kProgressSlots; ++slot)
      channel->publish_completed(slot, channel->position());
  }

  std::mutex mutex_;
  std::condition_variable came_;
  std::map<ipc::CommandType, Handler> handlers_;
  std::vector<ipc::Command> commands_;
  std::thread thread_;
};

}  // namespace slate::client
