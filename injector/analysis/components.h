// Strongly connected components of a graph, in linear time. It knows node numbers only, no code. A
// pure function. Thread: any.
#pragma once

#include <cstdint>
#include <vector>

namespace slate::injector {

/// Components: sets of nodes that lead to one another; most have one node. Each comes behind those
/// that it leads to. `successors`: by node.
std::vector<std::vector<std::uint32_t>> strong_components(
    const std::vector<std::vector<std::uint32_t>>& successors);

}  // namespace slate::injector
