// A session on a FakeDevice, with the client's end of its channel in the test's hands.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "daemon/engine/session.h"
#include "ipc/channel.h"
#include "tests/unit/daemon/fake_device.h"
#include "tests/unit/ipc/session_ends.h"

namespace slate::daemon {

/// One session and its client. Destruction lets the client leave and waits for the session's end.
class TestSession {
 public:
  TestSession(device::Device& device, Completer& completer, std::uint64_t limit = 64 << 20,
              std::chrono::milliseconds grace = std::chrono::seconds(60), SessionHooks hooks = {},
              Compiler* compiler = nullptr, std::shared_ptr<Exports> exports = nullptr,
              std::uint64_t id = 1, std::uint32_t uid = ::geteuid(),
              std::shared_ptr<ImageStore> images = nullptr,
              const std::function<void(SessionSpec&)>& adapt = nullptr, FormMaker* maker = nullptr)
      : own_compiler_(device, nullptr),
        forms_(device, FormChoice::kNative, true, maker),
        executor_(device, forms_, completer, trace_, policy_maker("fifo", {}), {}) {
    ipc::SessionEnds ends(device.info(), limit);
    raw = std::move(ends.raw);
    bell_ = std::move(ends.bell);
    client = std::move(ends.client);
    SessionSpec spec;
    spec.id = id;
    spec.uid = uid;
    spec.exports = std::move(exports);
    spec.images = std::move(images);
    spec.program = "test";
    spec.memory_limit = limit;
    spec.ends = std::move(ends.ends);
    spec.segment = std::move(ends.segment);
    if (adapt) adapt(spec);
    if (!hooks.device_lost) hooks.device_lost = [](const Error&) {};
    if (!hooks.stuck) hooks.stuck = [](std::uint64_t) {};
    session =
        std::make_unique<Session>(device, compiler != nullptr ? *compiler : own_compiler_,
                                  executor_, completer, std::move(spec), std::move(hooks), grace);
    thread_ = std::thread([this] {
      session->run();
      ended = true;
    });
  }
  ~TestSession() { leave(); }

  /// The client goes; returns when the session has ended.
  void leave() {
    hang_up();
    join();
  }
  void hang_up() {
    client.reset();
    bell_.reset();
  }
  /// What a client does that wrote into the segment by itself: wakes the session's thread.
  void ring() { EXPECT_EQ(::write(bell_.get(), &ipc::kWakeByte, 1), 1); }
  /// Returns when the session has ended.
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  template <typename Body>
  Result<void> post(ipc::CommandType type, const Body& body, std::span<const std::byte> tail = {}) {
    return client->post(type, ipc::bytes_of(body), tail);
  }
  template <typename Answer, typename Body>
  Result<Answer> call(ipc::CommandType type, const Body& body,
                      std::span<const std::byte> tail = {}) {
    Answer answer{};
    const auto done = client->call(type, ipc::bytes_of(body), tail,
                                   std::as_writable_bytes(std::span(&answer, 1)));
    if (!done) return std::unexpected(done.error());
    return answer;
  }
  template <typename Body>
  Result<void> call(ipc::CommandType type, const Body& body, std::span<const std::byte> tail = {}) {
    return client->call(type, ipc::bytes_of(body), tail, {});
  }

  Result<std::uint64_t> allocate(std::uint64_t bytes) {
    const auto answer =
        call<ipc::AddressReply>(ipc::CommandType::kMemoryAllocate, ipc::MemoryAllocate{bytes});
    if (!answer) return std::unexpected(answer.error());
    return answer->address;
  }
  Result<void> synchronize() {
    return call(ipc::CommandType::kSynchronize, ipc::Target{ipc::TargetKind::kSession, 0, 0});
  }
  static std::span<const std::byte> text(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
  }
  /// Loads module 1 with `kernel` as function 1.
  Result<ipc::FunctionReply> load(std::string_view kernel) {
    const auto loaded = call(ipc::CommandType::kModuleLoad,
                             ipc::ModuleLoad{1, 3, 0, ipc::kImagePtx, 0}, text("ptx"));
    if (!loaded) return std::unexpected(loaded.error());
    return add_function(1, kernel);
  }
  /// Requires: module 1 is loaded.
  Result<ipc::FunctionReply> add_function(std::uint64_t id, std::string_view kernel) {
    return call<ipc::FunctionReply>(ipc::CommandType::kFunctionGet, ipc::FunctionGet{1, id},
                                    text(kernel));
  }
  Result<void> launch(std::uint64_t argument, std::uint64_t stream = 0,
                      std::uint64_t function = 1) {
    return post(ipc::CommandType::kLaunch,
                ipc::Launch{function, stream, {1, 1, 1}, {1, 1, 1}, 0, 8}, ipc::bytes_of(argument));
  }
  Result<int> read_int(std::uint64_t address) {
    auto staging = client->acquire_staging();
    if (!staging) return std::unexpected(staging.error());
    auto done =
        post(ipc::CommandType::kCopy, ipc::Copy{Place::in_slot(staging->slot, staging->sequence),
                                                Place::on_device(address, 4),
                                                {4},
                                                0});
    if (done) done = client->wait_staging(*staging);
    int value = 0;
    std::memcpy(&value, staging->memory.data(), sizeof(value));
    client->release_staging(*staging, true);
    if (!done) return std::unexpected(done.error());
    return value;
  }
  /// The first error of commands without reply, once everything before has been looked at.
  ErrorCode async_error() {
    (void)call<ipc::MemoryInfoReply>(ipc::CommandType::kMemoryInfo, char{});
    return client->take_async_error().code;
  }

  Compiler own_compiler_;
  FormService forms_;  // before session, as what follows
  Trace trace_{0};
  Executor executor_;
  std::unique_ptr<ipc::ClientChannel> client;
  ipc::Segment raw;
  std::unique_ptr<Session> session;
  std::atomic<bool> ended{false};

 private:
  UniqueFd bell_;
  std::thread thread_;
};

class SessionTest : public testing::Test {
 protected:
  ~SessionTest() override { EXPECT_TRUE(device_.lost() || device_.holds_nothing()); }

  FakeDevice device_;
  Completer completer_{device_};
};

}  // namespace slate::daemon
