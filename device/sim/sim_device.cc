#include "device/sim/sim_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/check.h"
#include "device/sim/device_info.h"

namespace slate::sim {
namespace {

using device::Address;
using device::AddressRange;

Result<std::vector<std::byte>> packed_parameters(const device::FunctionInfo& info,
                                                 std::span<const std::byte> given) {
  std::size_t bytes = 0;
  for (const auto& each : info.parameters) {
    bytes = std::max<std::size_t>(bytes, std::size_t{each.offset} + each.size);
  }
  if (given.size() < bytes) {
    return fail(ErrorCode::kInvalidValue, fmt::format("{}: {} bytes of parameters given, {} wanted",
                                                      info.name, given.size(), bytes));
  }
  return std::vector<std::byte>(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(bytes));
}

}  // namespace

Result<std::unique_ptr<SimDevice>> SimDevice::make(const Settings& settings) {
  auto memory = Memory::make(settings.memory);
  if (!memory) return std::unexpected(std::move(memory.error()));
  return std::unique_ptr<SimDevice>(new SimDevice(settings, std::move(*memory)));
}

SimDevice::SimDevice(const Settings& settings, std::unique_ptr<Memory> memory)
    : settings_(settings),
      info_(make_device_info(settings)),
      memory_(std::move(memory)),
      modules_(settings_, *memory_),
      arrays_(*memory_, info_),
      partitions_(settings_),
      streams_(settings_) {}

Result<std::uint64_t> SimDevice::free_memory() {
  return memory_->capacity() - memory_->mapped_bytes();
}

Result<Address> SimDevice::reserve(std::uint64_t bytes) {
  return memory_->reserve(bytes);
}
Result<Address> SimDevice::reserve_at(std::uint64_t bytes, std::uint64_t align, Address wished) {
  auto reserved = memory_->reserve(bytes, wished, align);
  if (!reserved && wished != 0) reserved = memory_->reserve(bytes, 0, align);
  return reserved;
}
void SimDevice::unreserve(AddressRange range) {
  memory_->unreserve(range);
}
Result<void> SimDevice::map(AddressRange range) {
  const Stall stall(*this);
  return memory_->map(range);
}
Result<void> SimDevice::map_again(AddressRange range, Address mapped) {
  return memory_->map_again(range, mapped);
}
Result<UniqueFd> SimDevice::export_memory(AddressRange range) {
  return memory_->export_memory(range);
}
Result<void> SimDevice::map_exported(AddressRange range, int memory) {
  return memory_->map_exported(range, memory);
}
Result<void> SimDevice::unmap(AddressRange range) {
  before_unmap(range);
  return memory_->unmap(range);
}

Result<void> SimDevice::register_host(void* memory, std::size_t bytes) {
  if (memory == nullptr || bytes == 0) {
    return fail(ErrorCode::kInvalidValue, "register_host: no memory given");
  }
  MutexLock lock(registered_mutex_);
  if (!registered_.emplace(memory, bytes).second) {
    return fail(ErrorCode::kInvalidValue, "register_host: registered already");
  }
  return {};
}

void SimDevice::unregister_host(void* memory) {
  const Stall stall(*this);
  MutexLock lock(registered_mutex_);
  registered_.erase(memory);
}

Result<Address> SimDevice::map_host(int fd, std::uint64_t bytes, Address least) {
  return memory_->map_host(fd, bytes, least);
}
void SimDevice::unmap_host(AddressRange range) {
  before_unmap(range);
  const Stall stall(*this);
  memory_->unmap_host(range);
}

Result<device::Module> SimDevice::load_module(device::ImageKind kind,
                                              std::span<const std::byte> image) {
  const Stall stall(*this);
  if (kind == device::ImageKind::kPtx) return modules_.load_ptx(image);
  return fail(ErrorCode::kNoKernelImage,
              "the simulated device executes PTX only; this image is machine code (cubin)");
}

Result<std::string> SimDevice::compiler_identity() const {
  return fail(
      ErrorCode::kNotSupported,
      "the simulated device executes PTX itself: there is no machine code to compile it to");
}

Result<std::vector<std::byte>> SimDevice::compile(std::string_view, std::chrono::milliseconds) {
  return std::unexpected(compiler_identity().error());
}

void SimDevice::unload_module(device::Module module) {
  const Stall stall(*this);
  modules_.unload(module);
}

Result<device::Function> SimDevice::find_function(device::Module module, const std::string& name) {
  const Stall stall(*this);
  return modules_.find_function(module, name);
}

Result<device::FunctionInfo> SimDevice::function_info(device::Function function) {
  auto target = modules_.target(function);
  if (!target) return std::unexpected(std::move(target.error()));
  return std::move(target->info);
}

Result<std::uint32_t> SimDevice::max_blocks_per_sm(device::Function function,
                                                   std::uint32_t threads_per_block,
                                                   std::uint32_t dynamic_shared_bytes) {
  auto target = modules_.target(function);
  if (!target) return std::unexpected(std::move(target.error()));
  auto cost = check_launch(target->info, {}, {threads_per_block, 1, 1}, dynamic_shared_bytes);
  if (!cost) return std::unexpected(std::move(cost.error()));
  return cost->occupancy;
}

Result<std::uint32_t> SimDevice::max_active_clusters(const device::LaunchSpec&) {
  return fail(ErrorCode::kNotSupported, "the simulated device has no thread block clusters");
}
Result<std::uint32_t> SimDevice::max_cluster_size(const device::LaunchSpec&) {
  return fail(ErrorCode::kNotSupported, "the simulated device has no thread block clusters");
}

Result<void> SimDevice::raise_limit(device::Limit, std::uint64_t) {
  return {};  // there is no heap
}

Result<void> SimDevice::set_local_memory(std::uint64_t) {
  return {};  // a stack grows as deep as its thread needs
}

Result<void> SimDevice::set_attribute(device::Function function, FunctionAttribute attribute,
                                      std::int32_t value) {
  return modules_.set_attribute(function, attribute, value);
}

Result<AddressRange> SimDevice::find_global(device::Module module, const std::string& name) {
  return modules_.find_global(module, name);
}

Result<device::Array> SimDevice::create_array(const ArraySpec& spec) {
  const Stall stall(*this);
  return arrays_.create(spec);
}
void SimDevice::destroy_array(device::Array array) {
  arrays_.destroy(array);
}
Result<device::Texture> SimDevice::create_texture(const TextureSpec& spec, AddressRange owner) {
  return arrays_.create_texture(spec, owner);
}
void SimDevice::destroy_texture(device::Texture texture) {
  arrays_.objects().remove_texture(static_cast<std::uint64_t>(texture));
}
Result<device::Surface> SimDevice::create_surface(device::Array array, std::uint32_t level,
                                                  AddressRange owner) {
  return arrays_.create_surface(array, level, owner);
}
void SimDevice::destroy_surface(device::Surface surface) {
  arrays_.objects().remove_surface(static_cast<std::uint64_t>(surface));
}

Result<std::vector<std::vector<std::uint32_t>>> SimDevice::partition_units() {
  return partitions_.units();
}
Result<device::Partition> SimDevice::create_partition(std::uint32_t first_unit,
                                                      std::uint32_t unit_count) {
  const Stall stall(*this);
  return partitions_.create(first_unit, unit_count);
}
void SimDevice::destroy_partition(device::Partition partition) {
  const Stall stall(*this);
  SLATE_CHECK(!streams_.uses(partition));
  partitions_.destroy(partition);
}

Result<device::Stream> SimDevice::create_stream(int priority, device::Partition partition) {
  const auto sms = partitions_.sms(partition);
  if (!sms) return std::unexpected(sms.error());
  const auto [least, greatest] = stream_priorities();
  return streams_.create_stream(std::clamp(priority, greatest, least), partition, *sms);
}
void SimDevice::destroy_stream(device::Stream stream) {
  streams_.destroy_stream(stream);
}
Result<void> SimDevice::cancel(device::Stream stream) {
  return streams_.cancel(stream);
}
Result<device::Event> SimDevice::create_event(bool timing) {
  return streams_.create_event(timing);
}
void SimDevice::destroy_event(device::Event event) {
  streams_.destroy_event(event);
}
Result<void> SimDevice::record(device::Event event, device::Stream stream) {
  return streams_.record(event, stream);
}
Result<void> SimDevice::wait(device::Stream stream, device::Event event) {
  return streams_.wait(stream, event);
}
Result<bool> SimDevice::query(device::Event event) {
  return streams_.query(event);
}
Result<float> SimDevice::elapsed_ms(device::Event start, device::Event stop) {
  return streams_.elapsed_ms(start, stop);
}
void SimDevice::wait_for_progress(std::chrono::microseconds timeout) {
  streams_.wait_for_progress(timeout);
}

Result<void> SimDevice::launch(const device::LaunchSpec& spec, device::Stream stream) {
  auto target = modules_.target(spec.function);
  if (!target) return std::unexpected(std::move(target.error()));
  auto cost = check_launch(target->info, spec.grid, spec.block, spec.dynamic_shared_bytes,
                           target->required_block);
  if (!cost) return std::unexpected(std::move(cost.error()));
  if (target->info.has_clusters || spec.cluster.count() > 1) {
    return fail(
        ErrorCode::kNotSupported,
        fmt::format("{}: the simulated device has no thread block clusters", target->info.name));
  }
  auto parameters = packed_parameters(target->info, spec.parameters);
  if (!parameters) return std::unexpected(std::move(parameters.error()));
  auto view = memory_->view(spec.arena);
  if (!view) return std::unexpected(std::move(view.error()));
  view->globals = target->globals;
  if (spec.variables_of != device::Function{}) {
    const auto kernel = modules_.target(spec.variables_of);
    if (!kernel) return std::unexpected(kernel.error());
    // Constants, too, have addresses, behind the others.
    const device::Address end = kernel->constants.base + kernel->constants.bytes;
    view->globals = {kernel->globals.base, end - kernel->globals.base};
  }
  view->constants = target->constants;
  view->others = {spec.control, spec.fence_table, spec.fence_record, target->globals};

  auto run = std::make_shared<KernelRun>();
  run->cost = *cost;
  KernelLaunch& launch = run->launch;
  launch.program = std::move(target->program);
  launch.grid = spec.grid;
  launch.block = spec.block;
  launch.dynamic_shared_bytes = spec.dynamic_shared_bytes;
  launch.parameters = std::move(*parameters);
  launch.host = spec.host;
  view->host = launch.host.get();
  if (spec.cooperative) {
    run->cooperative = true;
    launch.workspace = std::make_unique<GridWorkspace>();
    view->others[0] = {reinterpret_cast<Address>(launch.workspace.get()), sizeof(GridWorkspace)};
  }
  launch.memory = *view;
  launch.objects = &arrays_.objects();
  launch.print = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); };
  launch.grid_id = next_grid_id_.fetch_add(1, std::memory_order_relaxed);
  launch.sm_count = settings_.sms;
  launch.leftovers = settings_.leftovers;
  return streams_.launch(stream, std::move(run));
}

Result<void> SimDevice::copy(const Place& to, const Place& from, const Box& box,
                             device::Stream stream) {
  auto job = arrays_.copy(to, from, box);
  if (!job) return std::unexpected(std::move(job.error()));
  return streams_.enqueue(stream, std::move(*job));
}

Result<void> SimDevice::fill(Address to, std::uint64_t to_pitch, FillValue value, const Box& box,
                             device::Stream stream) {
  const Rows target{to, to_pitch};
  const auto checked = check_device_rows(*memory_, target, box, ErrorCode::kInvalidValue);
  if (!checked) return checked;
  return streams_.enqueue(stream, [this, target, value, box]() -> Result<void> {
    auto again = check_device_rows(*memory_, target, box, ErrorCode::kIllegalAddress);
    if (again) fill_rows(target, value, box);
    return again;
  });
}

}  // namespace slate::sim
