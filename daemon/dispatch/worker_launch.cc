#include "daemon/dispatch/worker_launch.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace slate::daemon {
namespace {

using injector::ControlBlock;
using injector::LaunchParameters;

void pack(std::vector<std::byte>& packed, std::span<const std::byte> users, std::uint32_t offset,
          const LaunchParameters& ours) {
  packed.assign(offset + sizeof(ours), std::byte{});
  std::memcpy(packed.data(), users.data(), std::min<std::size_t>(users.size(), offset));
  std::memcpy(packed.data() + offset, &ours, sizeof(ours));
}

}  // namespace

WorkerQueue::WorkerQueue(device::Device& device, ControlMemory& memory,
                         std::shared_ptr<ControlMemory::Share> share)
    : device_(device),
      memory_(memory),
      share_(share ? std::move(share) : std::make_shared<ControlMemory::Share>()) {}

WorkerQueue::~WorkerQueue() {
  while (!tables_copied()) device_.wait_for_progress(std::chrono::microseconds(20));
  for (const HostCopies* const copies : {&tables_, &states_}) {
    for (const auto& copy : *copies) {
      if (copy->registered) device_.unregister_host(copy->bytes.data());
      device_.destroy_event(copy->copied);
    }
  }
  if (cleared_) device_.destroy_event(*cleared_);
  if (control_ != 0) memory_.give_back(control_, *share_);
}

/// One that `stream` cleans, unless it has one.
Result<void> WorkerQueue::take_control_block(device::Stream stream) {
  if (control_ != 0) return {};
  const auto control = memory_.take(*share_);
  if (!control) return std::unexpected(control.error());
  control_ = *control;
  const Box all{.width = watched_bytes(), .height = 1};
  return device_.fill(control_, all.width, 0, all, stream);
}

Result<void> WorkerQueue::launch(const FormLaunch& launch, device::Stream stream,
                                 const WorkerTable* table) {
  SLATE_CHECK(table != nullptr || !launch.control);
  stream_ = stream;
  const device::Stream writing = launch.control.value_or(stream);
  if (const auto taken = take_control_block(writing); !taken) return taken;
  if (resized_) {
    if (const auto done = device_.wait(stream, *resized_); !done) return done;
    if (table == nullptr) {
      const WorkerTable everywhere(memory_.sm_count(), injector::kMostWorkers);
      const auto written = write_table(everywhere, stream);
      if (!written) return std::unexpected(written.error());
    }
  }
  resized_.reset();
  const bool is_static = launch.independent_blocks && table == nullptr;
  describe(launch, is_static);
  if (table != nullptr) allow(*table);
  room_gained_ = 0;
  if (by_device()) {
    // Before the table: what empties the table later also comes after the state, which would
    // otherwise take a stop back.
    const bool stopped =
        table != nullptr && std::ranges::all_of(*table, [](auto allowed) { return allowed == 0; });
    if (const auto done = write_state(launch, is_static, stopped, writing); !done) return done;
  }
  if (table != nullptr) {
    const auto written = write_table(*table, writing);
    if (!written) return std::unexpected(written.error());
    if (launch.control) {
      if (const auto done = device_.wait(stream, *written); !done) return done;
    }
  }
  if (launch.after) {
    if (const auto done = device_.wait(stream, *launch.after); !done) return done;
  }
  if (by_device()) return start_dispatch();
  return start(workers_, is_static ? std::uint32_t{injector::kStaticFirstTask} : 0, stream);
}

/// Fills in what is known of the launch. `is_static`: whether each worker's first task is its own.
void WorkerQueue::describe(const FormLaunch& launch, bool is_static) {
  LaunchParameters ours = parameters_of(launch.spec.grid);
  const std::uint32_t sms = launch.sms != 0 ? launch.sms : memory_.sm_count();
  const std::uint32_t room = launch.workers_per_sm * sms;
  const TaskSizes sizes =
      launch.task_sizes ? *launch.task_sizes : default_task_sizes(ours.blocks, room);
  cut_into_tasks(ours, sizes, room);
  workers_ = std::min(room, ours.tasks) + launch.spares_per_sm * sms;
  most_per_sm_ = launch.workers_per_sm + launch.spares_per_sm;
  allowed_.assign(memory_.sm_count(), most_per_sm_);
  ours.control = control_;
  ours.signal = signal_address();
  ours.flags = 0;
  ours.queue_start = is_static ? workers_ : 0;
  ours.prefetch_below = launch.prefetch ? ours.first_2 : 0;
  ours.exit_target = 0;
  ours.generation = next_generation_;
  next_generation_ += injector::kNextGeneration;
  ours.last_sm = memory_.sm_count() - 1;
  parameters_ = ours;
  spec_ = launch.spec;
  spec_.control = control();
  parameter_offset_ = launch.parameter_offset;
  pack(packed_, launch.spec.parameters, parameter_offset_, ours);
  const bool dispatches = launch.dispatch != device::Function{} && memory_.dispatches() &&
                          packed_.size() <= DispatchState::kMostParameterBytes;
  dispatch_ = dispatches ? launch.dispatch : device::Function{};
  counts_arrivals_ &= !dispatches;
}

