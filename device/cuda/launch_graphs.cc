#include "device/cuda/launch_graphs.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "device/cuda/cuda_device_impl.h"
#include "device/cuda/modules.h"

namespace slate::cuda {
namespace {

using device::LaunchSpec;

// Making a graph costs as much as launching it a few times the other way.
constexpr std::uint32_t kWorthMaking = 3;
constexpr std::uint32_t kRefused = 1U << 31;  // in place of a count
constexpr std::size_t kMostGraphs = 32;       // of a stream
// A graph that was launched within so many calls is not given up for another: who has ever other
// shapes would make graphs all the time.
constexpr std::uint64_t kInUse = 1 << 18;

constexpr std::string_view kNothing = R"(
.version 6.0
.target sm_50
.address_size 64

.visible .entry nothing() {
  ret;
}
)";

bool same_configuration(const CUDA_KERNEL_NODE_PARAMS& node, const LaunchSpec& spec) {
  return node.func == raw(spec.function) && node.gridDimX == spec.grid.x &&
         node.gridDimY == spec.grid.y && node.gridDimZ == spec.grid.z &&
         node.blockDimX == spec.block.x && node.blockDimY == spec.block.y &&
         node.blockDimZ == spec.block.z && node.sharedMemBytes == spec.dynamic_shared_bytes;
}

/// Knuth's multiplicative hashing, with 2^64 / golden ratio.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e37'79b9'7f4a'7c15;
  return hash ^ hash >> 29;
}

bool has_graphs(const Driver& driver) {
  return driver.cuGraphCreate && driver.cuGraphDestroy && driver.cuGraphAddKernelNode &&
         driver.cuGraphKernelNodeSetAttribute && driver.cuGraphInstantiate &&
         driver.cuGraphExecKernelNodeSetParams && driver.cuGraphExecDestroy &&
         driver.cuGraphLaunch && driver.cuGraphAddMemcpyNode &&
         driver.cuGraphExecMemcpyNodeSetParams && driver.cuFuncGetModule;
}

CUDA_MEMCPY3D copy_of(device::Address to, device::Address from, std::uint64_t bytes) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.WidthInBytes = bytes;
  copy.Height = copy.Depth = 1;
  return copy;
}

bool same_copy(const CUDA_MEMCPY3D& one, const CUDA_MEMCPY3D& other) {
  return one.srcDevice == other.srcDevice && one.dstDevice == other.dstDevice &&
         one.WidthInBytes == other.WidthInBytes;
}

}  // namespace

/// A chain of kernels.
struct StreamGraphs::Graph {
  struct Node {
    CUgraphNode node = nullptr;
    CUmodule module = nullptr;
    bool ahead = false;
    std::uint32_t carveout = 0;
    CUDA_KERNEL_NODE_PARAMS parameters{};
    std::vector<std::byte> bytes;  // as they were set last
    std::vector<void*> pointers;   // one for each parameter, into `bytes`
  };
  /// But for what a graph can change cheaply: changing more costs as much as launching plainly.
  static bool same_shape(const Node& node, const LaunchSpec& spec) {
    return same_configuration(node.parameters, spec) && node.ahead == spec.ahead &&
           node.carveout == spec.carveout && node.bytes.size() == spec.parameters.size();
  }

  LaunchGraphs::Made made;
  std::uint64_t launched_at = 0;  // in the stream's launches_
  std::vector<Node> nodes;
};

LaunchGraphs::LaunchGraphs(Context& context)
    : context_(context), usable_(has_graphs(context.driver())) {}

LaunchGraphs::~LaunchGraphs() {
  SLATE_CHECK(streams_.empty());
}

/// What is still running goes on: the driver frees it then.
void LaunchGraphs::destroy(const Made& graph) {
  const Driver& driver = context_.driver();
  if (graph.executable != nullptr) context_.attempt(driver.cuGraphExecDestroy, graph.executable);
  if (graph.graph != nullptr) context_.attempt(driver.cuGraphDestroy, graph.graph);
  nodes_ -= graph.nodes;
}

