#include "tests/unit/daemon/dispatching_device.h"

#include <chrono>
#include <cstring>

#include "base/check.h"
#include "injector/forms/launch_parameters.h"

namespace slate::daemon {
namespace {

constexpr std::string_view kSuffix = "__dispatch";
constexpr std::uint64_t kFirstHandle = std::uint64_t{1} << 60;

// gate: says that it has begun, and spins until it may end (1), or is to end with a fault (2).
constexpr std::string_view kGate = R"(
.version 7.0
.target sm_70
.address_size 64

.visible .entry gate(.param .u64 words)
{
  .reg .pred %p<2>;
  .reg .b32 %r<3>;
  .reg .b64 %d<2>;
  ld.param.u64 %d1, [words];
  mov.u32 %r1, 1;
  st.volatile.global.u32 [%d1+4], %r1;
again:
  ld.volatile.global.u32 %r2, [%d1];
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra again;
  setp.eq.u32 %p1, %r2, 1;
  @%p1 bra done;
  mov.u64 %d1, 16;
  st.global.u32 [%d1], %r2;
done:
  ret;
}
)";

}  // namespace

DispatchingDevice::DispatchingDevice(std::unique_ptr<device::Device> inner)
    : ForwardingDevice(std::move(inner)) {
  gates_.bytes = granularity();
  gates_.base = *reserve(gates_.bytes);
  SLATE_CHECK(map(gates_).has_value());
  module_ = *load_module(device::ImageKind::kPtx, std::as_bytes(std::span(kGate)));
  gate_ = *inner_->find_function(module_, "gate");
}

DispatchingDevice::~DispatchingDevice() {
  for (const auto& run : runs_) {
    if (run->thread.joinable()) run->thread.join();
    destroy_stream(run->own);
    destroy_stream(run->workers);
  }
  unload_module(module_);
  SLATE_CHECK(unmap(gates_).has_value());
  unreserve(gates_);
}

Result<device::Function> DispatchingDevice::find_function(device::Module module,
                                                          const std::string& name) {
  const Stall stall(*this);  // as cuda: nobody may ask under a client's mutex
  if (!name.ends_with(kSuffix)) return inner_->find_function(module, name);
  const auto worker = inner_->find_function(module, name.substr(0, name.size() - kSuffix.size()));
  if (!worker) return worker;
  const std::lock_guard lock(mutex_);
  const device::Function handle{kFirstHandle + workers_.size()};
  workers_[handle] = *worker;
  return handle;
}

Result<void> DispatchingDevice::launch(const device::LaunchSpec& spec, device::Stream stream) {
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(spec.function);
  if (found == workers_.end()) return inner_->launch(spec, stream);
  auto run = std::make_unique<Dispatch>();
  run->worker = found->second;
  run->spec = spec;
  run->on = stream;
  SLATE_CHECK(spec.parameters.size() == sizeof(run->state) && spec.grid.count() == 1 &&
              spec.block.count() == 32);
  std::memcpy(&run->state, spec.parameters.data(), sizeof(run->state));
  run->gate = gates_.base + 8 * runs_.size();
  SLATE_CHECK(gates_.contains(run->gate, 8));
  run->own = *create_stream(-1);
  run->workers = *create_stream(0);
  device::LaunchSpec gate;
  gate.function = gate_;
  gate.grid = gate.block = {1, 1, 1};
  gate.parameters = std::as_bytes(std::span(&run->gate, 1));
  gate.arena = gates_;
  if (const auto done = inner_->launch(gate, stream); !done) return done;
  ++dispatches_;
  run->thread = std::thread([this, &dispatch = *run] { this->run(dispatch); });
  runs_.push_back(std::move(run));
  return {};
}

Result<void> DispatchingDevice::cancel(device::Stream stream) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& run : runs_) {
      if (run->on != stream || run->cancelled.exchange(true)) continue;
      // Its memory may be another's then.
      run->thread.join();
      if (const auto done = inner_->cancel(run->workers); !done) return done;
    }
  }
  return inner_->cancel(stream);
}

