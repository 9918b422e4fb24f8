// TimeDesk: which engines get the page of device time, and hear of others. With engines that only
// tell what they are sent.
#include "daemon/supervisor/time_desk.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <list>

namespace slate::daemon {
namespace {

class TimeDeskTest : public testing::Test {
 protected:
  EngineProcess& start() {
    auto started = EngineProcess::start(FAKE_ENGINE_PATH, {});
    EXPECT_TRUE(started) << started.error().message;
    engines_.push_back(std::move(*started));
    engines_.back().serial = ++serials_;
    return engines_.back();
  }
  void end(const EngineProcess& engine) {
    engines_.remove_if([&](const EngineProcess& each) { return &each == &engine; });
  }
  void settle() {
    std::vector<EngineProcess*> all;
    for (EngineProcess& each : engines_) all.push_back(&each);
    desk_.settle(all);
  }
  /// How often the engine was told of another one, the serial number that it got, and pages.
  struct Heard {
    int times = 0, pages = 0;
    std::uint64_t serial = 0;
    bool operator==(const Heard&) const = default;
  };
  static Heard heard_by(const EngineProcess& engine) {
    EXPECT_TRUE(engine.link().send({.type = LinkType::kStatusRequest, .number = 1}));
    std::string text;
    while (true) {
      pollfd poller{engine.link().fd(), POLLIN, 0};
      ::poll(&poller, 1, -1);
      const auto message = engine.link().receive();
      if (!message) return {};
      if (!*message || (*message)->header.type != LinkType::kStatusReport) continue;
      text += (*message)->text;
      if (((*message)->header.flags & kLastPiece) != 0) break;
    }
    const auto time = nlohmann::json::parse(text).at("time");
    return {time["times"].get<int>(), time["pages"].get<int>(),
            time["serial"].get<std::uint64_t>()};
  }

  std::uint64_t serials_ = 10;
  std::list<EngineProcess> engines_;
  TimeDesk desk_;
};

TEST_F(TimeDeskTest, ALoneEngineHearsNothing) {
  const EngineProcess& engine = start();
  settle();
  EXPECT_EQ(heard_by(engine), Heard());
  EXPECT_FALSE(desk_.shown_by(engine.serial));
}

TEST_F(TimeDeskTest, EachGetsThePageOnceAndHearsOfEveryOther) {
  const EngineProcess& first = start();
  settle();
  const EngineProcess& second = start();
  settle();
  settle();
  EXPECT_EQ(heard_by(first), (Heard{1, 1, first.serial}));
  EXPECT_EQ(heard_by(second), (Heard{1, 1, second.serial}));
  EXPECT_TRUE(desk_.shown_by(first.serial));
  const EngineProcess& third = start();
  settle();
  EXPECT_EQ(heard_by(first), (Heard{2, 1, first.serial}));
  EXPECT_EQ(heard_by(third), (Heard{1, 1, third.serial}));
}

TEST_F(TimeDeskTest, AnEngineThatHasGoneHasNoSlot) {
  const EngineProcess& first = start();
  const EngineProcess& second = start();
  settle();
  const std::uint64_t gone = second.serial;
  end(second);
  settle();
  EXPECT_FALSE(desk_.shown_by(gone));
  EXPECT_TRUE(desk_.shown_by(first.serial));
  EXPECT_EQ(heard_by(first), (Heard{1, 1, first.serial})) << "it sees that on the page";
}

TEST_F(TimeDeskTest, ANewerSlatedHasTheSamePage) {
  const EngineProcess& first = start();
  start();
  settle();
  Handover handover;
  const auto state = desk_.hand_over(handover);
  TimeDesk newer;
  ASSERT_TRUE(newer.take_over(::dup(state.get<int>())));
  EXPECT_TRUE(newer.shown_by(first.serial));
  TimeDesk of_one_engine;
  ASSERT_TRUE(of_one_engine.take_over(TimeDesk().hand_over(handover)));
  EXPECT_FALSE(of_one_engine.shown_by(first.serial));
}

}  // namespace
}  // namespace slate::daemon
