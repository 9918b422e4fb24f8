#include "injector/analysis/components.h"

#include <algorithm>
#include <utility>

namespace slate::injector {
namespace {

/// Tarjan, "Depth-first search and linear graph algorithms" (1972), without recursion.
class ComponentFinder {
 public:
  explicit ComponentFinder(const std::vector<std::vector<std::uint32_t>>& successors)
      : successors_(successors), number_(successors.size(), 0), lowest_(successors.size(), 0) {}

  std::vector<std::vector<std::uint32_t>> find() {
    for (std::uint32_t i = 0; i < successors_.size(); ++i) {
      if (number_[i] == 0) search(i);
    }
    return std::move(components_);
  }

 private:
  static constexpr std::uint32_t kDone = ~std::uint32_t{0};
  struct Visit {
    std::uint32_t node;
    std::size_t next = 0;
  };

  void search(std::uint32_t root) {
    std::vector<Visit> path;
    enter(root, path);
    while (!path.empty()) {
      Visit& top = path.back();
      const std::uint32_t node = top.node;
      if (top.next < successors_[node].size()) {
        const std::uint32_t next_node = successors_[node][top.next++];
        if (number_[next_node] == 0) {
          enter(next_node, path);
        } else {
          lowest_[node] = std::min(lowest_[node], number_[next_node]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) {
        std::uint32_t& above = lowest_[path.back().node];
        above = std::min(above, lowest_[node]);
      }
      if (lowest_[node] == number_[node]) close(node);
    }
  }

  void enter(std::uint32_t node, std::vector<Visit>& path) {
    number_[node] = lowest_[node] = ++entered_;
    open_.push_back(node);
    path.push_back({node});
  }

  /// Its component is all that was entered since.
  void close(std::uint32_t first) {
    const auto begin = std::ranges::find(open_.rbegin(), open_.rend(), first).base() - 1;
    components_.emplace_back(begin, open_.end());
    open_.erase(begin, open_.end());
    for (const std::uint32_t node : components_.back()) number_[node] = kDone;
  }

  const std::vector<std::vector<std::uint32_t>>& successors_;
  std::vector<std::uint32_t> number_;  // by node: when it was entered; 0: not yet
  std::vector<std::uint32_t> lowest_;  // by node: of those open, the first that it leads back to
  std::vector<std::uint32_t> open_;
  std::vector<std::vector<std::uint32_t>> components_;
  std::uint32_t entered_ = 0;
};

}  // namespace

std::vector<std::vector<std::uint32_t>> strong_components(
    const std::vector<std::vector<std::uint32_t>>& successors) {
  return ComponentFinder(successors).find();
}

}  // namespace slate::injector
