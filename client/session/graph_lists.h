// Handles of graphs, lists of nodes and edges, and what is known of a capture, as programs pass and
// get them. CUDA's APIs share their meaning. `Handle`: an API's type of node handles, a pointer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "client/session/captures.h"
#include "client/session/graph_shape.h"
#include "client/session/refused.h"

namespace slate::client {

/// The handle of an API for a graph, a node or an executable graph.
template <typename Handle>
Handle handle_of(const void* address) {
  return static_cast<Handle>(const_cast<void*>(address));
}
/// Gives the program what was made or found.
template <typename Handle>
Allowed<void> hand_over(Handle* where, const Allowed<const void*>& made) {
  if (!made) return std::unexpected(made.error());
  if (where == nullptr) return refuse(Refusal::kInvalidValue);
  *where = handle_of<Handle>(*made);
  return {};
}

/// A null list of nodes counts as one with a node that does not exist.
template <typename Handle>
std::vector<NodeHandle> handles_of(const Handle* nodes, std::size_t count) {
  if (nodes == nullptr && count > 0) return std::vector<NodeHandle>(1);
  return std::vector<NodeHandle>(nodes, nodes + count);
}
/// As above, for edges.
template <typename Handle>
std::vector<Edge> edges_between(const Handle* from, const Handle* to, std::size_t count) {
  if (count > 0 && (from == nullptr || to == nullptr)) return {Edge{}};
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < count; ++i) edges.push_back({from[i], to[i]});
  return edges;
}

/// Without places only counts. Otherwise fills `*count` places, of which those beyond the nodes get
/// null, and tells how many there were.
template <typename Handle>
Allowed<void> tell_nodes(const Allowed<std::vector<NodeHandle>>& nodes, Handle* places,
                         std::size_t* count) {
  if (!nodes) return std::unexpected(nodes.error());
  if (count == nullptr) return refuse(Refusal::kInvalidValue);
  if (places != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) {
      places[i] = i < nodes->size() ? handle_of<Handle>((*nodes)[i]) : nullptr;
    }
    *count = std::min(*count, nodes->size());
  } else {
    *count = nodes->size();
  }
  return {};
}

/// Where a program wants edges. All but the count may be null. The data of edges is zero, as all
/// are plain.
template <typename Handle, typename Data>
struct EdgePlaces {
  Handle* from;
  Handle* to;
  Data* data;
  std::size_t* count;
};
/// As tell_nodes(), for edges.
template <typename Handle, typename Data>
Allowed<void> tell_edges(const Allowed<std::vector<Edge>>& edges,
                         const EdgePlaces<Handle, Data>& places) {
  if (!edges) return std::unexpected(edges.error());
  if (places.count == nullptr) return refuse(Refusal::kInvalidValue);
  if (places.from == nullptr && places.to == nullptr) {
    *places.count = edges->size();
    return {};
  }
  std::vector<NodeHandle> from, to;
  for (const auto& [first, second] : *edges) {
    from.push_back(first);
    to.push_back(second);
  }
  std::size_t count = *places.count;
  if (places.data != nullptr) std::memset(places.data, 0, count * sizeof(Data));
  if (places.from != nullptr) (void)tell_nodes(from, places.from, &(count = *places.count));
  if (places.to != nullptr) (void)tell_nodes(to, places.to, &(count = *places.count));
  *places.count = count;
  return {};
}

/// Where a program wants what is known of a capture. All but the status may be null.
template <typename Status, typename Id, typename Graph, typename Node, typename Data>
struct CapturePlaces {
  Status* status;
  Id* id;
  Graph* graph = nullptr;
  const Node** nodes = nullptr;
  const Data** edges = nullptr;
  std::size_t* count = nullptr;
};
/// Tells what Captures::info() knows of the stream.
template <typename Status, typename Id, typename Graph, typename Node, typename Data>
Allowed<void> tell_capture(Captures& captures, std::uint64_t stream,
                           const CapturePlaces<Status, Id, Graph, Node, Data>& to) {
  if (to.status == nullptr) return refuse(Refusal::kInvalidValue);
  const auto info = captures.info(stream);
  if (!info) return std::unexpected(info.error());
  *to.status = static_cast<Status>(info->state);
  if (info->state != CaptureState::kActive) return {};
  if (to.id != nullptr) *to.id = info->id;
  if (to.graph != nullptr) *to.graph = handle_of<Graph>(info->graph);
  // A handle of a node is the node's address.
  if (to.nodes != nullptr) {
    *to.nodes = reinterpret_cast<const Node*>(const_cast<void* const*>(info->dependencies.data()));
  }
  if (to.edges != nullptr) *to.edges = nullptr;  // all are plain
  if (to.count != nullptr) *to.count = info->dependencies.size();
  return {};
}

}  // namespace slate::client
