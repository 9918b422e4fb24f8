// The heap's cases on a GPU, where thousands of threads come at once.
#include "tests/unit/heap/heap_fixture.h"

namespace slate::test {

INSTANTIATE_TEST_SUITE_P(Gpu, HeapTest, testing::Values("cuda"));

}  // namespace slate::test
