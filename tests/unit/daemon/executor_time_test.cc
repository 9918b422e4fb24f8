// Executor: launches wait while the engine has had more of the device's time than others.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "daemon/engine/executor.h"
#include "tests/unit/daemon/executor_fixture.h"
#include "tests/unit/daemon/other_engine.h"

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;

class ExecutorTimeTest : public ExecutorTest {
 protected:
  // sim is a hundred times slower under a sanitizer.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  static constexpr int kMany = 20;
#else
  static constexpr int kMany = 200;
#endif
  static constexpr std::uint32_t kWords = 200;

  void start_adaptive() {
    start("sim:sms=4", policy_maker("adaptive", {}));
  }
  /// A program that launches `count` kernels and waits for every tenth. Its words count them.
  void begin_program(int count) {
    client_ = connect();
    program_ = std::thread([this, count] {
      client_->load();
      const std::uint64_t address = client_->allocate(kWords * 4);
      client_->fill(0, address, kWords * 4);
      std::uint32_t wanted = 0;
      for (int i = 0; i < count; ++i) {
        client_->launch(0, kWords, Parameters{address, 1, 400});
        wanted = 3 * wanted + 1;
        if (i % 10 == 0) client_->synchronize();
      }
      client_->synchronize();
      for (const std::uint32_t word : client_->read(address, kWords)) EXPECT_EQ(word, wanted);
      has_ended_.store(true);
    });
  }
  void join() {
    program_.join();
  }
  /// Waits for it as long as the program goes on.
  void wait_until(const std::function<bool()>& condition) {
    while (!condition()) {
      ASSERT_FALSE(has_ended_.load()) << "the program ended before";
      std::this_thread::sleep_for(1ms);
    }
  }
  bool launch_waits() const {
    return executor_->status(1)->waits;
  }

  std::unique_ptr<Client> client_;
  std::thread program_;
  std::atomic<bool> has_ended_ = false;
};

TEST_F(ExecutorTimeTest, LaunchesWaitWhileAnotherEngineIsBehind) {
  start_adaptive();
  OtherEngine other;
  other.stays_behind();
  other.meet(*executor_);
  begin_program(kMany);
  wait_until([&] { return other.is_kept_off() && launch_waits(); });
  const double received = other.seen().received_ms;
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(other.is_kept_off());
  EXPECT_TRUE(launch_waits());
  EXPECT_EQ(other.seen().received_ms, received) << "it has nothing of the device meanwhile";
  EXPECT_FALSE(executor_->uses().at(0).waits_since) << "nobody here keeps it waiting";
  other.has_no_work();
  join();
  EXPECT_FALSE(other.seen().holds);
}

TEST_F(ExecutorTimeTest, LaunchesGoOnWhenTheOtherEngineDies) {
  start_adaptive();
  OtherEngine other;
  other.stays_behind();
  other.meet(*executor_);
  begin_program(kMany);
  wait_until([&] { return other.is_kept_off(); });
  other.dies();
  join();
}

TEST_F(ExecutorTimeTest, AnEngineThatHasWorkAlreadyMeetsAnother) {
  start_adaptive();
  begin_program(2 * kMany);
  wait_until([&] {
    const auto status = executor_->status(1);
    return status && status->blocks > 0;
  });
  OtherEngine other;
  other.stays_behind();
  other.meet(*executor_);
  wait_until([&] { return other.is_kept_off(); });
  other.has_no_work();
  join();
}

TEST_F(ExecutorTimeTest, BesideAnIdleEngineNothingWaits) {
  start_adaptive();
  OtherEngine other;
  other.meet(*executor_);
  begin_program(kMany);
  join();
  EXPECT_EQ(other.seen().received_ms, 0) << "nothing was received beside another engine";
}

TEST_F(ExecutorTimeTest, ASessionThatIsHeldCanEnd) {
  start_adaptive();
  OtherEngine other;
  other.stays_behind();
  other.meet(*executor_);
  client_ = connect();
  client_->load();
  const std::uint64_t address = client_->allocate(kWords * 4);
  // So slowly that the ring has room: a launch that finds none waits for the session's thread.
  while (!other.seen().holds) {
    client_->launch(0, kWords, Parameters{address, 1, 4000});
    std::this_thread::sleep_for(1ms);
  }
  client_->leave();
}

}  // namespace
}  // namespace slate::daemon
