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
  for (const auto& table : tables_) {
    if (table->registered) device_.unregister_host(table->withheld.data());
    device_.destroy_event(table->copied);
  }
  if (control_ != 0) memory_.give_back(control_, *share_);
}

Result<bool> WorkerQueue::prepare(device::Stream stream) {
  if (control_ != 0) return false;
  const auto control = memory_.take(*share_);
  if (!control) return std::unexpected(control.error());
  control_ = *control;
  const device::Shape all{.width = ControlBlock::bytes(memory_.sm_count()), .height = 1};
  if (const auto done = device_.fill(control_, all.width, 0, all, stream); !done) {
    return std::unexpected(done.error());
  }
  return true;
}

Result<void> WorkerQueue::launch(const FormLaunch& launch, device::Stream stream,
                                 const WorkerTable* table) {
  stream_ = stream;
  if (const auto prepared = prepare(stream); !prepared) return std::unexpected(prepared.error());
  if (resized_) {
    if (const auto done = device_.wait(stream, *resized_); !done) return done;
    if (table == nullptr) {
      const WorkerTable everywhere(memory_.sm_count(), injector::kMostWorkers);
      const auto written = write_table(everywhere, stream);
      if (!written) return std::unexpected(written.error());
    }
  }
  resized_.reset();
  LaunchParameters ours = parameters_of(launch.spec.grid);
  const std::uint32_t sms = launch.sms != 0 ? launch.sms : memory_.sm_count();
  const std::uint32_t room = launch.workers_per_sm * sms;
  const TaskSizes sizes =
      launch.task_sizes ? *launch.task_sizes : default_task_sizes(ours.blocks, room);
  cut_into_tasks(ours, sizes, room);
  workers_ = std::min(room, ours.tasks) + launch.spares_per_sm * sms;
  most_per_sm_ = launch.workers_per_sm + launch.spares_per_sm;
  allowed_.assign(memory_.sm_count(), most_per_sm_);
  if (table != nullptr) allow(*table);
  room_gained_ = 0;
  const bool is_static = launch.independent_blocks && table == nullptr;
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
  if (table != nullptr) {
    const auto written = write_table(*table, stream);
    if (!written) return std::unexpected(written.error());
  }
  if (launch.after) {
    if (const auto done = device_.wait(stream, *launch.after); !done) return done;
  }
  return start(workers_, is_static ? std::uint32_t{injector::kStaticFirstTask} : 0, stream);
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
  return std::ranges::all_of(tables_, [this](const auto& table) {
    // What has failed is over, too.
    return device_.query(table->copied).value_or(true);
  });
}

/// One that no copy reads any more.
Result<WorkerQueue::HostTable*> WorkerQueue::free_table() {
  for (const auto& table : tables_) {
    const auto copied = device_.query(table->copied);
    if (!copied) return std::unexpected(copied.error());
    if (*copied) return table.get();
  }
  const auto event = device_.create_event(false);
  if (!event) return std::unexpected(event.error());
  auto table = std::make_unique<HostTable>();
  table->withheld.resize(memory_.sm_count());
  table->copied = *event;
  // Without it copies only take longer.
  table->registered =
      device_.register_host(table->withheld.data(), table->withheld.size() * 2).has_value();
  tables_.push_back(std::move(table));
  return tables_.back().get();
}

/// Returns the event behind the copy.
Result<device::Event> WorkerQueue::write_table(const WorkerTable& allowed, device::Stream stream) {
  const std::uint32_t sm_count = memory_.sm_count();
  SLATE_CHECK(allowed.size() == sm_count);
  const auto table = free_table();
  if (!table) return std::unexpected(table.error());
  std::vector<std::uint16_t>& withheld = (*table)->withheld;
  for (std::uint32_t sm = 0; sm < sm_count; ++sm) {
    const std::uint32_t workers = std::min(allowed[sm], injector::kMostWorkers);
    withheld[sm] = static_cast<std::uint16_t>(injector::kMostWorkers - workers);
  }
  // The upper half of each SM's word.
  const auto done =
      device_.copy_to_device(control_ + ControlBlock::kSmOffset + 2, 4, withheld.data(), 2,
                             {.width = 2, .height = sm_count}, stream);
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
  const std::uint32_t to_come = started_ - control[ControlBlock::kArrivedOffset / 4];
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
  const device::Shape word{.width = sizeof(std::uint64_t), .height = 1};
  const auto cleared = device_.fill(signal_address(), word.width, 0, word, stream_);
  if (!cleared) return cleared;
  // Open again: the lowest byte of the state is the generation's.
  const device::Shape byte{.width = 1, .height = 1};
  const auto opened =
      device_.fill(control_ + ControlBlock::kStateOffset, byte.width,
                   static_cast<std::uint8_t>(parameters_.generation), byte, stream_);
  if (!opened) return opened;
  return start(workers_, 0, stream_);
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
