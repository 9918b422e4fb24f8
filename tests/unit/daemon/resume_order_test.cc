// Whose turn it is after the device was lost, and who is the cause if it is lost again.
#include "daemon/engine/resume_order.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace slate::daemon {
namespace {

using Sessions = std::vector<std::uint64_t>;

TEST(ResumeOrderTest, TheOnlySessionWithKernelsIsTheCause) {
  ResumeOrder order;
  EXPECT_EQ(order.culprit(Sessions{}), 0u);
  EXPECT_EQ(order.culprit(Sessions{7}), 7u);
  EXPECT_EQ(order.culprit(Sessions{7, 8}), 0u);
}

TEST(ResumeOrderTest, TheSessionWhoseTurnItIsIsTheCauseUnlessOthersAreAtWork) {
  ResumeOrder order;
  order.expect(3);
  order.begin(3);
  EXPECT_EQ(order.culprit(Sessions{}), 3u);
  EXPECT_EQ(order.culprit(Sessions{3}), 3u);
  EXPECT_EQ(order.culprit(Sessions{3, 9}), 0u) << "9 came before it was known that 3 would";
  EXPECT_EQ(order.culprit(Sessions{9}), 9u);
  order.end(3);
  EXPECT_EQ(order.culprit(Sessions{}), 0u);
}

TEST(ResumeOrderTest, OneSessionAtATimeHasItsTurnAndTheOthersWaitForAll) {
  ResumeOrder order;
  order.expect(1);
  order.expect(2);
  order.begin(1);
  bool second = false, other = false;
  std::thread two([&] {
    order.begin(2);
    second = true;
    order.end(2);
  });
  std::thread newcomer([&] {
    order.wait_for_all();
    other = second;
  });
  EXPECT_EQ(order.culprit(Sessions{}), 1u);
  order.end(1);
  two.join();
  newcomer.join();
  EXPECT_TRUE(other);
}

}  // namespace
}  // namespace slate::daemon
