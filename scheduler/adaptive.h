// adaptive: finds out by measuring how the kernels that are active now run best together, and keeps
// to it: in turns, all over the device at once, or each on its own SMs. docs/scheduling.md
// describes the phases, the objective and the search.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "scheduler/handover.h"
#include "scheduler/measurement.h"
#include "scheduler/policy.h"
#include "scheduler/roster.h"
#include "scheduler/search.h"
#include "scheduler/settings.h"
#include "scheduler/turns.h"

namespace slate::scheduler {

class AdaptivePolicy final : public Policy {
 public:
  AdaptivePolicy(const Settings& settings, ProfileTable& profiles);

  std::string_view name() const override { return "adaptive"; }
  std::string arrangement_text(const Machine& machine) const override;
  void decide(const View& view, Decisions& decisions) override;
  void finished(const Completion& completion) override;
  void progressed(const Progress& progress) override;

  enum class Phase : std::uint8_t {
    kIdle,
    kSingle,   // one session
    kMeasure,  // turns, until every member's time alone is known
    kSearch,   // trying arrangements
    kSettled,  // in the best one
  };
  // For tests and the trace.
  Phase phase() const { return phase_; }
  const Arrangement& arrangement() const { return plan_; }
  /// Searching, but in the best arrangement so far until another can be afforded.
  bool resting() const { return phase_ == Phase::kSearch && resting_; }
  std::uint32_t searches() const { return searches_; }
  std::uint32_t candidates() const { return search_.tried(); }

 private:
  struct Member {
    SessionId id = 0;
    std::uint32_t index = 0;  // of the view and the roster
    KernelId kernel = 0;      // the family
    double weight = 1;        // over the mean
    Placement target;         // under the plan, if shared
    std::uint32_t fresh = 0;  // launches seen alone since the phase began
    ProgressSpan span{};      // alone, within one turn
    std::uint64_t turn = 0;
    double followed = 0, grids = 0;
    KernelId settled_kernel = 0;  // the row of its last launch when the group settled
    double alone_ms = 0;          // and its time alone
  };
  /// A search that was interrupted because its group parted.
  struct Paused {
    Search search;
    std::uint64_t at = 0;  // order
    bool preemptible = false;
    Milliseconds together_watched{};
    double loss = 0;                // above what it might cost so far
    std::uint32_t interrupted = 0;  // how often its candidate was
  };

  /// The row of the member's last launch.
  KernelId row(const Member& member) const { return roster_[member.index].launch.kernel; }
  void note_settled();
  void choose_members(const View& view);
  bool same_group(const View& view);
  void regroup(const View& view);
  void pause_search(Time now);
  void enter_group(const View& view);
  void begin_search(const View& view);
  void start_search(const View& view);
  Search::Member describe(const View& view, const Member& member) const;
  void step(const View& view, Decisions& decisions);
  void step_search(const View& view, Decisions& decisions);
  void try_next(const View& view, Decisions& decisions);
  double reference_score() const;
  Time affordable_at() const;
  Arrangement fallback() const;
  bool look(const View& view, Decisions& decisions);
  Arrangement best_plan(Time now) const;
  bool watches_together() const;
  void step_together(const View& view, Decisions& decisions);
  void next_candidate(const View& view, Decisions& decisions);
  std::vector<double> rates_of(const Measurement& candidate) const;
  Time ran_since() const;
  bool gains() const;
  double floor() const;
  std::array<double, kMostMembers> weights() const;
  double makespan_of(std::span<const double> rates) const;
  bool starving(std::span<const double> rates, double floor) const;
  bool uneven(std::span<const double> rates) const;
  bool alike() const;
  bool as_if_alone(double score, double longer) const;
  void step_settled(const View& view, Decisions& decisions);
  bool gone_off(Time now);
  void rotate_equals(const View& view, Decisions& decisions);
  void try_phases(const View& view);
  void find_step_again(const View& view);
  void conclude(const View& view);
  void remember() const;
  void search_again(const View& view);
  bool resume_search(const View& view);
  const GroupProfile* known_group() const;
  bool can_make_room(const Arrangement& plan) const;
  bool recall(const View& view);
  void adopt(const View& view, const Arrangement& plan);
  Time give_up_at() const;
  Milliseconds candidate_time() const;
  Milliseconds candidate_measure() const;
  bool all_measured() const;
  bool equal_weights() const;
  bool is_pinned() const;
  bool exclusive() const { return phase_ <= Phase::kMeasure || plan_.sharing == Sharing::kAlone; }
  void act(const View& view, Decisions& decisions);
  bool lets_pass(const View& view, std::size_t member, Decisions& decisions);
  bool waits_for_old_work(const View& view, Decisions& decisions) const;
  bool holds_back(const View& view, std::size_t member, Decisions& decisions);
  Milliseconds part_of_a_launch() const;
  void share(const View& view, Decisions& decisions);
  Form form_of(std::size_t member, const WaitingLaunch& launch) const;
  Member* find(SessionId id);
  void learn_alone(const Completion& completion, Member* member);
  void follow_alone(const Progress& progress, Member& member);

