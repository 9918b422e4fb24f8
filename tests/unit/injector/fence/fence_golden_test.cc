// What the fence makes of the golden kernels, against the files of tests/golden/fence.
#include <fmt/format.h>

#include "injector/fence/fence.h"
#include "tests/unit/forms/golden.h"

namespace slate::injector {
namespace {

class FenceGoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(FenceGoldenTest, FencedKernelIsAsRecorded) {
  const auto module = ptx::parse(test::read_golden("kernels", GetParam()));
  ASSERT_TRUE(module) << module.error().message;
  const auto fenced = fence(**module, {});
  ASSERT_TRUE(fenced) << fenced.error().message;
  std::string got = fenced->ptx;
  for (const FenceVerdict& entry : fenced->entries) {
    got += entry.legal()
               ? fmt::format("// {}: {} accesses, {} proven, {} covered, {} checks, {} waits\n",
                             entry.name, entry.counts.accesses, entry.counts.proven,
                             entry.counts.covered, entry.counts.checks, entry.counts.waits)
               : fmt::format("// {}: {}\n", entry.name, entry.why_not);
  }
  test::compare_with_golden("fence", GetParam(), got);
}

INSTANTIATE_TEST_SUITE_P(Kernels, FenceGoldenTest, testing::ValuesIn(test::golden_cases()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace slate::injector
