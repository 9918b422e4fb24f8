// ProfiledLaunches: now and then a launch runs in the profile form in place of its own, so that
// what its kernel computes and how many bytes it asks for become known. The counters are one piece
// of device memory: at most one such launch is on the device. What it is worth is for the policy.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "daemon/engine/form_launcher.h"
#include "scheduler/profile.h"

namespace slate::daemon {

class ProfiledLaunches {
 public:
  /// Completed launches of a kernel before one of it is profiled: the first are slow, and many
  /// kernels have no more than that.
  static constexpr std::uint32_t kFirst = 3;
  static constexpr int kMostTries = 3;  // of one kernel, if they say nothing

  /// Both outlive it.
  ProfiledLaunches(device::Device& device, FormService& forms) : device_(device), forms_(forms) {}
  /// Requires: no launch of it is unfinished, or the device is lost.
  ~ProfiledLaunches();

  /// Any thread. Whether a launch of the kernel should be profiled.
  bool wants(scheduler::KernelId id, const scheduler::KernelProfile& kernel) const;

  // On the session's thread.
  /// Whether this launch is to be it; then launch() or drop() must follow.
  bool take(scheduler::KernelId id, FunctionRecord& kernel, const device::LaunchSpec& spec,
            const LaunchShape& shape);
  /// After an error the kernel is not on the device, and can be launched natively; end() has to
  /// follow all the same.
  Result<void> launch(FunctionRecord& kernel, const device::LaunchSpec& spec,
                      device::Stream stream);
  void drop();

  /// Any thread. When everything that launch() put on its stream has ended, however: what it
  /// counted.
  std::optional<injector::Work> end(const Result<void>& outcome);

 private:
  bool prepare();

  device::Device& device_;
  FormService& forms_;
  mutable std::mutex mutex_;  // guards busy_, given_up_, tries_
  bool busy_ = false;
  bool given_up_ = false;  // there is no memory for it
  std::unordered_map<scheduler::KernelId, int> tries_;
  // Whoever has taken it.
  device::AddressRange counters_{};
  std::vector<std::uint64_t> copy_;  // of the counters, on the host
  bool registered_ = false;
  scheduler::KernelId id_ = 0;        // of the kernel
  std::vector<injector::Work> work_;  // by counter; the module may be gone when the launch ends
  double threads_ = 0;
};

}  // namespace slate::daemon
