#include "daemon/engine/form_launcher.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "daemon/dispatch/device_dispatch.h"

namespace slate::daemon {
namespace {

constexpr std::size_t kMostShapes = 64;  // a kernel with ever new shapes starts afresh
constexpr std::uint32_t kWarpThreads = 32;
constexpr std::uint64_t kForcedSlices = 4;  // of a launch in the slice form

// Blocks so small and so many that their starts cost most (4x4 threads on an H200: 2 to 7 times as
// quick as workers). The larger a block, the less there is to gain.
constexpr std::uint64_t kSmallBlock = 64;
constexpr std::uint64_t kManyWaves = 4;

/// Looks one form's function up, once. Null, with the reason logged, if the device has none.
FormFunction* find_form(device::Device& device, FunctionRecord& kernel, FormFunction& form,
                        const std::string& name) {
  if (!form.looked_up) {
    form.looked_up = true;
    const auto function = device.find_function(kernel.form_module, name);
    const auto info = function ? device.function_info(*function)
                               : Result<device::FunctionInfo>(std::unexpected(function.error()));
    if (info && !info->parameters.empty()) {
      form.function = *function;
      form.parameter_offset = info->parameters.back().offset;
      form.static_shared_bytes = info->static_shared_bytes;
      form.max_dynamic_shared_bytes = info->max_dynamic_shared_bytes;
    } else {
      log_warning("{} cannot be used: {}", name, info ? "no parameters" : info.error().message);
    }
  }
  return form.function == device::Function{} ? nullptr : &form;
}

/// Looks the dispatch kernel of a worker form up, once.
void find_dispatch(device::Device& device, const FunctionRecord& kernel, FormFunction& form,
                   const std::string& name) {
  if (form.dispatch) return;
  const auto found = device.find_function(kernel.form_module, dispatch_name(name));
  if (!found) log_info("the host starts the workers of {}: no dispatch kernel", *kernel.name);
  form.dispatch = found.value_or(device::Function{});
}

void say_why(FormService& service, FunctionRecord& kernel, std::string_view reason) {
  if (kernel.reason_told || service.choice() == FormChoice::kAuto) return;
  kernel.reason_told = true;
  log_info("{} runs natively, not as {}: {}", *kernel.name, form_choice_name(service.choice()),
           reason);
}

/// Whether what the analysis takes to be the same in a warp is so with these blocks.
bool warps_are_as_needed(const injector::EntryAnalysis& analysis, const device::LaunchSpec& spec) {
  const bool whole = spec.block.x % kWarpThreads == 0;
  if (analysis.needs_whole_warps) {
    constexpr std::uint64_t kMostThreads = std::uint64_t{1} << 31;
    if (!whole || std::uint64_t{spec.grid.x} * spec.block.x >= kMostThreads) return false;
  }
  return !analysis.needs_whole_rows || whole || spec.block.y * spec.block.z == 1;
}

// The driver's CUdevice_attribute numbers.
constexpr int kMaxThreadsPerBlock = 1;
constexpr int kMaxBlockDim = 2;   // and 3, 4
constexpr int kMaxGridDim = 5;    // and 6, 7
constexpr int kSharedPerSm = 81;  // bytes
// On all GPUs since Volta a size that the shared memory of an SM can have, and enough for most
// kernels; of the 256 KiB of an H200's SM 192 are left to cache.
constexpr std::uint64_t kCommonShared = 64 << 10;

/// As common_carveout(), of any form.
std::uint32_t carveout_of(device::Device& device, FunctionRecord& kernel, device::Function function,
                          std::uint32_t static_shared, const device::LaunchSpec& spec) {
  const auto& attributes = device.info().attributes;
  const auto per_sm = static_cast<std::uint64_t>(attributes[kSharedPerSm]);
  if (per_sm < kCommonShared) return 0;
  const std::uint64_t block =
      std::uint64_t{static_shared} + spec.dynamic_shared_bytes + reserved_shared(device.info());
  const std::uint64_t blocks =
      room_of(device, kernel, function, spec.block.count(), spec.dynamic_shared_bytes);
  // A percentage that is rounded up would stand for the next size.
  return blocks * block <= kCommonShared ? static_cast<std::uint32_t>(100 * kCommonShared / per_sm)
                                         : 0;
}

WorkerRefusal refusal(const device::LaunchSpec& spec) {
  return {.threads = spec.block.count(), .shared = spec.dynamic_shared_bytes};
}

class Launcher {
 public:
  Launcher(device::Device& device, FormService& service, FunctionRecord& kernel,
           const device::LaunchSpec& spec, const LaunchTarget& target)
      : device_(device), service_(service), kernel_(kernel), spec_(spec), target_(target) {
    spec_.ahead = target.ahead;
  }

