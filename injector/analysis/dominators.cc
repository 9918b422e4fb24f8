#include "injector/analysis/dominators.h"

#include <algorithm>
#include <numeric>

namespace slate::injector {
namespace {

/// Lengauer and Tarjan, "A fast algorithm for finding dominators in a flowgraph" (1979), the simple
/// version with path compression, without recursion. Nodes go by their number in the search.
class DominatorFinder {
 public:
  explicit DominatorFinder(const std::vector<std::vector<std::uint32_t>>& successors)
      : successors_(successors), number_(successors.size(), kNoDominator) {}

  std::vector<std::uint32_t> find(std::uint32_t root) {
    search(root);
    const auto count = static_cast<std::uint32_t>(node_.size());
    semi_.resize(count);
    std::iota(semi_.begin(), semi_.end(), 0);
    best_ = semi_;
    ancestor_.assign(count, kNoDominator);
    dominator_.assign(count, kNoDominator);
    std::vector<std::vector<std::uint32_t>> waiting(count);
    for (std::uint32_t w = count - 1; w > 0; --w) {
      for (const std::uint32_t v : predecessors_[w]) semi_[w] = std::min(semi_[w], semi_[best(v)]);
      waiting[semi_[w]].push_back(w);
      ancestor_[w] = parent_[w];
      for (const std::uint32_t v : waiting[parent_[w]]) {
        const std::uint32_t u = best(v);
        dominator_[v] = semi_[u] < semi_[v] ? u : parent_[w];
      }
      waiting[parent_[w]].clear();
    }
    std::vector<std::uint32_t> result(successors_.size(), kNoDominator);
    for (std::uint32_t w = 1; w < count; ++w) {
      if (dominator_[w] != semi_[w]) dominator_[w] = dominator_[dominator_[w]];
      result[node_[w]] = node_[dominator_[w]];
    }
    return result;
  }

 private:
  struct Visit {
    std::uint32_t number;
    std::size_t next = 0;
  };

  /// In depth.
  void search(std::uint32_t root) {
    std::vector<Visit> path;
    enter(root, 0, path);
    while (!path.empty()) {
      Visit& top = path.back();
      const auto& next = successors_[node_[top.number]];
      if (top.next == next.size()) {
        path.pop_back();
        continue;
      }
      const std::uint32_t node = next[top.next++];
      const std::uint32_t from = top.number;
      if (number_[node] == kNoDominator) enter(node, from, path);
      predecessors_[number_[node]].push_back(from);
    }
  }

  void enter(std::uint32_t node, std::uint32_t parent, std::vector<Visit>& path) {
    number_[node] = static_cast<std::uint32_t>(node_.size());
    path.push_back({number_[node]});
    node_.push_back(node);
    parent_.push_back(parent);
    predecessors_.emplace_back();
  }

  /// The node of the least semi-dominator on the way from `v` up to its tree's root, that left out.
  std::uint32_t best(std::uint32_t v) {
    if (ancestor_[v] == kNoDominator) return v;
    way_.clear();
    for (std::uint32_t u = v; ancestor_[ancestor_[u]] != kNoDominator; u = ancestor_[u])
      way_.push_back(u);
    for (auto u = way_.rbegin(); u != way_.rend(); ++u) {
      const std::uint32_t above = ancestor_[*u];
      if (semi_[best_[above]] < semi_[best_[*u]]) best_[*u] = best_[above];
      ancestor_[*u] = ancestor_[above];
    }
    return best_[v];
  }

  const std::vector<std::vector<std::uint32_t>>& successors_;
  std::vector<std::uint32_t> number_;  // by node
  // What follows is by number.
  std::vector<std::uint32_t> node_;
  std::vector<std::uint32_t> parent_;
  std::vector<std::vector<std::uint32_t>> predecessors_;
  std::vector<std::uint32_t> semi_;
  std::vector<std::uint32_t> best_;
  std::vector<std::uint32_t> ancestor_;
  std::vector<std::uint32_t> dominator_;
  std::vector<std::uint32_t> way_;
};

}  // namespace

std::vector<std::uint32_t> immediate_dominators(
    const std::vector<std::vector<std::uint32_t>>& successors, std::uint32_t root) {
  return DominatorFinder(successors).find(root);
}

}  // namespace slate::injector
