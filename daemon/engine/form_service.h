// FormService: what the sessions of an engine share for launching kernels in their forms: the
// choice that the administrator made, the memory of the control blocks, and counts. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "daemon/dispatch/worker_launch.h"
#include "daemon/form_choice.h"
#include "injector/forms/inject.h"

namespace slate::daemon {

class FormService {
 public:
  /// `device` outlives it.
  /// `profiles`: launches may be counted, so kernels get their profile form too.
  FormService(device::Device& device, FormChoice choice, bool profiles = false)
      : device_(device), choice_(choice), profiles_(profiles) {}

  FormChoice choice() const { return choice_; }
  /// Whether modules are worth injecting.
  bool injects() const { return choice_ != FormChoice::kNative; }
  bool profiles() const { return profiles_ && injects(); }
  /// Memory for control blocks, taken at the first call; null when there is none, which is logged
  /// once.
  ControlMemory* control_memory();
  /// Whether a block of it can be had, as far as is known.
  bool has_control_for(const ControlMemory::Share& share) const;

  void count(injector::Form form) { launches_[static_cast<std::size_t>(form)].fetch_add(1); }
  std::uint64_t launches(injector::Form form) const {
    return launches_[static_cast<std::size_t>(form)].load();
  }

 private:
  device::Device& device_;
  const FormChoice choice_;
  const bool profiles_;
  mutable std::mutex mutex_;  // guards memory_, tried_
  std::unique_ptr<ControlMemory> memory_;
  bool tried_ = false;
  std::array<std::atomic<std::uint64_t>, injector::kFormCount> launches_{};
};

}  // namespace slate::daemon
