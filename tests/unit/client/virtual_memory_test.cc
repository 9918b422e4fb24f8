#include "client/session/virtual_memory.h"

#include <gtest/gtest.h>

#include "tests/unit/client/fake_engine.h"

namespace slate::client {
namespace {

using ipc::CommandType;

constexpr std::uint64_t kGranule = VirtualMemory::kGranule;
constexpr std::uint64_t kVirtualBase = 0x7000'0000'0000;

class VirtualMemoryTest : public ::testing::Test {
 protected:
  VirtualMemoryTest() {
    engine.answer(CommandType::kAddressReserve, ipc::AddressReply{kVirtualBase});
    engine.answer(CommandType::kMemoryInfo, ipc::MemoryInfoReply{});
    EXPECT_EQ(memory.reserve(16 * kGranule, 0, 0).value(), kVirtualBase);
  }
  template <typename T>
  static ErrorCode code(const Result<T>& result) {
    return result ? ErrorCode::kNone : result.error().code;
  }
  std::size_t sent(CommandType type) {
    EXPECT_TRUE(engine.session->memory().info());  // an answer comes behind all before it
    return engine.all(type).size();
  }
  bool covers(std::uint64_t address, std::uint64_t bytes) {
    return engine.session->copies().covers(Place::on_device(address), {bytes});
  }

