// A session on a shared executor, and the client's end of its channel, in one process. For tests of
// what the executor does with several sessions; one session by itself: session_fixture.h.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "daemon/engine/session.h"
#include "tests/unit/ipc/session_ends.h"

namespace slate::daemon {

class SessionClient {
 public:
  static constexpr std::uint32_t kThreads = 32;  // of a block

  SessionClient(device::Device& device, Compiler& compiler, Executor& executor,
                Completer& completer, std::uint64_t id, std::uint32_t uid = ::geteuid()) {
    ipc::SessionEnds ends(device.info(), 64 << 20);
    bell_ = std::move(ends.bell);
    channel = std::move(ends.client);
    SessionSpec spec;
    spec.id = id;
    spec.uid = uid;
    spec.program = "test";
    spec.memory_limit = 64 << 20;
    spec.ends = std::move(ends.ends);
    spec.segment = std::move(ends.segment);
    SessionHooks hooks;
    hooks.device_lost = [](const Error& fault) { ADD_FAILURE() << fault.message; };
    session_ = std::make_unique<Session>(device, compiler, executor, completer, std::move(spec),
                                         std::move(hooks), std::chrono::seconds(60));
    thread_ = std::thread([this] { session_->run(); });
  }
  ~SessionClient() { leave(); }
  /// The client goes; returns when the session has ended.
  void leave() {
    channel.reset();
    bell_.reset();
    if (thread_.joinable()) thread_.join();
  }

  Session& session() { return *session_; }

  template <typename Body>
  void call(ipc::CommandType type, const Body& body, std::span<const std::byte> tail = {},
            std::span<std::byte> answer = {}) {
    const auto done = channel->call(type, ipc::bytes_of(body), tail, answer);
    ASSERT_TRUE(done) << done.error().message;
  }
  /// The module becomes number 1, its kernel function 1.
  void load(std::string_view module, std::string_view kernel) {
    const auto text = std::as_bytes(std::span(module));
    call(ipc::CommandType::kModuleLoad, ipc::ModuleLoad{1, text.size(), 0, ipc::kImagePtx, 0},
         text);
    ipc::FunctionReply reply{};
    call(ipc::CommandType::kFunctionGet, ipc::FunctionGet{1, 1}, std::as_bytes(std::span(kernel)),
         std::as_writable_bytes(std::span(&reply, 1)));
  }
  std::uint64_t allocate(std::uint64_t bytes) {
    ipc::AddressReply reply{};
    call(ipc::CommandType::kMemoryAllocate, ipc::MemoryAllocate{bytes}, {},
         std::as_writable_bytes(std::span(&reply, 1)));
    return reply.address;
  }
  /// Function 1.
  template <typename Parameters>
  void launch(std::uint64_t stream, std::uint32_t blocks, const Parameters& parameters) {
    launch(stream, {blocks, 1, 1}, {kThreads, 1, 1}, parameters);
  }
  template <typename Parameters>
  void launch(std::uint64_t stream, device::Dim3 grid, device::Dim3 block,
              const Parameters& parameters, std::uint32_t dynamic_shared = 0) {
    const ipc::Launch launch{1,
                             stream,
                             {grid.x, grid.y, grid.z},
                             {block.x, block.y, block.z},
                             dynamic_shared,
                             sizeof(Parameters)};
    ASSERT_TRUE(
        channel->post(ipc::CommandType::kLaunch, ipc::bytes_of(launch), ipc::bytes_of(parameters)));
  }
  void synchronize() {
    call(ipc::CommandType::kSynchronize, ipc::Target{ipc::TargetKind::kSession, 0, 0});
  }

  std::unique_ptr<ipc::ClientChannel> channel;

 private:
  UniqueFd bell_;
  std::unique_ptr<Session> session_;
  std::thread thread_;
};

}  // namespace slate::daemon
