#include "client/session/kernels.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "client/session/session.h"

namespace slate::client {
namespace {

using ipc::CommandType;

/// CUDA's own limit of a kernel's parameters is 32,764 bytes.
constexpr std::uint32_t kMostParameterBytes = 32 << 10;
static_assert(sizeof(ipc::CommandHeader) + sizeof(ipc::Launch) + kMostParameterBytes <=
              ipc::kMaxCommandBytes);

// CU_DEVICE_ATTRIBUTE_*
constexpr int kMaxThreadsPerBlock = 1;
constexpr int kMaxBlockDim = 2;  // and 3, 4
constexpr int kMaxGridDim = 5;   // and 6, 7
constexpr int kMaxRegistersPerBlock = 12;
constexpr int kMaxSharedPerBlockOptIn = 97;

constexpr std::uint32_t kPortableCluster = 8;  // blocks that clusters may have on every device
constexpr std::uint32_t kLargestCluster = 16;  // and on this one, where the kernel allows it

bool within(const DeviceInfo& device, int first_attribute,
            const std::array<std::uint32_t, 3>& size) {
  for (int i = 0; i < 3; ++i) {
    const auto limit = static_cast<std::uint32_t>(device.attributes[first_attribute + i]);
    if (size[i] == 0 || size[i] > limit) return false;
  }
  return true;
}

std::unexpected<Error> bad_function(const std::string& name) {
  return fail(ErrorCode::kProtocol, "the daemon's description of kernel " + name + " is wrong");
}

}  // namespace

Result<std::unique_ptr<Function>> Kernels::find(std::uint64_t module, const std::string& name) {
  auto function = std::make_unique<Function>();
  function->id = session_.wire().next_id();
  function->session = session_.serial();
  auto info = session_.wire().call<ipc::FunctionReply>(
      CommandType::kFunctionGet, ipc::FunctionGet{module, function->id}, name);
  if (!info) return std::unexpected(info.error());
  function->info = *info;
  function->system_atomics = session_.host_memory().guard().has_module(module);
  function->max_dynamic_shared = info->max_dynamic_shared_bytes;
  function->non_portable_clusters = info->non_portable_clusters != 0 ? 1 : 0;
  function->cluster_scheduling = static_cast<int>(info->cluster_scheduling);
  if (info->parameter_bytes > kMostParameterBytes || info->parameter_count > kMostParameterBytes) {
    return bad_function(name);
  }

  while (function->parameters.size() < info->parameter_count) {
    const auto first = static_cast<std::uint32_t>(function->parameters.size());
    ipc::ParameterReply page{};
    std::size_t bytes = 0;
    auto ok = session_.wire().channel().call(
        CommandType::kFunctionParameters,
        ipc::bytes_of(ipc::FunctionParameters{function->id, first, 0}), {},
        std::as_writable_bytes(std::span(&page, 1)), &bytes);
    if (!ok) return std::unexpected(ok.error());
    if (page.count == 0 || page.count > page.kMost || page.count > info->parameter_count - first) {
      return bad_function(name);
    }
    for (std::uint32_t i = 0; i < page.count; ++i) {
      const auto [offset, size] = page.parameters[i];
      if (offset > info->parameter_bytes || size > info->parameter_bytes - offset) {
        return bad_function(name);
      }
      function->parameters.emplace_back(offset, size);
    }
  }
  return function;
}

Result<void> Kernels::set_max_dynamic_shared(Function& function, std::uint32_t bytes) {
  const bool fits = bytes <= static_cast<std::uint32_t>(INT32_MAX);
  return set_attribute(function, FunctionAttribute::kMaxDynamicShared,
                       fits ? static_cast<int>(bytes) : -1);
}

Result<void> Kernels::set_attribute(Function& function, FunctionAttribute attribute, int value) {
  const auto bad = [&] {
    return fail(ErrorCode::kInvalidValue, "a kernel's attribute " +
                                              std::to_string(static_cast<unsigned>(attribute)) +
                                              " cannot be " + std::to_string(value));
  };
  const auto send = [&] {
    auto reply = session_.wire().call<Nothing>(CommandType::kFunctionSet,
                                               ipc::FunctionSet{function.id, attribute, value});
    return reply ? Result<void>() : std::unexpected(reply.error());
  };
  const auto set = [&](std::atomic<int>& setting) -> Result<void> {
    auto ok = send();
    if (ok) setting = value;
    return ok;
  };
  switch (attribute) {
    case FunctionAttribute::kMaxDynamicShared: {
      const int most = session_.device().attributes[kMaxSharedPerBlockOptIn];
      if (value < 0 || value > most - static_cast<int>(function.info.static_shared_bytes))
        return bad();
      auto ok = send();
      if (ok) function.max_dynamic_shared = static_cast<std::uint32_t>(value);
      return ok;
    }
    case FunctionAttribute::kCarveout:
      if (value < -1 || value > 100) return bad();
      return set(function.shared_carveout);
    case FunctionAttribute::kNonPortableClusters:
      value = value != 0 ? 1 : 0;
      return set(function.non_portable_clusters);
    case FunctionAttribute::kClusterScheduling:
      if (value < 0 || value > 2) return bad();
      return set(function.cluster_scheduling);
    case FunctionAttribute::kClusterWidth:
    case FunctionAttribute::kClusterHeight:
    case FunctionAttribute::kClusterDepth:
      break;
    default:
      return bad();
  }
  // Of no use to the daemon: every launch says it.
  if (function.info.cluster[0] != 0)
    return fail(ErrorCode::kPermission, "the kernel's clusters have a size since it was compiled");
  if (value < 0) return bad();
  const auto first = static_cast<std::uint32_t>(FunctionAttribute::kClusterWidth);
  function.cluster[static_cast<std::uint32_t>(attribute) - first] =
      static_cast<std::uint32_t>(value);
  return {};
}

Result<TensorMap> Kernels::encode_tensor_map(const TensorMapSpec& spec) {
  if (spec.rank == 0 || spec.rank > TensorMapSpec::kMostRank)
    return fail(ErrorCode::kInvalidValue, "a tensor of rank " + std::to_string(spec.rank));
  return session_.wire().call<TensorMap>(CommandType::kTensorMapEncode, spec);
}

std::uint32_t most_cluster_blocks(const Function& function) {
  return function.non_portable_clusters.load(std::memory_order_relaxed) != 0 ? kLargestCluster
                                                                             : kPortableCluster;
}

std::array<std::uint32_t, 3> cluster_of(const Function& function, const LaunchConfig& config) {
  if (config.cluster != std::array<std::uint32_t, 3>{}) return config.cluster;
  std::array<std::uint32_t, 3> its{};
  for (std::size_t i = 0; i < 3; ++i) its[i] = function.cluster[i].load(std::memory_order_relaxed);
  return its;
}

std::array<std::uint32_t, 3> required_cluster(const Function& function) {
  return function.info.cluster[0] != 0 ? std::to_array(function.info.cluster)
                                       : cluster_of(function, {});
}

Allowed<void> tell_parameter(const Function& function, std::size_t index, std::size_t* offset,
                             std::size_t* size) {
  if (offset == nullptr || index >= function.parameters.size())
    return refuse(Refusal::kInvalidValue);
  *offset = function.parameters[index].first;
  if (size != nullptr) *size = function.parameters[index].second;
  return {};
}

Result<std::uint32_t> Kernels::ask_about_clusters(const Function& function,
                                                  const LaunchConfig& config, bool largest) {
  if (auto ok = check_shape(session_.device(), function, config); !ok)
    return std::unexpected(ok.error());
  ipc::ClusterQuery query{};
  query.function = function.id;
  std::copy(config.grid.begin(), config.grid.end(), query.grid);
  std::copy(config.block.begin(), config.block.end(), query.block);
  const auto cluster = cluster_of(function, config);
  std::copy(cluster.begin(), cluster.end(), query.cluster);
  query.dynamic_shared_bytes = static_cast<std::uint32_t>(config.dynamic_shared_bytes);
  query.largest = largest ? 1 : 0;
  auto reply = session_.wire().call<ipc::ClusterReply>(CommandType::kClusterQuery, query);
  if (!reply) return std::unexpected(reply.error());
  return reply->value;
}

/// The kernel's own size, if it has one, is what the launch must say.
Result<void> check_cluster(const Function& function, const LaunchConfig& config,
                           const std::array<std::uint32_t, 3>& cluster) {
  const auto bad = [](const char* what) { return fail(ErrorCode::kInvalidClusterSize, what); };
  if (cluster == std::array<std::uint32_t, 3>{}) {
    const bool has_size = function.info.cluster[0] != 0;
    if (function.info.needs_cluster == 0 || has_size) return {};
    return bad("the kernel needs clusters, and the launch does not say of what size");
  }
  std::uint64_t blocks = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::uint32_t set = function.cluster[i].load(std::memory_order_relaxed);
    if (cluster[i] == 0 || (set != 0 && set != cluster[i]))
      return bad("the launch's clusters are not those of the kernel");
    if (config.grid[i] % cluster[i] != 0)
      return fail(ErrorCode::kInvalidConfiguration, "the launch's grid is not of whole clusters");
    blocks *= cluster[i];
    if (blocks > kLargestCluster) break;
  }
  if (blocks > most_cluster_blocks(function)) return bad("the launch's clusters are too large");
  return {};
}

