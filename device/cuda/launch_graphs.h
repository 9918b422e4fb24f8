// StreamGraphs: launches that a stream has again and again, one by one or several in a row, and
// copies within the device, as graphs made once and launched with new parameters, which costs the
// driver far less than each by itself (H200: 1.5 us instead of 3.4 for a launch, 0.2 us each for
// sixteen in a row, 2 to 3 instead of 4 to 5 for a copy). LaunchGraphs: what the streams of a
// context share. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_set>
#include <vector>

#include "device/cuda/context.h"
#include "device/device.h"

namespace slate::cuda {

class StreamGraphs;

class LaunchGraphs {
 public:
  /// Requires: `context` outlives it.
  explicit LaunchGraphs(Context& context);
  /// Requires: no stream has any left.
  ~LaunchGraphs();

  /// Makes as many as there may ever be, and destroys them: the driver keeps the memory. Where it
  /// has to take more for a graph, that may wait until nothing runs on the device (H200: one in 20
  /// to 60 that are made does). Requires: nothing runs there. Keeps the caller for about 50 ms.
  void fill();
  /// False where the driver lacks what they need.
  bool usable() const { return usable_; }
  /// Drops those with functions of `module`, which is about to go; of null: all.
  void forget(CUmodule module);
  /// Makes no graphs with functions of `module`, until it is forgotten.
  void leave_out(CUmodule module);

 private:
  friend StreamGraphs;
  // A node keeps about 6 KiB of device memory.
  static constexpr std::size_t kMostNodes = 4096;

  struct Made {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    std::size_t nodes = 0;  // of kernels
  };

  void destroy(const Made& graph);
  bool has_left_out(CUmodule module);

  Context& context_;
  const bool usable_;
  std::atomic<std::size_t> nodes_{0};  // of all graphs
  std::mutex mutex_;                   // first this one, then a stream's
  std::vector<StreamGraphs*> streams_;
  std::mutex left_out_mutex_;  // behind all others
  std::unordered_set<CUmodule> left_out_;
};

class StreamGraphs {
 public:
  /// How many launches one graph may have. Fewer sizes find more of what was made before. Between
  /// graphs the device pauses for longer than between kernels (H200: 1.4 us), so that one of a
  /// single launch is good for launches that come by themselves only.
  static constexpr std::array<std::size_t, 3> kSizes{16, 4, 1};

  /// Requires: `all` is usable, and outlives it; `priority` is the stream's.
  StreamGraphs(LaunchGraphs& all, CUstream stream, int priority);
  StreamGraphs(const StreamGraphs&) = delete;
  StreamGraphs& operator=(const StreamGraphs&) = delete;
  ~StreamGraphs();

  /// Tells apart what one graph cannot be launched as.
  static std::uint64_t shape_hash(const device::LaunchSpec& spec);
  /// Launches as many as there is one graph for, from the first on, and says how many. None when
  /// there is no graph of such launches, or the driver refused it: who launches one by one is told
  /// why. `position` is the first one's in its row: graphs begin at multiples of their size, so
  /// that rows without any are soon through.
  /// Requires: none is cooperative or has clusters; `hashes` are their shape_hash().
  std::size_t launch(std::span<const device::LaunchSpec> specs,
                     std::span<const std::uint64_t> hashes, std::size_t position);

  static constexpr std::uint64_t kMostCopied = 16 << 20;
  /// Copies within the device's own memory; false as for launch().
  /// Requires: at most kMostCopied bytes, and not 0.
  bool copy(device::Address to, device::Address from, std::uint64_t bytes);

 private:
  friend LaunchGraphs;
  struct Graph;

  bool launch_all(std::span<const device::LaunchSpec> specs, std::uint64_t hash);
  Graph* find(std::span<const device::LaunchSpec> specs, std::uint64_t hash);
  bool is_worth_making(std::uint64_t hash);
  void refuse(std::uint64_t hash);
  bool make_room(std::size_t nodes);
  Graph* make(std::span<const device::LaunchSpec> specs, std::uint64_t hash);
  bool add_node(Graph& graph, const device::LaunchSpec& spec);
  bool set_parameters(Graph& graph, std::span<const device::LaunchSpec> specs);
  bool set_copy(const CUDA_MEMCPY3D& copy);
  void drop(std::size_t index);
  void forget(CUmodule module);

  LaunchGraphs& all_;
  Context& context_;
  const CUstream stream_;
  const int priority_;

  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Graph>> graphs_;
  std::vector<std::uint64_t> hashes_;  // of the shapes of each
  std::uint64_t launches_ = 0;
  struct Copy {
    LaunchGraphs::Made made;
    CUgraphNode node = nullptr;
    CUDA_MEMCPY3D parameters{};  // as they were set last
  } copy_;
  std::uint32_t copies_ = 0;  // up to kWorthMaking, or kRefused
  /// Shapes seen lately, and how often; each has one place.
  struct Sighting {
    std::uint64_t hash = 0;
    std::uint32_t count = 0;
  };
  std::array<Sighting, 256> sightings_{};
};

}  // namespace slate::cuda
