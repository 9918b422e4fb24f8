// Context: the GPU's primary context, made current on whichever thread calls, and the one place
// where the driver's answers become Results and a fault becomes `lost`. Owns the context, nothing
// made in it. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/device_info.h"
#include "base/result.h"
#include "device/cuda/driver.h"

namespace slate::cuda {

class Context {
 public:
  /// Requires: `driver` has been initialised. kInvalidValue when there is no GPU `ordinal`.
  static Result<std::unique_ptr<Context>> open(const Driver& driver, int ordinal);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  const Driver& driver() const { return driver_; }
  CUdevice device() const { return device_; }
  CUcontext handle() const { return context_; }
  const DeviceInfo& info() const { return info_; }
  int attribute(CUdevice_attribute which) const { return info_.attributes[which]; }

  /// The nearest priority that this GPU knows.
  int clamp_priority(int priority) const;
  /// Launches may say how an SM's memory is to be parted.
  bool has_launch_carveouts() const { return info_.driver_version >= 12080; }
  /// The next one that goes first, or that one if there is none.
  int priority_ahead_of(int priority) const { return clamp_priority(priority - 1); }
  int lowest_priority() const { return lowest_priority_; }
  int highest_priority() const { return highest_priority_; }

  /// True for ever once any call has answered with a fault.
  bool lost() const { return lost_.load(std::memory_order_acquire); }

  /// Calls the driver with this context current: `context.call(driver.cuMemRelease, handle)`.
  template <typename... Parameters>
  Result<void> call(const Entry<CUresult(Parameters...)>& entry,
                    std::type_identity_t<Parameters>... arguments) {
    const CUresult result = attempt(entry, arguments...);
    if (result == CUDA_SUCCESS) [[likely]]
      return {};
    return std::unexpected<Error>(failure(result, entry.name));
  }

  /// The same for callers to whom some failures are answers. They must hand the others to
  /// failure().
  template <typename... Parameters>
  CUresult attempt(const Entry<CUresult(Parameters...)>& entry,
                   std::type_identity_t<Parameters>... arguments) {
    if (const CUresult result = make_current(); result != CUDA_SUCCESS) [[unlikely]]
      return result;
    return entry(arguments...);
  }

  /// The Error for a failed call; notes a fault.
  Error failure(CUresult result, const char* call);

 private:
  Context(const Driver& driver, CUdevice device);

  CUresult make_current();
  Result<void> retain();
  void read_info();

  const Driver driver_;
  const CUdevice device_;
  const std::uint64_t
      generation_;  // tells this context from every other of the process, past ones included
  CUcontext context_ = nullptr;
  int lowest_priority_ = 0;  // numerically the greater one
  int highest_priority_ = 0;
  std::atomic<bool> lost_ = false;
  DeviceInfo info_{};
};

}  // namespace slate::cuda
