// A page of device time with the engine under test and another one, which shows what a test says.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include "daemon/engine/executor.h"
#include "daemon/time_page.h"

namespace slate::daemon {

class OtherEngine {
 public:
  OtherEngine() : page_(std::move(*TimePage::make())) {
    EXPECT_TRUE(page_->give(kUnderTest));
    EXPECT_TRUE(page_->give(kOther));
  }
  /// The executor shares the device with this engine from now on.
  void meet(Executor& executor) {
    auto page = TimePage::from_fd(UniqueFd(::dup(page_->fd())));
    ASSERT_TRUE(page);
    executor.share_time(std::move(*page), kUnderTest);
  }
  /// It has work, and receives nothing for it, however long that takes. So it is behind soon.
  void stays_behind() {
    const auto later = std::chrono::steady_clock::now() + std::chrono::hours(1);
    page_->show(kOther, {.uses = true, .holds = false, .received_ms = 0, .part = 0, .at = later});
  }
  void has_no_work() { page_->show(kOther, {}); }
  void dies() { page_->take_back(kOther); }

  /// What the engine under test shows.
  scheduler::ShownTime seen() const { return *page_->shown_by(kUnderTest); }
  /// Whether it is held, and nothing of it is on the device.
  bool is_kept_off() const { return seen().holds && !seen().uses; }

 private:
  static constexpr std::uint64_t kUnderTest = 1, kOther = 2;

  const std::unique_ptr<TimePage> page_;
};

}  // namespace slate::daemon