Result<void> WorkerQueue::start(std::uint32_t workers, std::uint32_t flags, device::Stream stream) {
  LaunchParameters ours = parameters_;
  ours.flags = flags;
  if ((flags & injector::kSupplementary) == 0) {
    parameters_.exit_target += workers;
    ours.exit_target = parameters_.exit_target;
  }
  std::memcpy(packed_.data() + parameter_offset_, &ours, sizeof(ours));
  device::LaunchSpec spec = spec_;
  spec.grid = {workers, 1, 1};
  spec.parameters = packed_;
  const auto launched = device_.launch(spec, stream);
  if (launched && (flags & injector::kStaticFirstTask) == 0) started_ += workers;
  return launched;
}

bool WorkerQueue::tables_copied() const {
  const auto all_copied = [this](const HostCopies& copies) {
    // What has failed is over, too.
    return std::ranges::all_of(
        copies, [this](const auto& copy) { return device_.query(copy->copied).value_or(true); });
  };
  return all_copied(tables_) && all_copied(states_);
}

/// One that no copy reads any more. Requires: always the same size.
Result<WorkerQueue::HostCopy*> WorkerQueue::free_copy(HostCopies& copies, std::size_t bytes) {
  for (const auto& copy : copies) {
    const auto copied = device_.query(copy->copied);
    if (!copied) return std::unexpected(copied.error());
    if (*copied) return copy.get();
  }
  const auto event = device_.create_event(false);
  if (!event) return std::unexpected(event.error());
  auto copy = std::make_unique<HostCopy>();
  copy->bytes.resize(bytes);
  copy->copied = *event;
  // Without it copies only take longer.
  copy->registered = device_.register_host(copy->bytes.data(), bytes).has_value();
  copies.push_back(std::move(copy));
  return copies.back().get();
}

/// Returns the event behind the copy.
Result<device::Event> WorkerQueue::write_table(const WorkerTable& allowed, device::Stream stream) {
  const std::uint32_t sm_count = memory_.sm_count();
  SLATE_CHECK(allowed.size() == sm_count);
  const auto table = free_copy(tables_, sizeof(std::uint16_t) * sm_count);
  if (!table) return std::unexpected(table.error());
  std::vector<std::byte>& bytes = (*table)->bytes;
  for (std::uint32_t sm = 0; sm < sm_count; ++sm) {
    const std::uint32_t workers = std::min(allowed[sm], injector::kMostWorkers);
    const auto withheld = static_cast<std::uint16_t>(injector::kMostWorkers - workers);
    std::memcpy(&bytes[sizeof(withheld) * sm], &withheld, sizeof(withheld));
  }
  // The upper half of each SM's word.
  const auto done =
      device_.copy(Place::on_device(control_ + ControlBlock::kSmOffset + 2, 4),
                   Place::on_host(bytes.data(), 2), {.width = 2, .height = sm_count}, stream);
  if (!done) return std::unexpected(done.error());
  if (const auto marked = device_.record((*table)->copied, stream); !marked)
    return std::unexpected(marked.error());
  return (*table)->copied;
}

device::AddressRange WorkerQueue::control() const {
  if (control_ == 0) return {};
  return {control_, ControlBlock::bytes(memory_.sm_count())};
}

Result<void> WorkerQueue::resize(const WorkerTable& table, device::Stream control) {
  const auto written = write_table(table, control);
  if (!written) return std::unexpected(written.error());
  resized_ = *written;
  allow(table);
  return {};
}

Result<void> WorkerQueue::supplement(std::uint32_t workers, device::Stream stream) {
  workers = std::min({workers, parameters_.tasks, most_per_sm_ * memory_.sm_count()});
  if (workers == 0) return {};
  // By the table before they might have to leave.
  if (resized_) {
    if (const auto done = device_.wait(stream, *resized_); !done) return done;
  }
  return start(workers, injector::kSupplementary, stream);
}

