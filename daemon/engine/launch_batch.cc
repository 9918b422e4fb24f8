#include "daemon/engine/launch_batch.h"

#include "daemon/engine/launch_row.h"

namespace slate::daemon {
namespace {

// A batch ends at this number of launches, or at its time.
constexpr std::uint32_t kMostLaunches = 1 + 16 * LaunchRow::kMost;  // the first goes by itself

}  // namespace

// Finds the main kernel by voting, with time for votes (Boyer and Moore, MJRTY, 1981): the kernel
// with most of the time wins.
void LaunchBatch::add(scheduler::KernelId kernel, double expected, double alone) {
  ++completion.launches;
  expected_ms += expected;
  alone_ms += alone;
  completion.mixed |= completion.kernel != kernel;
  if (completion.main == kernel) {
    main_ms += alone;
  } else if (main_ms >= alone) {
    main_ms -= alone;
  } else {
    completion.main = kernel;
    main_ms = alone - main_ms;
  }
}

void LaunchBatch::add_counted(scheduler::KernelId kernel, double expected, double alone) {
  add(kernel, expected, alone);
  ++counted;
  counted_ms += expected;
}

bool LaunchBatch::is_full() const {
  return expected_ms >= full_ms || completion.launches >= kMostLaunches;
}

}  // namespace slate::daemon
