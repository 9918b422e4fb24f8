#include "daemon/engine/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using scheduler::Form;
using scheduler::Machine;
using scheduler::Placement;
using scheduler::Time;

constexpr Machine kTracedMachine{.sm_count = 20, .units = 3, .sms_per_unit = 8};  // 8, 8 and 4 SMs

/// Not json::value(), for which g++ 12 invents null pointers.
bool has_category(const json& event, const char* category) {
  return event.contains("cat") && event["cat"] == category;
}

class TraceTest : public testing::Test {
 protected:
  TraceLaunch launch(std::uint64_t session, std::uint64_t number, Placement placement) {
    return {.session = session,
            .launch = number,
            .kernel = trace_.name("_Z5scalePfi"),
            .form = Form::kWorker,
            .placement = placement,
            .blocks = 640};
  }
  /// The events of the JSON for which `wanted` holds.
  template <typename Wanted>
  std::vector<json> find(Wanted wanted) {
    const json all = json::parse(chrome_json(trace_.snapshot(), kTracedMachine));
    std::vector<json> found;
    for (const json& event : all["traceEvents"]) {
      if (wanted(event)) found.push_back(event);
    }
    return found;
  }
  std::vector<json> of_category(const std::string& category) {
    return find([&](const json& event) { return has_category(event, category.c_str()); });
  }
  /// What the counter track of one session says, in order.
  std::vector<int> sms_held(const std::string& session) {
    int pid = 0;
    for (const json& event : find([](const json& e) { return e["name"] == "process_name"; })) {
      if (event["args"]["name"].get<std::string>().starts_with(session)) pid = event["pid"];
    }
    std::vector<int> values;
    for (const json& event : find([&](const json& e) { return e["ph"] == "C" && e["pid"] == pid; }))
      values.push_back(event["args"]["SMs"]);
    return values;
  }
  Time at(std::chrono::microseconds time) const { return start_ + time; }

  Trace trace_{1000};
  const Time start_ = trace_.snapshot().start;
};

TEST_F(TraceTest, ALaunchIsASliceWithItsFormAndPlacement) {
  trace_.session_begins(7, trace_.name("train"), 99, at(0us));
  trace_.launch_waits(launch(7, 1, {}), at(100us));
  trace_.launch_starts(launch(7, 1, {.first = 1, .count = 2}), at(150us));
  trace_.launch_ends(launch(7, 1, {.first = 1, .count = 2}), 0.25, 3, at(400us));
  const auto kernels = of_category("kernel");
  ASSERT_EQ(kernels.size(), 1u);
  const json& kernel = kernels[0];
  EXPECT_EQ(kernel["name"], "scale");
  EXPECT_NEAR(kernel["ts"].get<double>(), 150, 0.01);
  EXPECT_NEAR(kernel["dur"].get<double>(), 250, 0.01);
  EXPECT_EQ(kernel["args"]["form"], "worker");
  EXPECT_EQ(kernel["args"]["sms"], "8-19");
  EXPECT_EQ(kernel["args"]["blocks"], 640);
  EXPECT_EQ(kernel["args"]["launches"], 3);
  EXPECT_NEAR(kernel["args"]["waited_us"].get<double>(), 50, 0.1);
  const auto waiting = of_category("waiting");
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_EQ(waiting[0]["pid"], kernel["pid"]);
  EXPECT_EQ(find([&](const json& event) {
              return event["name"] == "process_name" && event["pid"] == kernel["pid"];
            })[0]["args"]["name"],
            "train (session 7, pid 99)");
}

TEST_F(TraceTest, ALaunchBehindAnotherOneBeginsWhenTheDeviceBeganIt) {
  for (const std::uint64_t number : {1, 2})
    trace_.launch_starts(launch(7, number, kTracedMachine.whole()), at(0us));
  trace_.launch_ends(launch(7, 1, kTracedMachine.whole()), 0.1, 1, at(100us));
  trace_.launch_ends(launch(7, 2, kTracedMachine.whole()), 0.1, 1, at(200us));
  const auto kernels = of_category("kernel");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_NEAR(kernels[1]["ts"].get<double>(), 100, 0.01);
  EXPECT_EQ(kernels[0]["tid"], kernels[1]["tid"]);
}

