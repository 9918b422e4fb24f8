// CUDA runtime's handles of graphs, nodes and executable graphs, and the core's.
#pragma once

#include <span>
#include <vector>

#include "client/cudart/front.h"
#include "client/session/graph.h"

namespace slate::cudart {

template <typename Handle>
Handle handle_of(const void* address) {
  return static_cast<Handle>(const_cast<void*>(address));
}

/// A null list of nodes counts as one with a node that does not exist.
inline std::vector<client::NodeHandle> handles_of(const cudaGraphNode_t* nodes, std::size_t count) {
  if (nodes == nullptr && count > 0) return std::vector<client::NodeHandle>(1);
  return std::vector<client::NodeHandle>(nodes, nodes + count);
}

}  // namespace slate::cudart
