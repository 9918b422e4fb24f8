#include "base/whole_bytes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace slate {
namespace {

TEST(WholeBytesTest, MoreThanAPipeHoldsComesThroughWhole) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  const std::vector<std::byte> sent(1 << 20, std::byte{7});
  std::vector<std::byte> came(sent.size());
  std::thread writer([&] {
    EXPECT_TRUE(write_all(in.get(), sent));
    in.reset();
  });
  EXPECT_TRUE(read_all(out.get(), came));
  EXPECT_FALSE(read_all(out.get(), std::span(came).first(1))) << "nothing is left";
  writer.join();
  EXPECT_EQ(came, sent);
  EXPECT_FALSE(write_all(-1, sent));
}

}  // namespace
}  // namespace slate
