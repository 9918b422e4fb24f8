// What the host and the dispatch kernel (dispatch.cu) tell each other: one struct in device memory,
// behind the control block of its queue. The dispatch kernel knows nothing of the rewritten kernels
// but where in their parameters and control block the few words are that change from epoch to
// epoch. Compiled for host and device.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slate::daemon {

/// How a dispatch ended.
enum DispatchOutcome : std::uint32_t {
  kDispatchRunning = 0,
  kDispatchFinished = 1,  // all blocks have run, the control block is clean
  kDispatchStopped = 2,   // told to stop, or waited too long; a dispatch of the same state goes on
  kDispatchFailed = 3,    // the device's runtime refused a launch; see `error`
};

/// An epoch: the workers of one launch from the device, from their start until the last has left.
struct DispatchState {
  static constexpr std::uint32_t kMostParameterBytes = 4096;

  // Written by the host before the dispatch.
  std::uint64_t control_state = 0;  // address of u64: ControlBlock::kStateOffset
  std::uint64_t sm_words = 0;       // address of u32 per SM: withheld << 16 | workers present
  std::uint32_t sm_count = 0;
  std::uint32_t generation = 0;  // of the control block, while this launch is under way
  std::uint32_t workers = 0;     // launched in each epoch
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t shared_bytes = 0;  // dynamic
  std::uint32_t parameter_bytes = 0;
  std::uint32_t exit_target_offset = 0;  // in `parameters`, of the ends that end an epoch
  std::uint32_t flags_offset = 0;        // in `parameters`; set to 0 after the first epoch
  std::uint32_t wait_for_room = 1;       // 0: launch even where the table allows nobody
  std::uint32_t most_epochs = 0;         // stop when `epochs` is that; 0: no limit
  std::uint32_t pause_ns = 500;          // between two looks at an empty table
  std::uint32_t most_looks = 100'000;    // at an empty table, in a row; then the dispatch stops

  // Written by the host at any time that the dispatch runs; cleared by it before another dispatch.
  std::uint32_t stop = 0;

  // Written by the dispatch kernel; cleared by the host before another dispatch.
  std::uint32_t outcome = kDispatchRunning;
  std::uint32_t error = 0;  // cudaError_t

  // Written by the dispatch kernel.
  std::uint32_t exit_target = 0;  // of the present epoch
  std::uint32_t epochs = 0;       // started so far
  std::uint32_t unused = 0;

  alignas(16) unsigned char parameters[kMostParameterBytes] = {};  // the user's and slate's
};
static_assert(offsetof(DispatchState, parameters) == 96);
static_assert(offsetof(DispatchState, error) == offsetof(DispatchState, stop) + 8);

}  // namespace slate::daemon
