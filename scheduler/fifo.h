// FifoPolicy: starts every launch as it comes, on the whole device, where the hardware mixes their
// blocks. It decides nothing but forms. It is the baseline of the other policies.
//
// Thread: none of its own; the caller serialises all calls (policy.h).
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
  // Number that rises whenever the only busy session changes or another becomes busy: launches of
  // one era ran alone.
  std::uint64_t era_ = 1;
  SessionId only_ = 0;  // the only busy session; 0: none, or more than one
};

}  // namespace slate::scheduler
