#include "tests/unit/forms/form_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "injector/fence/check_text.h"
#include "injector/link/builtins.h"
#include "injector/link/heap.h"

namespace slate::test {
namespace {

constexpr std::uint64_t kBufferAlignment = 512;  // as textures want it
constexpr std::uint64_t kCounterRange = 2 << 20;
constexpr std::uint64_t kHeapBytes = 48 << 20;
constexpr std::uint32_t kModuleNumber = 7;  // in the fence's record
constexpr int kMostActions = 300;           // that disturb one launch

template <typename T>
T require(Result<T> result, const char* what) {
  if (!result) {
    ADD_FAILURE() << what << ": " << error_name(result.error().code) << ": "
                  << result.error().message;
    std::abort();  // nothing below works without it
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  std::ostringstream contents;
  contents << in.rdbuf();
  return contents.str();
}

std::string difference(const Outcome& got, const Outcome& wanted) {
  std::string text;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    std::size_t first = 0;
    std::size_t count = 0;
    for (std::size_t at = 0; at < wanted[i].size(); ++at) {
      if (got[i][at] == wanted[i][at]) continue;
      if (count++ == 0) first = at;
    }
    if (count == 0) continue;
    text += "buffer " + std::to_string(i) + ": " + std::to_string(count) + " of " +
            std::to_string(wanted[i].size()) + " bytes, the first at " + std::to_string(first) +
            "; ";
  }
  return text;
}

Argument as_texture(Argument buffer) {
  TextureSpec spec;
  spec.resource.kind = ResourceKind::kLinear;
  spec.resource.bytes = buffer.bytes.size();
  spec.resource.format = {ChannelKind::kUnsigned, 32, 1, 0};
  buffer.texture = spec;
  return buffer;
}

Argument as_image(Argument buffer, std::uint64_t width) {
  TextureSpec spec;
  spec.resource.kind = ResourceKind::kPitch2D;
  spec.resource.format = {ChannelKind::kUnsigned, 8, 4, 0};
  spec.resource.width = width;
  spec.resource.pitch = width * spec.resource.format.bytes();
  spec.resource.height = buffer.bytes.size() / spec.resource.pitch;
  spec.sampler.address_mode.fill(AddressMode::kClamp);
  spec.sampler.reads_normalized_float = 1;
  buffer.texture = spec;
  return buffer;
}

FormRunner::FormRunner(device::Device& device, const std::string& ptx, std::uint32_t most_registers,
                       bool fenced, const KernelCase* first)
    : device_(device) {
  const auto linked = ptx::with_builtins(ptx);
  const bool allocates = linked && linked->allocates;
  parsed_ = require(ptx::parse(linked && (allocates || fenced) ? linked->text : ptx), "parse");
  injector::InjectOptions options{.profile = true, .most_registers = {}};
  for (const ptx::Function& function : parsed_->functions) {
    if (most_registers != 0) {
      options.most_registers[std::string(function.name)] = {.most = most_registers};
    }
  }
  injected_ = require(injector::inject(*parsed_, options), "inject");
  if (fenced) fence(nullptr);
  const std::string& text = fenced_ ? fenced_->ptx : injected_.ptx;
  module_ =
      require(device_.load_module(device::ImageKind::kPtx, std::as_bytes(std::span(text))), "load");
  stream_ = require(device_.create_stream(0), "stream");
  control_ = require(device_.create_stream(-1), "stream");
  second_ = require(device_.create_stream(0), "stream");
  memory_ = require(daemon::ControlMemory::create(device_), "control memory");
  arena_.bytes = round_up((64 << 20) + kTailBytes, device_.granularity());
  arena_.base = require(device_.reserve(arena_.bytes), "reserve");
  require(device_.map(arena_), "map");
  if (fenced_ && first != nullptr) fence_for(*first);
  if (allocates) make_heap();
  if (fenced_) make_fence();
  for (const ptx::Variable& variable : parsed_->variables) {
    if (variable.space != ptx::Space::kGlobal || !variable.is_visible) continue;
    if (variable.name == ptx::kHeapVariable) continue;  // no result: another address every time
    const auto range = require(device_.find_global(module_, std::string(variable.name)), "global");
    auto& bytes = globals_[std::string(variable.name)];
    bytes.resize(range.bytes);
    require(device_.copy(Place::on_host(bytes.data()), Place::on_device(range.base),
                         {bytes.size(), 1}, stream_),
            "copy");
    wait_for(stream_);
  }
}

void FormRunner::fence(const injector::LaunchValues* launch) {
  auto forms = require(ptx::parse(injected_.ptx), "parse forms");
  for (const injector::KernelForms& kernel : injected_.kernels) {
    auto with_copy = require(injector::with_bounded_copy(*forms, kernel.name), "copy");
    forms = require(ptx::parse(std::move(with_copy)), "parse copy");
  }
  fenced_ = require(injector::fence(*forms, {.names = injector::OwnNames::kExpected,
                                             .reserved_shared = reserved_shared(device_.info()),
                                             .recursion = true,
                                             .launch = launch}),
                    "fence");
  bounds_.clear();
  std::erase_if(fenced_->entries, [&](const injector::FenceVerdict& entry) {
    const bool is_copy = entry.name.ends_with(injector::kBoundedSuffix);
    if (is_copy && entry.legal()) bounds_[entry.name] = entry.bounds;
    return is_copy;
  });
}

/// Once more, with what the launch has.
void FormRunner::fence_for(const KernelCase& first) {
  const Prepared prepared = prepare(first, first.entry);
  const injector::LaunchValues launch = values_of(prepared);
  fence(&launch);
  device_.unload_module(module_);
  module_ = require(
      device_.load_module(device::ImageKind::kPtx, std::as_bytes(std::span(fenced_->ptx))), "load");
}

injector::LaunchValues FormRunner::values_of(const Prepared& prepared) const {
  const device::LaunchSpec& spec = prepared.launch.spec;
  return {.parameters = prepared.parameters,
          .grid = {spec.grid.x, spec.grid.y, spec.grid.z},
          .block = {spec.block.x, spec.block.y, spec.block.z},
          .shared_bytes = spec.dynamic_shared_bytes,
          .low = main_extent().base,
          .bytes = main_extent().bytes};
}

/// The table lies at the end of what only the device lets kernels touch.
void FormRunner::make_fence() {
  const auto constants =
      require(device_.find_global(module_, std::string(injector::kFenceConstants)), "constants");
  injector::FenceConstants contents =
      injector::constants_of_extent(main_extent().base, main_extent().bytes);
  contents.table = fence_table();
  contents.record = fence_record();
  contents.module = kModuleNumber;
  const auto* bytes = reinterpret_cast<const std::byte*>(&contents);
  write(constants.base, {bytes, bytes + sizeof(contents)});
  write_table();
}

void FormRunner::write_table() {
  const auto table = std::make_unique<injector::FenceTable>();
  std::uint32_t count = 0;
  const auto add_variables = [&](ptx::Space space) {
    for (const ptx::Variable& variable : parsed_->variables) {
      if (variable.space != space) continue;
      const auto range = device_.find_global(module_, std::string(variable.name));
      if (range) table->ranges[count++] = {range->base, range->bytes};
    }
  };
  table->ranges[count++] = {main_extent().base, main_extent().bytes};
  add_variables(ptx::Space::kGlobal);
  add_variables(ptx::Space::kConst);
  table->range_count = count;
  for (const device::Texture texture : textures_)
    table->handle[table->handles++] = static_cast<std::uint64_t>(texture);
  table->ended = ended_;
  const auto* bytes = reinterpret_cast<const std::byte*>(table.get());
  write(fence_table(), {bytes, bytes + sizeof(injector::FenceTable)});
}

device::AddressRange FormRunner::beyond_extent() const {
  return {main_extent().base + main_extent().bytes,
          fence_record() - main_extent().base - main_extent().bytes};
}

injector::FenceRecord FormRunner::take_record() {
  const device::Address at = fence_record();
  const auto bytes = read({at, sizeof(injector::FenceRecord)});
  injector::FenceRecord record;
  std::memcpy(&record, bytes.data(), sizeof(record));
  write(at, std::vector<std::byte>(sizeof(record)));
  return record;
}

bool FormRunner::has_ended() {
  const auto bytes = read({fence_table() + offsetof(injector::FenceTable, ended), 4});
  return std::ranges::any_of(bytes, [](std::byte each) { return each != std::byte{0}; });
}

std::vector<std::byte> FormRunner::read(device::AddressRange range) {
  std::vector<std::byte> bytes(range.bytes);
  require(device_.copy(Place::on_host(bytes.data()), Place::on_device(range.base),
                       {bytes.size(), 1}, stream_),
          "copy");
  wait_for(stream_);
  return bytes;
}

void FormRunner::write(device::Address to, const std::vector<std::byte>& bytes) {
  require(
      device_.copy(Place::on_device(to), Place::on_host(bytes.data()), {bytes.size(), 1}, stream_),
      "copy");
  wait_for(stream_);
}

/// At the main extent's end.
void FormRunner::make_heap() {
  const ptx::HeapLayout layout = ptx::heap_layout(kHeapBytes);
  const device::Address at =
      arena_.base + arena_.bytes - kTailBytes - round_up(layout.bytes, kBufferAlignment);
  const ptx::HeapHeader header = layout.header_at(at);
  const std::uint32_t hint = layout.last_hint();
  const auto variable =
      require(device_.find_global(module_, std::string(ptx::kHeapVariable)), "global");
  require(device_.fill(at, 0, 0, {layout.book_bytes, 1}, stream_), "fill");
  const auto store = [&](device::Address to, const auto& value) {
    require(device_.copy(Place::on_device(to), Place::on_host(&value), {sizeof(value), 1}, stream_),
            "copy");
  };
  store(at, header);
  store(at + ptx::kHeapLastHint, hint);
  store(variable.base, at);
  wait_for(stream_);
}

FormRunner::~FormRunner() {
  for (const device::Stream stream : {stream_, control_, second_}) {
    wait_for(stream);
    device_.destroy_stream(stream);
  }
  destroy_textures();
  device_.unload_module(module_);
  EXPECT_TRUE(device_.unmap(arena_));
  device_.unreserve(arena_);
}

const injector::KernelForms& FormRunner::forms(const std::string& entry) const {
  const auto found = std::ranges::find(injected_.kernels, entry, &injector::KernelForms::name);
  EXPECT_NE(found, injected_.kernels.end()) << entry;
  return *found;
}

std::uint64_t FormRunner::make_texture(TextureSpec spec, device::Address address) {
  spec.resource.address = address;
  textures_.push_back(require(device_.create_texture(spec, arena_), "texture"));
  return static_cast<std::uint64_t>(textures_.back());
}

void FormRunner::destroy_textures() {
  for (const device::Texture texture : textures_) device_.destroy_texture(texture);
  textures_.clear();
}

FormRunner::Prepared FormRunner::prepare(const KernelCase& kernel, const std::string& entry) {
  destroy_textures();
  Prepared prepared;
  const auto function = require(device_.find_function(module_, entry), "find_function");
  prepared.info = require(device_.function_info(function), "function_info");
  const auto& parameters = prepared.info.parameters;
  std::uint64_t at = arena_.base;
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    const Argument& argument = kernel.arguments[i];
    prepared.parameters.resize(parameters[i].offset + parameters[i].size);
    std::byte* to = prepared.parameters.data() + parameters[i].offset;
    if (!argument.is_buffer) {
      EXPECT_EQ(argument.bytes.size(), parameters[i].size) << kernel.name;
      std::memcpy(to, argument.bytes.data(), argument.bytes.size());
      continue;
    }
    std::uint64_t passed = at;
    if (argument.same_as) {
      std::memcpy(to, prepared.parameters.data() + parameters[*argument.same_as].offset,
                  sizeof(at));
      continue;
    }
    if (argument.texture) {
      passed = make_texture(*argument.texture, at);
      prepared.textures[passed] = {at, argument.bytes.size()};
    }
    std::memcpy(to, &passed, sizeof(passed));
    prepared.buffers.push_back({at, argument.bytes.size()});
    require(device_.copy(Place::on_device(at), Place::on_host(argument.bytes.data()),
                         {argument.bytes.size(), 1}, stream_),
            "copy");
    at += round_up(argument.bytes.size(), kBufferAlignment) + kBufferAlignment;
  }
  EXPECT_LE(at, main_extent().base + main_extent().bytes);
  if (fenced_) write_table();
  reset_globals();
  set_constants(kernel);
  prepared.launch.spec.function = function;
  prepared.launch.spec.grid = kernel.grid;
  prepared.launch.spec.block = kernel.block;
  prepared.launch.spec.dynamic_shared_bytes = kernel.shared_bytes;
  prepared.launch.spec.arena = arena_;
  if (!parameters.empty()) prepared.launch.parameter_offset = parameters.back().offset;
  const auto threads = static_cast<std::uint32_t>(kernel.block.count());
  prepared.launch.workers_per_sm =
      require(device_.max_blocks_per_sm(function, threads, kernel.shared_bytes), "occupancy");
  return prepared;
}

void FormRunner::reset_globals() {
  for (const auto& [name, bytes] : globals_) {
    const auto range = require(device_.find_global(module_, name), "global");
    require(device_.copy(Place::on_device(range.base), Place::on_host(bytes.data()),
                         {bytes.size(), 1}, stream_),
            "copy");
  }
  wait_for(stream_);
}

void FormRunner::set_constants(const KernelCase& kernel) {
  for (const auto& [name, bytes] : kernel.constants) {
    const auto variable = std::ranges::find_if(parsed_->variables, [&](const auto& candidate) {
      return candidate.space == ptx::Space::kConst && candidate.name.contains(name);
    });
    ASSERT_NE(variable, parsed_->variables.end()) << name;
    const auto range = require(device_.find_global(module_, std::string(variable->name)), "global");
    ASSERT_EQ(range.bytes, bytes.size()) << name;
    require(device_.copy(Place::on_device(range.base), Place::on_host(bytes.data()),
                         {bytes.size(), 1}, stream_),
            "copy");
  }
  wait_for(stream_);
}

Outcome FormRunner::collect(const Prepared& prepared) {
  Outcome outcome;
  std::vector<device::AddressRange> ranges = prepared.buffers;
  for (const auto& [name, bytes] : globals_) {
    ranges.push_back(require(device_.find_global(module_, name), "global"));
  }
  for (const device::AddressRange& range : ranges) {
    outcome.emplace_back(range.bytes);
    require(device_.copy(Place::on_host(outcome.back().data()), Place::on_device(range.base),
                         {range.bytes, 1}, stream_),
            "copy");
  }
  wait_for(stream_);
  return outcome;
}

bool FormRunner::stream_is_idle(device::Stream stream) {
  const auto event = require(device_.create_event(false), "event");
  require(device_.record(event, stream), "record");
  const bool reached = require(device_.query(event), "query");
  device_.destroy_event(event);
  return reached;
}

void FormRunner::wait_for(device::Stream stream) {
  const auto event = require(device_.create_event(false), "event");
  require(device_.record(event, stream), "record");
  while (!require(device_.query(event), "kernel")) {
    device_.wait_for_progress(std::chrono::milliseconds(10));
  }
  device_.destroy_event(event);
}

std::uint64_t FormRunner::read_word(device::Address address) {
  std::uint64_t word = 0;
  require(
      device_.copy(Place::on_host(&word), Place::on_device(address), {sizeof(word), 1}, control_),
      "copy");
  wait_for(control_);
  return word;
}

Outcome FormRunner::run_native(const KernelCase& kernel) {
  Prepared prepared = prepare(kernel, kernel.entry);
  prepared.launch.spec.parameters = prepared.parameters;
  require(device_.launch(prepared.launch.spec, stream_), "launch");
  wait_for(stream_);
  return collect(prepared);
}

/// Nothing where the launch does not keep to the bounds of the kernel's bounded copy, or there is
/// none.
std::optional<FormRunner::Prepared> FormRunner::prepare_bounded(const KernelCase& kernel) {
  const std::string copy = kernel.entry + injector::kBoundedSuffix;
  const auto bounds = bounds_.find(copy);
  if (bounds == bounds_.end()) return std::nullopt;
  Prepared prepared = prepare(kernel, copy);
  if (!injector::hold(bounds->second, values_of(prepared))) return std::nullopt;
  pass_limits(prepared, bounds->second, main_extent());
  return prepared;
}

/// The limits as they are where the main extent is `extent`.
void FormRunner::pass_limits(Prepared& prepared, const injector::AccessBounds& bounds,
                             device::AddressRange extent) const {
  injector::LaunchValues launch = values_of(prepared);
  launch.low = extent.base;
  launch.bytes = extent.bytes;
  std::vector<std::byte> buffer;
  if (!injector::passed_parameters(bounds.passed, launch, buffer).empty() && !buffer.empty())
    prepared.parameters = std::move(buffer);
}

std::optional<Outcome> FormRunner::run_bounded(const KernelCase& kernel) {
  auto prepared = prepare_bounded(kernel);
  if (!prepared) return std::nullopt;
  prepared->launch.spec.parameters = prepared->parameters;
  require(device_.launch(prepared->launch.spec, stream_), "launch");
  wait_for(stream_);
  return collect(*prepared);
}

device::AddressRange FormRunner::tight(const injector::AccessBounds& bounds,
                                       injector::LaunchValues launch) {
  const auto keeps_to = [&](std::uint64_t low, std::uint64_t end) {
    launch.low = low;
    launch.bytes = end - low;
    return injector::hold(bounds, launch);
  };
  std::uint64_t low = launch.low, end = low + launch.bytes;
  for (std::uint64_t step = std::bit_floor(launch.bytes); step > 0; step /= 2) {
    if (step <= end - low && keeps_to(low + step, end)) low += step;
    if (step <= end - low && keeps_to(low, end - step)) end -= step;
  }
  return {low, end - low};
}

bool FormRunner::run_bounded_tightly(const KernelCase& kernel) {
  auto prepared = prepare_bounded(kernel);
  // Textures belong to the whole arena.
  if (!prepared || !textures_.empty()) return false;
  device::LaunchSpec& spec = prepared->launch.spec;
  const injector::AccessBounds& bounds = bounds_.at(kernel.entry + injector::kBoundedSuffix);
  tight_ = tight(bounds, values_of(*prepared));
  make_fence();
  pass_limits(*prepared, bounds, *tight_);
  spec.parameters = prepared->parameters;
  spec.arena = {};
  spec.control = *tight_;  // which need not be whole chunks, as an arena does
  spec.fence_table = {fence_table(), sizeof(injector::FenceTable)};
  spec.fence_record = {fence_record(), sizeof(injector::FenceRecord)};
  require(device_.launch(spec, stream_), "launch");
  wait_for(stream_);
  tight_.reset();
  make_fence();
  (void)take_record();
  return true;
}

bool FormRunner::run_bounded_without_memory(const KernelCase& kernel) {
  auto prepared = prepare_bounded(kernel);
  if (!prepared) return false;
  prepared->launch.spec.parameters = prepared->parameters;
  tight_ = {main_extent().base, 0};
  make_fence();
  require(device_.launch(prepared->launch.spec, stream_), "launch");
  wait_for(stream_);
  tight_.reset();
  make_fence();
  return true;
}

void FormRunner::launch_slices(const Prepared& prepared, std::mt19937_64& random,
                               const std::function<bool()>& chosen) {
  const std::uint64_t blocks = prepared.launch.spec.grid.count();
  const std::uint64_t most = std::max<std::uint64_t>(1, blocks / 4);
  for (std::uint64_t first = 0; first < blocks;) {
    const std::uint64_t count = std::min(blocks - first, 1 + random() % most);
    if (chosen())
      require(daemon::launch_slice(device_, prepared.launch, first, count, stream_), "slice");
    first += count;
  }
}

Outcome FormRunner::run_slices(const KernelCase& kernel, std::mt19937_64& random) {
  Prepared prepared = prepare(kernel, forms(kernel.entry).slice);
  prepared.launch.spec.parameters = prepared.parameters;
  launch_slices(prepared, random, [] { return true; });
  wait_for(stream_);
  return collect(prepared);
}

/// Requires: `prepared` outlives it.
injector::MemoryMap FormRunner::memory_of(const Prepared& prepared) {
  const auto allocation_at =
      [&prepared](std::uint64_t address) -> std::optional<injector::AllocationId> {
    for (const device::AddressRange& range : prepared.buffers) {
      if (address >= range.base && address < range.base + range.bytes) return range.base;
    }
    return std::nullopt;
  };
  const auto image_at = [&prepared](std::uint64_t handle) -> std::optional<injector::AllocationId> {
    const auto found = prepared.textures.find(handle);
    if (found == prepared.textures.end()) return std::nullopt;
    return found->second.base;
  };
  return {allocation_at, image_at};
}

injector::Restart FormRunner::may_restart(const KernelCase& kernel) {
  const Prepared prepared = prepare(kernel, kernel.entry);
  return injector::may_restart(forms(kernel.entry).analysis.reach, prepared.parameters,
                               memory_of(prepared));
}

std::optional<std::vector<injector::LaunchReach::Place>> FormRunner::reach(
    const KernelCase& kernel) {
  const Prepared prepared = prepare(kernel, kernel.entry);
  const injector::LaunchReach reach = injector::reach_of_launch(
      forms(kernel.entry).analysis.reach, prepared.parameters, memory_of(prepared));
  if (reach.everything) return std::nullopt;
  std::vector<injector::LaunchReach::Place> places;
  for (const device::AddressRange& range : prepared.buffers) {
    const auto found =
        std::ranges::find(reach.allocations, range.base, &injector::LaunchReach::Place::allocation);
    places.push_back(found == reach.allocations.end() ? injector::LaunchReach::Place{} : *found);
  }
  return places;
}

Outcome FormRunner::run_after_some_blocks(const KernelCase& kernel, std::mt19937_64& random) {
  Prepared prepared = prepare(kernel, forms(kernel.entry).slice);
  prepared.launch.spec.parameters = prepared.parameters;
  launch_slices(prepared, random, [&] { return random() % 3 != 0; });
  prepared.launch.spec.function =
      require(device_.find_function(module_, kernel.entry), "find_function");
  require(device_.launch(prepared.launch.spec, stream_), "launch");
  wait_for(stream_);
  return collect(prepared);
}

Outcome FormRunner::run_after_some_writes(const KernelCase& kernel, const Outcome& native,
                                          std::mt19937_64& random) {
  KernelCase disturbed = kernel;
  std::size_t buffer = 0;
  for (Argument& argument : disturbed.arguments) {
    if (!argument.is_buffer || argument.same_as) continue;
    const std::vector<std::byte>& after = native[buffer++];
    for (std::size_t i = 0; i < after.size(); ++i) {
      const bool is_written = argument.bytes[i] != after[i];
      if (is_written && random() % 2 == 0) argument.bytes[i] = static_cast<std::byte>(random());
    }
  }
  return run_native(disturbed);
}

Outcome FormRunner::run_profile(const KernelCase& kernel, std::optional<injector::Work>* work,
                                std::uint32_t sample) {
  const injector::KernelForms& form = forms(kernel.entry);
  Prepared prepared = prepare(kernel, form.profile);
  const std::uint64_t bytes = injector::counter_bytes(form.work);
  const device::AddressRange counters{require(device_.reserve(kCounterRange), "reserve"),
                                      kCounterRange};
  require(device_.map(counters), "map");
  require(device_.fill(counters.base, bytes, 0, {bytes, 1}, stream_), "fill");
  const injector::ProfileParameters ours{.counters = counters.base, .sample = sample};
  const std::uint32_t offset = prepared.launch.parameter_offset;
  prepared.parameters.resize(offset + sizeof(ours));
  std::memcpy(prepared.parameters.data() + offset, &ours, sizeof(ours));
  prepared.launch.spec.parameters = prepared.parameters;
  prepared.launch.spec.control = counters;
  require(device_.launch(prepared.launch.spec, stream_), "launch");
  std::vector<std::uint64_t> counted(bytes / sizeof(std::uint64_t));
  require(device_.copy(Place::on_host(counted.data(), bytes),
                       Place::on_device(counters.base, bytes), {bytes, 1}, stream_),
          "copy");
  wait_for(stream_);
  require(device_.unmap(counters), "unmap");
  device_.unreserve(counters);
  if (work != nullptr) {
    const auto threads = static_cast<double>(kernel.grid.count() * kernel.block.count());
    *work = injector::launch_work(form.work, counted, threads);
  }
  return collect(prepared);
}

daemon::WorkerTable FormRunner::random_placement(std::mt19937_64& random) const {
  daemon::WorkerTable placement(memory_->sm_count(), 0);
  const std::uint64_t kind = random() % 4;
  for (std::uint32_t& allowed : placement) {
    if (kind == 0) allowed = 1;
    if (kind == 1) allowed = random() % 2 == 0 ? 0 : injector::kMostWorkers;
    if (kind >= 2) allowed = static_cast<std::uint32_t>(random() % 4);
  }
  placement[random() % placement.size()] = 1;  // somebody has to do it
  return placement;
}

/// Until the launch has ended: changes its placement, adds workers, calls all back and starts
/// again.
void FormRunner::disturb(daemon::WorkerQueue& queue, std::mt19937_64& random,
                         Disturbance disturbance) {
  const device::Address signal = queue.control().base + injector::ControlBlock::kSignalOffset;
  const daemon::WorkerTable everywhere(memory_->sm_count(), injector::kMostWorkers);
  const daemon::WorkerTable nowhere(memory_->sm_count(), 0);
  for (int actions = 0;; ++actions) {
    // Where blocks take long, workers called back all the time get nowhere.
    const bool calm = actions > kMostActions;
    if (stream_is_idle(stream_) && stream_is_idle(second_)) {
      if (read_word(signal) == queue.expected_signal(injector::kFinished)) return;
      ASSERT_EQ(read_word(signal), queue.expected_signal(injector::kRetreated));
      ++retreats_;
      const bool free = calm || random() % 2 == 0;
      require(queue.resize(free ? everywhere : random_placement(random), control_), "resize");
      wait_for(control_);
      require(queue.resume(), "resume");
    }
    if (calm) {
      device_.wait_for_progress(std::chrono::milliseconds(1));
      continue;
    }
    const std::uint64_t action = random() % 8;
    if (disturbance.retreats && action == 0) {
      require(queue.resize(nowhere, control_), "resize");
    } else if (disturbance.placements && action < 4) {
      require(queue.resize(random_placement(random), control_), "resize");
    } else if (disturbance.supplements && action < 6) {
      require(queue.supplement(1 + static_cast<std::uint32_t>(random() % 16), second_),
              "supplement");
    }
    if (disturbance.placements) wait_for(control_);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
  }
}

void FormRunner::check_clean(const daemon::WorkerQueue& queue) {
  const auto control = queue.control();
  std::vector<std::uint32_t> words(control.bytes / 4);
  require(device_.copy(Place::on_host(words.data()), Place::on_device(control.base),
                       {control.bytes, 1}, stream_),
          "copy");
  wait_for(stream_);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t at = 4 * i;
    if (at / 8 == injector::ControlBlock::kSignalOffset / 8) continue;
    if (at == injector::ControlBlock::kStateOffset) continue;  // the generation
    if (at == injector::ControlBlock::kArrivedOffset) continue;
    EXPECT_EQ(words[i], 0u) << "control block, byte " << at;
  }
}

