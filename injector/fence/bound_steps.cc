#include "injector/fence/bound_steps.h"

#include <algorithm>
#include <cstring>

namespace slate::injector {
namespace {

/// Whether another step that computes the same of the same steps is the same number. A counter's is
/// one of several, and what is not known is not twice the same.
bool is_function(const BoundStep& step) {
  switch (step.op) {
    case BoundOp::kNumber:
    case BoundOp::kParameter:
    case BoundOp::kThreads:
    case BoundOp::kBlocks:
    case BoundOp::kShared:
      return true;
    case BoundOp::kIndex:
    case BoundOp::kRead:
    case BoundOp::kShiftRight:
    case BoundOp::kRounded:
      return step.a != BoundSteps::kUnknown;
    case BoundOp::kAdd:
    case BoundOp::kSubtract:
    case BoundOp::kMultiply:
    case BoundOp::kDivide:
    case BoundOp::kRest:
    case BoundOp::kAnd:
    case BoundOp::kOr:
    case BoundOp::kMin:
    case BoundOp::kMax:
    case BoundOp::kAtMost:
    case BoundOp::kAtLeast:
    case BoundOp::kUnequal:
    case BoundOp::kWhere:
    case BoundOp::kWithin:
      return step.a != BoundSteps::kUnknown && step.b != BoundSteps::kUnknown;
    default:
      return false;
  }
}

/// Parameters of a launch that works on small arrays.
std::vector<std::byte> small_parameters(const ptx::Function& function,
                                        const ParameterLayout& layout) {
  constexpr std::uint32_t kSize = 256;
  std::vector<std::byte> bytes;
  for (std::uint32_t i = 0; i < function.parameters.size(); ++i) {
    const std::uint64_t size = std::min<std::uint64_t>(function.parameters[i].bytes, 64 << 10);
    const bool is_long = size == sizeof(std::uint64_t);
    bytes.resize(layout.offset(i) + size);
    for (std::uint64_t at = 0; at + sizeof(kSize) <= size && !(is_long && at != 0);
         at += sizeof(kSize)) {
      std::memcpy(bytes.data() + layout.offset(i) + at, &kSize, sizeof(kSize));
    }
  }
  return bytes;
}

}  // namespace

BoundSteps::BoundSteps(const ptx::Function& function, const ParameterLayout& layout,
                       const LaunchValues* launch)
    : parameters_(small_parameters(function, layout)),
      has_launch_(launch != nullptr),
      many_launch_(launch != nullptr ? *launch
                                     : LaunchValues{.parameters = parameters_,
                                                    .grid = {64, 64, 64},
                                                    .block = {16, 16, 4}}),
      one_launch_(launch != nullptr ? LaunchValues{.parameters = parameters_,
                                                   .grid = {64, 64, 64},
                                                   .block = {launch->block[0], launch->block[1],
                                                             launch->block[2]}}
                                    : LaunchValues{.parameters = parameters_}),
      many_(many_launch_),
      one_(one_launch_) {
  add({});
}

std::uint32_t BoundSteps::add(BoundStep step) {
  if (steps_.size() >= kMost) return kUnknown;
  const auto next = static_cast<std::uint32_t>(steps_.size());
  if (is_function(step)) {
    const auto [same, is_new] = computed_.try_emplace(step, next);
    if (!is_new) return same->second;
  }
  many_.add(step);
  one_.add(step);
  steps_.push_back(step);
  return next;
}

std::uint32_t BoundSteps::read(std::uint32_t step, unsigned bits, bool is_signed) {
  return add({.op = BoundOp::kRead,
              .bits = static_cast<std::uint8_t>(bits),
              .is_signed = is_signed,
              .a = step});
}

BoundNumber BoundSteps::sum(BoundNumber a, BoundNumber b) {
  if (a.variable != nullptr && b.variable != nullptr) return {};
  return {.variable = a.variable != nullptr ? a.variable : b.variable,
          .step = add({.op = BoundOp::kAdd, .a = a.step, .b = b.step})};
}

std::optional<BoundNumber> BoundSteps::any_of(const std::vector<BoundNumber>& values) {
  std::optional<BoundNumber> all;
  for (const BoundNumber& value : values) {
    if (all && all->variable != value.variable) return std::nullopt;
    all = {
        .variable = value.variable,
        .step = all ? add({.op = BoundOp::kEither, .a = all->step, .b = value.step}) : value.step};
  }
  return all;
}

void BoundSteps::go_back_to(std::uint32_t count) {
  for (std::size_t i = count; i < steps_.size(); ++i) {
    if (is_function(steps_[i])) computed_.erase(steps_[i]);
  }
  steps_.resize(count);
  many_.go_to(count);
  one_.go_to(count);
}

BoundClaim BoundSteps::is_number(std::uint32_t step, std::uint32_t number) {
  const std::uint32_t apart = add({.op = BoundOp::kSubtract, .a = step, .b = this->number(number)});
  return {.kind = BoundClaim::Kind::kInVariable, .step = apart, .bytes = 1, .limit = 1};
}

bool BoundSteps::may_hold(const BoundClaim& claim) const {
  if (has_launch_ || claim.kind == BoundClaim::Kind::kMultiple) return many_.holds(claim);
  if (claim.kind == BoundClaim::Kind::kAligned) return true;
  return may_be_narrow(claim.step) &&
         (claim.kind != BoundClaim::Kind::kInVariable || one_.holds(claim));
}

AccessBounds BoundSteps::bounds(std::vector<BoundClaim> claims) const {
  AccessBounds result{.steps = {}, .claims = std::move(claims)};
  std::vector<bool> is_needed(steps_.size(), false);
  is_needed[kUnknown] = true;
  for (const BoundClaim& claim : result.claims) is_needed[claim.step] = true;
  for (std::size_t i = steps_.size(); i-- > 0;) {
    if (!is_needed[i]) continue;
    for (const std::uint32_t used : {steps_[i].a, steps_[i].b, steps_[i].c}) is_needed[used] = true;
  }
  std::vector<std::uint32_t> places(steps_.size(), kUnknown);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (!is_needed[i]) continue;
    places[i] = static_cast<std::uint32_t>(result.steps.size());
    BoundStep& step = result.steps.emplace_back(steps_[i]);
    for (std::uint32_t* const used : {&step.a, &step.b, &step.c}) *used = places[*used];
  }
  for (BoundClaim& claim : result.claims) claim.step = places[claim.step];
  return result;
}

}  // namespace slate::injector
