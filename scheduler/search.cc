// The search over arrangements. The model between measurements is a broken line through what is
// known of each member; it only decides where to start and in which order moves are tried.
#include "scheduler/search.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace slate::scheduler {
namespace {

constexpr double kBetter = 0.006;  // of the score: less is noise
constexpr double kEven = 1.1;
constexpr double kStarved = 1;  // added to the score of an arrangement that starves a member
// A split that is worse than this after the largest steps, or the later ones, gets no better.
constexpr double kHopeless = 1.01, kHopelessLater = 0.995;
// Moves that are predicted to leave a member less than this part of the floor are not tried.
constexpr double kFloorMargin = 0.8;
constexpr std::size_t kLeastMoves = 6;  // tried at each step size, or as many as there are members
// Quotas are looked for in groups that are small enough: a candidate or two for each member.
constexpr std::size_t kMostWithQuotas = 4;
// Scores over all together below which no member is let ahead (kApart), and nothing that shares SMs
// is tried (kFarApart).
constexpr double kApart = 0.9, kFarApart = 0.75;
constexpr std::uint32_t kSteps = 4;  // the largest step is the device over this, at most

}  // namespace

double makespan(std::span<const double> rates, std::span<const double> weights) {
  double quickest = 0, total = 0;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    quickest = std::max(quickest, rates[i] / weights[i]);
    total += weights[i];
  }
  if (quickest <= 0) return std::numeric_limits<double>::infinity();
  // Until the quickest is through, all share; what the others have left runs one after the other.
  double time = 1 / quickest;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    time += weights[i] * (1 - rates[i] / weights[i] / quickest);
  }
  return time / total;
}

bool starves(std::span<const double> rates, std::span<const double> weights, double floor) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (rates[i] < floor * weights[i] / total) return true;
  }
  return false;
}

bool is_uneven(std::span<const double> rates, std::span<const double> weights) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    least = std::min(least, rates[i] / weights[i]);
    most = std::max(most, rates[i] / weights[i]);
  }
  return most > least * kEven;
}

void Search::begin(std::vector<Member> members, const Space& space) {
  members_ = std::move(members);
  space_ = space;
  weights_.clear();
  for (const Member& member : members_) weights_.push_back(member.weight);
  best_ = candidate_ = centre_ = {};
  best_score_ = centre_score_ = kInfinite;
  tried_.clear();
  moves_.clear();
  next_move_ = next_form_ = next_quota_ = 0;
  last_ = {};
  slowest_ = kMostMembers;
  first_step_ = true;
  step_ = std::bit_floor(std::max(1U, space_.units / kSteps));
  for (std::size_t i = 0; i < members_.size(); ++i) candidate_.forms[i] = members_[i].form;
  together_ = candidate_;
  together_.sharing = Sharing::kTogether;
  for (std::size_t i = 0; i < members_.size(); ++i) together_.forms[i] = members_[i].form_together;
  together_score_ = kInfinite;
  if (may_together()) {
    stage_ = Stage::kTogether;
    candidate_ = together_;
    together_score_ = 1;
  } else if (!space_.in_parts) {
    stage_ = Stage::kDone;
  } else {
    stage_ = Stage::kStart;
    propose_start();
  }
}

void Search::measured(std::span<const double> rates) {
  if (candidate_.sharing == Sharing::kPlaced) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (candidate_.forms[i] != members_[i].form) continue;
      auto& points = members_[i].points;
      const std::uint32_t units = candidate_.units[i];
      auto at = std::ranges::lower_bound(points, units, {}, &Point::units);
      if (at == points.end() || at->units != units) at = points.insert(at, Point{units, 0});
      at->rate = rates[i];
    }
  }
  const double score = makespan(rates, weights_);
  const bool unfair =
      starves(rates, weights_, space_.floor) || (space_.even && is_uneven(rates, weights_));
  if (candidate_ == together_) {
    together_seen(rates);
    slowest_ = is_uneven(rates, weights_)
                   ? static_cast<std::size_t>(std::ranges::min_element(rates) - rates.begin())
                   : kMostMembers;
  }
  judged(unfair ? score + kStarved : score);
}

void Search::together_seen(std::span<const double> rates) {
  together_score_ = starves(rates, weights_, space_.floor * kTogetherFloor)
                        ? kInfinite
                        : makespan(rates, weights_);
}

void Search::rejected() {
  judged(kInfinite);
}

void Search::passed() {
  tried_.push_back({candidate_, kInfinite});
  advance(false);
}

void Search::judged(double score) {
  tried_.push_back({candidate_, score});
  if (candidate_ == together_ && score == kInfinite) together_score_ = score;
  const bool better = score < centre_score_ * (1 - kBetter);
  if (candidate_.sharing == Sharing::kPlaced && better) {
    centre_ = candidate_;
    centre_score_ = score;
  }
  if (score < best_score_ * (1 - kBetter) && score < kStarved) {
    best_ = candidate_;
    best_score_ = score;
  }
  advance(better);
}

