// A client that asks for more than its share of what all sessions have: it is refused, and the
// others notice nothing.
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "tests/unit/daemon/session_fixture.h"

namespace slate::daemon {
namespace {

using ipc::CommandType;
using namespace std::chrono_literals;

constexpr std::string_view kHead = ".version 8.8\n.target sm_90\n.address_size 64\n";

/// About so many bytes of a kernel that takes a hundred times as much when it is parsed.
std::string bomb(std::size_t bytes) {
  std::string text = std::string(kHead) + ".visible .entry k()\n{\n";
  while (text.size() < bytes) text += "x;";
  return text + "ret;\n}\n";
}

class GreedyClientTest : public SessionTest {
 protected:
  static Result<void> load(TestSession& session, std::uint64_t id, std::string_view text) {
    return session.call(CommandType::kModuleLoad,
                        ipc::ModuleLoad{id, text.size(), 0, ipc::kImagePtx, 0},
                        TestSession::text(text));
  }
};

TEST_F(GreedyClientTest, WithoutMemoryForItAModuleIsRefused) {
  TestSession session(device_, completer_);
  EXPECT_EQ(load(session, 1, "#").error().code, ErrorCode::kOutOfMemory);
  EXPECT_TRUE(session.load("noop")) << "the session goes on";
  EXPECT_TRUE(session.synchronize());
}

TEST_F(GreedyClientTest, WithoutMemoryForAnyOtherCommandItsSessionFails) {
  TestSession session(device_, completer_), other(device_, completer_);
  ASSERT_TRUE(session.load("noop"));
  ASSERT_TRUE(other.load("noop"));
  device_.before_launch([](const std::string&) { throw std::bad_alloc(); });
  ASSERT_TRUE(session.launch(0));
  EXPECT_EQ(session.synchronize().error().code, ErrorCode::kOutOfMemory);
  device_.before_launch([](const std::string&) { throw std::length_error("too long"); });
  ASSERT_TRUE(other.launch(0));
  EXPECT_EQ(other.synchronize().error().code, ErrorCode::kOutOfMemory);
  device_.before_launch({});
  TestSession next(device_, completer_);
  ASSERT_TRUE(next.load("noop"));
  EXPECT_TRUE(next.launch(0));
  EXPECT_TRUE(next.synchronize());
}

TEST_F(GreedyClientTest, SoMuchCodeMayASessionKeepInTheEngine) {
  TestSession session(device_, completer_), other(device_, completer_);
  device_.pretend_host_bytes(ModuleStore::kMostHostBytes / 2);
  ASSERT_TRUE(load(session, 1, "a"));
  ASSERT_TRUE(load(session, 2, "b"));
  EXPECT_EQ(load(session, 3, "c").error().code, ErrorCode::kLimit);
  EXPECT_TRUE(load(other, 1, "d"));
  ASSERT_TRUE(session.post(CommandType::kModuleUnload, ipc::IdCommand{1}));
  ASSERT_TRUE(session.synchronize());
  EXPECT_TRUE(load(session, 3, "c"));
}

TEST_F(GreedyClientTest, WhatASessionsFunctionsTakeCountsToo) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.load("noop"));
  device_.pretend_host_bytes(ModuleStore::kMostHostBytes + 1);
  const auto second = session.call<ipc::FunctionReply>(
      CommandType::kFunctionGet, ipc::FunctionGet{1, 2}, TestSession::text("write"));
  EXPECT_EQ(second.error().code, ErrorCode::kLimit);
}

/// On the store by itself, with forms.
class GreedyModuleTest : public testing::Test {
 protected:
  ~GreedyModuleTest() override { store_.release(); }
  Result<void> load(std::uint64_t id, std::string_view text) {
    return store_.add_chunk({id, text.size(), 0, ipc::kImagePtx, 0}, TestSession::text(text));
  }

  FakeDevice device_;
  Compiler compiler_{device_, nullptr};
  ModuleStore store_{device_, compiler_, true, false};
};

TEST_F(GreedyModuleTest, WhatIsTooLargeToBeRewrittenIsLoadedAsItIs) {
  device_.add_kernel("k", {});
  const std::string text = bomb(1 << 20);
  ASSERT_TRUE(load(1, text));
  ASSERT_EQ(device_.loaded().size(), 1u);
  EXPECT_TRUE(device_.loaded()[0] == "ptx:" + text);
  const auto function = store_.add_function(1, 1, "k");
  ASSERT_TRUE(function);
  EXPECT_EQ((*function)->forms, nullptr);
}

TEST_F(GreedyModuleTest, AnImageForWhichNoMemoryIsLeftIsForgotten) {
  EXPECT_EQ(load(1, "#").error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(store_.count(), 0u);
  EXPECT_TRUE(load(1, "a")) << "its id is free";
}

TEST(LoadTurnsTest, LargeImagesComeOneAfterTheOther) {
  LoadTurns turns;
  auto first = turns.begin(LoadTurns::kBytes * 4);
  std::atomic<bool> second_began = false, third_began = false;
  std::thread second([&] {
    const auto turn = turns.begin(LoadTurns::kBytes / 2);
    second_began = true;
    while (!third_began) std::this_thread::yield();  // both fit
  });
  std::thread third([&] {
    const auto turn = turns.begin(LoadTurns::kBytes / 2);
    third_began = true;
  });
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(second_began || third_began);
  first.reset();
  second.join();
  third.join();
}

}  // namespace
}  // namespace slate::daemon
