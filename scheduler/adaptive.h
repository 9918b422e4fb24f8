// AdaptivePolicy: measures how the kernels that are active now run best together, and keeps to that
// arrangement. The arrangement is turns, the whole device for all at once, or SMs of its own for
// each. docs/scheduling.md describes the phases, the objective and the search. What is measured is
// measurement.h, what is tried search.h.
//
// Thread: none of its own; the caller serialises all calls (policy.h).
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
#include "scheduler/side_by_side.h"
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
    kIdle,     // no session is active
    kSingle,   // one session is active
    kMeasure,  // turns, until the time alone of every member's kernel is known
    kSearch,   // trying of arrangements
    kSettled,  // the best arrangement found, or one that was remembered
  };
  // The present phase and arrangement: for tests and the trace.
  Phase phase() const { return phase_; }
  const Arrangement& arrangement() const { return plan_; }
  /// True while a search rests: the best arrangement so far runs until the next candidate is
  /// affordable.
  bool resting() const { return phase_ == Phase::kSearch && resting_; }
  /// Number of searches begun by this policy.
  std::uint32_t searches() const { return searches_; }
  /// Number of candidates that the present search has tried.
  std::uint32_t candidates() const { return search_.tried(); }

 private:
  /// One session of the group, with its main kernel.
  struct Member {
    SessionId id = 0;
    std::uint32_t index = 0;         // index of the session in the view and in the roster
    KernelId kernel = 0;             // family of the main kernel
    double weight = 1;               // weight over the mean of the members' weights
    Placement target;                // placement under the arrangement
    std::uint32_t fresh = 0;         // launches measured alone since the phase began
    ProgressSpan span{};             // progress alone, within one turn
    std::uint64_t turn = 0;          // the turn that `span` belongs to
    double followed = 0, grids = 0;  // ms of progress followed alone, and the grids done in it
    KernelId settled_kernel = 0;     // row of the last launch when the group settled
    double alone_ms = 0;             // time alone of `settled_kernel` when the group settled
  };
  /// A search that was interrupted because its group parted.
  struct Paused {
    Search search;
    std::uint64_t at = 0;  // epoch at the interruption: the oldest is dropped first
    bool preemptible = false;
    Milliseconds together_watched{};  // time for which all together was watched
    double loss = 0;  // ms lost by candidates above what was allowed until the interruption
    std::uint32_t interrupted = 0;  // interruptions of the present candidate
  };

  /// The row in the profile table of the member's last launch.
  KernelId row(const Member& member) const { return roster_[member.index].launch.kernel; }
  /// Stores each member's kernel and time alone, against which gone_off() compares.
  void note_settled();
  /// Sets `wanted_`: all contenders, or Settings::group of them, least served first, when the time
  /// to rotate has come.
  void choose_members(const View& view);
  /// Whether `wanted_` is the present group, with the same kernels and weights. Updates the
  /// members' indices.
  bool same_group(const View& view);
  /// Makes `wanted_` the group, pauses the search of the group before, and begins to measure.
  void regroup(const View& view);
  void pause_search(Time now);
  /// Leaves the phase of measuring: takes up what is remembered of the group, or begins a search.
  void enter_group(const View& view);
  void begin_search(const View& view);
  void start_search(const View& view);
  /// The member as the search sees it.
  Search::Member describe(const View& view, const Member& member) const;
  /// One decision of the phase: measuring may end, a candidate or a window may be over.
  void step(const View& view, Decisions& decisions);
  /// Ends the candidate when it is measured, cut short or given up.
  void step_search(const View& view, Decisions& decisions);
  /// Adopts the next candidate, or the best arrangement while the next one is not affordable.
  void try_next(const View& view, Decisions& decisions);
  double reference_score() const;
  Time affordable_at() const;
  Arrangement fallback() const;
  /// Judges the arrangement that runs by all its work since it was adopted, when `look_after_` has
  /// passed. Returns true if it has been judged in this call.
  bool look(const View& view, Decisions& decisions);
  Arrangement best_plan(Time now) const;
  bool watches_together() const;
  /// As step_search(), where the candidate is watched for longer (watches_together()).
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
  /// Watches the settled arrangement, and begins a new search where it has become worse.
  void step_settled(const View& view, Decisions& decisions);
  /// Whether the settled arrangement, or a time alone, is off what it was by so much, for so long,
  /// that a new search is due. Ends the present window.
  bool gone_off(Time now);
  /// Swaps the places of members alike: the one served least gets the larger part.
  void rotate_equals(const View& view, Decisions& decisions);
  void try_phases(const View& view);
  void find_step_again(const View& view);
  /// Ends the search: settles in the best arrangement, or rests before one that must be afforded.
  void conclude(const View& view);
  void remember() const;
  /// Measures times alone anew, then searches.
  void search_again(const View& view);
  bool resume_search(const View& view);
  const GroupProfile* known_group() const;
  bool can_make_room(const Arrangement& plan) const;
  /// Adopts what is known of the group. Returns false where nothing is, or it does not apply here.
  bool recall(const View& view);
  /// Makes `plan` the arrangement: sets the members' placements and begins all measurements anew.
  void adopt(const View& view, const Arrangement& plan);
  /// When a candidate that shows nothing is given up.
  Time give_up_at() const;
  Milliseconds candidate_time() const;
  Milliseconds candidate_measure() const;
  /// Whether every member's time alone is known well enough to compare with.
  bool all_measured() const;
  bool equal_weights() const;
  /// Whether the administrator has set the arrangement of this group.
  bool is_pinned() const;
  /// Whether the members take turns, so that launches that end were alone on the device.
  bool exclusive() const { return phase_ <= Phase::kMeasure || plan_.sharing == Sharing::kAlone; }
  /// Decides starts and resizes under the present arrangement.
  void act(const View& view, Decisions& decisions);
  /// Whether the member begins nothing yet, so that old work of members that go ahead can end.
  bool lets_pass(const View& view, std::size_t member, Decisions& decisions);
  bool waits_for_old_work(const View& view, Decisions& decisions) const;
  /// Whether the member begins nothing yet: see lets_pass(), and the stagger of the first launches.
  bool holds_back(const View& view, std::size_t member, Decisions& decisions);
  Milliseconds part_of_a_launch() const;
  /// Starts and resizes launches of members that share the device.
  void share(const View& view, Decisions& decisions);
  /// The form of the member's waiting launch under the arrangement.
  Form form_of(std::size_t member, const WaitingLaunch& launch) const;
  Member* find(SessionId id);
  /// Adds a launch that ended during turns to the times alone.
  void learn_alone(const Completion& completion, Member* member);
  /// Adds progress during a turn to the times alone, for long kernels that do not end.
  void follow_alone(const Progress& progress, Member& member);

  const Settings settings_;
  ProfileTable& profiles_;
  Roster roster_;
  Turns turns_;
  SideBySide side_by_side_;

  std::vector<std::uint32_t> wanted_;  // indices of the sessions that are to be the group
  std::vector<Member> members_;        // the present group, ordered by kernel, then by arrival
  /// Families of the members: the key of the group in the profile table.
  std::vector<KernelId> kernels_;
  /// Ids of the present group in the order of `wanted_`; kernels and weights likewise.
  std::vector<SessionId> wanted_ids_;
  std::vector<KernelId> wanted_kernels_;
  std::vector<double> wanted_weights_;
  // When the group may rotate, and when it came together.
  Time rotate_at_{}, group_since_{};
  bool preemptible_ = false;  // whether a session of higher priority is connected, idle

  Phase phase_ = Phase::kIdle;
  Arrangement plan_;
  std::uint64_t epoch_ = 1;  // number of the present arrangement; Start::tag carries it
  /// First epoch since which everything that ran had the device alone.
  std::uint64_t exclusive_since_ = 1;
  bool was_exclusive_ = true;  // whether the last decision was for turns
  Handover handover_;
  /// Time between the first launches of one member and the next under the arrangement.
  Milliseconds stagger_{};
  Time staggered_from_ = kNever;  // when the first member began under the arrangement
  /// Score of an arrangement that starves a member, or is worse.
  static constexpr double kNoGood = 2;
  // Usual loss of a candidate, as a part of its time, against the best arrangement known.
  static constexpr double kUsualLoss = 0.1;
  // Times that members alike, all together, have begun anew in another rhythm, and the best score
  // seen, earlier meetings included. Of a group without a known score at least kLeastPhases are
  // tried.
  static constexpr std::uint32_t kLeastPhases = 2, kMostPhases = 6;
  std::uint32_t phases_ = 0;
  double best_phase_ = kNoGood;
  // Windows in a row that were much worse than the best rhythm, and the time before members begin
  // anew because of that.
  std::uint32_t out_of_step_ = 0;
  static constexpr Milliseconds kKeepStep{100};
  Milliseconds keep_step_ = kKeepStep;
  // Time since adoption at which look() judges the arrangement next. It begins with kWatch, or with
  // the time of a longer launch up to kLongWatch, and doubles. kNoLook: the arrangement is not
  // judged any more.
  static constexpr Milliseconds kWatch{6}, kLongWatch{24}, kNoLook{0};
  Time adopted_{}, looked_at_{};
  Milliseconds look_after_ = kNoLook;
  bool judged_ = false;             // whether the present arrangement has been judged
  Time equals_at_{};                // when members alike change places next
  std::uint32_t fresh_needed_ = 0;  // launches alone of each member that a new search needs first

  Search search_;
  Milliseconds together_watched_{};  // time for which the score of all together was watched
  bool resting_ = false;             // whether the next candidate is not affordable yet
  Time rest_until_{};
  double loss_ = 0;                // ms that candidates have cost since `group_since_`
  std::uint32_t interrupted_ = 0;  // times that the group parted during the candidate
  bool searched_ = false;          // whether `search_` is of the present group
  /// Arrangements of this search that were worse than they had looked.
  std::uint32_t disappointments_ = 0;
  // Interrupted searches by the families of their groups.
  std::map<std::vector<KernelId>, Paused> paused_;
  Measurement measurement_;  // rates of the candidate, or of the present window
  Measurement whole_;        // rates of all work since the arrangement was adopted
  /// As `whole_`, with launches that overlapped with work of the arrangement before.
  Measurement rough_;
  std::uint32_t searches_ = 0, windows_ = 0, bad_windows_ = 0;
  Time bad_since_{};      // beginning of the last windows, if all of them were bad
  double reference_ = 1;  // score of the settled arrangement
  /// Whether the administrator has set the arrangement: then nothing is searched.
  bool pinned_ = false;
  std::uint64_t edits_ = 0;  // ProfileTable::edits() when last seen
  Time searched_at_{};
  Milliseconds wait_again_{};  // least time between two searches of the group; doubles
};

}  // namespace slate::scheduler
