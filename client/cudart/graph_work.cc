// What the nodes of graphs do, and how it is checked when a node is made.
#include <algorithm>

#include "client/cudart/array.h"
#include "client/cudart/copy.h"
#include "client/cudart/graph.h"
#include "client/cudart/launch.h"

namespace slate::cudart {
namespace {

client::LaunchConfig config_of(const KernelNode& node, std::uint64_t stream) {
  return {{node.grid.x, node.grid.y, node.grid.z},
          {node.block.x, node.block.y, node.block.z},
          node.shared,
          stream,
          node.cooperative,
          {node.cluster.x, node.cluster.y, node.cluster.z}};
}

Answer run(Session& session, const KernelNode& node, std::uint64_t stream) {
  auto function = function_of(session, node.kernel);
  if (!function) return std::unexpected(function.error());
  return session.launch(**function, config_of(node, stream), node.arguments->pointers.data());
}

Answer run(Session& session, const CopyNode& node, std::uint64_t stream) {
  const cudaMemcpy3DParms& parms = node.parms;
  if (has_array(parms)) return copy_array(session, {parms, node.unit}, true, stream);
  for (std::size_t z = 0; z < parms.extent.depth; ++z) {
    CopyCall call{slice_of(parms.dstPtr, parms.dstPos, z),
                  parms.dstPtr.pitch,
                  slice_of(parms.srcPtr, parms.srcPos, z),
                  parms.srcPtr.pitch,
                  parms.extent.width,
                  parms.extent.height,
                  parms.kind};
    call.asynchronous = true;
    if (auto ok = copy(session, call, stream); !ok) return ok;
  }
  return {};
}

Answer run(Session& session, const FillNode& node, std::uint64_t stream) {
  const cudaMemsetParams& params = node.params;
  FillCall call{params.dst, params.pitch, static_cast<int>(params.value),
                params.width * params.elementSize, params.height};
  call.element = params.elementSize;
  return fill(session, call, stream);
}

Answer run(Session& session, const HostNode& node, std::uint64_t stream) {
  return session.call_on_host(stream, [node](const Result<void>& outcome) {
    if (outcome) node.function(node.data);
  });
}

Answer run(Session& session, const RecordNode& node, std::uint64_t stream) {
  auto id = event_id(session, node.event);
  if (!id) return std::unexpected(id.error());
  return session.record(*id, stream);
}

Answer run(Session& session, const WaitNode& node, std::uint64_t stream) {
  auto id = event_id(session, node.event);
  if (!id) return std::unexpected(id.error());
  return session.wait(stream, *id);
}

Answer run(Session& session, const AllocateNode& node, std::uint64_t) {
  return run(session, node);
}

Answer run(Session& session, const FreeNode& node, std::uint64_t) {
  return run(session, node);
}

Answer run(Session&, const EmptyNode&, std::uint64_t) {
  return {};
}

Answer run(Session& session, const ChildNode& node, std::uint64_t stream) {
  return run_graph(session, *node.graph, stream);
}

}  // namespace

Answer run_graph(Session& session, const Graph& graph, std::uint64_t stream) {
  for (const Node* node : graph.order()) {
    if (!node->enabled) continue;
    auto ok = std::visit([&](const auto& one) { return run(session, one, stream); }, node->work);
    if (!ok) return ok;
  }
  return {};
}

Maybe<Work> kernel_work(Session& session, const cudaKernelNodeParams& params) {
  if (params.extra != nullptr) {
    return std::unexpected<Failure>(Error{
        ErrorCode::kNotSupported, "kernel nodes with packed arguments are not supported yet"});
  }
  auto kernel = kernel_of(params.func);
  if (!kernel) return deny(cudaErrorInvalidDeviceFunction);
  auto function = function_of(session, params.func);
  if (!function) return std::unexpected(function.error());
  const client::Function& its = **function;
  if (params.kernelParams == nullptr && !its.parameters.empty()) return deny(cudaErrorInvalidValue);

  KernelNode node{*kernel, params.func, params.gridDim, params.blockDim, params.sharedMemBytes,
                  {},      false,       {0, 0, 0}};
  if (auto ok = client::check_launch(session.device(), its, config_of(node, 0)); !ok) {
    return std::unexpected<Failure>(ok.error());
  }
  auto packed = std::make_shared<PackedArguments>();
  packed->bytes.resize(its.info.parameter_bytes);
  client::gather_parameters(its, params.kernelParams, packed->bytes);
  for (const auto& [offset, size] : its.parameters) {
    packed->pointers.push_back(packed->bytes.data() + offset);
  }
  node.arguments = std::move(packed);
  return Work(std::move(node));
}

Answer take_over(Session& session, const Work& old, Work& work) {
  if (old.index() != work.index()) return deny(cudaErrorInvalidValue);
  auto* const kernel = std::get_if<KernelNode>(&work);
  if (kernel == nullptr) return {};
  kernel->cooperative = std::get<KernelNode>(old).cooperative;
  kernel->cluster = std::get<KernelNode>(old).cluster;
  auto function = function_of(session, kernel->kernel);
  if (!function) return std::unexpected(function.error());
  return check_special(session, **function, config_of(*kernel, 0));
}

namespace {

bool is_line(const cudaExtent& extent) {
  return extent.width != 0 && extent.height <= 1 && extent.depth <= 1;
}

bool same_extent(const cudaExtent& one, const cudaExtent& other) {
  return one.width == other.width && one.height == other.height && one.depth == other.depth;
}

bool same_side(const cudaPitchedPtr& one, const cudaPos& at, const cudaPitchedPtr& other,
               const cudaPos& other_at) {
  return one.ptr == other.ptr && one.pitch == other.pitch && one.ysize == other.ysize &&
         at.x == other_at.x && at.y == other_at.y && at.z == other_at.z;
}

bool same_copy(const cudaMemcpy3DParms& one, const cudaMemcpy3DParms& other) {
  return one.srcArray == other.srcArray && one.dstArray == other.dstArray &&
         same_extent(one.extent, other.extent) &&
         same_side(one.srcPtr, one.srcPos, other.srcPtr, other.srcPos) &&
         same_side(one.dstPtr, one.dstPos, other.dstPtr, other.dstPos);
}

/// Where one side of a copy lies: in an array, in the device's memory, or in the host's.
enum class Where { kArray, kDevice, kHost };
Where where(Session& session, cudaArray_const_t array, const cudaPitchedPtr& pointer) {
  if (array != nullptr) return Where::kArray;
  return session.memory().find(address_of(pointer.ptr)) ? Where::kDevice : Where::kHost;
}

}  // namespace

bool can_become(Session& session, const Work& old, const Work& next) {
  if (const auto* const copy = std::get_if<CopyNode>(&next)) {
    const cudaMemcpy3DParms& now = std::get<CopyNode>(old).parms;
    const cudaMemcpy3DParms& then = copy->parms;
    if (same_copy(now, then)) return true;
    return is_line(now.extent) && is_line(then.extent) &&
           where(session, now.srcArray, now.srcPtr) == where(session, then.srcArray, then.srcPtr) &&
           where(session, now.dstArray, now.dstPtr) == where(session, then.dstArray, then.dstPtr);
  }
  if (const auto* const fill = std::get_if<FillNode>(&next)) {
    const cudaMemsetParams& now = std::get<FillNode>(old).params;
    const cudaMemsetParams& then = fill->params;
    if (now.height == 1 && then.height == 1) return true;
    return now.width == then.width && now.height == then.height &&
           now.elementSize == then.elementSize;
  }
  return true;
}

Maybe<Work> copy_work(Session& session, const cudaMemcpy3DParms& parms) {
  if (has_array(parms)) {
    if (auto ok = check_array_node(session, {parms}); !ok) return std::unexpected(ok.error());
    return Work(CopyNode{parms});
  }
  const int kind = parms.kind;
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return deny(cudaErrorInvalidMemcpyDirection);
  }
  if (parms.srcPtr.ptr == nullptr || parms.dstPtr.ptr == nullptr)
    return deny(cudaErrorInvalidValue);
  // The driver checks the nodes of graphs, and knows no error of its own for pitches.
  const cudaExtent& extent = parms.extent;
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0 ||
      !check_box(parms.srcPtr, parms.srcPos, extent) ||
      !check_box(parms.dstPtr, parms.dstPos, extent)) {
    return deny(cudaErrorInvalidValue);
  }
  return Work(CopyNode{parms});
}

Maybe<Work> fill_work(Session& session, const cudaMemsetParams& params) {
  const unsigned size = params.elementSize;
  if ((size != 1 && size != 2 && size != 4) || params.width == 0 || params.height == 0 ||
      (size < 4 && params.value >> (8 * size) != 0)) {
    return deny(cudaErrorInvalidValue);
  }
  cudaMemsetParams kept = params;
  std::size_t row = 0;
  if (__builtin_mul_overflow(kept.width, std::size_t{size}, &row))
    return deny(cudaErrorInvalidValue);
  if (kept.height == 1) kept.pitch = row;
  if (kept.pitch < row || kept.pitch % size != 0 ||
      !is_fillable(session, kept.dst, kept.pitch, {row, kept.height})) {
    return deny(cudaErrorInvalidValue);
  }
  return Work(FillNode{kept});
}

cudaMemcpy3DParms line_parms(void* to, const void* from, std::size_t count, cudaMemcpyKind kind) {
  cudaMemcpy3DParms parms{};
  parms.srcPtr = {const_cast<void*>(from), count, count, 1};
  parms.dstPtr = {to, count, count, 1};
  parms.extent = {count, 1, 1};
  parms.kind = kind;
  return parms;
}

}  // namespace slate::cudart
