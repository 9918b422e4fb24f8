#include "injector/analysis/roots.h"

#include <algorithm>

namespace slate::injector {
namespace {

constexpr std::int64_t kMostFollowedBytes = 1 << 16;  // offsets beyond are not followed
constexpr Root kUnknownRoot{.kind = RootKind::kUnknown};
constexpr Root kNullRoot{.kind = RootKind::kNull};
constexpr Root kUnknownLow{.kind = RootKind::kUnknown, .part = RootPart::kLow};

bool is_whole(const Root& root) {
  return root.part == RootPart::kWhole;
}

std::uint64_t key_of(std::uint32_t a, std::uint32_t b) {
  return std::uint64_t{std::min(a, b)} << 32 | std::max(a, b);
}

/// The pointer whose lower and upper half these are. Unknown where they are of two.
Root pointer_of(const Root& low, const Root& high) {
  if (low.kind != high.kind || low.part != RootPart::kLow) return kUnknownRoot;
  Root whole = low;
  whole.part = RootPart::kWhole;
  const std::uint32_t apart = low.kind == RootKind::kParameter ? 4 : 0;
  return high.number == low.number + apart ? whole : kUnknownRoot;
}

void sort_distinct(auto& values) {
  std::ranges::sort(values);
  const auto rest = std::ranges::unique(values);
  values.erase(rest.begin(), rest.end());
}

}  // namespace

OriginTable::OriginTable(Effort& effort) : effort_(effort) {
  intern({});
  intern({{}});
  intern({{kUnknownRoot}});
  intern({{kUnknownLow}});
  intern({{kNullRoot}});
}

/// What may be any pointer may be each of them, so that sets that are too large do not grow again.
OriginTable::Id OriginTable::intern(Origin origin) {
  sort_distinct(origin);
  const auto has = [&](const Root& root) {
    return std::ranges::find(origin, RootSum{root}) != origin.end();
  };
  if (has(kUnknownRoot)) origin = {{kUnknownRoot}};
  if (has(kUnknownLow)) {
    std::erase_if(origin, [](const RootSum& sum) {
      return sum != RootSum{kUnknownLow} && std::ranges::none_of(sum, is_whole);
    });
  }
  if (origin.size() > kMostAlternatives) {
    const bool has_whole = std::ranges::any_of(
        origin, [](const RootSum& sum) { return std::ranges::any_of(sum, is_whole); });
    return has_whole ? kUnknown : kUnknownHalf;
  }
  const auto [found, is_new] =
      ids_.try_emplace(std::move(origin), static_cast<Id>(origins_.size()));
  if (is_new) origins_.push_back(&found->first);
  return found->second;
}

OriginTable::Id OriginTable::of(const Root& root) {
  any_parameter_space_ |= root.kind == RootKind::kParameterSpace;
  return intern({{root}});
}

OriginTable::Id OriginTable::joined(Id a, Id b) {
  if (a == b || b == kNone) return a;
  if (a == kNone) return b;
  if (const auto known = joins_.find(key_of(a, b)); known != joins_.end()) return known->second;
  Origin both = *origins_[a];
  both.insert(both.end(), origins_[b]->begin(), origins_[b]->end());
  effort_.take(both.size());
  return joins_[key_of(a, b)] = intern(std::move(both));
}

OriginTable::Id OriginTable::sum(Id a, Id b) {
  if (a == kNone || b == kNone) return kNone;
  if (const auto known = sums_.find(key_of(a, b)); known != sums_.end()) return known->second;
  Origin all;
  for (const RootSum& one : *origins_[a]) {
    for (const RootSum& other : *origins_[b]) all.push_back(added(one, other));
  }
  effort_.take(all.size());
  return sums_[key_of(a, b)] = intern(std::move(all));
}

RootSum OriginTable::added(const RootSum& a, const RootSum& b) {
  // Halves in their places make a pointer.
  if (a.size() == 1 && b.size() == 1) {
    const bool a_raised = a[0].part == RootPart::kRaised;
    const Root& raised = a_raised ? a[0] : b[0];
    const Root& other = a_raised ? b[0] : a[0];
    if (raised.part == RootPart::kRaised && other.part == RootPart::kLow) {
      return {pointer_of(other, raised)};
    }
  }
  RootSum sum = a;
  sum.insert(sum.end(), b.begin(), b.end());
  std::erase(sum, kNullRoot);
  for (Root& root : sum) {
    // The number that is added is not known.
    if (root.kind == RootKind::kParameterSpace) root.extent = 1;
  }
  return simplified(std::move(sum));
}

/// Beside a pointer 32 bits are an index, and two such values added are a number. A pointer that is
/// not known leaves nothing to know of the sum.
RootSum OriginTable::simplified(RootSum sum) {
  sort_distinct(sum);
  const auto has = [&](auto&& property) { return std::ranges::any_of(sum, property); };
  const bool is_raised = has([](const Root& root) { return root.part == RootPart::kRaised; });
  if (is_raised && sum.size() > 1) return {kUnknownRoot};
  if (has([](const Root& root) { return root == kUnknownRoot; })) return {kUnknownRoot};
  const auto whole = static_cast<std::size_t>(
      std::ranges::count_if(sum, [](const Root& r) { return is_whole(r); }));
  const bool in_parameters =
      has([](const Root& root) { return root.kind == RootKind::kParameterSpace; });
  if (whole > kMostRoots || (in_parameters && whole > 1)) return {kUnknownRoot};
  if (whole != 0) {
    std::erase_if(sum, [](const Root& root) { return !is_whole(root); });
  } else if (sum.size() > 1) {
    sum.clear();
  }
  return sum;
}

OriginTable::Id OriginTable::mapped(Id a, const Change& change) {
  Origin all;
  for (const RootSum& sum : *origins_[a]) {
    RootSum changed;
    for (const Root& root : sum) {
      if (const auto one = change(root)) changed.push_back(*one);
    }
    all.push_back(simplified(std::move(changed)));
  }
  effort_.take(1 + all.size());
  return intern(std::move(all));
}

bool OriginTable::is_number(Id a) const {
  return std::ranges::all_of(alternatives(a), [](const RootSum& sum) {
    return std::ranges::all_of(sum, [](const Root& root) { return root == kNullRoot; });
  });
}

bool OriginTable::has_halves(Id a) const {
  return std::ranges::any_of(alternatives(a), [](const RootSum& sum) {
    return std::ranges::any_of(sum, [](const Root& root) { return !is_whole(root); });
  });
}

OriginTable::Id OriginTable::scaled(Id a) {
  return mapped(a, [](const Root& root) -> std::optional<Root> {
    if (!is_whole(root) || root.kind == RootKind::kUnknown) return std::nullopt;
    return root.kind == RootKind::kParameterSpace ? kUnknownRoot : root;
  });
}

OriginTable::Id OriginTable::moved(Id a, std::int64_t by) {
  if (by == 0 || !any_parameter_space_) return a;
  return mapped(a, [by](Root root) -> std::optional<Root> {
    if (root.kind != RootKind::kParameterSpace || root.extent != 0) return root;
    const std::int64_t to = root.number + by;
    if (to < 0 || to > kMostFollowedBytes) return kUnknownRoot;
    root.number = static_cast<std::uint32_t>(to);
    return root;
  });
}

OriginTable::Id OriginTable::low(Id a) {
  return mapped(a, [](Root root) -> std::optional<Root> {
    if (root.part == RootPart::kRaised || root == kNullRoot) return std::nullopt;
    if (!is_whole(root)) return root;
    if (root.extent != 0 || root.kind == RootKind::kParameterSpace) return kUnknownLow;
    root.part = RootPart::kLow;
    return root;
  });
}

OriginTable::Id OriginTable::high(Id a) {
  return mapped(a, [](Root root) -> std::optional<Root> {
    if (root.part == RootPart::kRaised) {
      root.part = root.kind == RootKind::kParameter ? RootPart::kLow : RootPart::kHigh;
      return root;
    }
    if (!is_whole(root) || root == kNullRoot) return std::nullopt;
    if (root.extent != 0 || root.kind == RootKind::kParameterSpace) return kUnknownLow;
    root.part = RootPart::kHigh;
    if (root.kind == RootKind::kParameter) {
      root.part = RootPart::kLow;
      root.number += 4;
    }
    return root;
  });
}

OriginTable::Id OriginTable::raised(Id a) {
  return mapped(a, [](Root root) -> std::optional<Root> {
    if (root == kNullRoot) return std::nullopt;
    const bool upper = root.part == RootPart::kHigh ||
                       (root.part == RootPart::kLow && root.kind == RootKind::kParameter);
    if (!upper) return kUnknownRoot;
    root.part = RootPart::kRaised;
    return root;
  });
}

OriginTable::Id OriginTable::packed(Id low_bits, Id high_bits) {
  return sum(low_bits, raised(high_bits));
}

OriginTable::Id OriginTable::blurred(Id a) {
  return mapped(a, [](const Root& root) -> std::optional<Root> {
    if (root.part == RootPart::kRaised) return kUnknownRoot;
    if (!is_whole(root)) return kUnknownLow;
    return root.kind == RootKind::kParameterSpace ? kUnknownRoot : root;
  });
}

}  // namespace slate::injector
