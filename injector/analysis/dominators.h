// Immediate dominators of a graph, in nearly linear time for any shape. A pure function. Thread:
// any.
#pragma once

#include <cstdint>
#include <vector>

namespace slate::injector {

inline constexpr std::uint32_t kNoDominator = ~std::uint32_t{0};

/// For each node the last other node that every path from `root` to it passes. kNoDominator for the
/// root and for nodes without a path. `successors`: by node.
std::vector<std::uint32_t> immediate_dominators(
    const std::vector<std::vector<std::uint32_t>>& successors, std::uint32_t root);

}  // namespace slate::injector