  const Settings settings_;
  ProfileTable& profiles_;
  Roster roster_;
  Turns turns_;

  std::vector<std::uint32_t> wanted_;  // indices of the members to be
  std::vector<Member> members_;        // by kernel, then as they came
  std::vector<KernelId> kernels_;      // theirs: the group's name in the table
  std::vector<SessionId> wanted_ids_;  // of the present members, as wanted_ had them
  std::vector<KernelId> wanted_kernels_;
  std::vector<double> wanted_weights_;
  Time rotate_at_{}, group_since_{};
  bool preemptible_ = false;  // a higher priority may come back at any time

  Phase phase_ = Phase::kIdle;
  Arrangement plan_;
  std::uint64_t epoch_ = 1;            // of the plan; tags carry it
  std::uint64_t exclusive_since_ = 1;  // from this epoch on, whatever ran had the device alone
  bool was_exclusive_ = true;
  Handover handover_;
  Milliseconds stagger_{};  // between the members' first launches of the plan
  Time staggered_from_ = kNever;
  static constexpr double kNoGood = 2;  // the score of what starves somebody, or worse
  // A candidate costs time: the work of the members goes on, but slower than in the best
  // arrangement that is known. A tenth is usual.
  static constexpr double kUsualLoss = 0.1;
  // How often members alike, all together, have begun anew in another rhythm, and the best score,
  // of earlier meetings too. Who knows none tries so many at least.
  static constexpr std::uint32_t kLeastPhases = 2, kMostPhases = 6;
  std::uint32_t phases_ = 0;
  double best_phase_ = kNoGood;
  // Windows in a row that were much worse, and how long they stay in step before they begin anew.
  std::uint32_t out_of_step_ = 0;
  static constexpr Milliseconds kKeepStep{100};
  Milliseconds keep_step_ = kKeepStep;
  // What runs is judged as a whole so long after it was adopted; kNoLook: it is not any more.
  // At first after kWatch, or after a launch that is longer, up to kLongWatch.
  static constexpr Milliseconds kWatch{6}, kLongWatch{24}, kNoLook{0};
  Time adopted_{}, looked_at_{};
  Milliseconds look_after_ = kNoLook;
  bool judged_ = false;  // it was, at least once
  Time equals_at_{};     // when members alike change places
  std::uint32_t fresh_needed_ = 0;

  Search search_;
  Milliseconds together_watched_{};  // what is known of it was seen over so long a time
  bool resting_ = false;             // the next candidate is not affordable yet
  Time rest_until_{};
  double loss_ = 0;                    // ms that candidates have cost since group_since_
  std::uint32_t interrupted_ = 0;      // how often the group parted during the candidate
  bool searched_ = false;              // search_ is the present group's
  std::uint32_t disappointments_ = 0;  // plans of this search that were worse than they looked
  std::map<std::vector<KernelId>, Paused> paused_;
  Measurement measurement_;  // of the candidate, or of the present window
  Measurement whole_;        // since the plan was adopted
  Measurement rough_;        // likewise, with what overlapped with the plan before, too
  std::uint32_t searches_ = 0, windows_ = 0, bad_windows_ = 0;
  Time bad_since_{};         // the first of the last windows, which were all bad
  double reference_ = 1;     // score of the settled plan
  bool pinned_ = false;      // by the administrator: never searched for again
  std::uint64_t edits_ = 0;  // of the profiles, as last seen
  Time searched_at_{};
  Milliseconds wait_again_{};
};

}  // namespace slate::scheduler
