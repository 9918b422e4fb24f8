// fifo: every launch as it comes, on the whole device; the hardware mixes. What slated does when
// nothing is to be decided, and the baseline of the others.
#pragma once

#include "scheduler/policy.h"
#include "scheduler/roster.h"
#include "scheduler/settings.h"

namespace slate::scheduler {

class FifoPolicy final : public Policy {
 public:
  FifoPolicy(const Settings& settings, ProfileTable& profiles)
      : settings_(settings), profiles_(profiles) {}

  std::string_view name() const override { return "fifo"; }
  std::string arrangement_text(const Machine&) const override { return "as they come"; }
  void decide(const View& view, Decisions& decisions) override;
  void finished(const Completion& completion) override;

 private:
  Settings settings_;
  ProfileTable& profiles_;
  // Rises whenever a second session has work on the device: launches of one era ran alone.
  std::uint64_t era_ = 1;
  SessionId only_ = 0;
};

}  // namespace slate::scheduler