Result<void> check_shape(const DeviceInfo& device, const Function& function,
                         const LaunchConfig& config) {
  if (!within(device, kMaxGridDim, config.grid)) {
    return fail(ErrorCode::kInvalidValue, "the launch's grid is empty or too large");
  }
  const std::uint64_t threads = std::uint64_t{config.block[0]} * config.block[1] * config.block[2];
  if (!within(device, kMaxBlockDim, config.block) ||
      threads > static_cast<std::uint64_t>(device.attributes[kMaxThreadsPerBlock])) {
    return fail(ErrorCode::kInvalidValue, "the launch's block is empty or too large: " +
                                              std::to_string(threads) + " threads");
  }
  if (threads > function.info.max_threads_per_block) {
    // Too many for the kernel's registers is one error, too many for its launch bounds the other.
    const auto registers = static_cast<std::uint64_t>(device.attributes[kMaxRegistersPerBlock]);
    const bool registers_short = threads * function.info.registers > registers;
    return fail(registers_short ? ErrorCode::kOutOfResources : ErrorCode::kInvalidValue,
                "the kernel runs with at most " +
                    std::to_string(function.info.max_threads_per_block) + " threads a block");
  }
  if (config.dynamic_shared_bytes > function.max_dynamic_shared.load(std::memory_order_relaxed)) {
    return fail(ErrorCode::kInvalidValue, "the launch asks for too much dynamic shared memory");
  }
  return {};
}

