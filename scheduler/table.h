// table: Slate's Table I. One or two sessions at once: two where the table says that kernels of
// their classes go well together, split so that the memory-bound one keeps its speed; else turns.
#pragma once

#include <array>
#include <optional>

#include "scheduler/handover.h"
#include "scheduler/policy.h"
#include "scheduler/roster.h"
#include "scheduler/settings.h"
#include "scheduler/turns.h"

namespace slate::scheduler {

/// Memory outranks compute; nullopt while an intensity that decides is unknown.
std::optional<KernelClass> class_of(const ProfileTable& profiles, KernelId kernel,
                                    const Machine& machine, const Settings& settings);

class TablePolicy final : public Policy {
 public:
  TablePolicy(const Settings& settings, ProfileTable& profiles)
      : settings_(settings),
        profiles_(profiles),
        roster_(settings_, profiles_),
        turns_(settings_, profiles_) {}

  std::string_view name() const override { return "table"; }
  std::string arrangement_text(const Machine& machine) const override;
  void decide(const View& view, Decisions& decisions) override;
  void finished(const Completion& completion) override;
  void progressed(const Progress& progress) override;

 private:
  struct Half {
    SessionId id = 0;
    KernelId kernel = 0;
    std::uint32_t index = 0;
    Placement placement;
  };

  bool may_corun(const View& view, std::uint32_t a, std::uint32_t b) const;
  bool still_good(const View& view);
  void choose(const View& view);
  void split(const View& view);
  std::uint32_t enough_units(const View& view, const Half& bound) const;

  const Settings settings_;
  ProfileTable& profiles_;
  Roster roster_;
  Turns turns_;
  Handover handover_;
  bool paired_ = false;
  std::array<Half, 2> pair_{};
  Time until_{};             // when the pair is chosen, or split, anew
  std::uint64_t epoch_ = 1;  // of pairing or not; tags carry it
};

}  // namespace slate::scheduler
