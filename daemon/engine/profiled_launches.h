// ProfiledLaunches: runs a launch in the profile form now and then, to learn what its kernel
// computes and how many bytes it requests. The counters are one piece of device memory: at most one
// such launch is on the device. The policy decides what the counts are worth.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "daemon/engine/form_launcher.h"
#include "scheduler/profile.h"

namespace slate::daemon {

class ProfiledLaunches {
 public:
  /// Completed launches of a kernel before one is profiled. The first launches are slow, and many
  /// kernels have no more.
  static constexpr std::uint32_t kFirst = 3;
  static constexpr int kMostTries = 3;  // tries for one kernel, if they count nothing

  /// Both outlive it.
  ProfiledLaunches(device::Device& device, FormService& forms) : device_(device), forms_(forms) {}
  /// Requires: none of its launches is unfinished, or the device is lost.
  ~ProfiledLaunches();

  /// Any thread. Whether a launch of the kernel should be profiled.
  bool wants(scheduler::KernelId id, const scheduler::KernelProfile& kernel) const;

  // Session thread.
  /// Whether to profile this launch. Then launch() or drop() must follow.
  bool take(scheduler::KernelId id, FunctionRecord& kernel, const device::LaunchSpec& spec,
            const LaunchShape& shape);
  /// After an error the kernel is not on the device, and can be launched natively. end() must
  /// follow in either case.
  Result<void> launch(FunctionRecord& kernel, const device::LaunchSpec& spec,
                      device::Stream stream);
  void drop();

  /// What the launch counted. To be called when all that launch() put on its stream has ended, well
  /// or not. Any thread.
  std::optional<injector::Work> end(const Result<void>& outcome);

 private:
  bool prepare();

  device::Device& device_;
  FormService& forms_;
  mutable Mutex mutex_;
  bool busy_ SLATE_GUARDED_BY(mutex_) = false;
  bool given_up_ SLATE_GUARDED_BY(mutex_) = false;  // no memory for the counters
  std::unordered_map<scheduler::KernelId, int> tries_ SLATE_GUARDED_BY(mutex_);
  // Of the session that has taken the counters.
  device::AddressRange counters_{};
  std::vector<std::uint64_t> copy_;  // host copy of the counters
  bool registered_ = false;
  scheduler::KernelId id_ = 0;        // profiled kernel
  std::vector<injector::Work> work_;  // work by counter; the module may be gone at the launch's end
  double threads_ = 0;
};

}  // namespace slate::daemon
