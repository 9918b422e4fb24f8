// The table of commands: what its rows say at run time. That no row is forgotten is checked by the
// compiler, in ipc/commands.h.
#include "ipc/commands.h"

#include <gtest/gtest.h>

namespace slate::ipc {
namespace {

/// The Object of a command's row; nothing for a type that has none.
std::optional<Object> object_of(CommandType type) {
  return visit_row<std::optional<Object>>(
      type, []<typename Row>() { return std::optional(Row::kObject); },
      [] { return std::optional<Object>(); });
}

TEST(CommandsTest, TypesFromOutsideThatAreNoneHaveNoRow) {
  EXPECT_FALSE(object_of(CommandType::kPad));
  EXPECT_FALSE(object_of(CommandType::kEnd));
  EXPECT_FALSE(object_of(static_cast<CommandType>(0xffff)));
}

TEST(CommandsTest, RowsSayWhichCommandsMakeAndEndObjects) {
  EXPECT_EQ(object_of(CommandType::kModuleLoad), Object::kMakes);
  EXPECT_EQ(object_of(CommandType::kModuleUnload), Object::kEnds);
  EXPECT_EQ(object_of(CommandType::kLaunch), Object::kNeither);
}

TEST(CommandsTest, WorkIsInTheOrderOfItsStream) {
  const Order order = RowOf<CommandType::kEventRecord>::order_of({.event = 7, .stream = 3});
  EXPECT_EQ(order.stream, 3u);
  EXPECT_EQ(order.event, 7u);
  EXPECT_TRUE(order.writes);
  EXPECT_FALSE(order.only_waits);
}

TEST(CommandsTest, AWaitComesAfterWhatItNames) {
  const auto order = [](TargetKind kind) {
    return RowOf<CommandType::kSynchronize>::order_of({kind, 0, 5});
  };
  EXPECT_TRUE(order(TargetKind::kSession).all);
  EXPECT_EQ(order(TargetKind::kStream).stream, 5u);
  EXPECT_EQ(order(TargetKind::kEvent).event, 5u);
  EXPECT_TRUE(order(TargetKind::kEvent).only_waits);
}

}  // namespace
}  // namespace slate::ipc
