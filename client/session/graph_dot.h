// The picture of a graph of work, for Graphviz.
#pragma once

#include <string>

#include "client/session/graph.h"

namespace slate::client {

/// Writes the graph to the file in DOT: its nodes by number in the order of creation, an edge for
/// each dependency, and a cluster for the graph inside a node. `details`: also what each node does,
/// such as a kernel's grid and the addresses of a copy.
/// kInvalidValue for an unknown graph, kIo when the file cannot be written.
Allowed<void> write_dot(GraphHandle graph, const std::string& path, bool details);

}  // namespace slate::client
