// StreamGraphs: launches that a stream makes again and again, and copies within the device, as CUDA
// graphs that are made once and launched with new parameters. That costs the driver less (H200):
// - a launch 1.5 us instead of 3.4;
// - a launch of sixteen in a row 0.2 us;
// - a copy 2 to 3 us instead of 4 to 5.
// LaunchGraphs: what the streams of one context share. Not the graphs of programs, which the client
// plays.
// Thread: any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "device/cuda/context.h"
#include "device/device.h"

namespace slate::cuda {

class StreamGraphs;

/// Limits and forgets the graphs of all streams.
class LaunchGraphs {
 public:
  /// Requires: `context` outlives it.
  explicit LaunchGraphs(Context& context);
  /// Requires: no StreamGraphs are left.
  ~LaunchGraphs();

  /// Makes as many graphs as there may ever be, and destroys them: the driver keeps their memory.
  /// Where the driver has to take more memory for a graph, it may wait until nothing runs on the
  /// device (H200: for one in 20 to 60 graphs). Requires: nothing runs there. Takes about 50 ms.
  void fill();
  /// False where the driver lacks functions that graphs need.
  bool usable() const { return usable_; }
  /// Destroys all graphs with functions of `module`, which is about to be unloaded.
  void forget(CUmodule module);
  /// Destroys all graphs, and none is made or launched until `change` has returned. Graphs keep the
  /// addresses of what the driver takes for all kernels, such as local memory: one that was made
  /// before a change, and is launched after it, touches what others may have by then.
  Result<void> without_graphs(const std::function<Result<void>()>& change);
  /// Makes no graphs with functions of `module`, until forget() is called for it.
  void leave_out(CUmodule module);

 private:
  friend StreamGraphs;
  // Most nodes of all graphs. A node takes about 6 KiB of device memory.
  static constexpr std::size_t kMostNodes = 4096;

  struct Made {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    std::size_t nodes = 0;  // kernel nodes
  };

  void destroy(const Made& graph);
  bool has_left_out(CUmodule module);

  Context& context_;
  const bool usable_;
  std::atomic<std::size_t> nodes_{0};  // nodes of all graphs
  Mutex mutex_;                        // locked before a stream's mutex
  std::vector<StreamGraphs*> streams_ SLATE_GUARDED_BY(mutex_);
  Mutex left_out_mutex_;  // locked after all other mutexes
  std::unordered_set<CUmodule> left_out_ SLATE_GUARDED_BY(left_out_mutex_);
};

/// The graphs of one stream.
class StreamGraphs {
 public:
  /// Numbers of launches that a graph may have. Few sizes find more of the graphs made before.
  /// Between graphs the device pauses longer than between kernels (H200: 1.4 us). So a graph of one
  /// launch is used only for launches that come singly.
  static constexpr std::array<std::size_t, 3> kSizes{16, 4, 1};

  /// Requires: `all` is usable and outlives it; `priority` is the stream's.
  StreamGraphs(LaunchGraphs& all, CUstream stream, int priority);
  StreamGraphs(const StreamGraphs&) = delete;
  StreamGraphs& operator=(const StreamGraphs&) = delete;
  ~StreamGraphs();

  /// Hash of everything about a launch that a graph cannot change cheaply.
  static std::uint64_t shape_hash(const device::LaunchSpec& spec);
  /// Launches as many of `specs`, from the first on, as one graph has. Returns how many: 0 when
  /// there is no such graph, or the driver refused it. The caller then launches one by one and gets
  /// the error.
  /// `position` is that of the first launch in its row. Graphs begin at multiples of their size
  /// only, so that rows without graphs are soon done.
  /// Requires: no launch is cooperative, overlaps or has clusters; `hashes` are the launches'
  /// shape_hash().
  std::size_t launch(std::span<const device::LaunchSpec> specs,
                     std::span<const std::uint64_t> hashes, std::size_t position);

  /// Most bytes of a copy().
  static constexpr std::uint64_t kMostCopied = 16 << 20;
  /// Copies within the device's memory by a graph. Returns false when there is no graph, or the
  /// driver refused it. Requires: 1 to kMostCopied bytes.
  bool copy(device::Address to, device::Address from, std::uint64_t bytes);

 private:
  friend LaunchGraphs;
  struct Graph;

  /// Launches all of them by one graph; false if there is none.
  bool launch_all(std::span<const device::LaunchSpec> specs, std::uint64_t hash)
      SLATE_REQUIRES(mutex_);
  Graph* find(std::span<const device::LaunchSpec> specs, std::uint64_t hash) SLATE_REQUIRES(mutex_);
  /// Counts a sighting; true once the shapes came often enough to make a graph.
  bool is_worth_making(std::uint64_t hash) SLATE_REQUIRES(mutex_);
  /// Makes no more graphs of these shapes, as long as they are remembered.
  void refuse(std::uint64_t hash) SLATE_REQUIRES(mutex_);
  /// Drops graphs that were not launched lately, until there is room for one of so many nodes.
  bool make_room(std::size_t nodes) SLATE_REQUIRES(mutex_);
  Graph* make(std::span<const device::LaunchSpec> specs, std::uint64_t hash) SLATE_REQUIRES(mutex_);
  bool add_node(Graph& graph, const device::LaunchSpec& spec);
  /// Changes the parameters that are not what they were the last time.
  bool set_parameters(Graph& graph, std::span<const device::LaunchSpec> specs);
  bool set_copy(const CUDA_MEMCPY3D& copy) SLATE_REQUIRES(mutex_);
  void drop(std::size_t index) SLATE_REQUIRES(mutex_);
  void drop_all() SLATE_REQUIRES(mutex_);
  void forget(CUmodule module);

  LaunchGraphs& all_;
  Context& context_;
  const CUstream stream_;
  const int priority_;

  Mutex mutex_;
  std::vector<std::unique_ptr<Graph>> graphs_ SLATE_GUARDED_BY(mutex_);
  std::vector<std::uint64_t> hashes_ SLATE_GUARDED_BY(mutex_);  // hash of each graph's shapes
  /// Calls of launch(): the clock by which graphs are old.
  std::uint64_t launches_ SLATE_GUARDED_BY(mutex_) = 0;
  struct Copy {
    LaunchGraphs::Made made;
    CUgraphNode node = nullptr;
    CUDA_MEMCPY3D parameters{};  // as set last
  } copy_ SLATE_GUARDED_BY(mutex_);
  // Copies seen, up to kWorthMaking; or kRefused.
  std::uint32_t copies_ SLATE_GUARDED_BY(mutex_) = 0;
  /// Shapes seen lately, with their number; each hash has one place.
  struct Sighting {
    std::uint64_t hash = 0;
    std::uint32_t count = 0;
  };
  std::array<Sighting, 256> sightings_ SLATE_GUARDED_BY(mutex_){};
};

}  // namespace slate::cuda
