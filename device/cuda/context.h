// Context: the GPU's primary context, made current on every thread that calls. It is the one place
// where the driver's answers become Results and a fault sets lost(). It owns the context, but
// nothing made in it. Thread: any.
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
  /// Retains the primary context of GPU `ordinal`. `measures`: whether own_bytes() is found out.
  /// Requires: `driver` has been initialised. Errors: kInvalidValue when there is no such GPU.
  static Result<std::unique_ptr<Context>> open(const Driver& driver, int ordinal,
                                               bool measures = false);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  const Driver& driver() const { return driver_; }
  CUdevice device() const { return device_; }
  CUcontext handle() const { return context_; }
  const DeviceInfo& info() const { return info_; }
  /// Value of a device attribute.
  int attribute(CUdevice_attribute which) const { return info_.attributes[which]; }

  /// The nearest priority that this GPU knows; a smaller number goes first.
  int clamp_priority(int priority) const;
  /// Whether a launch may say how an SM's memory is divided.
  bool has_launch_carveouts() const { return info_.driver_version >= 12080; }
  /// The priority one step ahead of `priority`; `priority` if it is the highest.
  int priority_ahead_of(int priority) const { return clamp_priority(priority - 1); }
  int lowest_priority() const { return lowest_priority_; }
  int highest_priority() const { return highest_priority_; }
  /// As Device::own_bytes().
  std::uint64_t own_bytes() const { return own_bytes_; }

  /// Whether any call has answered with a fault: then every later call fails.
  bool lost() const { return lost_.load(std::memory_order_acquire); }

  /// Calls the driver with this context current: `context.call(driver.cuMemRelease, handle)`.
  /// Errors: as error_code() translates them.
  template <typename... Parameters>
  Result<void> call(const Entry<CUresult(Parameters...)>& entry,
                    std::type_identity_t<Parameters>... arguments) {
    const CUresult result = attempt(entry, arguments...);
    if (result == CUDA_SUCCESS) [[likely]]
      return {};
    return std::unexpected<Error>(failure(result, entry.name));
  }

  /// As call(), for callers that expect some failures. Requires: all other failures are handed to
  /// failure().
  template <typename... Parameters>
  CUresult attempt(const Entry<CUresult(Parameters...)>& entry,
                   std::type_identity_t<Parameters>... arguments) {
    if (const CUresult result = make_current(); result != CUDA_SUCCESS) [[unlikely]]
      return result;
    return entry(arguments...);
  }

  /// The Error of a failed call. Sets lost() if the failure is a fault.
  Error failure(CUresult result, const char* call);

 private:
  Context(const Driver& driver, CUdevice device);

  /// Makes the context current on this thread, if it is not.
  CUresult make_current();
  Result<void> retain();
  Result<void> retain_measured();
  void read_info();

  const Driver driver_;
  const CUdevice device_;
  /// Number of this context: differs from those of all other contexts of the process, past ones
  /// included.
  const std::uint64_t generation_;
  CUcontext context_ = nullptr;
  std::uint64_t own_bytes_ = 0;
  int lowest_priority_ = 0;  // the numerically greatest
  int highest_priority_ = 0;
  std::atomic<bool> lost_ = false;
  DeviceInfo info_{};
};

}  // namespace slate::cuda
