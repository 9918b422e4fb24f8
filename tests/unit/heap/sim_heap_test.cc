// The heap's cases on sim: round robin on several host threads, and random orders of warps that
// take turns of few instructions.
#include "tests/unit/heap/heap_fixture.h"

namespace slate::test {
namespace {

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  return std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Sim, HeapTest,
                         testing::Values("sim:sms=4,memory=256M",
                                         "sim:sms=3,memory=256M,seed=1,quantum=40",
                                         "sim:sms=7,memory=256M,seed=2,quantum=3",
                                         "sim:sms=2,memory=256M,seed=3,quantum=1"),
                         name_of);

}  // namespace
}  // namespace slate::test
