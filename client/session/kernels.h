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
#include "base/result.h"
#include "ipc/commands.h"

namespace slate::client {

class Session;

/// A kernel as this session knows it. Made once, then constant but for its settings.
struct Function {
  std::uint64_t id = 0;
  std::uint64_t session = 0;  // Session::serial()
  ipc::FunctionReply info{};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> parameters;  // offset, size
  std::atomic<std::uint32_t> max_dynamic_shared{0};
  std::atomic<int> shared_carveout{-1};  // wished, in percent; -1: none. Counts for occupancy only
  // Told, and without effect.
  std::atomic<int> non_portable_clusters{0};
  std::atomic<int> cluster_scheduling{0};
  bool system_atomics = false;  // it may have atomics of system scope
};

struct LaunchConfig {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint64_t dynamic_shared_bytes = 0;
  std::uint64_t stream = ipc::kDefaultStream;
  bool cooperative = false;                       // all blocks resident at once
  std::array<std::uint32_t, 3> cluster{0, 0, 0};  // blocks; zeros: as the kernel was compiled
};

class Kernels {
 public:
  explicit Kernels(Session& session) : session_(session) {}

  Result<std::unique_ptr<Function>> find(std::uint64_t module, const std::string& name);
  Result<void> set_max_dynamic_shared(Function& function, std::uint32_t bytes);
  /// How many clusters of this launch run at once, or (`largest`) how many blocks one may have.
  Result<std::uint32_t> ask_about_clusters(const Function& function, const LaunchConfig& config,
                                           bool largest);
  /// Checks the launch, gathers the arguments and sends it off. `arguments` holds one pointer a
  /// parameter.
  Result<void> launch(const Function& function, const LaunchConfig& config,
                      const void* const* arguments);

 private:
  Result<void> launch_guarded(const ipc::Launch& launch, std::span<const std::byte> block);

  Session& session_;
};

/// kInvalidValue or kOutOfResources for what CUDA refuses at the launch call itself.
Result<void> check_launch(const DeviceInfo& device, const Function& function,
                          const LaunchConfig& config);

/// Copies the arguments to their places; bytes between them become 0.
/// Requires: block.size() == info.parameter_bytes, which Kernels::find() has checked against the
/// layout.
void gather_parameters(const Function& function, const void* const* arguments,
                       std::span<std::byte> block);

}  // namespace slate::client