void LaunchGraphs::fill() {
  if (!usable()) return;
  const auto module =
      load_module(context_, device::ImageKind::kPtx, std::as_bytes(std::span(kNothing)));
  if (!module)
    return log_debug("no room for graphs of launches is made: {}", module.error().message);
  const Driver& driver = context_.driver();
  CUDA_KERNEL_NODE_PARAMS parameters{};
  parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
  parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1;
  CUstream stream = nullptr;
  bool done = context_.attempt(driver.cuModuleGetFunction, &parameters.func, *module, "nothing") ==
                  CUDA_SUCCESS &&
              context_.attempt(driver.cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING,
                               0) == CUDA_SUCCESS;
  std::vector<Made> all;
  constexpr std::size_t kNodes = StreamGraphs::kSizes.front();
  while (done && nodes_ + kNodes <= kMostNodes) {
    Made& made = all.emplace_back();
    made.nodes = kNodes;
    nodes_ += kNodes;
    done = context_.attempt(driver.cuGraphCreate, &made.graph, 0) == CUDA_SUCCESS;
    CUgraphNode last = nullptr;
    for (std::size_t i = 0; done && i < kNodes; ++i) {
      const CUgraphNode before = last;
      done = context_.attempt(driver.cuGraphAddKernelNode, &last, made.graph, &before,
                              before == nullptr ? 0 : 1, &parameters) == CUDA_SUCCESS;
    }
    done = done &&
           context_.attempt(driver.cuGraphInstantiate, &made.executable, made.graph, 0) ==
               CUDA_SUCCESS &&
           context_.attempt(driver.cuGraphLaunch, made.executable, stream) == CUDA_SUCCESS;
  }
  if (stream != nullptr) {
    context_.attempt(driver.cuStreamSynchronize, stream);
    context_.attempt(driver.cuStreamDestroy, stream);
  }
  for (const Made& made : all) destroy(made);
  context_.attempt(driver.cuModuleUnload, *module);
}

void LaunchGraphs::forget(CUmodule module) {
  const MutexLock lock(mutex_);
  for (StreamGraphs* stream : streams_) stream->forget(module);
  const MutexLock left_out_lock(left_out_mutex_);
  left_out_.erase(module);
}

Result<void> LaunchGraphs::without_graphs(const std::function<Result<void>()>& change)
    SLATE_NO_THREAD_SAFETY_ANALYSIS {
  const MutexLock lock(mutex_);
  for (StreamGraphs* stream : streams_) {
    stream->mutex_.lock();
    stream->drop_all();
  }
  auto done = change();
  for (StreamGraphs* stream : streams_) stream->mutex_.unlock();
  return done;
}

void LaunchGraphs::leave_out(CUmodule module) {
  const MutexLock lock(left_out_mutex_);
  left_out_.insert(module);
}

bool LaunchGraphs::has_left_out(CUmodule module) {
  const MutexLock lock(left_out_mutex_);
  return left_out_.contains(module);
}

StreamGraphs::StreamGraphs(LaunchGraphs& all, CUstream stream, int priority)
    : all_(all), context_(all.context_), stream_(stream), priority_(priority) {
  SLATE_CHECK(all.usable());
  const MutexLock lock(all_.mutex_);
  all_.streams_.push_back(this);
}

StreamGraphs::~StreamGraphs() {
  {
    const MutexLock lock(all_.mutex_);
    std::erase(all_.streams_, this);
  }
  for (const auto& graph : graphs_) all_.destroy(graph->made);
  if (copy_.made.graph != nullptr) all_.destroy(copy_.made);
}

std::uint64_t StreamGraphs::shape_hash(const LaunchSpec& spec) {
  std::uint64_t hash = static_cast<std::uint64_t>(spec.function);
  hash = mixed(hash, spec.grid.x | std::uint64_t{spec.grid.y} << 32);
  hash = mixed(hash, spec.grid.z | std::uint64_t{spec.block.x} << 32);
  hash = mixed(hash, spec.block.y | std::uint64_t{spec.block.z} << 32);
  hash = mixed(hash, spec.dynamic_shared_bytes | std::uint64_t{spec.carveout} << 32);
  return mixed(hash, spec.ahead ? 1 : 0);
}

std::size_t StreamGraphs::launch(std::span<const LaunchSpec> specs,
                                 std::span<const std::uint64_t> hashes, std::size_t position) {
  const MutexLock lock(mutex_);
  ++launches_;
  for (const std::size_t size : kSizes) {
    if (size > specs.size() || position % size != 0) continue;
    if (size == 1 && (position > 0 || specs.size() > 1)) continue;
    std::uint64_t hash = size;
    for (const std::uint64_t its : hashes.first(size)) hash = mixed(hash, its);
    if (launch_all(specs.first(size), hash)) return size;
  }
  return 0;
}