Result<void> check_launch(const DeviceInfo& device, const Function& function,
                          const LaunchConfig& config) {
  if (auto ok = check_shape(device, function, config); !ok) return ok;
  const auto cluster = cluster_of(function, config);
  if (cluster != std::array<std::uint32_t, 3>{} || function.info.needs_cluster != 0) [[unlikely]]
    return check_cluster(function, config, cluster);
  return {};
}

void gather_parameters(const Function& function, const void* const* arguments,
                       std::span<std::byte> block) {
  if (block.empty()) return;
  std::memset(block.data(), 0, block.size());
  for (const auto& [offset, size] : function.parameters) {
    std::memcpy(block.data() + offset, *arguments++, size);
  }
}

Result<void> Kernels::launch(const Function& function, const LaunchConfig& config,
                             const void* const* arguments) {
  if (auto ok = check_launch(session_.device(), function, config); !ok) return ok;
  if (arguments == nullptr && !function.parameters.empty()) {
    return fail(ErrorCode::kInvalidValue, "the launch has no arguments and the kernel has some");
  }
  alignas(16) std::byte storage[kMostParameterBytes];
  const std::span block(storage, function.info.parameter_bytes);
  gather_parameters(function, arguments, block);
  return send_launch(function, config, block);
}

Result<void> Kernels::launch_packed(const Function& function, const LaunchConfig& config,
                                    std::span<const std::byte> parameters) {
  if (auto ok = check_launch(session_.device(), function, config); !ok) return ok;
  const std::uint32_t bytes = function.info.parameter_bytes;
  // As an H100's driver: fewer bytes than the kernel takes are no error, more are one.
  if (parameters.size() < bytes) {
    std::vector<std::byte> padded(bytes);
    std::ranges::copy(parameters, padded.begin());
    return send_launch(function, config, padded);
  }
  if (parameters.size() > bytes)
    return fail(ErrorCode::kOutOfResources, "the launch has more parameters than the kernel takes");
  return send_launch(function, config, parameters);
}

Result<void> Kernels::send_launch(const Function& function, const LaunchConfig& config,
                                  std::span<const std::byte> block) {
  ipc::Launch launch{};
  launch.function = function.id;
  launch.stream = config.stream;
  std::copy(config.grid.begin(), config.grid.end(), launch.grid);
  std::copy(config.block.begin(), config.block.end(), launch.block);
  launch.dynamic_shared_bytes = static_cast<std::uint32_t>(config.dynamic_shared_bytes);
  launch.parameter_bytes = function.info.parameter_bytes;
  launch.flags = (config.cooperative ? ipc::kLaunchCooperative : 0) |
                 (config.overlaps ? ipc::kLaunchOverlaps : 0);
  const auto cluster = cluster_of(function, config);
  std::copy(cluster.begin(), cluster.end(), launch.cluster);
  if (function.system_atomics && session_.host_memory().guard().has_memory()) [[unlikely]]
    return launch_guarded(launch, block);
  return session_.streams().post(CommandType::kLaunch, launch, config.stream, block);
}

Result<void> Kernels::launch_guarded(const ipc::Launch& launch, std::span<const std::byte> block) {
  ManagedGuard::Launch guarded(session_.host_memory().guard());
  Sent sent;
  auto ok = session_.streams().post(CommandType::kLaunch, launch, launch.stream, block, &sent);
  if (!ok) return ok;
  const std::uint32_t entry = session_.streams().progress_of(launch.stream);
  if (!guarded.guarded() || entry == ipc::kNoProgress)
    return session_.waiting().synchronize(ipc::TargetKind::kStream, launch.stream);
  guarded.sent(entry, ProgressTable::mark_of(entry, sent.position));
  return {};
}

}  // namespace slate::client
