#include "daemon/engine/again.h"

#include <gtest/gtest.h>

namespace slate::daemon {
namespace {

constexpr device::AddressRange kA{0x1000, 0x100}, kB{0x2000, 0x100}, kC{0x3000, 0x100};

ReachedRanges work(std::vector<device::AddressRange> read,
                   std::vector<device::AddressRange> written) {
  return {.read = std::move(read),
          .written = std::move(written),
          .reads_anything = false,
          .writes_anything = false,
          .name = "work",
          .why_not = {},
          .is_done = false};
}

bool may_again(std::vector<ReachedRanges> commands) {
  return !why_not_again(commands);
}

TEST(AgainTest, WhatOnlyWritesMayBeDoneAgain) {
  EXPECT_TRUE(may_again({work({}, {kA}), work({}, {kA}), work({kB}, {kA})}));
}

TEST(AgainTest, WhatWritesWhatItReadsMayNot) {
  EXPECT_FALSE(may_again({work({kA}, {kA})}));
  EXPECT_FALSE(may_again({work({{0x10f0, 0x10}}, {kA})})) << "also a part of it";
  EXPECT_TRUE(may_again({work({{0x1100, 0x10}}, {kA})})) << "but not what is beside it";
}

TEST(AgainTest, WhatAnEarlierCommandWritesIsWrittenAgainFirst) {
  EXPECT_TRUE(may_again({work({}, {kA}), work({kA}, {kB}), work({kB}, {kC})}));
}

TEST(AgainTest, WhatALaterCommandWritesMayHaveBeenWritten) {
  EXPECT_FALSE(may_again({work({kA}, {kB}), work({kC}, {kA})}));
}

TEST(AgainTest, ALaterCommandThatIsDoneHasWritten) {
  auto done = work({}, {kA});
  done.is_done = true;
  EXPECT_FALSE(may_again({work({kA}, {kB}), done}));
  EXPECT_TRUE(may_again({done, work({kA}, {kB})})) << "an earlier one is part of what was read";
}

TEST(AgainTest, WhatReachesAnythingMayNotBesideOthers) {
  auto any = work({}, {});
  any.reads_anything = any.writes_anything = true;
  EXPECT_FALSE(may_again({any}));
  any.writes_anything = false;
  EXPECT_TRUE(may_again({any}));
  EXPECT_FALSE(may_again({any, work({}, {kA})}));
}

TEST(AgainTest, TheReasonNamesTheCommand) {
  auto never = work({}, {});
  never.name = "kernel";
  never.why_not = "it prints";
  EXPECT_EQ(why_not_again(std::vector{never}), "kernel: it prints");
  never.is_done = true;
  EXPECT_FALSE(why_not_again(std::vector{never}));
}

}  // namespace
}  // namespace slate::daemon