  FakeEngine engine;
  VirtualMemory& memory = engine.session->virtual_memory();
};

TEST_F(VirtualMemoryTest, MappedNeighboursAreOneRangeOfTheSessionsMemory) {
  const auto one = memory.create(kGranule, {}), other = memory.create(2 * kGranule, {});
  ASSERT_TRUE(one && other);
  EXPECT_NE(*one, *other);
  ASSERT_TRUE(memory.map(kVirtualBase + 2 * kGranule, kGranule, 0, *one));
  ASSERT_TRUE(memory.map(kVirtualBase, 2 * kGranule, 0, *other));
  ASSERT_TRUE(memory.map(kVirtualBase + 3 * kGranule, kGranule, 0, *one)) << "a second time";
  EXPECT_TRUE(covers(kVirtualBase + 4, 4 * kGranule - 4));
  EXPECT_FALSE(covers(kVirtualBase + 4, 4 * kGranule));
  EXPECT_EQ(memory.mapping_at(kVirtualBase + kGranule + 1)->address, kVirtualBase);
  EXPECT_EQ(memory.mapping_at(kVirtualBase + 3 * kGranule)->handle, *one);
  EXPECT_FALSE(memory.mapping_at(kVirtualBase + 4 * kGranule));
  EXPECT_FALSE(engine.session->memory().free(kVirtualBase)) << "no allocation of cuMemAlloc";
  ASSERT_TRUE(memory.unmap(kVirtualBase + 2 * kGranule, kGranule));
  EXPECT_TRUE(covers(kVirtualBase, 2 * kGranule));
  EXPECT_FALSE(covers(kVirtualBase + 2 * kGranule, 4));
  EXPECT_TRUE(covers(kVirtualBase + 3 * kGranule, kGranule));
  ASSERT_TRUE(memory.unmap(kVirtualBase, 16 * kGranule)) << "all that is there";
  EXPECT_FALSE(covers(kVirtualBase, 4));
  EXPECT_EQ(sent(CommandType::kPhysicalUnmap), 2u);
  EXPECT_EQ(sent(CommandType::kPhysicalRelease), 0u) << "the handles are still held";
}

TEST_F(VirtualMemoryTest, TheMemoryGoesWithItsLastHandleAndMapping) {
  const auto handle = memory.create(kGranule, {});
  ASSERT_TRUE(memory.map(kVirtualBase, kGranule, 0, *handle));
  ASSERT_TRUE(memory.release(*handle));
  EXPECT_EQ(code(memory.release(*handle)), ErrorCode::kInvalidValue);
  EXPECT_EQ(code(memory.map(kVirtualBase + kGranule, kGranule, 0, *handle)),
            ErrorCode::kInvalidValue);
  EXPECT_EQ(code(memory.properties(*handle)), ErrorCode::kInvalidValue);
  EXPECT_EQ(memory.retain(kVirtualBase + 5).value(), *handle);
  EXPECT_EQ(code(memory.retain(kVirtualBase + kGranule)), ErrorCode::kInvalidValue);
  ASSERT_TRUE(memory.map(kVirtualBase + kGranule, kGranule, 0, *handle));
  ASSERT_TRUE(memory.unmap(kVirtualBase, 2 * kGranule));
  EXPECT_EQ(sent(CommandType::kPhysicalRelease), 0u);
  ASSERT_TRUE(memory.release(*handle));
  EXPECT_EQ(sent(CommandType::kPhysicalRelease), 1u);
  const auto again = memory.create(kGranule, {});
  ASSERT_TRUE(memory.map(kVirtualBase, kGranule, 0, *again));
  ASSERT_TRUE(memory.release(*again));
  ASSERT_TRUE(memory.unmap(kVirtualBase, kGranule));
  EXPECT_EQ(sent(CommandType::kPhysicalRelease), 2u);
}

TEST_F(VirtualMemoryTest, MistakesAreSeenWithoutTheDaemon) {
  const auto handle = memory.create(2 * kGranule, {});
  EXPECT_EQ(code(memory.create(kGranule + 1, {})), ErrorCode::kInvalidValue);
  EXPECT_EQ(code(memory.reserve(5, 0, 0)), ErrorCode::kInvalidValue);
  EXPECT_EQ(code(memory.reserve(kGranule, 3, 0)), ErrorCode::kInvalidValue);
  EXPECT_EQ(code(memory.map(kVirtualBase, kGranule, 0, *handle)), ErrorCode::kInvalidValue);
  EXPECT_EQ(code(memory.map(kVirtualBase, kGranule, kGranule, *handle)), ErrorCode::kInvalidValue);
  EXPECT_EQ(code(memory.map(kVirtualBase + 15 * kGranule, 2 * kGranule, 0, *handle)),
            ErrorCode::kInvalidValue);
  ASSERT_TRUE(memory.map(kVirtualBase + kGranule, 2 * kGranule, 0, *handle));
  for (const std::uint64_t at : {0, 1, 2})
    EXPECT_EQ(code(memory.map(kVirtualBase + at * kGranule, 2 * kGranule, 0, *handle)),
              ErrorCode::kInvalidValue);
  EXPECT_EQ(code(memory.unmap(kVirtualBase, kGranule)), ErrorCode::kInvalidValue);
  EXPECT_EQ(code(memory.unmap(kVirtualBase, 2 * kGranule)), ErrorCode::kInvalidValue);
  EXPECT_EQ(code(memory.unmap(kVirtualBase + 2 * kGranule, kGranule)), ErrorCode::kInvalidValue);
  EXPECT_EQ(code(memory.free_reservation(kVirtualBase, 16 * kGranule)), ErrorCode::kInvalidValue);
  EXPECT_EQ(sent(CommandType::kPhysicalMap), 1u);
  ASSERT_TRUE(memory.unmap(kVirtualBase + kGranule, 2 * kGranule));
  EXPECT_EQ(code(memory.free_reservation(kVirtualBase, kGranule)), ErrorCode::kInvalidValue);
  EXPECT_TRUE(memory.is_reserved(kVirtualBase, 16 * kGranule));
  EXPECT_TRUE(memory.free_reservation(kVirtualBase, 16 * kGranule));
  EXPECT_FALSE(memory.is_reserved(kVirtualBase, 1));
  EXPECT_EQ(sent(CommandType::kAddressFree), 1u);
}

TEST_F(VirtualMemoryTest, AccessAndPropertiesAreKept) {
  const AllocationProperties properties{.type = 1, .handle_types = 1, .location_type = 1};
  const auto handle = memory.create(kGranule, properties);
  EXPECT_EQ(memory.properties(*handle).value(), properties);
  ASSERT_TRUE(memory.map(kVirtualBase, kGranule, 0, *handle));
  ASSERT_TRUE(memory.map(kVirtualBase + kGranule, kGranule, 0, *handle));
  ASSERT_TRUE(memory.map(kVirtualBase + 3 * kGranule, kGranule, 0, *handle));
  EXPECT_EQ(memory.access(kVirtualBase).value(), 0u);
  EXPECT_TRUE(memory.set_access(kVirtualBase, 2 * kGranule, 3));
  EXPECT_EQ(memory.access(kVirtualBase + kGranule + 7).value(), 3u);
  EXPECT_EQ(code(memory.set_access(kVirtualBase, 4 * kGranule, 1)), ErrorCode::kInvalidValue)
      << "a gap";
  EXPECT_EQ(memory.access(kVirtualBase + 3 * kGranule).value(), 0u);
  EXPECT_EQ(code(memory.access(kVirtualBase + 2 * kGranule)), ErrorCode::kInvalidValue);
  ASSERT_TRUE(memory.release(*handle));
  EXPECT_EQ(memory.properties_at(kVirtualBase + 7), properties)
      << "mapped memory has them without a handle";
  EXPECT_FALSE(memory.properties_at(kVirtualBase + 2 * kGranule));
  EXPECT_EQ(memory.reservation_at(kVirtualBase + 2 * kGranule)->address, kVirtualBase);
  EXPECT_EQ(memory.reservation_at(kVirtualBase)->bytes, 16 * kGranule);
  EXPECT_FALSE(memory.reservation_at(kVirtualBase + 16 * kGranule));
}

}  // namespace
}  // namespace slate::client
