#include "device/cuda/used_memory.h"

#include <gtest/gtest.h>

namespace slate::cuda {
namespace {

constexpr unsigned char kFake[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0xfe, 0xff};
constexpr unsigned char kOther[16] = {};

TEST(UsedMemoryTest, TheLibraryIsAskedForTheGpuByItsUuid) {
  const UsedMemory used(kFake, FAKE_NVML_PATH);
  EXPECT_EQ(used.now(), 1u << 20);
  EXPECT_EQ(used.now(), 2u << 20);
  EXPECT_EQ(UsedMemory(kOther, FAKE_NVML_PATH).now(), std::nullopt) << "another GPU";
}

TEST(UsedMemoryTest, WithoutTheLibraryNothingIsKnown) {
  EXPECT_EQ(UsedMemory(kFake, "libnvidia-ml-that-is-not-there.so").now(), std::nullopt);
  EXPECT_EQ(UsedMemory(kFake, "libc.so.6").now(), std::nullopt);
}

}  // namespace
}  // namespace slate::cuda
