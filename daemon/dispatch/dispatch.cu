// The dispatch kernel: starts the workers of a rewritten kernel from the device, waits until all of
// them have left, and starts them again while blocks are left. Not a program: it is compiled to PTX
// (dispatch.ptx) and becomes part of slated; dispatch_text() puts the name of a worker form in the
// place of `slate_dispatch_target`, and the result is linked with that form and the device's
// runtime (see docs/dispatch.md).
//
// A kernel cannot wait for the kernels it launches. So each run of slate_dispatch launches the
// workers, queues itself behind them (a tail launch begins when its launcher and all that it
// launched have ended) and ends. For the stream it is one kernel all the while.
#include "dispatch_state.h"

extern "C" __global__ void slate_dispatch_target();

namespace {

using slate::daemon::DispatchState;

constexpr unsigned kClosed = 1;            // in the generation: all workers have left
constexpr unsigned kWithheldAll = 0xffff;  // of an SM's word, upper half: no worker may run there

/// The host writes it while we run, by copies.
template <typename T>
__device__ T fresh(const T* word) {
  return *const_cast<const volatile T*>(word);
}

/// Whether any SM may have a worker. By all threads of the warp.
__device__ bool has_room(const DispatchState* state) {
  const auto* words = reinterpret_cast<const unsigned*>(state->sm_words);
  bool room = false;
  for (unsigned sm = threadIdx.x; sm < state->sm_count; sm += warpSize) {
    room |= fresh(words + sm) >> 16 != kWithheldAll;
  }
  return __any_sync(0xffffffff, room) != 0;
}

/// True when there is room, false when told to stop, or when nobody has made room for long: what
/// waits for an idle device is not to wait for a host that is busy.
__device__ bool wait_for_room(const DispatchState* state) {
  for (unsigned looks = 0; looks < state->most_looks; ++looks) {
    if (__any_sync(0xffffffff, fresh(&state->stop) != 0)) return false;
    if (state->wait_for_room == 0 || has_room(state)) return true;
    __nanosleep(state->pause_ns);
  }
  return false;
}

__device__ void end(DispatchState* state, unsigned outcome, unsigned error = 0) {
  state->error = error;
  state->outcome = outcome;
}

__device__ bool launch_workers(DispatchState* state) {
  const dim3 block(state->block[0], state->block[1], state->block[2]);
  void* buffer = cudaGetParameterBufferV2(reinterpret_cast<void*>(slate_dispatch_target),
                                          dim3(state->workers), block, state->shared_bytes);
  if (buffer == nullptr) {
    end(state, slate::daemon::kDispatchFailed, cudaErrorLaunchOutOfResources);
    return false;
  }
  auto* to = static_cast<unsigned*>(buffer);
  const auto* from = reinterpret_cast<const unsigned*>(state->parameters);
  for (unsigned word = 0; word < state->parameter_bytes / 4; ++word) to[word] = from[word];
  const cudaError_t error = cudaLaunchDeviceV2(buffer, cudaStreamFireAndForget);
  if (error != cudaSuccess) end(state, slate::daemon::kDispatchFailed, error);
  return error == cudaSuccess;
}

/// The parameters of the next epoch: its workers' ends come on top of those counted so far, and
/// only the first epoch's workers have tasks of their own.
__device__ void prepare_epoch(DispatchState* state) {
  state->exit_target += state->workers;
  *reinterpret_cast<unsigned*>(state->parameters + state->exit_target_offset) = state->exit_target;
  if (state->epochs > 0) *reinterpret_cast<unsigned*>(state->parameters + state->flags_offset) = 0;
  ++state->epochs;
}

}  // namespace

/// A grid of one warp.
extern "C" __global__ void slate_dispatch(DispatchState* state) {
  // The last worker has raised the generation if no block is left.
  const auto* ends = reinterpret_cast<const unsigned long long*>(state->control_state);
  if ((static_cast<unsigned>(fresh(ends)) & ~kClosed) != state->generation) {
    if (threadIdx.x == 0) end(state, slate::daemon::kDispatchFinished);
    return;
  }
  const bool enough = state->most_epochs != 0 && state->epochs >= state->most_epochs;
  const bool go_on = !enough && wait_for_room(state);
  if (threadIdx.x != 0) return;
  if (!go_on) {
    end(state, slate::daemon::kDispatchStopped);
    return;
  }
  prepare_epoch(state);
  if (!launch_workers(state)) {
    state->exit_target -= state->workers;  // nobody came
    return;
  }
  slate_dispatch<<<1, 32, 0, cudaStreamTailLaunch>>>(state);
  const cudaError_t error = cudaPeekAtLastError();
  if (error != cudaSuccess) end(state, slate::daemon::kDispatchFailed, error);
}
