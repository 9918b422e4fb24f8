#include "device/cuda/used_memory.h"

#include <gtest/gtest.h>

namespace slate::cuda {
namespace {

/// With bytes that count up, up to one that is negative as a char.
CUuuid uuid_of_fake() {
  CUuuid uuid{};
  for (int i = 0; i < 14; ++i) uuid.bytes[i] = static_cast<char>(i);
  uuid.bytes[14] = static_cast<char>(0xfe);
  uuid.bytes[15] = static_cast<char>(0xff);
  return uuid;
}

TEST(UsedMemoryTest, TheLibraryIsAskedForTheGpuByItsUuid) {
  const UsedMemory used(uuid_of_fake(), FAKE_NVML_PATH);
  EXPECT_EQ(used.now(), 1u << 20);
  EXPECT_EQ(used.now(), 2u << 20);
  EXPECT_EQ(UsedMemory(CUuuid{}, FAKE_NVML_PATH).now(), std::nullopt) << "another GPU";
}

TEST(UsedMemoryTest, WithoutTheLibraryNothingIsKnown) {
  EXPECT_EQ(UsedMemory(uuid_of_fake(), "libnvidia-ml-that-is-not-there.so").now(), std::nullopt);
  EXPECT_EQ(UsedMemory(uuid_of_fake(), "libc.so.6").now(), std::nullopt);
}

}  // namespace
}  // namespace slate::cuda