/// No more workers than fit.
void WorkerQueue::allow(const WorkerTable& table) {
  room_gained_ = 0;
  for (std::size_t sm = 0; sm < allowed_.size(); ++sm) {
    const std::uint32_t before = std::exchange(allowed_[sm], std::min(table[sm], most_per_sm_));
    room_gained_ += allowed_[sm] - std::min(allowed_[sm], before);
  }
}

std::uint32_t WorkerQueue::room_left(std::span<const std::uint32_t> control) const {
  std::uint32_t room = 0;
  for (std::size_t sm = 0; sm < allowed_.size(); ++sm) {
    const std::uint32_t word = control[ControlBlock::kSmOffset / 4 + sm];
    room += allowed_[sm] - std::min(allowed_[sm], injector::workers_present(word));
  }
  std::uint32_t to_come = started_ - control[ControlBlock::kArrivedOffset / 4];
  if (!counts_arrivals_) {
    // Of those who are to leave before the launch ends, all who have not left and are not there.
    std::uint32_t known = control[ControlBlock::kStateOffset / 4 + 1];
    for (std::size_t sm = 0; sm < allowed_.size(); ++sm)
      known += injector::workers_present(control[ControlBlock::kSmOffset / 4 + sm]);
    const std::uint32_t target =
        by_device() ? dispatch_progress(control).exit_target : parameters_.exit_target;
    to_come = target - std::min(target, known);
  }
  const std::uint32_t next = parameters_.queue_start + control[ControlBlock::kNextOffset / 4];
  const std::uint32_t tasks = parameters_.tasks - std::min(parameters_.tasks, next);
  return std::min(room - std::min(room, to_come), tasks);
}

std::uint64_t WorkerQueue::blocks_before(std::uint32_t task) const {
  const LaunchParameters& p = parameters_;
  if (task >= p.tasks) return p.blocks;
  if (task < p.tasks_0) return std::uint64_t{task} * p.size_0;
  if (task < p.tasks_0 + p.tasks_1) return p.first_1 + std::uint64_t{task - p.tasks_0} * p.size_1;
  return p.first_2 + std::uint64_t{task} - p.tasks_0 - p.tasks_1;
}

Result<void> WorkerQueue::resume() {
  // Or else the signal of this retreat, seen beside the count of workers that come to the launch's
  // end, would look like another retreat.
  const Box word{.width = sizeof(std::uint64_t), .height = 1};
  const auto cleared = device_.fill(signal_address(), word.width, 0, word, stream_);
  if (!cleared) return cleared;
  // Open again: the lowest byte of the state is the generation's.
  const Box byte{.width = 1, .height = 1};
  const auto opened =
      device_.fill(control_ + ControlBlock::kStateOffset, byte.width,
                   static_cast<std::uint8_t>(parameters_.generation), byte, stream_);
  if (!opened) return opened;
  return start(workers_, 0, stream_);
}

device::Address WorkerQueue::state_address() const {
  return control_ + ControlBlock::bytes(memory_.sm_count());
}

std::uint64_t WorkerQueue::watched_bytes() const {
  const std::uint64_t block = ControlBlock::bytes(memory_.sm_count());
  return memory_.dispatches() ? block + offsetof(DispatchState, parameters) : block;
}