/// False when it was cancelled, or ended with a fault.
bool DispatchingDevice::reach_end(device::Stream stream, Dispatch& dispatch) {
  const device::Event event = *create_event(false);
  SLATE_CHECK(record(event, stream).has_value());
  bool reached = false;
  while (!reached && !dispatch.cancelled) {
    const auto state = query(event);
    dispatch.faulted = !state;
    reached = state.value_or(true);
    if (!reached) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  destroy_event(event);
  return reached && !dispatch.faulted;
}

void DispatchingDevice::read(Dispatch& dispatch, device::Address from, void* to,
                             std::uint64_t bytes) {
  if (!copy(Place::on_host(to), Place::on_device(from), {.width = bytes}, dispatch.own)) return;
  // Not cut short: the memory is the caller's.
  const device::Event event = *create_event(false);
  SLATE_CHECK(record(event, dispatch.own).has_value());
  while (!query(event).value_or(true)) std::this_thread::sleep_for(std::chrono::microseconds(20));
  destroy_event(event);
}

void DispatchingDevice::write(Dispatch& dispatch, device::Address to, const void* from,
                              std::uint64_t bytes) {
  if (!copy(Place::on_device(to), Place::on_host(from), {.width = bytes}, dispatch.own)) return;
  const device::Event event = *create_event(false);
  SLATE_CHECK(record(event, dispatch.own).has_value());
  while (!query(event).value_or(true)) std::this_thread::sleep_for(std::chrono::microseconds(20));
  destroy_event(event);
}

bool DispatchingDevice::has_begun(Dispatch& dispatch) {
  std::uint32_t begun = 0;
  while (!dispatch.cancelled) {
    read(dispatch, dispatch.gate + 4, &begun, sizeof(begun));
    if (begun != 0) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return false;
}

void DispatchingDevice::run(Dispatch& dispatch) {
  if (!has_begun(dispatch)) return;
  const std::uint32_t outcome[] = {end_of(dispatch), 7};
  if (dispatch.cancelled) return;
  write(dispatch, dispatch.state + offsetof(DispatchState, outcome), outcome, sizeof(outcome));
  const std::uint32_t open = dispatch.faulted ? 2 : 1;
  write(dispatch, dispatch.gate, &open, sizeof(open));
}

bool DispatchingDevice::wait_for_room(Dispatch& dispatch, const DispatchState& state) {
  std::vector<std::uint32_t> words(state.sm_count);
  while (!dispatch.cancelled) {
    std::uint32_t stop = 0;
    read(dispatch, dispatch.state + offsetof(DispatchState, stop), &stop, sizeof(stop));
    if (stop != 0) return false;
    read(dispatch, state.sm_words, words.data(), 4 * words.size());
    for (const std::uint32_t word : words)
      if (word >> 16 != injector::kMostWorkers) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return false;
}

Result<void> DispatchingDevice::launch_workers(Dispatch& dispatch, const DispatchState& state) {
  if (refuses_workers_) return fail(ErrorCode::kOutOfResources, "as the test wants it");
  device::LaunchSpec spec = dispatch.spec;
  spec.function = dispatch.worker;
  spec.grid = {state.workers, 1, 1};
  spec.block = {state.block[0], state.block[1], state.block[2]};
  spec.dynamic_shared_bytes = state.shared_bytes;
  spec.parameters = std::as_bytes(std::span(state.parameters, state.parameter_bytes));
  ++epochs_;
  return inner_->launch(spec, dispatch.workers);
}

/// Runs epochs as slate_dispatch does; its outcome.
std::uint32_t DispatchingDevice::end_of(Dispatch& dispatch) {
  auto state = std::make_unique<DispatchState>();
  while (!dispatch.cancelled) {
    while (epochs_held_ && !dispatch.cancelled)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    read(dispatch, dispatch.state, state.get(), sizeof(*state));
    std::uint32_t ends[2] = {};
    read(dispatch, state->control_state, ends, sizeof(ends));
    if ((ends[0] & ~injector::kClosed) != state->generation) return kDispatchFinished;
    if (!wait_for_room(dispatch, *state)) return kDispatchStopped;
    const auto set = [&](std::uint32_t offset, std::uint32_t value) {
      std::memcpy(state->parameters + offset, &value, sizeof(value));
      write(dispatch, dispatch.state + offsetof(DispatchState, parameters) + offset, &value,
            sizeof(value));
    };
    const std::uint32_t before = state->exit_target;
    state->exit_target += state->workers;
    set(state->exit_target_offset, state->exit_target);
    if (state->epochs > 0) set(state->flags_offset, 0);
    ++state->epochs;
    const device::Address told = dispatch.state + offsetof(DispatchState, exit_target);
    write(dispatch, told, &state->exit_target, 8);
    if (!launch_workers(dispatch, *state)) {
      write(dispatch, told, &before, sizeof(before));
      return kDispatchFailed;
    }
    if (!reach_end(dispatch.workers, dispatch)) break;
  }
  return kDispatchStopped;
}

}  // namespace slate::daemon