void Search::verified(const Arrangement& arrangement, double score, Milliseconds time) {
  const auto known = std::ranges::find(tried_, arrangement, &Tried::arrangement);
  if (known == tried_.end()) return;
  if (time > known->watched) {
    known->score = score;
    known->watched = time;
  } else {
    const Milliseconds all = known->watched + time;
    known->score += (score - known->score) * (time / all);
    known->watched = all;
  }
  best_ = {};
  best_score_ = kInfinite;
  for (const Tried& tried : tried_) {
    // What was seen for a short while only must promise more than that takes back.
    const double counts = tried.watched.count() > 0 ? tried.score : tried.score * (1 + kBetter);
    if (tried.score >= kStarved || counts >= best_score_) continue;
    best_ = tried.arrangement;
    best_score_ = counts;
  }
}

Milliseconds Search::best_watched() const {
  const auto known = std::ranges::find(tried_, best_, &Tried::arrangement);
  return known == tried_.end() ? Milliseconds(0) : known->watched;
}

void Search::advance(bool better) {
  switch (stage_) {
    case Stage::kTogether:
      if (!space_.in_parts) {
        stage_ = Stage::kDone;
        return;
      }
      // Costs little, and what parts of the device must beat. With long launches it costs a lot.
      if (std::ranges::none_of(members_, &Member::lasts) && propose_ahead()) return;
      stage_ = Stage::kStart;
      propose_start();
      return;
    case Stage::kStart:
      if (centre_.sharing != Sharing::kPlaced) centre_ = candidate_;
      stage_ = Stage::kClimb;
      list_moves();
      propose_move();
      return;
    case Stage::kClimb:
      if (better) list_moves();
      propose_move();
      return;
    case Stage::kForms:
      propose_form();
      return;
    case Stage::kAhead:
      if (centre_.sharing == Sharing::kPlaced) return begin_quotas();
      stage_ = Stage::kStart;
      propose_start();
      return;
    case Stage::kQuotas:
      // Half of what helped may help more.
      if (candidate_ == best_ && candidate_.quotas[next_quota_ - 1] > 1) {
        candidate_.quotas[next_quota_ - 1] /= 2;
      } else {
        propose_quota();
      }
      return;
    case Stage::kDone:
      return;
  }
}

void Search::propose_start() {
  const std::size_t n = members_.size();
  if (space_.units < n) return share_sms();
  candidate_ = {.sharing = Sharing::kPlaced};
  for (std::size_t i = 0; i < n; ++i) candidate_.forms[i] = members_[i].form;
  std::uint32_t least = 0;
  for (const Member& member : members_) least += member.least_units;
  if (least > space_.units) {
    for (Member& member : members_) member.least_units = 1;
  }
  // Units left above each member's least go, one by one, to the member that is furthest below its
  // share.
  double shares = 0;
  std::uint32_t left = space_.units;
  for (std::size_t i = 0; i < n; ++i) {
    shares += members_[i].share;
    candidate_.units[i] = members_[i].least_units;
    left -= members_[i].least_units;
  }
  for (; left > 0; --left) {
    std::size_t poorest = 0;
    double most = -kInfinite;
    for (std::size_t i = 0; i < n; ++i) {
      const double due = members_[i].share / shares * space_.units - candidate_.units[i];
      if (due > most) {
        most = due;
        poorest = i;
      }
    }
    ++candidate_.units[poorest];
  }
  if (std::ranges::all_of(members_, [](const Member& m) { return m.points.size() >= 2; })) {
    climb_model();
  }
}

void Search::climb_model() {
  const std::size_t n = members_.size();
  double now = predict(candidate_);
  for (std::uint32_t round = 0; round < space_.units; ++round) {
    Arrangement best = candidate_;
    double best_score = now;
    for (std::size_t from = 0; from < n; ++from) {
      for (std::size_t to = 0; to < n; ++to) {
        if (from == to || candidate_.units[from] <= members_[from].least_units) continue;
        Arrangement next = candidate_;
        --next.units[from];
        ++next.units[to];
        const double score = predict(next);
        if (score < best_score) {
          best_score = score;
          best = next;
        }
      }
    }
    if (best == candidate_) return;
    candidate_ = best;
    now = best_score;
  }
}

bool Search::apply(const Move& move) {
  if (centre_.units[move.from] < members_[move.from].least_units + step_) return false;
  candidate_ = centre_;
  candidate_.units[move.from] -= step_;
  candidate_.units[move.to] += step_;
  return !was_tried(candidate_);
}

bool Search::was_tried(const Arrangement& arrangement) const {
  const auto known = [&](const Arrangement& each) {
    return std::ranges::find(tried_, each, &Tried::arrangement) != tried_.end();
  };
  if (known(arrangement)) return true;
  if (!space_.alike || members_.size() != 2) return false;
  // Which of two alike has which part makes no difference.
  Arrangement mirrored = arrangement;
  std::swap(mirrored.units[0], mirrored.units[1]);
  std::swap(mirrored.forms[0], mirrored.forms[1]);
  return known(mirrored);
}

