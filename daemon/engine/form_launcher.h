// The forms of one launch: which of them are to be had, and launching in the one chosen. Whatever
// cannot be rewritten runs natively: no launch fails for want of a form. Session thread only.
#pragma once

#include <optional>

#include "daemon/engine/form_service.h"
#include "daemon/engine/module_store.h"

namespace slate::daemon {

/// What a launch can be to the scheduler.
struct LaunchShape {
  std::uint64_t blocks = 0;
  std::uint64_t wave = 0;  // blocks that the whole device holds at once, natively; 0: unknown
  bool worker = false;     // these forms are legal for it, and not forbidden by the administrator
  bool slice = false;
  /// Blocks so small, and so many, that starting them is what costs: workers will be quicker.
  bool worker_likely = false;
};

LaunchShape shape_of(device::Device& device, FormService& service, FunctionRecord& kernel,
                     const device::LaunchSpec& spec);

/// From now on the worker form is not legal for launches of this shape: nobody is to decide for it
/// again, and then wait to see how quick it is.
void refuse_worker(FunctionRecord& kernel, const device::LaunchSpec& spec);

/// Looks the form's functions up, which a launch would otherwise do when it first needs them; but
/// dispatch kernels, which none looks up under a client's mutex (Device::StallHooks).
void find_forms(device::Device& device, const FormService& service, FunctionRecord& kernel,
                injector::Form form);
/// One form's function for launches with so much dynamic shared memory, looked up once. Null, with
/// the reason logged, if it cannot be launched.
FormFunction* usable_form(device::Device& device, FormService& service, FunctionRecord& kernel,
                          FormFunction& form, const std::string& name,
                          std::uint32_t dynamic_shared);
/// Blocks of this shape that an SM holds; 0 if the device refuses it, and will say why when it is
/// launched. Asked once for each shape, as it is a call of the driver.
std::uint32_t room_of(device::Device& device, FunctionRecord& kernel, device::Function function,
                      std::uint64_t threads, std::uint32_t shared_bytes);

/// The part of an SM's memory for shared memory that a kernel gets that shares its SMs
/// (LaunchSpec::carveout): the same for all that need no more, so that their blocks can be on one
/// at a time. By itself a kernel of many small blocks gets another than one of few large ones, and
/// either waits until an SM has none of the other's left.
std::uint32_t common_carveout(device::Device& device, FunctionRecord& kernel,
                              const device::LaunchSpec& spec);

/// Whether grid and block are within the device's limits. What more there is the device checks.
bool is_within_limits(const DeviceInfo& device, const device::LaunchSpec& spec);

/// Neither cooperative nor in clusters: its blocks need not be there at once.
bool is_plain(const device::LaunchSpec& spec);

/// Where and how it is to be launched.
struct LaunchTarget {
  device::Stream stream{};
  std::uint32_t sms = 0;               // of the stream's partition; 0: all
  std::uint32_t most_per_sm = 0;       // workers on an SM; 0: as many as fit
  bool ahead = false;                  // of others' blocks
  bool shares_sms = false;             // with others' blocks
  WorkerQueue* queue = nullptr;        // for the worker form
  const WorkerTable* table = nullptr;  // likewise; may be null
  std::optional<device::Event> after;  // likewise
  bool dispatches = false;             // likewise: by the dispatch kernel, if there is one
  std::uint32_t task_size = 0;         // likewise: blocks; 0: the usual number
  bool prefetch = true;                // likewise: of tasks
  /// For the slice form: which blocks of the grid, in its own order. `slice_count` 0: all of them,
  /// in a few slices.
  std::uint64_t slice_first = 0, slice_count = 0;
};

/// Launches in `form`, or natively if that cannot be done after all; but what has begun in slices
/// fails then. Returns the form taken.
/// Requires: `form` is one that shape_of() found, with a queue if it is the worker form.
Result<injector::Form> launch_in_form(device::Device& device, FormService& service,
                                      FunctionRecord& kernel, const device::LaunchSpec& spec,
                                      injector::Form form, const LaunchTarget& target);

}  // namespace slate::daemon
