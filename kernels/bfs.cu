// Breadth-first search of a directed graph in compressed rows, level by level: a thread a vertex,
// of which only those of the present level have work. The host copies a flag back after every
// launch to know whether another level is needed: short kernels, round trips, divergence, accesses
// at random. Threads that reach a vertex together all write the same, so the result is exact.
#include <algorithm>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::mix;
using slate::kernels::Run;

constexpr unsigned kThreads = 256;
constexpr unsigned kMostEdges = 12;  // of a vertex
constexpr unsigned kUnreached = ~0u;

}  // namespace

// Other threads read and write the same words, so accesses are atomic, in whatever order.
static __device__ unsigned read_word(unsigned* word) {
  return __nv_atomic_load_n(word, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
}
static __device__ void write_word(unsigned* word, unsigned value) {
  __nv_atomic_store_n(word, value, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
}

/// Vertex v has edges to targets[starts[v]] up to before targets[starts[v + 1]].
__global__ void bfs(const unsigned* __restrict__ starts, const unsigned* __restrict__ targets,
                    unsigned* levels, unsigned* changed, unsigned level, unsigned vertices) {
  const unsigned v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= vertices || read_word(&levels[v]) != level) return;
  const unsigned end = starts[v + 1];
  for (unsigned edge = starts[v]; edge < end; ++edge) {
    unsigned* const target = &levels[targets[edge]];
    if (read_word(target) != kUnreached) continue;
    write_word(target, level + 1);
    write_word(changed, 1);
  }
}

namespace {

struct Graph {
  std::vector<unsigned> starts;
  std::vector<unsigned> targets;
};

/// Of a vertex's edges three in four stay among a thousand vertices near by, so that the search
/// takes some ten levels and more.
Graph make_graph(unsigned vertices) {
  Graph graph;
  graph.starts.push_back(0);
  for (unsigned v = 0; v < vertices; ++v) {
    const auto edges = static_cast<unsigned>(mix(1, v) >> 40) % (kMostEdges + 1);
    for (unsigned k = 0; k < edges; ++k) {
      const std::uint64_t random = mix(2, std::uint64_t{v} * kMostEdges + k) >> 20;
      const std::uint64_t target = random % 4 == 0 ? random / 4 : v + random / 4 % 1000;
      graph.targets.push_back(static_cast<unsigned>(target % vertices));
    }
    graph.starts.push_back(static_cast<unsigned>(graph.targets.size()));
  }
  return graph;
}

/// By a queue of vertices.
std::vector<unsigned> search(const Graph& graph, unsigned vertices) {
  std::vector<unsigned> levels(vertices, kUnreached), queue{0};
  queue.reserve(vertices);
  levels[0] = 0;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const unsigned v = queue[next];
    for (unsigned edge = graph.starts[v]; edge < graph.starts[v + 1]; ++edge) {
      const unsigned target = graph.targets[edge];
      if (levels[target] != kUnreached) continue;
      levels[target] = levels[v] + 1;
      queue.push_back(target);
    }
  }
  return levels;
}

void run(Run& run) {
  const auto vertices = static_cast<unsigned>(run.size());
  const Graph graph = make_graph(vertices);
  DeviceBuffer<unsigned> starts(graph.starts), targets(graph.targets);
  DeviceBuffer<unsigned> device_levels(vertices), device_changed(1);
  run.time(
      [&] {
        SLATE_REQUIRE(cudaMemset(device_levels.data(), 0xff, device_levels.bytes()));
        SLATE_REQUIRE(cudaMemset(device_levels.data(), 0, sizeof(unsigned)));  // of vertex 0
      },
      [&] {
        unsigned changed = 1;
        for (unsigned level = 0; changed != 0; ++level) {
          SLATE_REQUIRE(cudaMemset(device_changed.data(), 0, sizeof(changed)));
          bfs<<<blocks_for(vertices, kThreads), kThreads>>>(starts.data(), targets.data(),
                                                            device_levels.data(),
                                                            device_changed.data(), level, vertices);
          SLATE_REQUIRE(
              cudaMemcpy(&changed, device_changed.data(), sizeof(changed), cudaMemcpyDeviceToHost));
        }
      });
  const std::vector<unsigned> levels = device_levels.download();

  run.add_output(levels);
  if (!run.wants_check()) return;
  const std::vector<unsigned> wanted = search(graph, vertices);
  for (unsigned v = 0; v < vertices; ++v) run.compare_exact(levels[v], wanted[v]);
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "bfs",
                                      .summary = "Breadth-first search, a launch a level",
                                      .size_meaning = "vertices of the graph",
                                      .default_size = 50'000,
                                      .max_size = 1u << 28},
                                     argc, argv, run);
}