/// With everything that the dispatch kernel goes by.
Result<void> WorkerQueue::write_state(const FormLaunch& launch, bool is_static, bool stopped,
                                      device::Stream stream) {
  const auto copy = free_copy(states_, sizeof(DispatchState));
  if (!copy) return std::unexpected(copy.error());
  LaunchParameters ours = parameters_;
  ours.flags = is_static ? std::uint32_t{injector::kStaticFirstTask} : 0;
  DispatchState state;
  state.control_state = control_ + ControlBlock::kStateOffset;
  state.sm_words = control_ + ControlBlock::kSmOffset;
  state.sm_count = memory_.sm_count();
  state.generation = ours.generation;
  state.workers = workers_;
  const device::Dim3& block = launch.spec.block;
  std::ranges::copy(std::initializer_list<std::uint32_t>{block.x, block.y, block.z}, state.block);
  state.shared_bytes = launch.spec.dynamic_shared_bytes;
  state.parameter_bytes = static_cast<std::uint32_t>(packed_.size());
  const auto in_parameters = [this](std::size_t member) {
    return parameter_offset_ + static_cast<std::uint32_t>(member);
  };
  state.exit_target_offset = in_parameters(offsetof(LaunchParameters, exit_target));
  state.flags_offset = in_parameters(offsetof(LaunchParameters, flags));
  state.wait_for_room = options_.wait_for_room ? 1 : 0;
  state.most_epochs = options_.most_epochs;
  state.stop = stopped && options_.wait_for_room ? 1 : 0;
  std::memcpy(state.parameters, packed_.data(), packed_.size());
  std::memcpy(state.parameters + parameter_offset_, &ours, sizeof(ours));
  std::memcpy((*copy)->bytes.data(), &state, sizeof(state));
  const std::uint64_t used = offsetof(DispatchState, parameters) + state.parameter_bytes;
  const auto done =
      device_.copy(Place::on_device(state_address(), 0), Place::on_host((*copy)->bytes.data(), 0),
                   {.width = used, .height = 1}, stream);
  if (!done) return done;
  return device_.record((*copy)->copied, stream);
}

Result<void> WorkerQueue::start_dispatch() {
  const device::Address state = state_address();
  device::LaunchSpec spec = spec_;
  spec.function = dispatch_;
  spec.grid = {1, 1, 1};
  spec.block = {32, 1, 1};
  spec.dynamic_shared_bytes = 0;
  spec.parameters = std::as_bytes(std::span(&state, 1));
  return device_.launch(spec, stream_);
}

Result<void> WorkerQueue::stop(device::Stream control) {
  static constexpr std::uint32_t kStop = 1;
  return device_.copy(Place::on_device(state_address() + offsetof(DispatchState, stop), 0),
                      Place::on_host(&kStop, 0), {.width = sizeof(kStop), .height = 1}, control);
}

// By way of `control`, whose work is in order: a stop that is told later is not taken back.
Result<void> WorkerQueue::dispatch_again(device::Stream control) {
  if (!cleared_) {
    const auto event = device_.create_event(false);
    if (!event) return std::unexpected(event.error());
    cleared_ = *event;
  }
  static constexpr std::uint32_t kCleared[] = {0, kDispatchRunning, 0};  // stop, outcome, error
  const auto cleared =
      device_.copy(Place::on_device(state_address() + offsetof(DispatchState, stop), 0),
                   Place::on_host(kCleared, 0), {.width = sizeof(kCleared), .height = 1}, control);
  if (!cleared) return cleared;
  if (const auto marked = device_.record(*cleared_, control); !marked) return marked;
  if (const auto waits = device_.wait(stream_, *cleared_); !waits) return waits;
  return start_dispatch();
}

void WorkerQueue::take_over(const DispatchProgress& progress) {
  dispatch_ = {};
  parameters_.exit_target = progress.exit_target;
}

DispatchProgress WorkerQueue::dispatch_progress(std::span<const std::uint32_t> control) const {
  const auto word = [&](std::size_t member) {
    return control[(ControlBlock::bytes(memory_.sm_count()) + member) / 4];
  };
  DispatchProgress progress;
  progress.begun = word(offsetof(DispatchState, generation)) == parameters_.generation;
  if (!progress.begun) return progress;
  progress.outcome = static_cast<DispatchOutcome>(word(offsetof(DispatchState, outcome)));
  progress.error = word(offsetof(DispatchState, error));
  progress.epochs = word(offsetof(DispatchState, epochs));
  progress.exit_target = word(offsetof(DispatchState, exit_target));
  progress.nobody =
      progress.epochs > 0 && progress.exit_target == control[ControlBlock::kStateOffset / 4 + 1];
  return progress;
}

Result<void> launch_slice(device::Device& device, const FormLaunch& launch, std::uint64_t first,
                          std::uint64_t count, device::Stream stream) {
  if (first > launch.spec.grid.count() || count > launch.spec.grid.count() - first)
    return fail(ErrorCode::kInvalidValue, "a slice beyond its grid");
  LaunchParameters ours = parameters_of(launch.spec.grid);
  ours.first = static_cast<std::uint32_t>(first);
  std::vector<std::byte> packed;
  pack(packed, launch.spec.parameters, launch.parameter_offset, ours);
  device::LaunchSpec spec = launch.spec;
  spec.grid = {static_cast<std::uint32_t>(count), 1, 1};
  spec.parameters = packed;
  return device.launch(spec, stream);
}

}  // namespace slate::daemon
