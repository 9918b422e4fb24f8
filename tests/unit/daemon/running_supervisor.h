// A supervisor in a thread of the test's process, with engine processes of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "daemon/supervisor/supervisor.h"

namespace slate::daemon {

class RunningSupervisor {
 public:
  /// `program`: what is started as engine. Keeps no state unless `config` says where.
  RunningSupervisor(const char* program, const std::string& directory, Config config = {},
                    Reload reload = {})
      : stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    config.device = "sim";
    if (config.state_dir.empty()) config.state_dir = "none";
    config.runtime_dir = directory;
    auto made = Supervisor::make(config, program, stop_fd_.get(), std::move(reload));
    EXPECT_TRUE(made) << made.error().message;
    // The engine dies with the thread that started it, so the whole life is in one thread.
    thread_ = std::thread([this, supervisor = std::move(*made)]() mutable {
      result_ = supervisor->run();
      supervisor.reset();
    });
  }
  ~RunningSupervisor() { stop(); }

  Result<void> stop() {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(stop_fd_.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
    if (thread_.joinable()) thread_.join();
    return result_;
  }

 private:
  UniqueFd stop_fd_;
  Result<void> result_;
  std::thread thread_;
};

}  // namespace slate::daemon
