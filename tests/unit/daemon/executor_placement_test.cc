// Executor: launches that need more of the device than a policy gives them.
#include "tests/unit/daemon/executor_fixture.h"
#include "tests/unit/daemon/fake_device.h"

namespace slate::daemon {
namespace {

/// Starts everything natively on the first unit.
class NarrowPolicy : public scheduler::Policy {
 public:
  explicit NarrowPolicy(const scheduler::Machine&) {}
  std::string_view name() const override { return "narrow"; }
  void decide(const scheduler::View& view, scheduler::Decisions& decisions) override {
    for (const scheduler::SessionView& session : view.sessions) {
      if (session.waiting)
        decisions.start.push_back({.session = session.id, .placement = {.first = 0, .count = 1}});
    }
  }
  void finished(const scheduler::Completion&) override {}
};

TEST_F(ExecutorTest, ALaunchMayBeginEarlyIfItsProgramSaysSo) {
  auto made = std::make_unique<FakeDevice>();
  FakeDevice& fake = *made;
  start_with<NarrowPolicy>(std::move(made));
  auto client = connect();
  client->SessionClient::load("not read", "noop");
  // Enough launches for rows, which must not take those that may begin early.
  for (int i = 0; i < 100; ++i) {
    const bool early = i % 3 == 0;
    ipc::Launch launch{1, 0, {1, 1, 1}, {32, 1, 1}, 0, sizeof(std::uint64_t)};
    launch.flags = early ? ipc::kLaunchOverlaps : 0;
    ASSERT_TRUE(client->channel->post(ipc::CommandType::kLaunch, ipc::bytes_of(launch),
                                      ipc::bytes_of(std::uint64_t{0})));
    client->synchronize();
    EXPECT_EQ(fake.newest().overlaps, early) << i;
  }
}

TEST_F(ExecutorTest, WhatIsCompiledForClustersGetsTheWholeDevice) {
  auto made = std::make_unique<FakeDevice>();
  FakeDevice& fake = *made;
  fake.allow_partitions();
  fake.add_kernel("clusters", {.has_clusters = true});
  start_with<NarrowPolicy>(std::move(made));
  for (const bool clusters : {false, true, false}) {
    auto client = connect();
    client->SessionClient::load("not read", clusters ? "clusters" : "noop");
    client->launch(0, 1, std::uint64_t{0});
    client->synchronize();
    EXPECT_EQ(fake.newest().on_a_part, !clusters);
  }
}

}  // namespace
}  // namespace slate::daemon
