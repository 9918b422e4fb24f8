#include "tests/unit/client/fake_daemon.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "ipc/shared_memory.h"

namespace slate::test {

using ipc::CommandType;

struct FakeDaemon::Served {
  std::unique_ptr<ipc::EngineChannel> channel;
  std::vector<std::byte> memory;
  std::uint64_t used = 4096;  // a variable of the module lies in front
  std::thread thread;

  struct Block {
    std::byte* mapped;
    std::uint64_t bytes;
  };
  std::map<std::uint64_t, Block> blocks;
  ~Served() {
    for (const auto& [id, block] : blocks) ::munmap(block.mapped, block.bytes);
  }

  std::uint64_t base() const { return reinterpret_cast<std::uintptr_t>(memory.data()); }
  std::byte* at(std::uint64_t address) { return memory.data() + (address - base()); }
};

namespace {

DeviceInfo device_info() {
  DeviceInfo info{};
  std::strcpy(info.name, "Fake GPU");
  info.total_memory = FakeDaemon::kMemoryBytes;
  const std::pair<int, int> attributes[] = {
      {1, 1024},   {2, 1024},     {3, 1024},    {4, 64},          {5, 2147483647}, {6, 65535},
      {7, 65535},  {8, 49152},    {10, 32},     {11, 2147483647}, {12, 65536},     {16, 132},
      {39, 2048},  {75, 9},       {81, 233472}, {82, 65536},      {97, 232448},    {106, 32},
      {111, 1024}, {13, 1980000}, {22, 131072}, {23, 65536},      {56, 131072},    {57, 65536}};
  for (const auto& [number, value] : attributes) info.attributes[number] = value;
  return info;
}

std::uint64_t free_address(std::uint64_t least, std::uint64_t bytes) {
  void* const hole = ::mmap(reinterpret_cast<void*>(least), bytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (hole == MAP_FAILED) std::abort();
  ::munmap(hole, bytes);
  return reinterpret_cast<std::uintptr_t>(hole);
}

/// Daemon and client are one process here. What orders them are words of shared memory, which
/// ThreadSanitizer sees at two addresses: it would take the copies for races with the test.
[[gnu::no_sanitize("thread")]] void move_unseen(std::byte* to, const std::byte* from,
                                                std::uint64_t bytes) {
  std::vector<std::byte> copy(bytes);
  const volatile std::byte* const read = from;
  volatile std::byte* const written = to;
  for (std::uint64_t i = 0; i < bytes; ++i) copy[i] = read[i];
  for (std::uint64_t i = 0; i < bytes; ++i) written[i] = copy[i];
}

void move_rows(std::byte* to, std::uint64_t to_pitch, const std::byte* from,
               std::uint64_t from_pitch, std::uint64_t width, std::uint64_t height) {
  for (std::uint64_t row = 0; row < height; ++row)
    move_unseen(to + row * to_pitch, from + row * from_pitch, width);
}

}  // namespace

FakeDaemon::FakeDaemon(const std::string& directory) : directory_(directory) {
  auto made = ipc::MeetingPoint::create(directory, ipc::MeetingPoint::Guests::kOwnUser);
  if (!made) std::abort();
  point_ = std::make_unique<ipc::MeetingPoint>(std::move(*made));
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

void FakeDaemon::refuse(CommandType type, const Error& error) {
  std::lock_guard lock(mutex_);
  refusals_[type] = error;
}

void FakeDaemon::describe(ipc::FunctionReply function, std::vector<std::uint32_t> parameter_sizes) {
  std::lock_guard lock(mutex_);
  function_ = function;
  function_.parameter_count = static_cast<std::uint32_t>(parameter_sizes.size());
  function_.parameter_bytes = 0;
  for (const std::uint32_t size : parameter_sizes) function_.parameter_bytes += size;
  parameter_sizes_ = std::move(parameter_sizes);
}

int FakeDaemon::count(CommandType type) const {
  std::lock_guard lock(mutex_);
  const auto at = counts_.find(type);
  return at == counts_.end() ? 0 : at->second;
}

int FakeDaemon::copies_from(PlaceKind kind) const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(
      std::ranges::count_if(copies_, [&](const auto& copy) { return copy.from.is(kind); }));
}

int FakeDaemon::copies_to(PlaceKind kind) const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(
      std::ranges::count_if(copies_, [&](const auto& copy) { return copy.to.is(kind); }));
}

void FakeDaemon::listen() {
  while (!stop_) {
    pollfd poller{point_->fd(), POLLIN, 0};
    if (::poll(&poller, 1, 20) <= 0) continue;
    auto visitor = point_->accept();
    if (visitor && *visitor) meet(std::move(**visitor));
  }
}

void FakeDaemon::meet(ipc::Visitor visitor) {
  while (true) {
    const auto hello = ipc::receive_hello(visitor);
    if (!hello) return;
    if (*hello) break;
    pollfd poller{visitor.socket.get(), POLLIN, 0};
    ::poll(&poller, 1, 20);
    if (stop_) return;
  }
  auto made = ipc::NewSession::make(directory_, device_info(), kMemoryBytes);
  if (!made) return;
  ipc::Welcome welcome;
  welcome.session = static_cast<std::uint64_t>(++sessions_);
  if (!ipc::send_welcome(visitor.socket.get(), welcome, &*made)) return;
  made->daemon.socket = std::move(visitor.socket);
  auto served = std::make_unique<Served>();
  served->memory.resize(kMemoryBytes);
  served->channel =
      std::make_unique<ipc::EngineChannel>(std::move(made->daemon), std::move(made->segment));
  Served& one = *served;
  served_.push_back(std::move(served));
  one.thread = std::thread([this, &one] { serve(one); });
}

void FakeDaemon::serve(Served& served) {
  ipc::Command command;
  while (served.channel->wait() == ipc::EngineChannel::Wait::kCommand) {
    while (served.channel->try_pop(command).value_or(false)) {
      {
        std::lock_guard lock(mutex_);
        ++counts_[command.header.type];
        if (command.header.type == CommandType::kCopy) copies_.push_back(*command.as<ipc::Copy>());
      }
      if (command.header.reply_slot == ipc::kNoReply) {
        execute(served, command);
      } else {
        answer(served, command);
      }
      // Work is done when its command is.
      for (std::uint32_t slot = 0; slot < ipc::kProgressSlots; ++slot)
        served.channel->publish_completed(slot, served.channel->position());
    }
  }
}

void FakeDaemon::execute(Served& served, const ipc::Command& command) {
  if (fault_next_.exchange(false)) {
    served.channel->fail({ErrorCode::kIllegalAddress, "a kernel wrote to 0x10"});
    return;
  }
  if (const ErrorCode code = report_next_.exchange(ErrorCode::kNone); code != ErrorCode::kNone) {
    served.channel->set_async_error({code, "the test says so"});
    return;
  }
  if (command.header.type == CommandType::kCopy) {
    const auto copy = *command.as<ipc::Copy>();
    const auto memory_of = [&](const Place& place) {
      if (place.is(PlaceKind::kSlot))
        return served.channel->staging(place.part).data() + place.address;
      if (place.is(PlaceKind::kBlock)) return served.blocks.at(place.object).mapped + place.address;
      return served.at(place.address);
    };
    const auto pitch_of = [&](const Place& place) {
      return place.is(PlaceKind::kSlot) ? copy.box.width : place.pitch;
    };
    move_rows(memory_of(copy.to), pitch_of(copy.to), memory_of(copy.from), pitch_of(copy.from),
              copy.box.width, copy.box.height);
    if (const auto turn = slot_of(copy)) served.channel->finish_staging(turn->slot, turn->sequence);
  } else if (command.header.type == CommandType::kCopyInline) {
    std::span<const std::byte> bytes;
    const auto copy = *command.as<ipc::CopyInline>(&bytes);
    std::memcpy(served.at(copy.address), bytes.data(), bytes.size());
  } else if (command.header.type == CommandType::kHostFree) {
    const auto found = served.blocks.find(command.as<ipc::IdCommand>()->id);
    if (found == served.blocks.end()) std::abort();
    ::munmap(found->second.mapped, found->second.bytes);
    served.blocks.erase(found);
  } else if (command.header.type == CommandType::kFill) {
    const auto fill = *command.as<ipc::Fill>();
    for (std::uint64_t row = 0; row < fill.height; ++row) {
      auto* const to = served.at(fill.to) + row * fill.pitch;
      for (std::uint64_t at = 0; at < fill.width; at += fill.element)
        move_unseen(to + at, reinterpret_cast<const std::byte*>(&fill.value), fill.element);
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
  std::lock_guard lock(mutex_);
  const auto refusal = refusals_.find(command.header.type);
  if (refusal != refusals_.end() && refusal->second.code != ErrorCode::kNone) {
    served.channel->reply_error(command.header.reply_slot, command.header.reply_sequence,
                                refusal->second);
    return;
  }
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
    case CommandType::kHostAllocate: {
      const auto request = *command.as<ipc::HostAllocate>();
      const auto memory = ipc::make_shared_memory("test", request.bytes);
      if (!memory || !served.channel->send_memory(request.id, memory->get())) std::abort();
      void* const mapped =
          ::mmap(nullptr, request.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->get(), 0);
      ipc::AddressReply answer{reinterpret_cast<std::uintptr_t>(mapped)};
      // One that client and daemon, who are one process here, can both have: the client's to map.
      if (request.least != 0) answer.address = free_address(request.least, request.bytes);
      served.blocks.emplace(request.id,
                            Served::Block{static_cast<std::byte*>(mapped), request.bytes});
      return reply(answer);
    }
    case CommandType::kMemoryInfo:
      return reply(ipc::MemoryInfoReply{kMemoryBytes - served.used, kMemoryBytes});
    case CommandType::kGlobalGet:
      return reply(ipc::GlobalReply{served.base(), 64});
    case CommandType::kFunctionGet:
      return reply(function_);
    case CommandType::kFunctionParameters: {
      ipc::ParameterReply parameters{};
      std::uint32_t offset = 0;
      for (const std::uint32_t size : parameter_sizes_) {
        parameters.parameters[parameters.count++] = {offset, size};
        offset += size;
      }
      return reply(parameters);
    }
    case CommandType::kModuleOffer:
      return reply(ipc::OfferReply{0, 0});
    case CommandType::kQuery:
      return reply(ipc::QueryReply{1, 0});
    case CommandType::kEventElapsed:
      return reply(ipc::ElapsedReply{1.5f, 0});
    default:
      break;
  }
  served.channel->reply(command.header.reply_slot, command.header.reply_sequence, {});
}

}  // namespace slate::test
