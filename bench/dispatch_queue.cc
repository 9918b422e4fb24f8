#include "bench/dispatch_queue.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace slate::bench {

using daemon::FormLaunch;
using injector::ControlBlock;
using injector::LaunchParameters;
using kernels::DispatchState;

DispatchQueue::DispatchQueue(device::Device& device, daemon::ControlMemory& memory,
                             device::Stream stream)
    : device_(device), memory_(memory), stream_(stream), states_(new DispatchState[kStates]) {
  const std::uint64_t unit = device_.granularity();
  range_.bytes = (kStates * sizeof(DispatchState) + unit - 1) / unit * unit;
  const auto base = device_.reserve(range_.bytes);
  SLATE_CHECK(base.has_value());
  range_.base = *base;
  const bool ready = device_.map(range_).has_value() &&
                     device_.register_host(states_.get(), kStates * sizeof(DispatchState));
  SLATE_CHECK(ready);
  const auto control = memory_.take(share_);
  SLATE_CHECK(control.has_value());
  control_ = *control;
  const device::Shape all{.width = ControlBlock::bytes(memory_.sm_count()), .height = 1};
  SLATE_CHECK(device_.fill(control_, all.width, 0, all, stream_).has_value());
}

DispatchQueue::~DispatchQueue() {
  memory_.give_back(control_, share_);
  device_.unregister_host(states_.get());
  [[maybe_unused]] const auto unmapped = device_.unmap(range_);
  device_.unreserve(range_);
}

device::Address DispatchQueue::on_device(const void* member) const {
  return range_.base + static_cast<std::uint64_t>(static_cast<const std::byte*>(member) -
                                                  reinterpret_cast<std::byte*>(states_.get()));
}

Result<void> DispatchQueue::launch(const FormLaunch& launch, device::Function dispatch,
                                   const Options& options) {
  const std::uint32_t room = launch.workers_per_sm * memory_.sm_count();
  LaunchParameters part = daemon::parameters_of(launch.spec.grid);
  cut_into_tasks(part, daemon::default_task_sizes(part.blocks, room), room);
  last_ = (last_ + 1) % kStates;
  DispatchState& state = current() = {};
  state.workers = std::min(room, part.tasks);
  const bool is_static = launch.independent_blocks && options.static_first_tasks;
  part.control = control_;
  part.flags = is_static ? std::uint32_t{injector::kStaticFirstTask} : 0;
  part.queue_start = is_static ? state.workers : 0;
  part.prefetch_below = launch.prefetch ? part.first_2 : 0;
  part.generation = state.generation = next_generation_;
  next_generation_ += injector::kNextGeneration;
  part.last_sm = memory_.sm_count() - 1;
  state.control_state = control_ + ControlBlock::kStateOffset;
  state.sm_words = control_ + ControlBlock::kSmOffset;
  state.sm_count = memory_.sm_count();
  const device::Dim3& block = launch.spec.block;
  std::ranges::copy(std::initializer_list<std::uint32_t>{block.x, block.y, block.z}, state.block);
  state.shared_bytes = launch.spec.dynamic_shared_bytes;
  const std::uint32_t offset = launch.parameter_offset;
  state.parameter_bytes = offset + static_cast<std::uint32_t>(sizeof(part));
  SLATE_CHECK(state.parameter_bytes <= DispatchState::kMostParameterBytes);
  const auto constant = [offset](std::size_t member) {
    return offset + static_cast<std::uint32_t>(member);
  };
  state.exit_target_offset = constant(offsetof(LaunchParameters, exit_target));
  state.flags_offset = constant(offsetof(LaunchParameters, flags));
  state.wait_for_room = options.wait_for_room ? 1 : 0;
  state.most_epochs = options.most_epochs;
  const auto& users = launch.spec.parameters;
  std::memcpy(state.parameters, users.data(), std::min<std::size_t>(users.size(), offset));
  std::memcpy(state.parameters + offset, &part, sizeof(part));
  dispatch_ = dispatch;
  const std::uint64_t used = offsetof(DispatchState, parameters) + state.parameter_bytes;
  if (const auto copied =
          device_.copy_to_device(on_device(&state), 0, &state, 0, {used, 1}, stream_);
      !copied) {
    return copied;
  }
  return start();
}

Result<void> DispatchQueue::start() {
  const device::Address state = on_device(&current());
  device::LaunchSpec spec;
  spec.function = dispatch_;
  spec.grid = {1, 1, 1};
  spec.block = {32, 1, 1};
  spec.parameters = std::as_bytes(std::span(&state, 1));
  spec.arena = range_;
  return device_.launch(spec, stream_);
}

Result<void> DispatchQueue::go_on(const Options& options) {
  DispatchState& state = current();
  state.wait_for_room = options.wait_for_room ? 1 : 0;
  state.most_epochs = options.most_epochs;
  state.stop = 0;
  state.outcome = kernels::kDispatchRunning;
  for (const std::uint32_t* member :
       {&state.wait_for_room, &state.most_epochs, &state.stop, &state.outcome}) {
    if (const auto copied =
            device_.copy_to_device(on_device(member), 0, member, 0, {sizeof(*member), 1}, stream_);
        !copied) {
      return copied;
    }
  }
  return start();
}

Result<void> DispatchQueue::stop(device::Stream control) {
  DispatchState& state = current();
  state.stop = 1;
  return device_.copy_to_device(on_device(&state.stop), 0, &state.stop, 0, {sizeof(state.stop), 1},
                                control);
}

Result<void> DispatchQueue::resize(const daemon::WorkerTable& placement, device::Stream stream) {
  // Not registered: the copy has read it when the call returns.
  table_.clear();
  for (const std::uint32_t allowed : placement) {
    table_.push_back(static_cast<std::uint16_t>(injector::kMostWorkers -
                                                std::min(allowed, injector::kMostWorkers)));
  }
  return device_.copy_to_device(control_ + ControlBlock::kSmOffset + 2, 4, table_.data(), 2,
                                {.width = 2, .height = table_.size()}, stream);
}

Result<void> DispatchQueue::clear_table() {
  const device::Shape words{.width = 4ull * memory_.sm_count(), .height = 1};
  return device_.fill(control_ + ControlBlock::kSmOffset, 0, 0, words, stream_);
}

Result<void> DispatchQueue::look(DispatchState& state, std::uint64_t& ends,
                                 device::Stream control) {
  const auto copied = device_.copy_to_host(&state, 0, on_device(&current()), 0,
                                           {offsetof(DispatchState, parameters), 1}, control);
  if (!copied) return copied;
  return device_.copy_to_host(&ends, 0, control_ + ControlBlock::kStateOffset, 0, {sizeof(ends), 1},
                              control);
}

}  // namespace slate::bench
