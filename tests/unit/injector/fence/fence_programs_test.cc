// The kernels of the programs behind a fence.
#include "tests/unit/injector/fence/fence_forms.h"

namespace slate::test {
namespace {

constexpr int kProgramSchedules = 3;

TEST_P(FenceFormsTest, AFencedKernelInAnyFormGivesThePlainResult) {
  for (int seed = 1; seed <= kProgramSchedules && !HasFailure(); ++seed) run(seed);
}

INSTANTIATE_TEST_SUITE_P(Programs, FenceFormsTest, testing::ValuesIn(program_kernels()), name_of);

}  // namespace
}  // namespace slate::test