  Result<injector::Form> launch(injector::Form form) {
    if (form == injector::Form::kWorker && target_.queue != nullptr) {
      if (prepare_worker()) {
        const auto done = target_.queue->launch(form_, target_.stream, target_.table);
        if (done && target_.queue->by_device()) service_.count_dispatched();
        return counted(injector::Form::kWorker, done);
      }
      refuse_worker(kernel_, spec_);
    }
    if (target_.after) {
      const auto waits = device_.wait(target_.stream, *target_.after);
      if (!waits) return std::unexpected(waits.error());
    }
    if (form == injector::Form::kSlice && prepare(kernel_.slice, kernel_.forms->slice)) {
      return counted(injector::Form::kSlice, launch_slices());
    }
    if (target_.slice_first > 0) {
      return fail(ErrorCode::kInternal, "a kernel that has begun in slices cannot go on");
    }
    share(spec_, kernel_.info.static_shared_bytes);
    return counted(injector::Form::kNative, device_.launch(spec_, target_.stream));
  }

 private:
  Result<injector::Form> counted(injector::Form form, const Result<void>& done) {
    if (!done) return std::unexpected(done.error());
    service_.count(form);
    return form;
  }

  /// Fills in form_. False if the form has no function, or no room for what the launch asks for.
  bool prepare(FormFunction& form, const std::string& name) {
    if (usable_form(device_, service_, kernel_, form, name, spec_.dynamic_shared_bytes) == nullptr)
      return false;
    form_.spec = spec_;
    form_.spec.overlaps = false;  // a form may be several launches, which must not
    form_.spec.function = form.function;
    if (spec_.variables_of == device::Function{}) form_.spec.variables_of = kernel_.function;
    form_.parameter_offset = form.parameter_offset;
    form_.dispatch =
        target_.dispatches ? form.dispatch.value_or(device::Function{}) : device::Function{};
    share(form_.spec, form.static_shared_bytes);
    return true;
  }

  void share(device::LaunchSpec& spec, std::uint32_t static_shared) {
    if (target_.shares_sms)
      spec.carveout = carveout_of(device_, kernel_, spec.function, static_shared, spec);
  }

  bool prepare_worker() {
    const bool fits = prepare(kernel_.worker, kernel_.forms->worker);
    std::uint32_t workers = fits ? workers_per_sm() : 0;
    // Twice the shared memory may cost more workers than it saves time.
    if (!kernel_.forms->compact_worker.empty()) {
      const FormLaunch overlapping = form_;
      const bool compact_fits = prepare(kernel_.compact_worker, kernel_.forms->compact_worker);
      const std::uint32_t more = compact_fits ? workers_per_sm() : 0;
      if (more <= workers) form_ = overlapping;
      workers = std::max(workers, more);
    }
    if (workers == 0) return false;
    form_.workers_per_sm = workers;
    form_.spares_per_sm = room() - workers;
    form_.sms = target_.sms;
    form_.after = target_.after;
    form_.control = target_.control;
    form_.prefetch = target_.prefetch;
    if (target_.task_size != 0) form_.task_sizes = task_sizes(target_.task_size);
    form_.independent_blocks = kernel_.forms->analysis.independent_blocks;
    return true;
  }

  /// Of the function in form_: how many fit.
  std::uint32_t room() {
    return room_of(device_, kernel_, form_.spec.function, spec_.block.count(),
                   spec_.dynamic_shared_bytes);
  }
  /// And may be there.
  std::uint32_t workers_per_sm() {
    return target_.most_per_sm != 0 ? std::min(room(), target_.most_per_sm) : room();
  }

  Result<void> launch_slices() {
    if (target_.slice_count != 0) {
      return launch_slice(device_, form_, target_.slice_first, target_.slice_count, target_.stream);
    }
    const std::uint64_t blocks = spec_.grid.count();
    const std::uint64_t size = (blocks + kForcedSlices - 1) / kForcedSlices;
    for (std::uint64_t first = 0; first < blocks; first += size) {
      const auto done =
          launch_slice(device_, form_, first, std::min(size, blocks - first), target_.stream);
      if (!done) return done;
    }
    return {};
  }

