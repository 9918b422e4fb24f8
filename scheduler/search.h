// Search: looks for the arrangement in which a group of kernels runs best together, one candidate
// at a time. The order is: together; placed, from a starting split, by moving units between two
// members; other forms; together with one member ahead (sooner where that costs little); together
// with quotas on the SMs. It only proposes and compares; the caller measures.
//
// The objective extends the comparison of the Slate paper (IPDPS 2019): T1 + T2 in sequence against
// max(T1', T2') side by side. The search is slate's own. Thread: the policy's (policy.h).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "scheduler/profile.h"

namespace slate::scheduler {

inline constexpr std::size_t kMostMembers = 8;

/// Part of the floor that is enough for a member while all share the whole device as the hardware
/// does by itself. Turns would give that member more, but cost all members some per cent.
inline constexpr double kTogetherFloor = 0.25;

/// One way to share the device; arrays by member.
struct Arrangement {
  Sharing sharing = Sharing::kAlone;
  std::array<Form, kMostMembers> forms{};
  /// kPlaced: units of each member, one member's behind another's.
  std::array<std::uint32_t, kMostMembers> units{};
  /// kTogether: most workers on each SM; 0: no limit.
  std::array<std::uint32_t, kMostMembers> quotas{};
  std::array<bool, kMostMembers> ahead{};  // kTogether: members whose blocks go before the others'
  auto operator<=>(const Arrangement&) const = default;
  bool lets_ahead() const { return ahead != decltype(ahead){}; }
  /// Whether all share the whole device as the hardware does by itself.
  bool as_it_comes() const {
    return sharing == Sharing::kTogether && quotas == decltype(quotas){} && !lets_ahead();
  }
};

/// Score of an arrangement: time of equal weighted work when shared, over the time one after the
/// other; below 1 is a gain. Sharing lasts while more than one member has work left. `rates`:
/// progress over progress alone. `weights`: mean 1. Infinite if no member makes progress.
double makespan(std::span<const double> rates, std::span<const double> weights);
/// Whether a member makes less progress than `floor` of its weighted share of the device.
bool starves(std::span<const double> rates, std::span<const double> weights, double floor);
/// Whether one member makes over a tenth more progress for its weight than another.
bool is_uneven(std::span<const double> rates, std::span<const double> weights);

class Search {
 public:
  /// A known speed: progress over progress alone on so many units.
  struct Point {
    std::uint32_t units = 0;
    double rate = 0;
  };
  /// A kernel of the group as the search sees it.
  struct Member {
    double weight = 1;              // weight over the mean of the weights
    double share = 1;               // part of the device at first, relative to the other members'
    std::uint32_t least_units = 1;  // units below which no move takes it
    Form form = Form::kNative;      // form on SMs of its own
    Form form_together = Form::kNative;  // form on SMs that other members use, too
    bool lasts = false;                  // whether its launches are long
    bool flips = false;                  // whether the other of native and worker form may be tried
    bool fills = false;                  // whether its workers hold every SM until the launch ends
    std::uint32_t room = 0;              // workers that fit on an SM; 0: no quota can limit it
    std::vector<Point> points;           // known speeds in `form`, in rising order of units
  };
  /// What the search may propose.
  struct Space {
    std::uint32_t units = 1;  // units of the device
    bool together = true;     // whether together may be tried
    double floor = 0.5;       // least part of its weighted share that a member gets
    bool even = false;        // whether progress must be as the weights
    bool in_parts = true;     // whether placed arrangements are tried
    bool alike = false;       // whether all members have the same kernel
  };

  /// Begins with the first candidate. Requires: 2 to kMostMembers members.
  void begin(std::vector<Member> members, const Space& space);
  /// Whether there are no more candidates.
  bool done() const { return stage_ == Stage::kDone; }
  /// The arrangement to measure now. Requires: !done().
  const Arrangement& candidate() const { return candidate_; }
  /// Ends the candidate with its members' rates; the next one follows.
  void measured(std::span<const double> rates);
  /// Ends the candidate as one that could not be measured, or is clearly no good.
  void rejected();
  /// Ends the candidate without a judgement, after too many interruptions.
  void passed();
  /// Ends the search: what was found is good enough.
  void end() { stage_ = Stage::kDone; }

  /// Corrects the score of a measured arrangement after it was watched for `time`. Requires: a
  /// finite score, as of makespan() or worse. A longer time than it was watched before replaces the
  /// score; a shorter one is averaged with it.
  void verified(const Arrangement& arrangement, double score, Milliseconds time);
  /// Time for which best() was watched; 0: it was only measured.
  Milliseconds best_watched() const;

  /// Score of the best arrangement that starves no member; infinite if there is none.
  double best_score() const { return best_score_; }
  const Arrangement& best() const { return best_; }
  /// All on the whole device, in the forms that suit it: the first candidate, if it may be tried.
  const Arrangement& together() const { return together_; }
  bool may_together() const { return space_.together && leaves_room(together_); }
  /// Score of together(); 1 until measured; infinite if it may not be tried or starves a member.
  double together_score() const { return together_score_; }
  /// Corrects together_score() by rates that were watched for longer.
  void together_seen(std::span<const double> rates);
  /// Number of candidates tried.
  std::uint32_t tried() const { return static_cast<std::uint32_t>(tried_.size()); }

 private:
  enum class Stage : std::uint8_t { kTogether, kStart, kClimb, kForms, kAhead, kQuotas, kDone };
  /// A move of units from one member to another.
  struct Move {
    std::uint32_t from = 0, to = 0;
    double predicted = 0;
  };

  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
  struct Tried {
    Arrangement arrangement;
    double score = kInfinite;
    Milliseconds watched{};  // 0: only measured
  };
  /// Stores the candidate's score and goes on.
  void judged(double score);
  /// Proposes the next candidate of the stage. `better`: the last one beat the centre of the climb.
  void advance(bool better);
  void propose_start();
  void propose_move();
  void propose_form();
  /// Whether no member's workers hold every SM.
  bool leaves_room(const Arrangement& together) const;
  bool propose_ahead();
  /// Begins with arrangements that share SMs: ahead, then quotas.
  void share_sms();
  void begin_quotas();
  void propose_quota();
  void list_moves();
  /// Makes the move, on the centre, the candidate. Returns false if it is not allowed or was tried.
  bool apply(const Move& move);
  bool was_tried(const Arrangement& arrangement) const;
  double predict(const Arrangement& arrangement) const;
  double predict_rate(std::size_t member, std::uint32_t units) const;
  /// Improves the candidate unit by unit by the predicted score.
  void climb_model();

  std::vector<Member> members_;
  std::vector<double> weights_;
  Space space_;
  Stage stage_ = Stage::kDone;
  // The candidate, the best so far, the centre of the climb, and all together.
  Arrangement candidate_, best_, centre_, together_;
  double best_score_ = kInfinite, centre_score_ = kInfinite, together_score_ = kInfinite;
  /// Slowest member of all together if the progress was uneven; else kMostMembers.
  std::size_t slowest_ = kMostMembers;
  std::vector<Tried> tried_;
  std::vector<Move> moves_;
  std::size_t next_move_ = 0, next_form_ = 0, next_quota_ = 0;
  Move last_;
  std::uint32_t step_ = 0;  // units of a move
  bool first_step_ = true;
};

}  // namespace slate::scheduler
