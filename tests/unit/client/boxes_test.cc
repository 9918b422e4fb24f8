// Copies of arrays as commands: how boxes are cut for the staging slots, and what goes straight.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/client/fake_engine.h"

namespace slate::client {
namespace {

using ipc::CommandType;

/// A fake engine with one array of three dimensions, elements of 4 bytes.
class BoxesTest : public ::testing::Test {
 protected:
  static constexpr ArrayFormat kWord{ChannelKind::kUnsigned, 32, 1, 0};

  BoxesTest() {
    engine.handle(CommandType::kCopy, [this](const ipc::Command& command) {
      const auto copy = *command.as<ipc::Copy>();
      if (slot_of(copy)) move(copy);
    });
  }

  /// Makes the array, and memory behind it.
  ArrayTable::Entry make(ArrayExtent extent) {
    const ArraySpec spec{kWord, extent, 0, 0};
    const auto id = engine.session->arrays().create(spec);
    EXPECT_TRUE(id);
    const auto entry = *engine.session->arrays().table().find(*id);
    elements.assign(entry.box().width * 4 * entry.box().height * entry.box().depth, std::byte{});
    box = entry.box();
    return entry;
  }

  void move(const ipc::Copy& copy) {
    const bool to_device = copy.from.is(PlaceKind::kSlot);
    const Place& slot = to_device ? copy.from : copy.to;
    const Place& array = to_device ? copy.to : copy.from;
    EXPECT_LE(copy.box.bytes(), ipc::kStagingSlotBytes);
    EXPECT_EQ(copy.box.width % 4, 0u);
    std::byte* packed = engine.channel->staging(slot.part).data() + slot.address;
    for (std::uint64_t z = 0; z < copy.box.depth; ++z) {
      for (std::uint64_t y = 0; y < copy.box.height; ++y, packed += copy.box.width) {
        std::byte* const there =
            elements.data() + ((array.z + z) * box.height + array.y + y) * box.width * 4 + array.x;
        std::memcpy(to_device ? there : packed, to_device ? packed : there, copy.box.width);
      }
    }
    engine.channel->finish_staging(slot.part, slot.object);
  }

  /// There and back again must give the same.
  void expect_round_trip(ArrayExtent extent, std::uint64_t pitch) {
    const auto array = make(extent);
    const std::uint64_t width = box.width * 4, slice = pitch * (box.height + 1);
    std::vector<std::byte> source(slice * box.depth);
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = std::byte((i * 7 + i / 253) & 0xff);
    Session& session = *engine.session;
    const Box whole{width, box.height, box.depth};
    ASSERT_TRUE(session.copies().copy(Place::in_array(array.array),
                                      Place::on_host(source.data(), pitch, slice), whole, 0));
    std::vector<std::byte> back(source.size(), std::byte{0xee});
    ASSERT_TRUE(session.copies().copy(Place::on_host(back.data(), pitch, slice),
                                      Place::in_array(array.array), whole, 0));
    for (std::uint64_t z = 0; z < box.depth; ++z) {
      for (std::uint64_t y = 0; y < box.height; ++y) {
        const std::uint64_t at = z * slice + y * pitch;
        ASSERT_EQ(std::memcmp(&back[at], &source[at], width), 0) << y << " of plane " << z;
        if (pitch > width) {
          ASSERT_EQ(back[at + width], std::byte{0xee}) << "behind the row";
        }
      }
    }
  }

  std::vector<std::byte> elements;
  ArrayExtent box;
  FakeEngine engine;
};

TEST_F(BoxesTest, SmallPlanesGoTogether) {
  expect_round_trip({16, 8, 50}, 64);
  EXPECT_EQ(engine.all(CommandType::kCopy).size(), 2u);
}

TEST_F(BoxesTest, LargePlanesAreCutBetweenRows) {
  expect_round_trip({500, 1200, 3}, 2048);
}

TEST_F(BoxesTest, RowsLongerThanASlotAreCutBetweenElements) {
  expect_round_trip({(ipc::kStagingSlotBytes + 4096) / 4, 2, 0}, ipc::kStagingSlotBytes + 8192);
}

TEST_F(BoxesTest, WhatIsOnTheDeviceTakesOneCommand) {
  const auto array = make({64, 64, 4});
  ASSERT_TRUE(engine.session->copies().copy(Place::in_array(array.array, 0, 8, 1, 2),
                                            Place::on_device(0x1000, 512, 4096), {16, 3, 2}, 0));
  const auto copy = *engine.wait_for(CommandType::kCopy).as<ipc::Copy>();
  EXPECT_TRUE(copy.to.is(PlaceKind::kArray));
  EXPECT_EQ(copy.to.object, array.array);
  EXPECT_EQ(copy.to.x, 8u);
  EXPECT_EQ(copy.to.z, 2u);
  EXPECT_TRUE(copy.from.is(PlaceKind::kDevice));
  EXPECT_EQ(copy.from.slice, 4096u);
  EXPECT_EQ(copy.box.depth, 2u);
}

TEST_F(BoxesTest, NothingToCopySendsNothing) {
  const auto array = make({64, 0, 0});
  ASSERT_TRUE(engine.session->copies().copy(Place::in_array(array.array),
                                            Place::in_array(array.array), {0, 1, 1}, 0));
  engine.answer(CommandType::kMemoryInfo, ipc::MemoryInfoReply{});
  ASSERT_TRUE(engine.session->memory().info());  // whatever was sent has come by now
  EXPECT_TRUE(engine.all(CommandType::kCopy).empty());
}

TEST_F(BoxesTest, AnArrayIsGoneAtOnceAndItsIdNeverComesAgain) {
  const auto array = make({64, 0, 0});
  Session& session = *engine.session;
  ASSERT_TRUE(session.arrays().destroy(array.array));
  EXPECT_FALSE(session.arrays().table().find(array.array));
  EXPECT_EQ(session.arrays().destroy(array.array).error().code, ErrorCode::kInvalidHandle);
  EXPECT_NE(make({64, 0, 0}).array, array.array);
}

TEST(ArrayTableTest, LevelsHaveIdsThatGoWithTheArray) {
  std::atomic<std::uint64_t> counter{0};
  ArrayTable table(counter);
  const std::uint64_t id = table.next_id();
  table.add(id, {{ChannelKind::kFloat, 32, 1, 0}, {16, 8, 0}, 0, 3});
  const std::uint64_t level = table.level(id, 2);
  ASSERT_NE(level, 0u);
  EXPECT_EQ(table.level(id, 2), level);
  EXPECT_EQ(table.level(id, 3), 0u);
  EXPECT_EQ(table.level(level, 0), 0u);
  const auto entry = table.find(level);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->array, id);
  EXPECT_EQ(entry->extent(), (ArrayExtent{4, 2, 0}));
  EXPECT_FALSE(table.remove(level));
  EXPECT_TRUE(table.remove(id));
  EXPECT_FALSE(table.find(level));
  EXPECT_FALSE(table.remove(id));
}

}  // namespace
}  // namespace slate::client
