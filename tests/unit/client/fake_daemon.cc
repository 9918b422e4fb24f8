#include "tests/unit/client/fake_daemon.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace slate::test {

using ipc::CommandType;

struct FakeDaemon::Served {
  std::unique_ptr<ipc::EngineChannel> channel;
  std::vector<std::byte> memory;
  std::uint64_t used = 4096;  // a variable of the module lies in front
  std::thread thread;

  std::uint64_t base() const { return reinterpret_cast<std::uintptr_t>(memory.data()); }
  std::byte* at(std::uint64_t address) { return memory.data() + (address - base()); }
};

namespace {

DeviceInfo device_info() {
  DeviceInfo info{};
  std::strcpy(info.name, "Fake GPU");
  info.total_memory = FakeDaemon::kMemoryBytes;
  const std::pair<int, int> attributes[] = {
      {1, 1024},   {2, 1024},    {3, 1024},  {4, 64},     {5, 2147483647},
      {6, 65535},  {7, 65535},   {8, 49152}, {10, 32},    {11, 2147483647},
      {12, 65536}, {16, 132},    {39, 2048}, {75, 9},     {81, 233472},
      {82, 65536}, {97, 232448}, {106, 32},  {111, 1024}, {13, 1980000}};
  for (const auto& [number, value] : attributes) info.attributes[number] = value;
  return info;
}

void move_rows(std::byte* to, std::uint64_t to_pitch, const std::byte* from,
               std::uint64_t from_pitch, std::uint64_t width, std::uint64_t height) {
  for (std::uint64_t row = 0; row < height; ++row) {
    std::memmove(to + row * to_pitch, from + row * from_pitch, width);
  }
}

}  // namespace

FakeDaemon::FakeDaemon(const std::string& directory) : directory_(directory) {
  auto made = ipc::RendezvousPoint::create(directory);
  if (!made) std::abort();
  rendezvous_ = std::make_unique<ipc::RendezvousPoint>(std::move(*made));
  thread_ = std::thread([this] { listen(); });
}

FakeDaemon::~FakeDaemon() {
  stop_ = true;
  thread_.join();
  for (auto& served : served_) {
    served->channel->stop();
    served->thread.join();
  }
}

std::vector<ipc::Launch> FakeDaemon::launches() const {
  std::lock_guard lock(mutex_);
  return launches_;
}

void FakeDaemon::print(const std::string& text) {
  std::lock_guard lock(mutex_);
  text_ = text;
}

void FakeDaemon::listen() {
  while (!stop_) {
    pollfd poller{rendezvous_->fd(), POLLIN, 0};
    if (::poll(&poller, 1, 20) <= 0) continue;
    for (const ipc::Hello& hello : rendezvous_->receive()) accept(hello);
  }
}

void FakeDaemon::accept(const ipc::Hello& hello) {
  auto fifos = ipc::open_session_fifos(directory_, hello);
  if (!fifos) return;
  const std::string name = ipc::segment_prefix(directory_) + std::to_string(++sessions_);
  auto segment = ipc::Segment::create(name, ::geteuid(), device_info(), kMemoryBytes);
  if (!segment) return;
  ipc::Welcome welcome;
  welcome.session = static_cast<std::uint64_t>(sessions_);
  welcome.segment_bytes = sizeof(ipc::SegmentLayout);
  name.copy(welcome.segment, sizeof(welcome.segment) - 1);
  if (!ipc::send_welcome(fifos->to_client.get(), welcome)) return;
  auto served = std::make_unique<Served>();
  served->memory.resize(kMemoryBytes);
  served->channel = std::make_unique<ipc::EngineChannel>(std::move(*fifos), std::move(*segment));
  Served& one = *served;
  served_.push_back(std::move(served));
  one.thread = std::thread([this, &one, name] {
    serve(one);
    ipc::Segment::remove(name);
  });
}