void Search::list_moves() {
  const auto n = static_cast<std::uint32_t>(members_.size());
  const Arrangement kept = candidate_;
  moves_.clear();
  next_move_ = 0;
  for (std::uint32_t from = 0; from < n; ++from) {
    for (std::uint32_t to = 0; to < n; ++to) {
      Move move{from, to, 0};
      if (from == to || !apply(move)) continue;
      const double least = weights_[from] / static_cast<double>(n) * space_.floor * kFloorMargin;
      if (predict_rate(from, candidate_.units[from]) < least) continue;
      move.predicted = predict(candidate_);
      // What helped last goes first.
      if (from == last_.from && to == last_.to) move.predicted -= 1;
      moves_.push_back(move);
    }
  }
  candidate_ = kept;
  std::ranges::stable_sort(moves_, {}, &Move::predicted);
  // Of many members only the likeliest moves.
  const std::size_t most = std::max<std::size_t>(n, kLeastMoves);
  if (moves_.size() > most) moves_.resize(most);
}

void Search::propose_move() {
  for (;;) {
    while (next_move_ < moves_.size()) {
      last_ = moves_[next_move_++];
      if (apply(last_)) return;
    }
    const bool hopeless = centre_score_ > (first_step_ ? kHopeless : kHopelessLater);
    first_step_ = false;
    step_ = hopeless ? 0 : step_ / 2;
    last_ = {};
    if (step_ == 0) break;
    list_moves();
  }
  // Where the split gains nothing, other forms on it will not either.
  if (centre_score_ > kHopelessLater) return share_sms();
  stage_ = Stage::kForms;
  propose_form();
}

void Search::propose_form() {
  while (next_form_ < members_.size()) {
    const std::size_t i = next_form_++;
    if (!members_[i].flips) continue;
    candidate_ = centre_;
    candidate_.forms[i] = candidate_.forms[i] == Form::kWorker ? Form::kNative : Form::kWorker;
    if (!was_tried(candidate_)) return;
  }
  share_sms();
}

bool Search::leaves_room(const Arrangement& together) const {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const bool fills = members_[i].fills && together.forms[i] == Form::kWorker;
    if (fills && together.quotas[i] == 0) return false;
  }
  return true;
}

/// Together again, but the member that got least goes first. The hardware serves the blocks that
/// came first, so a kernel of few blocks waits for one of many. The other may lose little by
/// letting it through; both are then through at about the same time.
bool Search::propose_ahead() {
  if (slowest_ >= members_.size() || space_.alike) return false;
  Arrangement ahead = together_;
  ahead.ahead[slowest_] = true;
  if (was_tried(ahead)) return false;
  stage_ = Stage::kAhead;
  candidate_ = ahead;
  return true;
}

void Search::share_sms() {
  // Those that gain a lot apart complement one another without getting in each other's way.
  const double gained = best_score_ / std::min(1.0, together_score_);
  if (gained < kFarApart) {
    stage_ = Stage::kDone;
  } else if (gained < kApart || !propose_ahead()) {
    begin_quotas();
  }
}

// Together again, but one member leaves the others room on every SM: what issues little, or waits
// for memory, loses nothing by that.
void Search::begin_quotas() {
  stage_ = Stage::kQuotas;
  if (!space_.together || members_.size() > kMostWithQuotas) next_quota_ = members_.size();
  propose_quota();
}

void Search::propose_quota() {
  while (next_quota_ < members_.size()) {
    const std::size_t i = next_quota_++;
    if (members_[i].room < 2) continue;
    candidate_ = {.sharing = Sharing::kTogether};
    for (std::size_t k = 0; k < members_.size(); ++k) candidate_.forms[k] = members_[k].form;
    candidate_.forms[i] = Form::kWorker;
    candidate_.quotas[i] = members_[i].room / 2;
    if (leaves_room(candidate_)) return;
  }
  stage_ = Stage::kDone;
}

double Search::predict(const Arrangement& arrangement) const {
  std::array<double, kMostMembers> rates{};
  for (std::size_t i = 0; i < members_.size(); ++i) {
    rates[i] = predict_rate(i, arrangement.units[i]);
  }
  return makespan({rates.data(), members_.size()}, weights_);
}

double Search::predict_rate(std::size_t member, std::uint32_t units) const {
  Point below{0, 0}, above{space_.units, 1};
  for (const Point& point : members_[member].points) {
    if (point.units == units) return point.rate;
    if (point.units < units) below = point;
    if (point.units > units && point.units < above.units) above = point;
  }
  if (above.units <= below.units) return below.rate;
  return below.rate + (above.rate - below.rate) * (units - below.units) /
                          static_cast<double>(above.units - below.units);
}

}  // namespace slate::scheduler
