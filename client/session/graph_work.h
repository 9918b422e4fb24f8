// The work of graph nodes: made, checked and done. Requires: the caller does not hold
// Graphs::mutex, as making work may load code. Needs no other lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
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
  std::vector<void*> pointers;  // one for each parameter, into `bytes`
};
struct KernelNode {
  Kernel* kernel = nullptr;
  const void* named = nullptr;  // kernel as the program named it
  LaunchConfig config;          // its stream is ignored
  std::shared_ptr<const PackedArguments> arguments;
};
struct CopyNode {
  BoxCopy copy;
};
struct FillNode {
  void* to = nullptr;
  std::size_t pitch = 0;
  unsigned value = 0;
  unsigned element = 1;   // size of the value in bytes
  std::size_t width = 0;  // number of elements
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

/// The work of a kernel node, checked as a launch is. `arguments`: one pointer for each parameter.
Allowed<Work> kernel_work(Session& session, const void* named, const LaunchConfig& config,
                          const void* const* arguments);
/// As above, with the arguments in one block, where the kernel's parameters have their places.
/// kInvalidValue when the block is too short.
Allowed<Work> packed_kernel_work(Session& session, const void* named, const LaunchConfig& config,
                                 std::span<const std::byte> block);
Allowed<Work> copy_work(Session& session, const BoxCopy& copy);
Allowed<Work> fill_work(Session& session, FillNode fill);
/// Allocates memory on the device now. Each launch allocates it for the program.
Allowed<Work> allocate_work(Session& session, std::uint64_t bytes);
/// kInvalidValue for memory that no graph allocates.
Allowed<Work> free_work(Session& session, std::uint64_t address);
/// kInvalidValue without a function.
Allowed<Work> host_work(void (*function)(void*), void* data);

/// Numbered as in all of CUDA's APIs.
enum class NodeKind : int {
  kKernel = 0,
  kCopy = 1,
  kFill = 2,
  kHost = 3,
  kChild = 4,
  kEmpty = 5,
  kWait = 6,
  kRecord = 7,
  kAllocate = 10,
  kFree = 11,
};
NodeKind kind_of(const Work& work);

/// Adds to `work` what its parameters cannot say, from `old`, the work that it replaces. False when
/// they are of different kinds.
bool inherit(const Work& old, Work& work);
/// Whether CUDA lets an executable graph replace `old` by `next`, of the same kind. It does not
/// allow all copies and fills in two or three dimensions.
bool can_become(Session& session, const Work& old, const Work& next);

/// Does the work of the graph's enabled nodes on `stream`. Requires: Graph::arrange().
Allowed<void> run_graph(Session& session, const Graph& graph, std::uint64_t stream);

}  // namespace slate::client
