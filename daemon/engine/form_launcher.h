// The forms of one launch: which are possible, and the launch in the chosen one. A kernel that
// cannot be rewritten runs natively: no launch fails for lack of a form. Session thread only.
#pragma once

#include <optional>

#include "daemon/engine/form_service.h"
#include "daemon/engine/module_store.h"

namespace slate::daemon {

/// What the scheduler needs to know of a launch.
struct LaunchShape {
  std::uint64_t blocks = 0;
  std::uint64_t wave = 0;  // native blocks that the whole device holds at once; 0: unknown
  bool worker = false;     // whether the form is legal, and allowed by the administrator
  bool slice = false;
  /// Whether workers will be quicker: the blocks are so small and many that their starts cost most.
  bool worker_likely = false;
};

LaunchShape shape_of(device::Device& device, FormService& service, FunctionRecord& kernel,
                     const device::LaunchSpec& spec);

/// Makes the worker form illegal for launches of this shape from now on. So no policy chooses it
/// again and measures how quick it is.
void refuse_worker(FunctionRecord& kernel, const device::LaunchSpec& spec);

/// Looks up the form's functions, which otherwise the first launch does. Exception: dispatch
/// kernels are never looked up under a client's mutex (Device::StallHooks).
void find_forms(device::Device& device, const FormService& service, FunctionRecord& kernel,
                injector::Form form);
/// One form's function for launches with this much dynamic shared memory; looked up once. Null,
/// with the reason logged, if it cannot be launched.
FormFunction* usable_form(device::Device& device, FormService& service, FunctionRecord& kernel,
                          FormFunction& form, const std::string& name,
                          std::uint32_t dynamic_shared);
/// Blocks of this shape that an SM holds. 0 if the device refuses the shape; its launch will say
/// why. Asked once for each shape, as it is a call of the driver.
std::uint32_t room_of(device::Device& device, FunctionRecord& kernel, device::Function function,
                      std::uint64_t threads, std::uint32_t shared_bytes);

/// The part of an SM's memory for shared memory (LaunchSpec::carveout) that a kernel gets which
/// shares its SMs. It is the same for all kernels that need no more, so that their blocks fit on
/// one SM together.
/// Otherwise many small blocks would get another part than few large ones, and each kernel would
/// wait until an SM has none of the other's blocks.
std::uint32_t common_carveout(device::Device& device, FunctionRecord& kernel,
                              const device::LaunchSpec& spec);

/// Whether grid and block are within the device's limits. The device checks the rest.
bool is_within_limits(const DeviceInfo& device, const device::LaunchSpec& spec);

/// Whether a launch is neither cooperative nor in clusters: its blocks may run at different times.
bool is_plain(const device::LaunchSpec& spec);

/// Where and how to launch.
struct LaunchTarget {
  device::Stream stream{};
  std::uint32_t sms = 0;                  // SMs of the stream's partition; 0: all
  std::uint32_t most_per_sm = 0;          // the most workers on an SM; 0: as many as fit
  bool ahead = false;                     // whether its blocks go before others'
  bool shares_sms = false;                // whether its SMs are shared with others' blocks
  WorkerQueue* queue = nullptr;           // worker form: its queue
  const WorkerTable* table = nullptr;     // worker form: its table; may be null
  std::optional<device::Event> after;     // event to wait for
  std::optional<device::Stream> control;  // worker form: stream of its resizes
  bool dispatches = false;                // worker form: by the dispatch kernel, if there is one
  std::uint32_t task_size = 0;            // worker form: blocks of a task; 0: the usual number
  bool prefetch = true;                   // worker form: whether tasks are prefetched
  /// Slice form: blocks of the grid, in its own order. `slice_count` 0: all of them, in a few
  /// slices.
  std::uint64_t slice_first = 0, slice_count = 0;
};

/// Launches in `form`, or natively if that is not possible after all. A launch that has begun in
/// slices fails then. Returns the form taken.
/// Requires: shape_of() found `form`; the worker form has a queue.
Result<injector::Form> launch_in_form(device::Device& device, FormService& service,
                                      FunctionRecord& kernel, const device::LaunchSpec& spec,
                                      injector::Form form, const LaunchTarget& target);

}  // namespace slate::daemon
