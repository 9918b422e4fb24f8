// Kernels: the kernels of a session's modules, and their launches. launch() is the fast path: no
// allocation, no lock but the channel's. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/device_info.h"
#include "base/function_attribute.h"
#include "base/result.h"
#include "base/tensor_map.h"
#include "client/session/refused.h"
#include "ipc/commands.h"

namespace slate::client {

class Session;

/// A kernel in this session. Constant once made, but for its settings, of Kernels::set_attribute().
struct Function {
  std::uint64_t id = 0;
  std::uint64_t session = 0;  // Session::serial()
  ipc::FunctionReply info{};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> parameters;  // offset and size
  std::atomic<std::uint32_t> max_dynamic_shared{0};
  std::atomic<int> shared_carveout{-1};                 // wished, in percent; -1: none
  std::atomic<int> non_portable_clusters{0};            // 1: clusters of up to 16 blocks
  std::atomic<int> cluster_scheduling{0};               // CUclusterSchedulingPolicy
  std::array<std::atomic<std::uint32_t>, 3> cluster{};  // blocks of every cluster; zeros: any
  bool system_atomics = false;  // whether it may have atomics of system scope
};

struct LaunchConfig {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint64_t dynamic_shared_bytes = 0;
  std::uint64_t stream = ipc::kDefaultStream;
  bool cooperative = false;                       // whether all blocks must be resident at once
  std::array<std::uint32_t, 3> cluster{0, 0, 0};  // blocks; zeros: as the kernel was compiled
  bool overlaps = false;  // whether it may begin before the launch in front of it has ended
};

class Kernels {
 public:
  explicit Kernels(Session& session) : session_(session) {}

  Result<std::unique_ptr<Function>> find(std::uint64_t module, const std::string& name);
  Result<void> set_max_dynamic_shared(Function& function, std::uint32_t bytes);
  /// Sets an attribute for later launches. kInvalidValue for what the kernel cannot have;
  /// kPermission for clusters of a size other than that it was compiled with.
  Result<void> set_attribute(Function& function, FunctionAttribute attribute, int value);
  /// The number of clusters of this launch that run at once, or (`largest`) of blocks that one may
  /// have. Checks the launch as check_shape().
  Result<std::uint32_t> ask_about_clusters(const Function& function, const LaunchConfig& config,
                                           bool largest);
  /// The 128 bytes that kernels take for a tensor. kNotSupported on a device without tensor maps.
  Result<TensorMap> encode_tensor_map(const TensorMapSpec& spec);
  /// Checks the launch, gathers the arguments and sends it. `arguments` has one pointer for each
  /// parameter.
  Result<void> launch(const Function& function, const LaunchConfig& config,
                      const void* const* arguments);
  /// The same with the parameters in one buffer, laid out as the kernel has them. A shorter
  /// buffer is continued with zeros, a longer one is kOutOfResources.
  Result<void> launch_packed(const Function& function, const LaunchConfig& config,
                             std::span<const std::byte> parameters);

 private:
  Result<void> send_launch(const Function& function, const LaunchConfig& config,
                           std::span<const std::byte> block);
  Result<void> launch_guarded(const ipc::Launch& launch, std::span<const std::byte> block);

  Session& session_;
};

/// Most blocks that a cluster of the kernel may have at present.
std::uint32_t most_cluster_blocks(const Function& function);
/// The clusters that the launch has: its own, or those that the kernel was set to. Zeros: as the
/// kernel was compiled.
std::array<std::uint32_t, 3> cluster_of(const Function& function, const LaunchConfig& config);
/// The clusters that every launch has: as the kernel was compiled, or else was set to. Zeros: any.
std::array<std::uint32_t, 3> required_cluster(const Function& function);

/// Tells where a parameter is and, unless `size` is null, how long. kInvalidValue for a number that
/// no parameter has.
Allowed<void> tell_parameter(const Function& function, std::size_t index, std::size_t* offset,
                             std::size_t* size);

/// Checks grid, block and shared memory: kInvalidValue or kOutOfResources.
Result<void> check_shape(const DeviceInfo& device, const Function& function,
                         const LaunchConfig& config);
/// Checks what CUDA refuses at the launch call: as check_shape(), or kInvalidClusterSize.
Result<void> check_launch(const DeviceInfo& device, const Function& function,
                          const LaunchConfig& config);

/// Copies the arguments to their places; bytes between them become 0. Requires: block.size() ==
/// info.parameter_bytes; Kernels::find() has checked that against the layout.
void gather_parameters(const Function& function, const void* const* arguments,
                       std::span<std::byte> block);

}  // namespace slate::client
