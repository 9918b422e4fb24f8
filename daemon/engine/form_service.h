// FormService: what the sessions of an engine share for launches in forms: the administrator's
// choice, the memory of the control blocks, and counts. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/mutex.h"
#include "daemon/dispatch/worker_launch.h"
#include "daemon/engine/form_maker.h"
#include "daemon/form_choice.h"
#include "injector/forms/inject.h"

namespace slate::daemon {

class FormService {
 public:
  /// `device` and `maker` outlive it. Without a maker kernels have no forms. `profiles`: whether
  /// launches may be counted in the profile form.
  FormService(device::Device& device, FormChoice choice, bool profiles = false,
              FormMaker* maker = nullptr, DispatchChoice dispatch = DispatchChoice::kHost)
      : device_(device),
        choice_(choice),
        dispatch_(dispatch),
        profiles_(profiles && choice != FormChoice::kNative),
        maker_(maker) {}

  FormChoice choice() const { return choice_; }
  DispatchChoice dispatch() const { return dispatch_; }
  /// Null where no kernel is to have forms or a fence, and nobody asks what it reaches.
  FormMaker* maker() const { return maker_; }
  bool profiles() const { return profiles_; }
  /// Memory for control blocks, allocated at the first call. Null when there is none, which is
  /// logged once.
  ControlMemory* control_memory();
  /// Whether a control block seems to be free.
  bool has_control_for(const ControlMemory::Share& share) const;

  void count(injector::Form form) { launches_[static_cast<std::size_t>(form)].fetch_add(1); }
  /// Counts a worker-form launch by the dispatch kernel.
  void count_dispatched() { dispatched_.fetch_add(1); }
  std::uint64_t dispatched() const { return dispatched_.load(); }
  std::uint64_t launches(injector::Form form) const {
    return launches_[static_cast<std::size_t>(form)].load();
  }

 private:
  device::Device& device_;
  const FormChoice choice_;
  const DispatchChoice dispatch_;
  const bool profiles_;
  FormMaker* const maker_;
  mutable Mutex mutex_;
  std::unique_ptr<ControlMemory> memory_;
  bool tried_ SLATE_GUARDED_BY(mutex_) = false;
  std::array<std::atomic<std::uint64_t>, injector::kFormCount> launches_{};
  std::atomic<std::uint64_t> dispatched_{0};
};

}  // namespace slate::daemon
