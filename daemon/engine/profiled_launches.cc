#include "daemon/engine/profiled_launches.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "base/log.h"
#include "injector/forms/profile.h"

namespace slate::daemon {
namespace {

constexpr std::uint64_t kMostBytes =
    std::uint64_t{injector::kMostCounters} * injector::kProfileCopies * sizeof(std::uint64_t);

}  // namespace

ProfiledLaunches::~ProfiledLaunches() {
  if (registered_) device_.unregister_host(copy_.data());
  if (counters_.bytes == 0) return;
  // What cannot be unmapped any more is lost with the device.
  [[maybe_unused]] const auto unmapped = device_.unmap(counters_);
  device_.unreserve(counters_);
}

bool ProfiledLaunches::wants(scheduler::KernelId id, const scheduler::KernelProfile& kernel) const {
  if (!forms_.profiles() || kernel.flops >= 0) return false;
  std::uint32_t seen = 0;
  for (const scheduler::TimeEstimate& time : kernel.alone) seen += time.samples;
  if (seen < kFirst) return false;
  const MutexLock lock(mutex_);
  const auto tried = tries_.find(id);
  return !busy_ && !given_up_ && (tried == tries_.end() || tried->second < kMostTries);
}

bool ProfiledLaunches::take(scheduler::KernelId id, FunctionRecord& kernel,
                            const device::LaunchSpec& spec, const LaunchShape& shape) {
  if (kernel.forms == nullptr || kernel.forms->profile.empty()) return false;
  const FormFunction* form = usable_form(device_, forms_, kernel, kernel.profile,
                                         kernel.forms->profile, spec.dynamic_shared_bytes);
  if (form == nullptr) return false;
  // Blocks of one wave may wait for one another: as many must fit as of the kernel itself.
  if (shape.blocks <= shape.wave && !kernel.forms->analysis.independent_blocks) {
    const std::uint32_t room =
        room_of(device_, kernel, form->function, spec.block.count(), spec.dynamic_shared_bytes);
    if (std::uint64_t{room} * static_cast<std::uint64_t>(sm_count(device_.info())) < shape.wave)
      return false;
  }
  {
    const MutexLock lock(mutex_);
    if (busy_ || given_up_) return false;
    busy_ = true;
    ++tries_[id];
  }
  id_ = id;
  if (prepare()) return true;
  drop();
  return false;
}

/// The memory, with the first launch.
bool ProfiledLaunches::prepare() {
  if (counters_.bytes != 0) return true;
  const std::uint64_t unit = device_.granularity();
  device::AddressRange range{.base = 0, .bytes = (kMostBytes + unit - 1) / unit * unit};
  const auto base = device_.reserve(range.bytes);
  auto mapped = base ? Result<void>() : std::unexpected(base.error());
  if (base) {
    range.base = *base;
    mapped = device_.map(range);
    if (!mapped) device_.unreserve(range);
  }
  if (!mapped) {
    log_warning("what kernels compute is not counted: {}", mapped.error().message);
    const MutexLock lock(mutex_);
    given_up_ = true;
    return false;
  }
  counters_ = range;
  copy_.resize(kMostBytes / sizeof(std::uint64_t));
  // Without it the copy only takes longer.
  registered_ = device_.register_host(copy_.data(), kMostBytes).has_value();
  return true;
}

Result<void> ProfiledLaunches::launch(FunctionRecord& kernel, const device::LaunchSpec& spec,
                                      device::Stream stream) {
  work_ = kernel.forms->work;
  threads_ = static_cast<double>(spec.grid.count()) * static_cast<double>(spec.block.count());
  const std::uint64_t bytes = injector::counter_bytes(work_);
  SLATE_CHECK(bytes <= kMostBytes);
  // Should the copy never come, nothing is what was counted.
  std::ranges::fill(copy_, 0);
  const injector::ProfileParameters ours{.counters = counters_.base,
                                         .sample = injector::profile_sample(spec.grid.count())};
  const std::uint32_t offset = kernel.profile.parameter_offset;
  std::vector<std::byte> packed(offset + sizeof(ours));
  std::memcpy(packed.data(), spec.parameters.data(),
              std::min<std::size_t>(spec.parameters.size(), offset));
  std::memcpy(packed.data() + offset, &ours, sizeof(ours));
  device::LaunchSpec profiled = spec;
  profiled.function = kernel.profile.function;
  if (spec.variables_of == device::Function{}) profiled.variables_of = kernel.function;
  profiled.parameters = packed;
  profiled.control = counters_;
  profiled.overlaps = false;
  const Box all{.width = bytes, .height = 1};
  if (auto done = device_.fill(counters_.base, bytes, 0, all, stream); !done) return done;
  if (auto done = device_.launch(profiled, stream); !done) return done;
  forms_.count(injector::Form::kProfile);
  const auto copied = device_.copy(Place::on_host(copy_.data(), bytes),
                                   Place::on_device(counters_.base, bytes), all, stream);
  // The kernel runs, so this is no error of the launch: it only says nothing.
  if (!copied) log_debug("a kernel's counters are lost: {}", copied.error().message);
  return {};
}

void ProfiledLaunches::drop() {
  const MutexLock lock(mutex_);
  busy_ = false;
}

std::optional<injector::Work> ProfiledLaunches::end(const Result<void>& outcome) {
  std::optional<injector::Work> work;
  if (outcome) {
    const std::size_t count = injector::counter_bytes(work_) / sizeof(std::uint64_t);
    work = injector::launch_work(work_, std::span(copy_).first(count), threads_);
  }
  if (work) {
    // Should it be forgotten, it is counted again.
    const MutexLock lock(mutex_);
    tries_.erase(id_);
  }
  drop();
  return work;
}

}  // namespace slate::daemon
