// Search: looks for the arrangement in which a group of kernels runs best together, one candidate
// at a time: together, then placed from a starting split, climbing by moving units between two
// members, then other forms, then together with somebody ahead (sooner where that costs little), or
// with quotas on the SMs. It only proposes and compares; measuring is the caller's.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "scheduler/profile.h"

namespace slate::scheduler {

inline constexpr std::size_t kMostMembers = 8;

/// What the hardware does by itself is good enough while it leaves everybody this part of the
/// floor: turns, which would give more, cost all of them a few per cent.
inline constexpr double kTogetherFloor = 0.25;

struct Arrangement {
  Sharing sharing = Sharing::kAlone;
  std::array<Form, kMostMembers> forms{};
  std::array<std::uint32_t, kMostMembers> units{};   // kPlaced: one member's behind another's
  std::array<std::uint32_t, kMostMembers> quotas{};  // kTogether: workers on each SM; 0: no limit
  std::array<bool, kMostMembers> ahead{};            // kTogether: before the others' blocks
  auto operator<=>(const Arrangement&) const = default;
  bool lets_ahead() const { return ahead != decltype(ahead){}; }
  /// All over the device, as the hardware does it by itself.
  bool as_it_comes() const {
    return sharing == Sharing::kTogether && quotas == decltype(quotas){} && !lets_ahead();
  }
};

/// Work in equal weighted amounts, sharing as long as more than one has work left, over one after
/// the other: rates are progress over progress alone, weights have the mean 1. Below 1 is a gain.
double makespan(std::span<const double> rates, std::span<const double> weights);
/// Somebody makes less progress than `floor` of its weighted share of the device.
bool starves(std::span<const double> rates, std::span<const double> weights, double floor);
/// Somebody makes more than a tenth more progress for its weight than another.
bool is_uneven(std::span<const double> rates, std::span<const double> weights);

class Search {
 public:
  struct Point {
    std::uint32_t units = 0;
    double rate = 0;
  };
  struct Member {
    double weight = 1;  // over the mean
    double share = 1;   // of the device to begin with, relative to the others'
    std::uint32_t least_units = 1;
    Form form = Form::kNative;
    Form form_together = Form::kNative;  // on SMs that others use, too
    bool lasts = false;                  // its launches are long ones
    bool flips = false;      // natively instead of as workers may be tried, or the other way round
    bool fills = false;      // workers, on every SM until its end: nobody else gets on them
    std::uint32_t room = 0;  // workers that fit on an SM; 0: it cannot be limited to fewer
    std::vector<Point> points;  // known speeds in `form`
  };
  struct Space {
    std::uint32_t units = 1;
    bool together = true;
    double floor = 0.5;
    bool even = false;     // progress has to be as the weights
    bool in_parts = true;  // placed arrangements are tried
    bool alike = false;    // all members have the same kernel
  };

  /// `members`: 2 to kMostMembers.
  void begin(std::vector<Member> members, const Space& space);
  bool done() const { return stage_ == Stage::kDone; }
  /// What to measure now. Requires !done().
  const Arrangement& candidate() const { return candidate_; }
  /// What the candidate's members achieved; the next candidate follows.
  void measured(std::span<const double> rates);
  /// The candidate could not be measured, or is clearly no good.
  void rejected();
  /// The candidate was interrupted time and again: the next one follows, nothing is known of it.
  void passed();
  /// What was found is good enough.
  void end() { stage_ = Stage::kDone; }

  /// One that was measured has been watched, for so long, and scores so: as makespan(), or worse,
  /// but finite. A shorter time than it was watched before only adds to what is known.
  void verified(const Arrangement& arrangement, double score, Milliseconds time);
  /// For how long best() was watched; 0: it was only measured.
  Milliseconds best_watched() const;

  /// The best that starves nobody; infinite if there is none.
  double best_score() const { return best_score_; }
  const Arrangement& best() const { return best_; }
  /// All on the whole device, in the forms that are quickest alone: tried first, if it may be.
  const Arrangement& together() const { return together_; }
  bool may_together() const { return space_.together && leaves_room(together_); }
  /// 1 while it is not known; infinite if it may not be tried.
  double together_score() const { return together_score_; }
  /// It was watched for longer.
  void together_seen(std::span<const double> rates);
  std::uint32_t tried() const { return static_cast<std::uint32_t>(tried_.size()); }

 private:
  enum class Stage : std::uint8_t { kTogether, kStart, kClimb, kForms, kAhead, kQuotas, kDone };
  struct Move {
    std::uint32_t from = 0, to = 0;
    double predicted = 0;
  };

  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
  struct Tried {
    Arrangement arrangement;
    double score = kInfinite;
    Milliseconds watched{};  // 0: it was only measured
  };
  void judged(double score);
  void advance(bool better);
  void propose_start();
  void propose_move();
  void propose_form();
  bool leaves_room(const Arrangement& together) const;
  bool propose_ahead();
  void share_sms();
  void begin_quotas();
  void propose_quota();
  void list_moves();
  bool apply(const Move& move);
  bool was_tried(const Arrangement& arrangement) const;
  double predict(const Arrangement& arrangement) const;
  double predict_rate(std::size_t member, std::uint32_t units) const;
  void climb_model();

  std::vector<Member> members_;
  std::vector<double> weights_;
  Space space_;
  Stage stage_ = Stage::kDone;
  Arrangement candidate_, best_, centre_, together_;
  double best_score_ = kInfinite, centre_score_ = kInfinite, together_score_ = kInfinite;
  std::size_t slowest_ = kMostMembers;  // of all together, if the others are well before it
  std::vector<Tried> tried_;
  std::vector<Move> moves_;
  std::size_t next_move_ = 0, next_form_ = 0, next_quota_ = 0;
  Move last_;
  std::uint32_t step_ = 0;
  bool first_step_ = true;
};

}  // namespace slate::scheduler