  device::Device& device_;
  FormService& service_;
  FunctionRecord& kernel_;
  device::LaunchSpec spec_;
  const LaunchTarget& target_;
  FormLaunch form_;
};

}  // namespace

void find_forms(device::Device& device, const FormService& service, FunctionRecord& kernel,
                injector::Form form) {
  if (kernel.forms == nullptr) return;
  const injector::KernelForms& forms = *kernel.forms;
  if (form == injector::Form::kSlice && !forms.slice.empty())
    find_form(device, kernel, kernel.slice, forms.slice);
  if (form != injector::Form::kWorker) return;
  for (const auto& [function, name] : {std::pair(&kernel.worker, &forms.worker),
                                       std::pair(&kernel.compact_worker, &forms.compact_worker)}) {
    if (name->empty() || find_form(device, kernel, *function, *name) == nullptr) continue;
    if (service.dispatch() == DispatchChoice::kDevice)
      find_dispatch(device, kernel, *function, *name);
  }
}

FormFunction* usable_form(device::Device& device, FormService& service, FunctionRecord& kernel,
                          FormFunction& form, const std::string& name,
                          std::uint32_t dynamic_shared) {
  if (find_form(device, kernel, form, name) == nullptr) return nullptr;
  if (dynamic_shared > form.max_dynamic_shared_bytes) {
    if (!device.set_max_dynamic_shared(form.function, dynamic_shared)) {
      say_why(service, kernel, "its shared memory leaves no room for a worker's");
      return nullptr;
    }
    form.max_dynamic_shared_bytes = dynamic_shared;
  }
  return &form;
}

std::uint32_t room_of(device::Device& device, FunctionRecord& kernel, device::Function function,
                      std::uint64_t threads, std::uint32_t shared_bytes) {
  const auto known = std::ranges::find_if(kernel.rooms, [&](const RoomRecord& room) {
    return room.function == function && room.threads == threads && room.shared == shared_bytes;
  });
  if (known != kernel.rooms.end()) return known->blocks;
  if (kernel.rooms.size() == kMostShapes) kernel.rooms.clear();
  const auto asked = static_cast<std::uint32_t>(std::min<std::uint64_t>(threads, 4096));
  const auto room = device.max_blocks_per_sm(function, asked, shared_bytes);
  kernel.rooms.push_back({function, threads, shared_bytes, room ? *room : 0});
  return kernel.rooms.back().blocks;
}

LaunchShape shape_of(device::Device& device, FormService& service, FunctionRecord& kernel,
                     const device::LaunchSpec& spec) {
  LaunchShape shape;
  shape.blocks = spec.grid.count();
  const std::uint32_t room =
      room_of(device, kernel, kernel.function, spec.block.count(), spec.dynamic_shared_bytes);
  shape.wave = std::uint64_t{room} * static_cast<std::uint64_t>(sm_count(device.info()));
  if (kernel.forms == nullptr || service.choice() == FormChoice::kNative) return shape;
  // Its blocks may wait for one another, or read each other's shared memory.
  if (!is_plain(spec)) return shape;
  if (shape.wave == 0 || !can_be_numbered(spec.grid)) return shape;
  const injector::EntryAnalysis& analysis = kernel.forms->analysis;
  if (shape.blocks <= shape.wave && !analysis.independent_blocks) {
    say_why(service, kernel, "its blocks are all there at once and may wait for one another");
    return shape;
  }
  shape.slice = !kernel.forms->slice.empty();
  const bool has_warps = warps_are_as_needed(analysis, spec);
  const bool refused = !kernel.refusals.empty() &&
                       std::ranges::find(kernel.refusals, refusal(spec)) != kernel.refusals.end();
  shape.worker = !kernel.forms->worker.empty() && has_warps && !refused;
  if (service.choice() == FormChoice::kSlice && !shape.slice) {
    say_why(service, kernel, analysis.slice.why_not);
  } else if (service.choice() == FormChoice::kWorker && !shape.worker) {
    say_why(service, kernel,
            has_warps ? std::string_view(analysis.worker.why_not)
                      : std::string_view("its warps span rows or blocks of the grid's threads"));
  }
  shape.worker_likely = shape.worker && !analysis.drains && spec.block.count() <= kSmallBlock &&
                        shape.blocks >= kManyWaves * shape.wave;
  return shape;
}

void refuse_worker(FunctionRecord& kernel, const device::LaunchSpec& spec) {
  if (kernel.refusals.size() == kMostShapes) kernel.refusals.clear();
  kernel.refusals.push_back(refusal(spec));
}

Result<injector::Form> launch_in_form(device::Device& device, FormService& service,
                                      FunctionRecord& kernel, const device::LaunchSpec& spec,
                                      injector::Form form, const LaunchTarget& target) {
  return Launcher(device, service, kernel, spec, target).launch(form);
}

std::uint32_t common_carveout(device::Device& device, FunctionRecord& kernel,
                              const device::LaunchSpec& spec) {
  return carveout_of(device, kernel, kernel.function, kernel.info.static_shared_bytes, spec);
}

bool is_within_limits(const DeviceInfo& device, const device::LaunchSpec& spec) {
  const auto within = [&device](int first_attribute, const device::Dim3& size) {
    const std::int32_t* const limits = &device.attributes[first_attribute];
    return std::cmp_less_equal(size.x, limits[0]) && std::cmp_less_equal(size.y, limits[1]) &&
           std::cmp_less_equal(size.z, limits[2]);
  };
  return within(kMaxGridDim, spec.grid) && within(kMaxBlockDim, spec.block) &&
         std::cmp_less_equal(spec.block.count(), device.attributes[kMaxThreadsPerBlock]);
}

bool is_plain(const device::LaunchSpec& spec) {
  return !spec.cooperative && spec.cluster.count() <= 1;
}

}  // namespace slate::daemon