TEST_F(TraceTest, LaunchesSideBySideOfOneSessionHaveLanesOfTheirOwn) {
  trace_.launch_starts(launch(7, 1, kTracedMachine.whole()), at(0us));
  trace_.launch_starts(launch(7, 2, kTracedMachine.whole()), at(50us));
  trace_.launch_ends(launch(7, 1, kTracedMachine.whole()), 0, 1, at(100us));
  trace_.launch_ends(launch(7, 2, kTracedMachine.whole()), 0, 1, at(120us));
  const auto kernels = of_category("kernel");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_NE(kernels[0]["tid"], kernels[1]["tid"]);
  // Nor do they count twice as holders of the same SMs.
  EXPECT_EQ(sms_held("session 7"), (std::vector<int>{20, 0}));
}

TEST_F(TraceTest, TheSmsHeldFollowResizesRetreatsAndResumptions) {
  trace_.launch_starts(launch(7, 1, kTracedMachine.whole()), at(0us));
  trace_.resized(launch(7, 1, {.first = 0, .count = 1}), at(100us));
  trace_.launch_starts(launch(8, 2, {.first = 1, .count = 2}), at(100us));
  trace_.retreated(launch(7, 1, {}), at(200us));
  trace_.resumed(launch(7, 1, {.first = 0, .count = 1}), at(300us));
  trace_.launch_ends(launch(8, 2, {.first = 1, .count = 2}), 0, 1, at(300us));
  trace_.launch_ends(launch(7, 1, {.first = 0, .count = 1}), 0, 1, at(400us));
  EXPECT_EQ(sms_held("session 7"), (std::vector<int>{20, 8, 0, 8, 0}));
  EXPECT_EQ(sms_held("session 8"), (std::vector<int>{12, 0}));
  std::vector<std::string> marks;
  for (const json& mark : of_category("resize")) marks.push_back(mark["name"]);
  EXPECT_EQ(marks, (std::vector<std::string>{"resize to 0-7", "retreat to none", "resume to 0-7"}));
}

TEST_F(TraceTest, EachUnitShowsWhoHeldIt) {
  trace_.launch_starts(launch(7, 1, kTracedMachine.whole()), at(0us));
  trace_.launch_starts(launch(8, 2, {.first = 2, .count = 1}), at(100us));
  trace_.launch_ends(launch(7, 1, kTracedMachine.whole()), 0, 1, at(200us));
  trace_.launch_ends(launch(8, 2, {.first = 2, .count = 1}), 0, 1, at(300us));
  std::map<int, std::vector<std::string>> holders;
  for (const json& slice : of_category("sms")) holders[slice["tid"]].push_back(slice["name"]);
  EXPECT_EQ(holders[1], (std::vector<std::string>{"session 7"}));
  EXPECT_EQ(holders[3],
            (std::vector<std::string>{"session 7", "session 7 + session 8", "session 8"}));
}

TEST_F(TraceTest, ThePauseBetweenTwoLaunchesIsNotDrawn) {
  for (int i = 0; i < 3; ++i) {
    const auto number = static_cast<std::uint64_t>(i);
    trace_.launch_starts(launch(7, number, kTracedMachine.whole()), at(i * 100us));
    trace_.launch_ends(launch(7, number, kTracedMachine.whole()), 0, 1, at(i * 100us + 95us));
  }
  EXPECT_EQ(sms_held("session 7"), (std::vector<int>{20, 0}));
}

TEST_F(TraceTest, WhatIsStillRunningLastsUntilNow) {
  trace_.launch_starts(launch(7, 1, kTracedMachine.whole()), at(0us));
  const auto kernels = of_category("kernel");
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_GT(kernels[0]["dur"].get<double>(), 0);
}

TEST_F(TraceTest, ALaunchThatWasDroppedUnstartedOnlyWaited) {
  trace_.launch_waits(launch(7, 1, {}), at(0us));
  trace_.launch_ends(launch(7, 1, {}), 0, 1, at(50us));
  EXPECT_TRUE(of_category("kernel").empty());
  ASSERT_EQ(of_category("waiting").size(), 1u);
  EXPECT_NEAR(of_category("waiting")[0]["dur"].get<double>(), 50, 0.01);
}

