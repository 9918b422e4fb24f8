// Block: runs one block. It is the interface between the SMs (gpu.h), which decide which block runs
// where and when, and the interpreter (block.cc, warp.cc), which knows what an instruction does.
// Thread: one host thread at a time for each Block.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "device/device.h"
#include "device/sim/memory.h"
#include "device/sim/objects.h"
#include "device/sim/program.h"

namespace slate::sim {

/// Receives text that a kernel's printf prints, in order. Called from any thread; for one launch,
/// one call at a time.
using PrintSink = std::function<void(std::string_view text)>;

/// Zeros that the blocks of a cooperative grid meet at. %envreg1 and %envreg2 hold its address, as
/// CUDA's grid.sync() expects.
struct alignas(64) GridWorkspace {
  std::uint64_t words[8] = {};
};

/// One launch, shared by all its blocks. Immutable while blocks run, except for the atomics.
struct KernelLaunch {
  std::shared_ptr<const Program> program;  // the decoded kernel
  device::Dim3 grid;
  device::Dim3 block;
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<std::byte> parameters;
  MemoryView memory;  // memory that this launch may touch
  std::shared_ptr<const std::vector<device::AddressRange>> host;  // keeps MemoryView::host alive
  const Objects* objects = nullptr;  // textures and surfaces, which outlive the launch; null: none
  PrintSink print;
  std::unique_ptr<GridWorkspace> workspace;  // of a cooperative launch; in `memory` too
  std::uint64_t grid_id = 0;                 // %gridid
  std::uint32_t sm_count = 0;                // %nsmid
  std::uint8_t leftovers = 0;                // Settings::leftovers
  std::atomic<bool> cancelled{false};        // set from any thread; blocks then stop soon
  mutable Mutex print_mutex;                 // held while `print` runs
};

/// How the warps of a block take turns, and the blocks on an SM.
struct Schedule {
  bool random = false;        // false: round-robin
  std::mt19937_64 generator;  // used only if random
  /// Warp instructions that a warp runs before another warp's turn (random: up to this many).
  std::uint32_t quantum = 256;
};

class Block {
 public:
  enum class State { kRunnable, kFinished, kFaulted };

  /// `index` is %ctaid, `sm` is %smid. Requires: `launch` outlives it.
  Block(const KernelLaunch& launch, device::Dim3 index, std::uint32_t sm);
  ~Block();
  Block(Block&&) noexcept;

  /// Runs about `budget` warp instructions at most. Returns early when every warp has finished, a
  /// warp has faulted, or no warp made progress (all spin or sleep): then other blocks should run.
  State run(Schedule& schedule, std::uint32_t budget);

  /// Why it faulted, with kernel, block, thread and PTX line. Requires: run() returned kFaulted.
  const Error& fault() const;

  /// Thread instructions executed so far: the active lanes of all warp instructions.
  std::uint64_t thread_instructions() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace slate::sim
