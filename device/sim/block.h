// Running one block: the interface between the SMs (gpu.h: who runs where and when) and the
// interpreter (block.cc, warp.cc: what an instruction does). A Block is run by one host thread at a
// time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "device/sim/memory.h"
#include "device/sim/objects.h"
#include "device/sim/program.h"

namespace slate::sim {

/// Text printed by a kernel's printf, in order. Called from any thread, not concurrently for one
/// launch.
using PrintSink = std::function<void(std::string_view text)>;

/// Zeros that the blocks of a cooperative grid meet at: %envreg1 and 2 have its address, as CUDA's
/// grid.sync() wants it.
struct alignas(64) GridWorkspace {
  std::uint64_t words[8] = {};
};

/// One launch, shared by all its blocks. Immutable while blocks run, but for the atomics.
struct KernelLaunch {
  std::shared_ptr<const Program> program;  // the decoded entry
  device::Dim3 grid;
  device::Dim3 block;
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<std::byte> parameters;
  MemoryView memory;                                              // what this launch may touch
  std::shared_ptr<const std::vector<device::AddressRange>> host;  // of `memory`
  const Objects* objects = nullptr;  // textures and surfaces; outlive the launch. Null for none
  PrintSink print;
  std::unique_ptr<GridWorkspace> workspace;  // of a cooperative launch; in `memory` too
  std::uint64_t grid_id = 0;                 // %gridid
  std::uint32_t sm_count = 0;                // %nsmid
  std::atomic<bool> cancelled{false};        // set from any thread: blocks stop soon
  mutable std::mutex print_mutex;            // held while `print` runs
};

/// How the warps of a block take turns, and blocks on an SM.
struct Schedule {
  bool random = false;        // else round-robin
  std::mt19937_64 generator;  // used only if random
  /// Warp instructions that a warp runs before another one's turn (random: up to this many).
  std::uint32_t quantum = 256;
};

class Block {
 public:
  enum class State { kRunnable, kFinished, kFaulted };

  /// `index` is %ctaid; `sm` is %smid.
  Block(const KernelLaunch& launch, device::Dim3 index, std::uint32_t sm);
  ~Block();
  Block(Block&&) noexcept;

  /// Runs up to about `budget` warp instructions. Returns early when every warp has finished, one
  /// faulted, or no warp made progress (all spin or sleep): other blocks should run then.
  State run(Schedule& schedule, std::uint32_t budget);

  /// Why it faulted: names kernel, block, thread and PTX line. Requires: run() returned kFaulted.
  const Error& fault() const;

  /// Thread instructions executed so far (active lanes summed).
  std::uint64_t thread_instructions() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace slate::sim