bool StreamGraphs::launch_all(std::span<const LaunchSpec> specs, std::uint64_t hash) {
  Graph* graph = find(specs, hash);
  if (graph == nullptr && is_worth_making(hash)) graph = make(specs, hash);
  if (graph == nullptr) return false;
  graph->launched_at = launches_;
  if (set_parameters(*graph, specs) &&
      context_.attempt(context_.driver().cuGraphLaunch, graph->made.executable, stream_) ==
          CUDA_SUCCESS) [[likely]] {
    return true;
  }
  const auto its =
      std::ranges::find_if(graphs_, [&](const auto& one) { return one.get() == graph; });
  drop(static_cast<std::size_t>(its - graphs_.begin()));
  refuse(hash);
  return false;
}

StreamGraphs::Graph* StreamGraphs::find(std::span<const LaunchSpec> specs, std::uint64_t hash) {
  for (std::size_t i = 0; i < hashes_.size(); ++i) {
    if (hashes_[i] != hash) continue;
    if (std::ranges::equal(graphs_[i]->nodes, specs, &Graph::same_shape)) return graphs_[i].get();
  }
  return nullptr;
}

bool StreamGraphs::is_worth_making(std::uint64_t hash) {
  Sighting& place = sightings_[hash % sightings_.size()];
  if (place.hash != hash) place = {hash, 0};
  if (place.count == kRefused) return false;
  return ++place.count >= kWorthMaking;
}

/// No more graphs of these launches, as long as they are remembered.
void StreamGraphs::refuse(std::uint64_t hash) {
  sightings_[hash % sightings_.size()] = {hash, kRefused};
}

/// For one more graph of so many nodes.
bool StreamGraphs::make_room(std::size_t nodes) {
  const auto is_full = [&]() SLATE_REQUIRES(mutex_) {
    return graphs_.size() >= kMostGraphs || all_.nodes_.load() + nodes > LaunchGraphs::kMostNodes;
  };
  while (is_full()) {
    const auto oldest =
        std::ranges::min_element(graphs_, {}, [](const auto& graph) { return graph->launched_at; });
    if (oldest == graphs_.end() || launches_ - (*oldest)->launched_at < kInUse) return false;
    drop(static_cast<std::size_t>(oldest - graphs_.begin()));
  }
  return true;
}

StreamGraphs::Graph* StreamGraphs::make(std::span<const LaunchSpec> specs, std::uint64_t hash) {
  if (!make_room(specs.size())) return nullptr;
  const Driver& driver = context_.driver();
  auto graph = std::make_unique<Graph>();
  graph->nodes.reserve(specs.size());
  LaunchGraphs::Made& made = graph->made;
  made.nodes = specs.size();
  all_.nodes_ += made.nodes;
  bool done = context_.attempt(driver.cuGraphCreate, &made.graph, 0) == CUDA_SUCCESS;
  for (const LaunchSpec& spec : specs) done = done && add_node(*graph, spec);
  done = done && context_.attempt(driver.cuGraphInstantiate, &made.executable, made.graph,
                                  CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) == CUDA_SUCCESS;
  if (!done) {
    refuse(hash);
    all_.destroy(made);
    return nullptr;
  }
  hashes_.push_back(hash);
  return graphs_.emplace_back(std::move(graph)).get();
}