TEST_F(TraceTest, DecisionsAndPoliciesAreInstants) {
  trace_.policy_changed("adaptive", at(5us));
  trace_.decided("", 0, at(6us));
  trace_.decided("a \"newcomer\"", 0.875, at(10us));
  ASSERT_EQ(of_category("decision").size(), 1u);
  EXPECT_EQ(of_category("decision")[0]["name"], "a \"newcomer\"");
  EXPECT_EQ(of_category("decision")[0]["args"]["score"], 0.875);
  EXPECT_EQ(of_category("policy")[0]["name"], "adaptive");
}

TEST_F(TraceTest, AnEmptyTraceIsValidJson) {
  const json all = json::parse(chrome_json(trace_.snapshot(), kTracedMachine));
  EXPECT_TRUE(all["traceEvents"].is_array());
  const std::chrono::duration<double, std::micro> start =
      trace_.snapshot().start.time_since_epoch();
  EXPECT_NEAR(all["otherData"]["monotonic_us"].get<double>(), start.count(), 1);
}

TEST(TraceRingTest, ForgetsTheOldestFirst) {
  Trace trace(4);
  for (std::uint64_t i = 0; i < 10; ++i) trace.launch_waits({.launch = i});
  const auto events = trace.snapshot().events;
  ASSERT_EQ(events.size(), 4u);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(events[i].launch.launch, 6 + i);
}

TEST(TraceRingTest, AForgottenStartIsTheBeginningOfTheTrace) {
  Trace trace(2);
  const auto start = trace.snapshot().start;
  const TraceLaunch launch{.session = 1, .launch = 1, .placement = kTracedMachine.whole()};
  trace.launch_starts(launch, start);
  trace.launch_starts({.session = 2, .launch = 2, .placement = kTracedMachine.whole()},
                      start + 50us);
  trace.launch_ends(launch, 0, 1, start + 100us);
  const json all = json::parse(chrome_json(trace.snapshot(), kTracedMachine));
  int kernels = 0;
  for (const json& event : all["traceEvents"]) {
    if (has_category(event, "kernel")) ++kernels;
  }
  EXPECT_EQ(kernels, 2);
}

TEST(TraceRingTest, AnEndedSessionKeepsItsNameAsLongAsAnEventOfItIsThere) {
  Trace trace(3);
  trace.session_begins(1, trace.name("train"), 5);
  trace.session_ends(1);
  trace.decided("one");
  trace.decided("two");
  EXPECT_EQ(trace.snapshot().sessions.size(), 1u);
  trace.decided("three");
  EXPECT_TRUE(trace.snapshot().sessions.empty());
}

TEST(TraceRingTest, TheLastSecondsCanBeHadAlone) {
  Trace trace(10);
  trace.decided("old", 0, Trace::Clock::now() - 10s);
  trace.decided("new");
  ASSERT_EQ(trace.snapshot(5).events.size(), 1u);
  EXPECT_EQ(trace.snapshot(5).events[0].reason, "new");
  EXPECT_EQ(trace.snapshot().events.size(), 2u);
}

TEST(TraceRingTest, WithoutCapacityNothingIsKept) {
  Trace trace(0);
  EXPECT_EQ(trace.name("a"), trace.name("b"));
  trace.session_begins(1, 0, 5);
  trace.launch_waits({.launch = 1});
  EXPECT_TRUE(trace.snapshot().events.empty());
  EXPECT_TRUE(trace.snapshot().sessions.empty());
}

TEST(TraceRingTest, NamesWithoutEndDoNotGrowIt) {
  Trace trace(1);
  const auto first = trace.name("first");
  EXPECT_EQ(trace.name("first"), first);
  for (int i = 0; i < 100'000; ++i) (void)trace.name("made up " + std::to_string(i));
  EXPECT_LT(trace.snapshot().names.size(), 20'000u);
  EXPECT_EQ(trace.snapshot().names[trace.name("one more")], "(other)");
  EXPECT_EQ(trace.name("first"), first);
}

TEST(TraceRingTest, ThreadsMayAddWhileItIsRead) {
  Trace trace(100);
  std::vector<std::jthread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&trace, t] {
      for (std::uint64_t i = 0; i < 5000; ++i) trace.launch_waits({.session = t, .launch = i});
    });
  }
  for (int i = 0; i < 100; ++i) EXPECT_LE(trace.snapshot().events.size(), 100u);
  threads.clear();
  EXPECT_EQ(trace.snapshot().events.size(), 100u);
}

}  // namespace
}  // namespace slate::daemon
