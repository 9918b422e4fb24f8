// Strongly connected components of a graph. Pure function, in linear time.
#pragma once

#include <cstdint>
#include <vector>

namespace slate::injector {

/// Sets of nodes that lead to one another, most of one, each behind those that it leads to.
/// `successors`: by node.
std::vector<std::vector<std::uint32_t>> strong_components(
    const std::vector<std::vector<std::uint32_t>>& successors);

}  // namespace slate::injector