/// Behind those that the graph has.
bool StreamGraphs::add_node(Graph& graph, const LaunchSpec& spec) {
  const Driver& driver = context_.driver();
  const auto info = function_info(context_, raw(spec.function));
  if (!info || info->has_clusters) return false;
  Graph::Node node;
  if (context_.attempt(driver.cuFuncGetModule, &node.module, raw(spec.function)) != CUDA_SUCCESS ||
      all_.has_left_out(node.module)) {
    return false;
  }
  node.bytes.assign(spec.parameters.begin(), spec.parameters.end());
  for (const device::ParameterInfo& parameter : info->parameters) {
    if (parameter.offset + std::uint64_t{parameter.size} > node.bytes.size()) return false;
    node.pointers.push_back(node.bytes.data() + parameter.offset);
  }
  node.ahead = spec.ahead;
  node.carveout = spec.carveout;
  node.parameters.func = raw(spec.function);
  node.parameters.gridDimX = spec.grid.x;
  node.parameters.gridDimY = spec.grid.y;
  node.parameters.gridDimZ = spec.grid.z;
  node.parameters.blockDimX = spec.block.x;
  node.parameters.blockDimY = spec.block.y;
  node.parameters.blockDimZ = spec.block.z;
  node.parameters.sharedMemBytes = spec.dynamic_shared_bytes;
  node.parameters.kernelParams = node.pointers.empty() ? nullptr : node.pointers.data();
  const CUgraphNode* const before = graph.nodes.empty() ? nullptr : &graph.nodes.back().node;
  if (context_.attempt(driver.cuGraphAddKernelNode, &node.node, graph.made.graph, before,
                       before == nullptr ? 0 : 1, &node.parameters) != CUDA_SUCCESS) {
    return false;
  }
  graph.nodes.push_back(std::move(node));
  const CUgraphNode made = graph.nodes.back().node;
  const auto set = [&](CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
    return context_.attempt(driver.cuGraphKernelNodeSetAttribute, made, id, &value) == CUDA_SUCCESS;
  };
  // Of its own: a graph does not take it from the stream that it is launched on.
  CUlaunchAttributeValue priority{};
  priority.priority = spec.ahead ? context_.priority_ahead_of(priority_) : priority_;
  if (!set(CU_LAUNCH_ATTRIBUTE_PRIORITY, priority)) return false;
  CUlaunchAttributeValue carveout{};
  carveout.sharedMemCarveout = spec.carveout;
  return spec.carveout == 0 || !context_.has_launch_carveouts() ||
         set(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, carveout);
}

/// Those that are not what they were the last time.
bool StreamGraphs::set_parameters(Graph& graph, std::span<const LaunchSpec> specs) {
  for (std::size_t i = 0; i < specs.size(); ++i) {
    Graph::Node& node = graph.nodes[i];
    const auto parameters = specs[i].parameters;
    if (std::ranges::equal(node.bytes, parameters)) continue;
    std::ranges::copy(parameters, node.bytes.begin());
    if (context_.attempt(context_.driver().cuGraphExecKernelNodeSetParams, graph.made.executable,
                         node.node, &node.parameters) != CUDA_SUCCESS) {
      return false;
    }
  }
  return true;
}

bool StreamGraphs::copy(device::Address to, device::Address from, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  if (copies_ == kRefused) return false;
  if (copies_ < kWorthMaking && ++copies_ < kWorthMaking) return false;
  if (set_copy(copy_of(to, from, bytes)) &&
      context_.attempt(context_.driver().cuGraphLaunch, copy_.made.executable, stream_) ==
          CUDA_SUCCESS) [[likely]] {
    return true;
  }
  all_.destroy(copy_.made);
  copy_ = {};
  copies_ = kRefused;
  return false;
}

/// Makes the graph with its first copy.
bool StreamGraphs::set_copy(const CUDA_MEMCPY3D& copy) {
  const Driver& driver = context_.driver();
  if (copy_.made.executable != nullptr && same_copy(copy_.parameters, copy)) return true;
  copy_.parameters = copy;
  if (copy_.made.executable != nullptr) {
    return context_.attempt(driver.cuGraphExecMemcpyNodeSetParams, copy_.made.executable,
                            copy_.node, &copy, context_.handle()) == CUDA_SUCCESS;
  }
  return context_.attempt(driver.cuGraphCreate, &copy_.made.graph, 0) == CUDA_SUCCESS &&
         context_.attempt(driver.cuGraphAddMemcpyNode, &copy_.node, copy_.made.graph, nullptr, 0,
                          &copy, context_.handle()) == CUDA_SUCCESS &&
         context_.attempt(driver.cuGraphInstantiate, &copy_.made.executable, copy_.made.graph, 0) ==
             CUDA_SUCCESS;
}

void StreamGraphs::drop(std::size_t index) {
  all_.destroy(graphs_[index]->made);
  std::swap(graphs_[index], graphs_.back());
  std::swap(hashes_[index], hashes_.back());
  graphs_.pop_back();
  hashes_.pop_back();
}

void StreamGraphs::drop_all() {
  while (!graphs_.empty()) drop(graphs_.size() - 1);
  if (copy_.made.graph != nullptr) all_.destroy(copy_.made);
  copy_ = {};
}

void StreamGraphs::forget(CUmodule module) {
  const MutexLock lock(mutex_);
  for (std::size_t i = graphs_.size(); i-- > 0;) {
    const auto is_of_it = [module](const Graph::Node& node) { return node.module == module; };
    if (std::ranges::any_of(graphs_[i]->nodes, is_of_it)) drop(i);
  }
}

}  // namespace slate::cuda
