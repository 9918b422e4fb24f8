// Block: sets up the warps of one block and lets them take turns.
#include "device/sim/block.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "device/sim/warp.h"

namespace slate::sim {
namespace {

template <typename T>
void fill(T (&lanes)[kWarpSize], T value) {
  std::fill(std::begin(lanes), std::end(lanes), value);
}

void fill(std::uint32_t (&rows)[3][kWarpSize], device::Dim3 value) {
  fill(rows[0], value.x);
  fill(rows[1], value.y);
  fill(rows[2], value.z);
}

void describe(BlockArea& area, const KernelLaunch& launch, device::Dim3 index, std::uint32_t sm,
              std::uint64_t shared_bytes) {
  fill(area.ctaid, index);
  fill(area.ntid, launch.block);
  fill(area.nctaid, launch.grid);
  fill(area.smid, sm);
  fill(area.nsmid, launch.sm_count);
  fill(area.nwarpid,
       static_cast<std::uint32_t>((launch.block.count() + kWarpSize - 1) / kWarpSize));
  fill(area.dynamic_shared, launch.dynamic_shared_bytes);
  fill(area.total_shared, static_cast<std::uint32_t>(shared_bytes));
  fill(area.gridid, launch.grid_id);
  const auto workspace = reinterpret_cast<std::uintptr_t>(launch.workspace.get());
  fill(area.workspace_high, static_cast<std::uint32_t>(workspace >> 32));
  fill(area.workspace_low, static_cast<std::uint32_t>(workspace));
}

}  // namespace

device::Dim3 BlockState::thread_of(std::uint32_t warp, int lane) const {
  const device::Dim3& shape = launch->block;
  const std::uint32_t linear = warp * kWarpSize + static_cast<std::uint32_t>(lane);
  return {linear % shape.x, linear / shape.x % shape.y, linear / shape.x / shape.y};
}

struct Block::Impl {
  BlockState state;
  std::vector<std::size_t> choices;  // of the random schedule

  State run(Schedule& schedule, std::uint32_t budget);
  State report_deadlock();
  Warp* next_warp(Schedule& schedule);
};

Block::Block(const KernelLaunch& launch, device::Dim3 index, std::uint32_t sm)
    : impl_(std::make_unique<Impl>()) {
  BlockState& state = impl_->state;
  state.launch = &launch;
  state.code = dynamic_cast<const Code*>(launch.program.get());
  SLATE_CHECK(state.code != nullptr);
  state.index = index;
  state.sm = sm;
  const std::uint64_t wanted =
      state.code->dynamic_shared_offset > state.code->static_shared &&
              launch.dynamic_shared_bytes == 0
          ? state.code->static_shared
          : state.code->dynamic_shared_offset + launch.dynamic_shared_bytes;
  // As sm_90 gives it out.
  constexpr std::uint64_t kUnit = 128;
  const std::uint64_t shared = (wanted + kUnit - 1) / kUnit * kUnit;
  state.shared_bytes = shared;
  state.shared = unwritten(shared / sizeof(ConstantLine) + 1, launch.leftovers);
  describe(state.area, launch, index, sm, shared);
  const std::uint64_t threads = launch.block.count();
  for (std::uint64_t first = 0; first < threads; first += kWarpSize) {
    const std::uint64_t left = threads - first;
    const Mask lanes = left >= kWarpSize ? kAllLanes : (1u << left) - 1;
    state.warps.emplace_back(state, static_cast<std::uint32_t>(first / kWarpSize), lanes);
  }
}

Block::~Block() = default;
Block::Block(Block&&) noexcept = default;

Warp* Block::Impl::next_warp(Schedule& schedule) {
  std::vector<Warp>& warps = state.warps;
  if (!schedule.random) {
    for (std::size_t i = 0; i < warps.size(); ++i) {
      Warp& warp = warps[state.cursor++ % warps.size()];
      if (warp.ready()) return &warp;
    }
    return nullptr;
  }
  choices.clear();
  for (std::size_t i = 0; i < warps.size(); ++i) {
    if (warps[i].ready()) choices.push_back(i);
  }
  if (choices.empty()) return nullptr;
  return &warps[choices[schedule.generator() % choices.size()]];
}

Block::State Block::Impl::run(Schedule& schedule, std::uint32_t budget) {
  if (state.fault) return State::kFaulted;
  // After this many turns without progress other blocks should have theirs.
  const std::size_t patience = 2 * state.warps.size();
  std::size_t idle = 0;
  while (budget > 0 && idle < patience) {
    if (state.launch->cancelled.load(std::memory_order_relaxed)) return State::kRunnable;
    Warp* const warp = next_warp(schedule);
    if (!warp) {
      const bool finished =
          std::ranges::all_of(state.warps, [](const Warp& each) { return each.live() == 0; });
      return finished ? State::kFinished : report_deadlock();
    }
    std::uint32_t quantum = std::max(schedule.quantum, 1u);
    if (schedule.random) quantum = 1 + static_cast<std::uint32_t>(schedule.generator() % quantum);
    quantum = std::min(quantum, budget);
    const std::uint32_t before = quantum;
    const Warp::Turn turn = warp->run(quantum);
    budget -= std::max(before - quantum, 1u);
    if (turn == Warp::Turn::kFaulted) return State::kFaulted;
    idle = turn == Warp::Turn::kSpun ? idle + 1 : 0;
  }
  return State::kRunnable;
}

Block::State Block::Impl::report_deadlock() {
  std::string text;
  std::size_t reported = 0;
  std::size_t waiting = 0;
  for (const Warp& warp : state.warps) {
    if (warp.live() == 0) continue;
    if (++waiting > 4) continue;
    Wait wait = Wait::kNone;
    std::uint32_t barrier = 0;
    const auto [lane, pc] = warp.first_waiting(wait, barrier);
    const device::Dim3 thread = state.thread_of(warp.index(), lane);
    text += fmt::format("{}thread ({},{},{}), line {}: {} waits", reported++ ? "; " : "", thread.x,
                        thread.y, thread.z, state.code->ops[pc].line, state.code->opcode_text(pc));
    if (wait == Wait::kBarrier) text += fmt::format(" at barrier {}", barrier);
    if (wait == Wait::kLanes) text += " for lanes of its warp";
  }
  if (waiting > 4) text += fmt::format("; and {} more warps", waiting - 4);
  const device::Dim3& index = state.index;
  state.fault = Error{ErrorCode::kLaunchTimeout,
                      fmt::format("kernel {}, block ({},{},{}): deadlock: {}",
                                  state.code->functions[0].name, index.x, index.y, index.z, text)};
  return State::kFaulted;
}

Block::State Block::run(Schedule& schedule, std::uint32_t budget) {
  return impl_->run(schedule, budget);
}

const Error& Block::fault() const {
  SLATE_CHECK(impl_->state.fault.has_value());
  return *impl_->state.fault;
}

std::uint64_t Block::thread_instructions() const {
  std::uint64_t sum = 0;
  for (const Warp& warp : impl_->state.warps) sum += warp.thread_instructions();
  return sum;
}

}  // namespace slate::sim
