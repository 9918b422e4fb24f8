#include "daemon/engine/completer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "tests/unit/daemon/fake_device.h"

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;

constexpr auto kLongWait = 60s;

class CompleterTest : public testing::Test {
 protected:
  CompleterTest()
      : stream_(*device_.create_stream(0)), completer_(std::make_unique<Completer>(device_)) {}
  ~CompleterTest() override {
    EXPECT_TRUE(group_.wait_empty(kLongWait));
    completer_.reset();
    device_.destroy_stream(stream_);
  }

  void submit(const char* kernel) {
    const auto module = *device_.load_module(device::ImageKind::kPtx, image_);
    const std::array<std::byte, 8> parameter{};
    ASSERT_TRUE(device_.launch(
        {.function = *device_.find_function(module, kernel), .parameters = parameter}, stream_));
    device_.unload_module(module);
  }

  const std::array<std::byte, 1> image_{std::byte{'x'}};
  FakeDevice device_;
  device::Stream stream_;
  Completer::Group group_;
  std::unique_ptr<Completer> completer_;
};

TEST_F(CompleterTest, ACallbackRunsAfterTheWorkBeforeIt) {
  device_.hold(true);
  submit("noop");
  std::promise<std::size_t> traced;
  ASSERT_TRUE(completer_->watch(group_, stream_, [&](const Result<void>& outcome) {
    EXPECT_TRUE(outcome);
    traced.set_value(device_.trace().size());
  }));
  EXPECT_FALSE(group_.wait_empty(0ms));
  device_.hold(false);
  EXPECT_EQ(traced.get_future().get(), 1u);
  ASSERT_TRUE(group_.wait_empty(kLongWait));
}

TEST_F(CompleterTest, CallbacksOfAStreamRunInOrder) {
  std::vector<int> order;
  device_.hold(true);
  for (int i = 0; i < 50; ++i) {
    submit("noop");
    ASSERT_TRUE(
        completer_->watch(group_, stream_, [&, i](const Result<void>&) { order.push_back(i); }));
  }
  device_.hold(false);
  ASSERT_TRUE(group_.wait_empty(kLongWait));
  ASSERT_EQ(order.size(), 50u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(CompleterTest, HoweverTheyAreNoticedTheEndsOfAStreamComeInOrder) {
  using Notice = Completer::Notice;
  std::vector<int> calls;
  device_.hold(true);
  for (int i = 0; i < 9; ++i) {
    submit("noop");
    const auto call = [&, i](const Result<void>& outcome) {
      EXPECT_TRUE(outcome);
      EXPECT_GT(device_.trace().size(), static_cast<std::size_t>(i));
      calls.push_back(i);
    };
    if (i % 3 == 2) {
      auto event = *SharedEvent::make(device_, true);
      ASSERT_TRUE(device_.record(event->get(), stream_));
      completer_->watch(group_, stream_, std::move(event), call);
    } else {
      const Notice notice = i % 3 == 0 ? Notice::kSoon : Notice::kCheap;
      ASSERT_TRUE(completer_->watch(group_, stream_, call, notice));
    }
  }
  submit("spin");  // behind all of them
  EXPECT_FALSE(group_.wait_empty(0ms));
  device_.hold(false);
  ASSERT_TRUE(group_.wait_empty(kLongWait));
  EXPECT_EQ(calls, (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  device_.release_spinning();
}

TEST_F(CompleterTest, AFaultReachesTheCallback) {
  submit("fault");
  std::promise<ErrorCode> code;
  ASSERT_TRUE(completer_->watch(group_, stream_, [&](const Result<void>& outcome) {
    code.set_value(outcome ? ErrorCode::kNone : outcome.error().code);
  }));
  EXPECT_EQ(code.get_future().get(), ErrorCode::kIllegalAddress);
  ASSERT_TRUE(group_.wait_empty(kLongWait));
}

TEST_F(CompleterTest, ACallbackMayWatchAgain) {
  std::atomic<int> calls{0};
  ASSERT_TRUE(completer_->watch(group_, stream_, [&](const Result<void>&) {
    ++calls;
    EXPECT_TRUE(completer_->watch(group_, stream_, [&](const Result<void>&) { ++calls; }));
  }));
  ASSERT_TRUE(group_.wait_empty(kLongWait));
  EXPECT_EQ(calls, 2);
}

TEST_F(CompleterTest, AnEventIsNotHeldUpByLaterWorkOfItsStream) {
  auto event = *SharedEvent::make(device_, false);
  submit("noop");
  ASSERT_TRUE(device_.record(event->get(), stream_));
  submit("spin");
  std::atomic<bool> later{false};
  ASSERT_TRUE(completer_->watch(group_, stream_, [&](const Result<void>&) { later = true; }));
  std::promise<bool> reached;
  completer_->watch(group_, event, [&](const Result<void>&) { reached.set_value(later); });
  EXPECT_FALSE(reached.get_future().get());
  device_.release_spinning();
  ASSERT_TRUE(group_.wait_empty(kLongWait));
}

TEST_F(CompleterTest, OneStreamDoesNotHoldUpAnother) {
  const auto other = *device_.create_stream(0);
  submit("spin");
  ASSERT_TRUE(completer_->watch(group_, stream_, [](const Result<void>&) {}));
  std::promise<void> reached;
  ASSERT_TRUE(completer_->watch(group_, other, [&](const Result<void>&) { reached.set_value(); }));
  reached.get_future().wait();
  EXPECT_FALSE(group_.wait_empty(0ms));
  device_.release_spinning();
  ASSERT_TRUE(group_.wait_empty(kLongWait));
  device_.destroy_stream(other);
}

TEST_F(CompleterTest, AnOwnerThatLooksRunsItsCallbacksItself) {
  submit("noop");
  std::thread::id ran_on;
  while (ran_on != std::this_thread::get_id()) {
    completer_->look(group_, true);  // from now on, the completer's thread leaves it alone
    std::promise<std::thread::id> ran;
    ASSERT_TRUE(completer_->watch(
        group_, stream_, [&](const Result<void>&) { ran.set_value(std::this_thread::get_id()); }));
    auto reached = ran.get_future();
    // A busy machine may let the other thread believe that this one has gone to sleep.
    while (reached.wait_for(0s) != std::future_status::ready) completer_->look(group_, true);
    ran_on = reached.get();
  }
}

TEST_F(CompleterTest, WhatAnOwnerLeavesIsLookedAfter) {
  device_.hold(true);
  submit("noop");
  completer_->look(group_, true);
  std::promise<void> reached;
  ASSERT_TRUE(
      completer_->watch(group_, stream_, [&](const Result<void>&) { reached.set_value(); }));
  EXPECT_FALSE(completer_->look(group_, true));
  completer_->leave(group_);
  device_.hold(false);
  reached.get_future().wait();
}

TEST_F(CompleterTest, AnOwnerThatLooksNoMoreWithoutSayingSoIsNoticed) {
  submit("spin");
  completer_->look(group_, true);
  std::promise<void> reached;
  ASSERT_TRUE(
      completer_->watch(group_, stream_, [&](const Result<void>&) { reached.set_value(); }));
  completer_->look(group_, true);
  device_.release_spinning();
  reached.get_future().wait();
}

}  // namespace
}  // namespace slate::daemon
