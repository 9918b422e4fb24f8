// Commands as the engine serves them: a whole session over sim, whose client writes the ring.
//
// The input is a list of records: type (1 byte), how (1), size (2), and so many bytes of the body.
// A word of the body that begins with kAddressMark stands for an address that the session got:
// which one (the next 2 bytes), and how far behind it (the last 4).
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "base/check.h"
#include "daemon/engine/session.h"
#include "ipc/ring.h"
#include "tests/fuzz/target.h"
#include "tests/unit/ipc/session_ends.h"

namespace slate::fuzz {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::uint8_t kWithReply = 1;  // of `how`
constexpr std::uint8_t kAwaited = 2;    // the next record comes after the reply
constexpr std::uint8_t kFilled = 4;     // the body is filled up with zeros to what its row has
constexpr std::uint64_t kAddressMark = 0xadd2;
constexpr std::size_t kMostRecords = 256;
constexpr auto kMostWait = 100ms;
constexpr const char* kDevice = "sim:sms=2,memory=64M,threads=1,max_kernel_seconds=0.02";

/// The engine around a session, made anew for each input.
struct Engine {
  std::unique_ptr<device::Device> device = std::move(*device::open_device(kDevice));
  daemon::Compiler compiler{*device, nullptr};
  daemon::Completer completer{*device};
  daemon::FormService forms{*device, daemon::FormChoice::kNative};
  daemon::Trace trace{0};
  daemon::Executor executor{*device, forms, completer, trace, daemon::policy_maker("fifo", {}), {}};
};

std::size_t body_bytes(ipc::CommandType type) {
  const auto known = []<typename Row>() { return sizeof(typename Row::Body); };
  return ipc::visit_row<std::size_t>(type, known, [] { return std::size_t{0}; });
}

class Client {
 public:
  explicit Client(Engine& engine) : ends_(engine.device->info(), 32 << 20), ring_(&*raw()) {
    daemon::SessionSpec spec;
    spec.id = 1;
    spec.uid = ::geteuid();
    spec.program = "fuzz";
    spec.memory_limit = 32 << 20;
    spec.ends = std::move(ends_.ends);
    spec.segment = std::move(ends_.segment);
    daemon::SessionHooks hooks{.device_lost = [](const Error&) { std::abort(); },
                               .stuck = [](std::uint64_t) { std::abort(); },
                               .unsupported = [](std::string_view) {}};
    session_ =
        std::make_unique<daemon::Session>(*engine.device, engine.compiler, engine.executor,
                                          engine.completer, std::move(spec), std::move(hooks), 10s);
    thread_ = std::thread([this] {
      session_->run();
      ended_ = true;
    });
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    await([this] { return raw()->status.ring_head.load() == ring_.position(); });
    ends_.client.reset();
    ends_.bell.reset();
    thread_.join();
  }

  /// False once the session takes no more.
  bool send(Input& input) {
    const auto type = static_cast<ipc::CommandType>(take<std::uint8_t>(input));
    const auto how = take<std::uint8_t>(input);
    const auto size = take<std::uint16_t>(input);
    const Input given = take_bytes(input, size);
    std::vector<std::byte> body(given.begin(), given.end());
    if ((how & kFilled) != 0) body.resize(std::max(body.size(), body_bytes(type)));
    put_addresses(body);
    const bool replies = (how & kWithReply) != 0;
    const std::uint32_t sequence = ++sequence_;
    const std::uint16_t slot = replies ? how / 8 : ipc::kNoReply;
    if (!ring_.try_push(type, slot, sequence, body, {})) return false;
    [[maybe_unused]] const auto written = ::write(ends_.bell.get(), &ipc::kWakeByte, 1);
    if (replies && (how & kAwaited) != 0 && slot < ipc::kReplySlots) hear(slot, sequence, type);
    return !ended_;
  }

 private:
  ipc::SegmentLayout* raw() { return ends_.raw.operator->(); }

  void await(const std::function<bool()>& condition) {
    const auto deadline = Clock::now() + kMostWait;
    while (!ended_ && !condition() && Clock::now() < deadline) std::this_thread::sleep_for(10us);
  }

  void put_addresses(std::span<std::byte> body) const {
    for (std::size_t at = 0; at + 8 <= body.size() && !addresses_.empty(); at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, body.data() + at, 8);
      if (word >> 48 != kAddressMark) continue;
      word = addresses_[(word >> 32 & 0xffff) % addresses_.size()] + (word & 0xffff'ffff);
      std::memcpy(body.data() + at, &word, 8);
    }
  }

  /// Waits for a reply, and keeps the address or handle in it.
  void hear(std::uint16_t slot, std::uint32_t sequence, ipc::CommandType type) {
    const ipc::ReplySlot& reply = raw()->status.replies[slot];
    await([&] { return reply.done.load() == sequence; });
    if (reply.done.load() != sequence || reply.status != 0) return;
    SLATE_CHECK(reply.bytes <= ipc::kReplyPayloadBytes);
    using enum ipc::CommandType;
    for (const auto each : {kMemoryAllocate, kGlobalGet, kHostAllocate, kAddressReserve,
                            kTextureCreate, kSurfaceCreate, kMemoryImport}) {
      if (type != each || reply.bytes < 8) continue;
      std::memcpy(&addresses_.emplace_back(), reply.payload, 8);
    }
  }

  ipc::SessionEnds ends_;
  ipc::RingProducer ring_;
  std::unique_ptr<daemon::Session> session_;
  std::thread thread_;
  std::atomic<bool> ended_{false};
  std::uint32_t sequence_ = 0;
  std::vector<std::uint64_t> addresses_;
};

}  // namespace

void run(Input input) {
  Engine engine;
  const std::uint64_t free_at_first = *engine.device->free_memory();
  {
    Client client(engine);
    for (std::size_t i = 0; i < kMostRecords && !input.empty(); ++i) {
      if (!client.send(input)) break;
    }
  }
  SLATE_CHECK(engine.device->free_memory() == free_at_first);
}

}  // namespace slate::fuzz
