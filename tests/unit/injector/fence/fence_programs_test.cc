// The kernels of the programs behind a fence.
#include "tests/unit/injector/fence/fence_forms.h"

namespace slate::test {
namespace {

constexpr int kSchedules = 3;

TEST_P(FenceFormsTest, AFencedKernelInAnyFormGivesThePlainResult) {
  for (int seed = 1; seed <= kSchedules && !HasFailure(); ++seed) run(seed);
}

INSTANTIATE_TEST_SUITE_P(Programs, FenceFormsTest, testing::ValuesIn(program_kernels()),
                         fence_test_name);

}  // namespace
}  // namespace slate::test
