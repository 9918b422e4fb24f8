// Lists of nodes and edges as programs pass and get them. CUDA's APIs share their meaning.
// `Handle`: an API's type of node handles, a pointer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "client/session/graph_shape.h"
#include "client/session/refused.h"

namespace slate::client {

/// The handle of an API for a graph, a node or an executable graph.
template <typename Handle>
Handle handle_of(const void* address) {
  return static_cast<Handle>(const_cast<void*>(address));
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
Allowed<void> tell_nodes(const std::vector<NodeHandle>& nodes, Handle* places, std::size_t* count) {
  if (count == nullptr) return refuse(Refusal::kInvalidValue);
  if (places != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) {
      places[i] = i < nodes.size() ? handle_of<Handle>(nodes[i]) : nullptr;
    }
    *count = std::min(*count, nodes.size());
  } else {
    *count = nodes.size();
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
Allowed<void> tell_edges(const std::vector<Edge>& edges, const EdgePlaces<Handle, Data>& places) {
  if (places.count == nullptr) return refuse(Refusal::kInvalidValue);
  if (places.from == nullptr && places.to == nullptr) {
    *places.count = edges.size();
    return {};
  }
  std::vector<NodeHandle> from, to;
  for (const auto& [first, second] : edges) {
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

}  // namespace slate::client
