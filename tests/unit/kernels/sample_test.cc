// Which results of a large output the programs' checks look at.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/common/program.h"

namespace slate::kernels {
namespace {

std::vector<std::uint64_t> sample(std::uint64_t count, std::uint64_t limit) {
  std::vector<std::uint64_t> found;
  Run().for_sample(count, limit, [&](std::uint64_t index) { found.push_back(index); });
  return found;
}

TEST(SampleTest, EverythingIsLookedAtWhereThereIsLittle) {
  EXPECT_EQ(sample(3, 3), (std::vector<std::uint64_t>{0, 1, 2}));
}

TEST(SampleTest, NoLongStretchIsLeftOut) {
  for (const std::uint64_t count : {1'001ull, 1'999ull, 2'000ull, 123'456'789ull}) {
    constexpr std::uint64_t kLimit = 1000;
    const std::vector<std::uint64_t> found = sample(count, kLimit);
    EXPECT_EQ(found.size(), kLimit + 1);
    EXPECT_EQ(found.back(), count - 1);
    std::uint64_t widest = found.front();
    for (std::size_t i = 1; i < found.size(); ++i) {
      ASSERT_LE(found[i - 1], found[i]) << count;
      widest = std::max(widest, found[i] - found[i - 1]);
    }
    EXPECT_LE(widest, 2 * (count / kLimit + 1)) << count;
  }
}

}  // namespace
}  // namespace slate::kernels
