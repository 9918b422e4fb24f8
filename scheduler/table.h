// TablePolicy: Table I of the Slate paper (Allen, Feng, Ge; IPDPS 2019). One or two sessions run at
// once: two where the table allows their kernels' classes, else turns. A pair is split so that the
// memory-bound kernel keeps its speed. The split by units is slate's own.
//
// Thread: none of its own; the caller serialises all calls (policy.h).
#pragma once

#include <array>
#include <optional>

#include "scheduler/handover.h"
#include "scheduler/policy.h"
#include "scheduler/roster.h"
#include "scheduler/settings.h"
#include "scheduler/side_by_side.h"
#include "scheduler/turns.h"

namespace slate::scheduler {

/// The class of a kernel by its intensities alone; nullopt while an intensity that decides, or its
/// time, is unknown.
std::optional<KernelClass> class_of(const ProfileTable& profiles, KernelId kernel,
                                    const Machine& machine, const Settings& settings);

class TablePolicy final : public Policy {
 public:
  TablePolicy(const Settings& settings, ProfileTable& profiles)
      : settings_(settings),
        profiles_(profiles),
        roster_(settings_, profiles_),
        turns_(settings_, profiles_),
        side_by_side_(settings_, profiles_) {}

  std::string_view name() const override { return "table"; }
  std::string arrangement_text(const Machine& machine) const override;
  void decide(const View& view, Decisions& decisions) override;
  void finished(const Completion& completion) override;
  void progressed(const Progress& progress) override;

 private:
  /// One session of the pair.
  struct Half {
    SessionId id = 0;
    KernelId kernel = 0;
    std::uint32_t index = 0;  // index of the session in the view and in the roster
    Placement placement;
  };

  bool may_corun(const View& view, std::uint32_t a, std::uint32_t b) const;
  /// Whether the present choice holds: its time is not up, and both sessions still contend with the
  /// same kernels.
  bool still_good(const View& view);
  /// Ends the pair, if there is one.
  void part(const View& view);
  /// Chooses a pair, or turns: the session served least, and the next poorest that may run beside
  /// it.
  void choose(const View& view);
  /// Sets the placements of the pair.
  void split(const View& view);
  /// Units that keep Settings::near_full of the memory-bound kernel's speed, measured or guessed.
  std::uint32_t enough_units(const View& view, const Half& bound) const;

  const Settings settings_;
  ProfileTable& profiles_;
  Roster roster_;
  Turns turns_;
  SideBySide side_by_side_;
  Handover handover_;
  bool paired_ = false;
  std::array<Half, 2> pair_{};
  Time until_{};             // when the pair is chosen, or split, anew
  std::uint64_t epoch_ = 1;  // number of the present pair, or of the turns; Start::tag carries it
};

}  // namespace slate::scheduler