void FakeDaemon::serve(Served& served) {
  ipc::Command command;
  while (served.channel->wait() == ipc::EngineChannel::Wait::kCommand) {
    while (served.channel->try_pop(command).value_or(false)) {
      if (command.header.reply_slot == ipc::kNoReply) {
        execute(served, command);
      } else {
        answer(served, command);
      }
    }
  }
}

void FakeDaemon::execute(Served& served, const ipc::Command& command) {
  if (fault_next_.exchange(false)) {
    served.channel->fail({ErrorCode::kIllegalAddress, "a kernel wrote to 0x10"});
    return;
  }
  if (command.header.type == CommandType::kCopyToDevice ||
      command.header.type == CommandType::kCopyToHost) {
    const auto copy = *command.as<ipc::StagedCopy>();
    std::byte* slot = served.channel->staging(copy.slot).data() + copy.slot_offset;
    std::byte* device = served.at(copy.address);
    if (command.header.type == CommandType::kCopyToDevice) {
      move_rows(device, copy.pitch, slot, copy.width, copy.width, copy.height);
    } else {
      move_rows(slot, copy.width, device, copy.pitch, copy.width, copy.height);
    }
    served.channel->finish_staging(copy.slot, copy.slot_sequence);
  } else if (command.header.type == CommandType::kCopyOnDevice) {
    const auto copy = *command.as<ipc::CopyOnDevice>();
    move_rows(served.at(copy.to), copy.to_pitch, served.at(copy.from), copy.from_pitch, copy.width,
              copy.height);
  } else if (command.header.type == CommandType::kFill) {
    const auto fill = *command.as<ipc::Fill>();
    for (std::uint64_t row = 0; row < fill.height; ++row) {
      std::memset(served.at(fill.to) + row * fill.pitch, static_cast<int>(fill.value), fill.width);
    }
  } else if (command.header.type == CommandType::kLaunch) {
    std::lock_guard lock(mutex_);
    launches_.push_back(*command.as<ipc::Launch>());
  }
}

void FakeDaemon::answer(Served& served, const ipc::Command& command) {
  const auto reply = [&](const auto& payload) {
    served.channel->reply(command.header.reply_slot, command.header.reply_sequence,
                          ipc::bytes_of(payload));
  };
  switch (command.header.type) {
    case CommandType::kMemoryAllocate: {
      const std::uint64_t bytes = (command.as<ipc::MemoryAllocate>()->bytes + 511) / 512 * 512;
      if (bytes > kMemoryBytes - served.used) {
        served.channel->reply_error(command.header.reply_slot, command.header.reply_sequence,
                                    {ErrorCode::kOutOfMemory, "full"});
        return;
      }
      reply(ipc::AddressReply{served.base() + served.used});
      served.used += bytes;
      return;
    }
    case CommandType::kMemoryInfo:
      return reply(ipc::MemoryInfoReply{kMemoryBytes - served.used, kMemoryBytes});
    case CommandType::kGlobalGet:
      return reply(ipc::GlobalReply{served.base(), 64});
    case CommandType::kFunctionGet:
      return reply(ipc::FunctionReply{1024, 0, 49152, 0, 0, 16, 90, 90, 1, 8});
    case CommandType::kFunctionParameters: {
      ipc::ParameterReply parameters{};
      parameters.count = 1;
      parameters.parameters[0] = {0, 8};
      return reply(parameters);
    }
    case CommandType::kQuery:
      return reply(ipc::QueryReply{1, 0});
    case CommandType::kEventElapsed:
      return reply(ipc::ElapsedReply{1.5f, 0});
    case CommandType::kSynchronize: {
      std::lock_guard lock(mutex_);
      if (!text_.empty()) served.channel->print(text_);
      text_.clear();
      break;
    }
    default:
      break;
  }
  served.channel->reply(command.header.reply_slot, command.header.reply_sequence, {});
}

}  // namespace slate::test
