// The struct by which the host and the dispatch kernel (dispatch.cu) exchange their state. It lies
// in device memory, behind the control block of its queue. Of a rewritten kernel the dispatch
// kernel knows only where the words are that change with each epoch. Compiled for host and device.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slate::daemon {

/// How a dispatch ended.
enum DispatchOutcome : std::uint32_t {
  kDispatchRunning = 0,
  kDispatchFinished = 1,  // all blocks have run, the control block is clean
  kDispatchStopped = 2,   // stopped by the host, or waited too long; this state can go on
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
  std::uint32_t workers = 0;     // workers launched in each epoch
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t shared_bytes = 0;  // dynamic shared memory of a block
  std::uint32_t parameter_bytes = 0;
  std::uint32_t exit_target_offset = 0;  // offset in `parameters` of the ends that end an epoch
  std::uint32_t flags_offset = 0;   // offset in `parameters` of the flags; 0 after the first epoch
  std::uint32_t wait_for_room = 1;  // 0: launch even where the table allows no worker
  std::uint32_t most_epochs = 0;    // value of `epochs` at which to stop; 0: no limit
  std::uint32_t pause_ns = 500;     // pause between two reads of an empty table
  std::uint32_t most_looks = 100'000;  // reads of an empty table in a row before the dispatch stops

  // Written by the host while the dispatch runs; cleared by the host before another dispatch.
  std::uint32_t stop = 0;

  // Written by the dispatch kernel; cleared by the host before another dispatch.
  std::uint32_t outcome = kDispatchRunning;
  std::uint32_t error = 0;  // cudaError_t

  // Written by the dispatch kernel.
  std::uint32_t exit_target = 0;  // exit target of the present epoch
  std::uint32_t epochs = 0;       // epochs started so far
  std::uint32_t unused = 0;

  alignas(16) unsigned char parameters[kMostParameterBytes] = {};  // the user's, then slate's
};
static_assert(offsetof(DispatchState, parameters) == 96);
static_assert(offsetof(DispatchState, error) == offsetof(DispatchState, stop) + 8);

}  // namespace slate::daemon
