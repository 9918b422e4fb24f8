// What the nodes of graphs do: how it is made and checked, and done. Nothing here needs a lock, and
// making work may load code, so it is to be called without Graphs::mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "client/session/box_copy.h"
#include "client/session/code.h"
#include "client/session/graph_memory.h"
#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

class Graph;

struct EmptyNode {};

/// Immutable, so that copies of a node can share it.
struct PackedArguments {
  std::vector<std::byte> bytes;
  std::vector<void*> pointers;  // one a parameter, into `bytes`
};
struct KernelNode {
  Kernel* kernel = nullptr;
  const void* named = nullptr;  // the kernel as the program named it
  LaunchConfig config;          // its stream does not count
  std::shared_ptr<const PackedArguments> arguments;
};
struct CopyNode {
  BoxCopy copy;
};
struct FillNode {
  void* to = nullptr;
  std::size_t pitch = 0;
  unsigned value = 0;
  unsigned element = 1;   // bytes
  std::size_t width = 0;  // elements
  std::size_t height = 0;
};
struct HostNode {
  void (*function)(void*) = nullptr;
  void* data = nullptr;
};
struct RecordNode {
  std::uint64_t event = 0;
};
struct WaitNode {
  std::uint64_t event = 0;
};
struct ChildNode {
  std::shared_ptr<Graph> graph;  // the node's own copy
};
struct AllocateNode {
  std::shared_ptr<GraphMemory> memory;
};
struct FreeNode {
  std::uint64_t address = 0;
};

using Work = std::variant<EmptyNode, KernelNode, CopyNode, FillNode, HostNode, RecordNode, WaitNode,
                          ChildNode, AllocateNode, FreeNode>;

/// The work of a kernel node, checked as a launch is. `arguments`: one pointer a parameter.
Allowed<Work> kernel_work(Session& session, const void* named, const LaunchConfig& config,
                          const void* const* arguments);
Allowed<Work> copy_work(Session& session, const BoxCopy& copy);
Allowed<Work> fill_work(Session& session, FillNode fill);
/// Memory that is allocated on the device now, and as the program sees it by each launch.
Allowed<Work> allocate_work(Session& session, std::uint64_t bytes);
/// kInvalidValue for memory that no graph allocates.
Allowed<Work> free_work(Session& session, std::uint64_t address);

/// Gives `work` what the parameters that it was made of cannot say, from a node's whose place it is
/// to take. False when it is not of its kind.
bool inherit(const Work& old, Work& work);
/// Whether CUDA lets an executable graph have `next` in the place of `old`, of the same kind: of
/// copies and fills in two or three dimensions it does not take all.
bool can_become(Session& session, const Work& old, const Work& next);

/// Does what the graph's nodes do that are enabled, on `stream`. Requires: Graph::arrange().
Allowed<void> run_graph(Session& session, const Graph& graph, std::uint64_t stream);

}  // namespace slate::client
