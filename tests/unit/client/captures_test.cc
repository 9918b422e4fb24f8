// Streams that capture, and the graphs that come of it, without any API's spelling.
#include "client/session/captures.h"

#include <gtest/gtest.h>

#include "client/session/graph_exec.h"
#include "client/session/graph_shape.h"
#include "tests/unit/client/fake_engine.h"

namespace slate::client {
namespace {

class CapturesTest : public ::testing::Test {
 protected:
  /// A node that records an event.
  static Work record(std::uint64_t event) { return RecordNode{event}; }
  std::uint64_t stream() { return *session.streams().create(ipc::kStreamNonBlocking, 0); }
  std::uint64_t event() { return *session.events().create(ipc::kEventNoTiming); }

  FakeEngine engine;
  Session& session = *engine.session;
  Captures& captures = session.captures();
};

TEST_F(CapturesTest, WorkIsDoneWhereNothingCaptures) {
  EXPECT_FALSE(captures.takes(stream()));
  EXPECT_FALSE(captures.add(stream(), record(event())));
}

TEST_F(CapturesTest, CapturedWorkIsSentByTheLaunchOfTheGraph) {
  engine.answer(ipc::CommandType::kMemoryInfo, ipc::MemoryInfoReply{});
  const std::uint64_t from = stream(), on = stream(), recorded = event();
  ASSERT_TRUE(captures.begin(from, CaptureMode::kGlobal));
  EXPECT_TRUE(captures.takes(from));
  EXPECT_FALSE(captures.takes(on));
  ASSERT_TRUE(captures.add(from, record(recorded)).value());
  const auto graph = captures.end(from);
  ASSERT_TRUE(graph);
  ASSERT_TRUE(session.memory().info());
  EXPECT_TRUE(engine.all(ipc::CommandType::kEventRecord).empty());

  const auto exec = instantiate(*graph, 0);
  ASSERT_TRUE(exec);
  ASSERT_TRUE(launch_graph(session, *exec, on));
  ASSERT_TRUE(session.memory().info());  // an answer comes behind all before it
  EXPECT_EQ(engine.all(ipc::CommandType::kEventRecord).size(), 2u)
      << "the node's, and the launch's";
  EXPECT_TRUE(destroy_exec(*exec));
  EXPECT_TRUE(destroy_graph(*graph));
  EXPECT_EQ(destroy_graph(*graph).error().why, Refusal::kInvalidValue);
}

TEST_F(CapturesTest, WorkOfOneStreamFollowsTheWorkBeforeIt) {
  const std::uint64_t from = stream();
  ASSERT_TRUE(captures.begin(from, CaptureMode::kRelaxed));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(captures.add(from, EmptyNode{}).value());
  const auto graph = captures.end(from);
  ASSERT_TRUE(graph);
  const auto nodes = nodes_of(*graph);
  ASSERT_EQ(nodes->size(), 3u);
  EXPECT_EQ(roots_of(*graph)->size(), 1u);
  EXPECT_EQ(edges_of(*graph)->size(), 2u);
  EXPECT_EQ(edges_before((*nodes)[2])->front().from, (*nodes)[1]);
  EXPECT_TRUE(destroy_graph(*graph));
}

TEST_F(CapturesTest, AWaitForACapturedEventJoinsTheStream) {
  const std::uint64_t from = stream(), joined = stream(), forked = event(), back = event();
  ASSERT_TRUE(captures.begin(from, CaptureMode::kGlobal));
  ASSERT_TRUE(captures.record(from, forked).value());
  ASSERT_TRUE(captures.wait(joined, forked).value());
  ASSERT_TRUE(captures.add(joined, EmptyNode{}).value());
  EXPECT_EQ(captures.check_event(forked, Captures::Asks::kWhen).error().why,
            Refusal::kCapturedEvent);
  ASSERT_TRUE(captures.record(joined, back).value());
  ASSERT_TRUE(captures.wait(from, back).value());
  const auto graph = captures.end(from);
  ASSERT_TRUE(graph);
  EXPECT_EQ(nodes_of(*graph)->size(), 1u);
  EXPECT_TRUE(destroy_graph(*graph));
}

TEST_F(CapturesTest, WorkThatTheFirstStreamDoesNotWaitForLosesTheGraph) {
  const std::uint64_t from = stream(), joined = stream(), forked = event();
  ASSERT_TRUE(captures.begin(from, CaptureMode::kGlobal));
  ASSERT_TRUE(captures.record(from, forked).value());
  ASSERT_TRUE(captures.wait(joined, forked).value());
  ASSERT_TRUE(captures.add(joined, EmptyNode{}).value());
  EXPECT_EQ(captures.end(from).error().why, Refusal::kCaptureUnjoined);
  EXPECT_FALSE(captures.takes(joined));
}

TEST_F(CapturesTest, WhatCannotBeCapturedLosesTheCapture) {
  const std::uint64_t from = stream();
  ASSERT_TRUE(captures.begin(from, CaptureMode::kGlobal));
  EXPECT_EQ(captures.refuse_work(from).error().why, Refusal::kCaptureRefused);
  EXPECT_EQ(*captures.state(from), CaptureState::kInvalid);
  EXPECT_EQ(captures.end(from).error().why, Refusal::kCaptureInvalid);
  EXPECT_EQ(*captures.state(from), CaptureState::kNone);
}

TEST_F(CapturesTest, NumbersThatAreNoModesAreRefused) {
  EXPECT_EQ(captures.begin(stream(), static_cast<CaptureMode>(7)).error().why,
            Refusal::kInvalidValue);
}

}  // namespace
}  // namespace slate::client
