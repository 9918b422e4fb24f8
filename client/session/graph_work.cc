#include "client/session/graph_work.h"

#include <cstring>
#include <iterator>
#include <optional>

#include "client/session/address_copy.h"
#include "client/session/array_copy.h"
#include "client/session/graph.h"
#include "client/session/process.h"
#include "client/session/program_streams.h"

namespace slate::client {
namespace {

Allowed<void> run(Session& session, const KernelNode& node, std::uint64_t stream) {
  const auto function = function_of(session, node.kernel);
  if (!function) return std::unexpected(function.error());
  LaunchConfig config = node.config;
  config.stream = stream;
  return session.kernels().launch(**function, config, node.arguments->pointers.data());
}

Allowed<void> run(Session& session, const CopyNode& node, std::uint64_t stream) {
  if (node.copy.has_array()) return copy_array(session, node.copy, true, stream);
  return run_slices_node(session, node.copy, stream);
}

Allowed<void> run(Session& session, const FillNode& node, std::uint64_t stream) {
  FillCall call{node.to, node.pitch, static_cast<int>(node.value), node.width * node.element,
                node.height};
  call.element = node.element;
  return fill_rows(session, call, stream);
}

Allowed<void> run(Session& session, const HostNode& node, std::uint64_t stream) {
  return session.host_functions().call(stream, [node](const Result<void>& outcome) {
    if (outcome) node.function(node.data);
  });
}

Allowed<void> run(Session& session, const RecordNode& node, std::uint64_t stream) {
  const auto id = event_of(session, node.event);
  if (!id) return std::unexpected(id.error());
  return session.events().record(*id, stream);
}

Allowed<void> run(Session& session, const WaitNode& node, std::uint64_t stream) {
  const auto id = event_of(session, node.event);
  if (!id) return std::unexpected(id.error());
  return session.events().wait(stream, *id);
}

Allowed<void> run(Session&, const AllocateNode& node, std::uint64_t) {
  node.memory->set_allocated(true);
  return {};
}

Allowed<void> run(Session& session, const FreeNode& node, std::uint64_t) {
  const auto known = GraphMemory::free_by_program(session, node.address);
  if (!known) return std::unexpected(known.error());
  if (*known) return {};
  return session.memory().free(node.address);
}

Allowed<void> run(Session&, const EmptyNode&, std::uint64_t) {
  return {};
}

Allowed<void> run(Session& session, const ChildNode& node, std::uint64_t stream) {
  return run_graph(session, *node.graph, stream);
}

bool is_line(const BoxExtent& extent) {
  return extent.width != 0 && extent.height <= 1 && extent.depth <= 1;
}

bool same_side(const BoxSide& one, const BoxSide& other) {
  return one.array == other.array && one.memory == other.memory && one.pitch == other.pitch &&
         one.rows == other.rows && one.x == other.x && one.y == other.y && one.z == other.z;
}

/// Where one side of a copy lies: in an array, in the device's memory, or in the host's.
enum class Where { kArray, kDevice, kHost };
Where where(Session& session, const BoxSide& side) {
  if (side.array != 0) return Where::kArray;
  return session.memory().table().find(address_of(side.memory)) ? Where::kDevice : Where::kHost;
}

using PackedBytes = std::optional<std::vector<std::byte>>;

/// `pack`: a (const Function&) -> PackedBytes; nothing for arguments that are missing.
template <typename Pack>
Allowed<Work> make_kernel_work(Session& session, const void* named, const LaunchConfig& config,
                               const Pack& pack) {
  const auto kernel = kernel_of(named);
  if (!kernel) return refuse(Refusal::kInvalidFunction);
  const auto function = function_of(session, named);
  if (!function) return std::unexpected(function.error());
  const Function& its = **function;
  if (auto ok = check_launch(session.device(), its, config); !ok) {
    return std::unexpected<Refused>(std::move(ok.error()));
  }
  auto bytes = pack(its);
  if (!bytes) return refuse(Refusal::kInvalidValue);
  auto packed = std::make_shared<PackedArguments>();
  packed->bytes = std::move(*bytes);
  for (const auto& [offset, size] : its.parameters) {
    packed->pointers.push_back(packed->bytes.data() + offset);
  }
  KernelNode node{*kernel, named, config, std::move(packed)};
  // What is in front of a node when a graph is launched need not be what it depends on.
  node.config.overlaps = false;
  return Work(std::move(node));
}

bool can_become(Session& session, const BoxCopy& now, const BoxCopy& next) {
  if (now.extent == next.extent && same_side(now.from, next.from) && same_side(now.to, next.to)) {
    return true;
  }
  return is_line(now.extent) && is_line(next.extent) &&
         where(session, now.from) == where(session, next.from) &&
         where(session, now.to) == where(session, next.to);
}

}  // namespace

Allowed<void> run_graph(Session& session, const Graph& graph, std::uint64_t stream) {
  for (const Node* node : graph.order()) {
    if (!node->enabled) continue;
    auto ok = std::visit([&](const auto& one) { return run(session, one, stream); }, node->work);
    if (!ok) return ok;
  }
  return {};
}

Allowed<Work> kernel_work(Session& session, const void* named, const LaunchConfig& config,
                          const void* const* arguments) {
  return make_kernel_work(session, named, config, [&](const Function& its) {
    if (arguments == nullptr && !its.parameters.empty()) return PackedBytes();
    std::vector<std::byte> packed(its.info.parameter_bytes);
    gather_parameters(its, arguments, packed);
    return PackedBytes(std::move(packed));
  });
}

Allowed<Work> packed_kernel_work(Session& session, const void* named, const LaunchConfig& config,
                                 std::span<const std::byte> block) {
  return make_kernel_work(session, named, config, [&](const Function& its) {
    std::vector<std::byte> packed(its.info.parameter_bytes);
    for (const auto& [offset, size] : its.parameters) {
      if (offset > block.size() || size > block.size() - offset) return PackedBytes();
      std::memcpy(packed.data() + offset, block.data() + offset, size);
    }
    return PackedBytes(std::move(packed));
  });
}

Allowed<Work> copy_work(Session& session, const BoxCopy& copy) {
  auto ok = copy.has_array() ? check_array_node(session, copy) : check_slices_node(copy);
  if (!ok) return std::unexpected(ok.error());
  return Work(CopyNode{copy});
}

Allowed<Work> fill_work(Session& session, FillNode fill) {
  const unsigned size = fill.element;
  if ((size != 1 && size != 2 && size != 4) || fill.width == 0 || fill.height == 0 ||
      (size < 4 && fill.value >> (8 * size) != 0)) {
    return refuse(Refusal::kInvalidValue);
  }
  std::size_t row = 0;
  if (__builtin_mul_overflow(fill.width, std::size_t{size}, &row)) {
    return refuse(Refusal::kInvalidValue);
  }
  if (fill.height == 1) fill.pitch = row;
  const FillValue value(fill.value, size);
  if (fill.pitch < row || !value.fits(address_of(fill.to), fill.pitch, {row, fill.height}) ||
      !is_fillable(session, fill.to, fill.pitch, {row, fill.height})) {
    return refuse(Refusal::kInvalidValue);
  }
  return Work(fill);
}

Allowed<Work> allocate_work(Session& session, std::uint64_t bytes) {
  auto memory = GraphMemory::make(session, bytes);
  if (!memory) return std::unexpected(memory.error());
  return Work(AllocateNode{std::move(*memory)});
}

Allowed<Work> free_work(Session& session, std::uint64_t address) {
  if (!GraphMemory::is_of_graphs(session, address)) return refuse(Refusal::kInvalidValue);
  return Work(FreeNode{address});
}

Allowed<Work> host_work(void (*function)(void*), void* data) {
  if (function == nullptr) return refuse(Refusal::kInvalidValue);
  return Work(HostNode{function, data});
}

NodeKind kind_of(const Work& work) {
  static constexpr NodeKind kKinds[] = {
      NodeKind::kEmpty,  NodeKind::kKernel, NodeKind::kCopy,  NodeKind::kFill,     NodeKind::kHost,
      NodeKind::kRecord, NodeKind::kWait,   NodeKind::kChild, NodeKind::kAllocate, NodeKind::kFree};
  static_assert(std::size(kKinds) == std::variant_size_v<Work>);
  return kKinds[work.index()];
}

bool inherit(const Work& old, Work& work) {
  if (old.index() != work.index()) return false;
  if (auto* const kernel = std::get_if<KernelNode>(&work)) {
    kernel->config.cooperative = std::get<KernelNode>(old).config.cooperative;
    kernel->config.cluster = std::get<KernelNode>(old).config.cluster;
  }
  return true;
}

bool can_become(Session& session, const Work& old, const Work& next) {
  if (const auto* const copy = std::get_if<CopyNode>(&next)) {
    return can_become(session, std::get<CopyNode>(old).copy, copy->copy);
  }
  if (const auto* const fill = std::get_if<FillNode>(&next)) {
    const FillNode& now = std::get<FillNode>(old);
    if (now.height == 1 && fill->height == 1) return true;
    return now.width == fill->width && now.height == fill->height && now.element == fill->element;
  }
  return true;
}

}  // namespace slate::client