Outcome FormRunner::run_worker(const KernelCase& kernel, std::mt19937_64& random,
                               Disturbance disturbance, daemon::WorkerQueue* present) {
  const injector::KernelForms& kernel_forms = forms(kernel.entry);
  const bool compact = !kernel_forms.compact_worker.empty() && random() % 3 == 0;
  Prepared prepared = prepare(kernel, compact ? kernel_forms.compact_worker : kernel_forms.worker);
  prepared.launch.spec.parameters = prepared.parameters;
  prepared.launch.independent_blocks = kernel_forms.analysis.independent_blocks;
  prepared.launch.prefetch = random() % 4 != 0;
  if (random() % 4 != 0) {
    prepared.launch.task_sizes =
        daemon::TaskSizes{.size = 1 + static_cast<std::uint32_t>(random() % 20),
                          .quarter_blocks = static_cast<std::uint32_t>(random() % 3),
                          .single_blocks = static_cast<std::uint32_t>(random() % 3)};
  }
  daemon::WorkerQueue own(device_, *memory_);
  daemon::WorkerQueue& queue = present != nullptr ? *present : own;
  const daemon::WorkerTable placement = random_placement(random);
  const bool placed = disturbance.placements && random() % 2 == 0;
  require(queue.launch(prepared.launch, stream_, placed ? &placement : nullptr), "worker launch");
  const bool disturbed = disturbance.placements || disturbance.retreats || disturbance.supplements;
  if (disturbed) disturb(queue, random, disturbance);
  wait_for(stream_);
  wait_for(second_);
  if (!disturbed) check_clean(queue);
  return collect(prepared);
}

}  // namespace slate::test
