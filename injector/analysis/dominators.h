// Immediate dominators of a graph, in nearly linear time whatever its shape. Pure function.
#pragma once

#include <cstdint>
#include <vector>

namespace slate::injector {

inline constexpr std::uint32_t kNoDominator = ~std::uint32_t{0};

/// By node: the last other node that every way from `root` to it passes; kNoDominator of the root,
/// and of nodes that no way leads to. `successors`: by node.
std::vector<std::uint32_t> immediate_dominators(
    const std::vector<std::vector<std::uint32_t>>& successors, std::uint32_t root);

}  // namespace slate::injector
