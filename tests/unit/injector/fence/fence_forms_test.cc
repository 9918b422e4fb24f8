// The golden kernels behind a fence.
#include "tests/unit/injector/fence/fence_forms.h"

namespace slate::test {
namespace {

TEST_P(FenceFormsTest, AFencedKernelInAnyFormGivesThePlainResult) {
  for (int seed = 1; seed <= SLATE_FENCE_SCHEDULES && !HasFailure(); ++seed) run(seed);
}

/// Without the kernel that shuffles with lanes that have left: it finds what registers held before,
/// and a fenced kernel has others.
std::vector<TestKernel> defined_kernels() {
  std::vector<TestKernel> kernels = golden_kernels();
  std::erase_if(kernels, [](const auto& each) { return each.file == "early_return_shuffle"; });
  return kernels;
}

INSTANTIATE_TEST_SUITE_P(Golden, FenceFormsTest, testing::ValuesIn(defined_kernels()), name_of);

}  // namespace
}  // namespace slate::test
