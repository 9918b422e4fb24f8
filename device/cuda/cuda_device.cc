#include "device/cuda/cuda_device.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/sizes.h"
#include "device/cuda/cuda_device_impl.h"
#include "device/cuda/driver_cache.h"
#include "device/cuda/image.h"
#include "device/cuda/modules.h"

namespace slate::cuda {
namespace {

using std::chrono::microseconds;

// wait_for_progress() only yields while something moved so recently: about as long as a short
// kernel or copy takes. Then it sleeps, for a small part of what has gone by: who waits for a long
// kernel learns of its end late by that part at most, and burns no core.
constexpr std::chrono::nanoseconds kYields = microseconds(200);
constexpr int kSleepPart = 64;
constexpr microseconds kShortestSleep{5};

/// Linux rounds sleeps up by 50 microseconds unless a thread asks it not to.
void ask_for_short_sleeps() {
  thread_local const int asked = ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
  std::ignore = asked;
}

/// The driver, ready for calls.
Result<Driver> start(const device::OpenSettings& settings) {
  Result<Driver> driver = load_driver();
  if (!driver) return driver;
  // It reads its environment when it starts.
  set_driver_cache(settings.driver_cache, settings.driver_cache_bytes);
  if (const auto started = start_driver(*driver); !started) {
    return std::unexpected(started.error());
  }
  return driver;
}

}  // namespace

Result<std::unique_ptr<device::Device>> open_cuda_device(int ordinal,
                                                         const device::OpenSettings& settings) {
  const Result<Driver> driver = start(settings);
  if (!driver) return std::unexpected(driver.error());
  return CudaDevice::open(*driver, ordinal, settings);
}

bool driver_finds_a_gpu(const device::OpenSettings& settings) {
  const Result<Driver> driver = start(settings);
  int count = 0;
  return driver && driver->cuDeviceGetCount(&count) == CUDA_SUCCESS && count > 0;
}

Result<std::unique_ptr<device::Device>> CudaDevice::open(const Driver& driver, int ordinal,
                                                         const device::OpenSettings& settings) {
  auto context = Context::open(driver, ordinal, settings.measures_own);
  if (!context) return std::unexpected(context.error());
  auto space = AddressSpace::open(**context);
  if (!space) return std::unexpected(space.error());
  return std::unique_ptr<device::Device>(
      new CudaDevice(std::move(*context), std::move(*space), settings.assembler));
}

CudaDevice::CudaDevice(std::unique_ptr<Context> context, std::unique_ptr<AddressSpace> space,
                       const std::string& assembler)
    : context_(std::move(context)),
      space_(std::move(space)),
      arrays_(*context_, *space_),
      partitions_(*context_),
      watched_(*context_),
      graphs_(*context_),
      assembler_({.path = assembler,
                  .major = context_->attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                  .minor = context_->attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
                  .driver_version = context_->info().driver_version}) {
  graphs_.fill();
}

Result<std::uint64_t> CudaDevice::free_memory() {
  std::size_t available = 0;
  std::size_t total = 0;
  if (auto got = context_->call(driver().cuMemGetInfo, &available, &total); !got) {
    return std::unexpected(got.error());
  }
  return available;
}

Result<void> CudaDevice::map(device::AddressRange range) {
  const Stall stall(*this);
  return space_->map(range);
}

Result<void> CudaDevice::register_host(void* memory, std::size_t bytes) {
  return context_->call(driver().cuMemHostRegister, memory, bytes, CU_MEMHOSTREGISTER_PORTABLE);
}

void CudaDevice::unregister_host(void* memory) {
  const Stall stall(*this);
  std::ignore = context_->call(driver().cuMemHostUnregister, memory);
}

// Where neither the driver nor programs put anything by themselves.
device::Device::Window CudaDevice::window_of(std::uint64_t session, std::uint64_t most) const {
  constexpr device::Address kReservations = 0x2000'0000'0000, kHost = 0x5000'0000'0000;
  constexpr std::uint64_t kAll = 0x1800'0000'0000;  // bytes from kReservations on
  constexpr std::uint64_t kUsual = std::uint64_t{512} << 30;
  constexpr std::uint64_t kHostSlots = 2048;
  const std::uint64_t bytes = std::min(kAll, std::max(round_up(most, granularity()), kUsual));
  return {.reservation = {kReservations + session % (kAll / bytes) * bytes, bytes},
          .host = kHost + session % kHostSlots * kHostWindowBytes};
}

// The device's address of registered memory is the host's where the GPU can do that; so the driver
// is asked. The mapping is wished where neither programs nor libraries are put, so that a client
// can map it at the same address.
Result<device::Address> CudaDevice::map_host(int fd, std::uint64_t bytes, device::Address least) {
  constexpr std::uint64_t kWindow = 0x4000'0000'0000;
  constexpr std::uint64_t kWindowBytes = 0x1000'0000'0000;
  constexpr std::uint64_t kApart = 2 << 20;
  const std::uint64_t taken = (bytes + kApart - 1) / kApart * kApart;
  std::uint64_t wished = kWindow + host_window_used_.fetch_add(taken) % kWindowBytes;
  if (wished < least) {
    // What lies below is not tried again: the next ones come behind it.
    host_window_used_.store((least - kWindow + kApart - 1) / kApart * kApart + taken);
    wished = kWindow + host_window_used_.load() - taken;
  }
  const auto map_at = [&](std::uint64_t address, int flags) {
    return ::mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE,
                  MAP_SHARED | flags, fd, 0);
  };
  void* memory = least != 0 ? map_at(least, MAP_FIXED_NOREPLACE) : MAP_FAILED;
  if (memory == MAP_FAILED) memory = map_at(wished, 0);
  if (memory == MAP_FAILED) return fail_errno("map_host");
  constexpr unsigned int kFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
  if (auto done = context_->call(driver().cuMemHostRegister, memory, bytes, kFlags); !done) {
    ::munmap(memory, bytes);
    return std::unexpected(done.error());
  }
  const auto address = reinterpret_cast<device::Address>(memory);
  CUdeviceptr on_device = 0;
  auto told = context_->call(driver().cuMemHostGetDevicePointer, &on_device, memory, 0U);
  if (told && on_device != address) {
    told = fail(ErrorCode::kNotSupported, "the GPU has other addresses for host memory");
  }
  if (!told) {
    unmap_host({address, bytes});
    return std::unexpected(told.error());
  }
  return address;
}

void CudaDevice::unmap_host(device::AddressRange range) {
  before_unmap(range);
  void* const memory = reinterpret_cast<void*>(range.base);
  unregister_host(memory);
  ::munmap(memory, range.bytes);
}

Result<device::Module> CudaDevice::load_module(device::ImageKind kind,
                                               std::span<const std::byte> image) {
  const Stall stall(*this);
  auto module = cuda::load_module(*context_, kind, image);
  if (!module) return std::unexpected(module.error());
  // In a graph, a kernel does not wait for what the one before it has launched behind itself.
  if (has_device_launches(image)) graphs_.leave_out(*module);
  return to_handle<device::Module>(*module);
}

Result<std::vector<std::byte>> CudaDevice::compile(std::string_view ptx,
                                                   std::chrono::milliseconds most_cpu) {
  const Result<std::string> text =
      checked_image(device::ImageKind::kPtx, std::as_bytes(std::span(ptx)));
  if (!text) return std::unexpected(text.error());
  return assembler_.compile(*text, most_cpu);
}

void CudaDevice::unload_module(device::Module module) {
  const Stall stall(*this);
  graphs_.forget(raw(module));
  std::ignore = context_->call(driver().cuModuleUnload, raw(module));
}

Result<device::Function> CudaDevice::find_function(device::Module module, const std::string& name) {
  const Stall stall(*this);
  auto function = cuda::find_function(*context_, raw(module), name);
  if (!function) return std::unexpected(function.error());
  return to_handle<device::Function>(*function);
}

Result<device::FunctionInfo> CudaDevice::function_info(device::Function function) {
  return cuda::function_info(*context_, raw(function));
}

Result<std::uint32_t> CudaDevice::max_blocks_per_sm(device::Function function,
                                                    std::uint32_t threads_per_block,
                                                    std::uint32_t dynamic_shared_bytes) {
  return cuda::max_blocks_per_sm(*context_, raw(function), threads_per_block, dynamic_shared_bytes);
}

Result<void> CudaDevice::set_attribute(device::Function function, FunctionAttribute attribute,
                                       std::int32_t value) {
  return cuda::set_attribute(*context_, raw(function), attribute, value);
}

Result<device::AddressRange> CudaDevice::find_global(device::Module module,
                                                     const std::string& name) {
  return cuda::find_global(*context_, raw(module), name);
}

Result<void> CudaDevice::raise_limit(device::Limit limit, std::uint64_t value) {
  if (!driver().cuCtxGetLimit || !driver().cuCtxSetLimit) {
    return fail(ErrorCode::kNotSupported, "the driver lacks cuCtxSetLimit");
  }
  static constexpr CUlimit kTheirs[] = {CU_LIMIT_MALLOC_HEAP_SIZE,
                                        CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT};
  const CUlimit its = kTheirs[static_cast<std::size_t>(limit)];
  const MutexLock lock(limits_mutex_);
  std::size_t present = 0;
  if (auto told = context_->call(driver().cuCtxGetLimit, &present, its); !told) return told;
  if (value <= present) return {};
  const Stall stall(*this);
  return graphs_.without_graphs([&] { return context_->call(driver().cuCtxSetLimit, its, value); });
}

Result<void> CudaDevice::set_local_memory(std::uint64_t bytes) {
  if (!driver().cuCtxSetLimit)
    return fail(ErrorCode::kNotSupported, "the driver lacks cuCtxSetLimit");
  const MutexLock lock(limits_mutex_);
  const Stall stall(*this);
  return graphs_.without_graphs(
      [&] { return context_->call(driver().cuCtxSetLimit, CU_LIMIT_STACK_SIZE, bytes); });
}

Result<std::vector<std::vector<std::uint32_t>>> CudaDevice::partition_units() {
  return partitions_.units();
}

Result<device::Partition> CudaDevice::create_partition(std::uint32_t first_unit,
                                                       std::uint32_t unit_count) {
  const Stall stall(*this);
  auto green = partitions_.create(first_unit, unit_count);
  if (!green) return std::unexpected(green.error());
  return to_handle<device::Partition>(*green);
}

void CudaDevice::destroy_partition(device::Partition partition) {
  const Stall stall(*this);
  partitions_.destroy(raw(partition));
}

std::pair<int, int> CudaDevice::stream_priorities() const {
  return {context_->lowest_priority(), context_->highest_priority()};
}

Result<device::Stream> CudaDevice::create_stream(int priority, device::Partition partition) {
  if (partition != device::kWholeDevice) {
    auto made = partitions_.create_stream(raw(partition), priority);
    if (!made) return std::unexpected(made.error());
    return keep(*made, context_->clamp_priority(priority), nullptr);
  }
  CUstream stream = nullptr;
  const int clamped = context_->clamp_priority(priority);
  if (auto made = context_->call(driver().cuStreamCreateWithPriority, &stream,
                                 CU_STREAM_NON_BLOCKING, clamped);
      !made) {
    return std::unexpected(made.error());
  }
  auto graphs =
      graphs_.usable() ? std::make_unique<StreamGraphs>(graphs_, stream, clamped) : nullptr;
  return keep(stream, clamped, std::move(graphs));
}

device::Stream CudaDevice::keep(CUstream stream, int priority,
                                std::unique_ptr<StreamGraphs> graphs) {
  auto its = std::make_unique<CudaStream>(stream, priority, std::move(graphs));
  const auto handle = to_handle<device::Stream>(its.get());
  const MutexLock lock(streams_mutex_);
  streams_.emplace(handle, std::move(its));
  return handle;
}

void CudaDevice::destroy_stream(device::Stream stream) {
  std::unique_ptr<CudaStream> its;
  {
    const MutexLock lock(streams_mutex_);
    its = std::move(streams_.at(stream));
    streams_.erase(stream);
  }
  std::ignore = context_->call(driver().cuStreamDestroy, its->stream);
}

Result<void> CudaDevice::cancel(device::Stream) {
  return fail(ErrorCode::kNotSupported, "CUDA cannot take back work once it has been submitted");
}

Result<device::Event> CudaDevice::create_event(bool timing) {
  CUevent event = nullptr;
  const unsigned int flags = timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  if (auto made = context_->call(driver().cuEventCreate, &event, flags); !made) {
    return std::unexpected(made.error());
  }
  return to_handle<device::Event>(event);
}

Result<device::Event> CudaDevice::create_watched_event() {
  auto made = watched_.create();
  if (!made && made.error().code == ErrorCode::kNotSupported) return create_event(false);
  return made;
}

void CudaDevice::destroy_event(device::Event event) {
  if (WatchedEvents::is_one(event)) return watched_.destroy(event);
  std::ignore = context_->call(driver().cuEventDestroy, raw(event));
}

Result<void> CudaDevice::record(device::Event event, device::Stream stream) {
  moved();  // new work: it may well be short
  if (WatchedEvents::is_one(event)) return watched_.record(event, raw(stream));
  const CUresult result = context_->attempt(driver().cuEventRecord, raw(event), raw(stream));
  if (result == CUDA_SUCCESS) [[likely]]
    return {};
  return record_on_partition(event, stream, result);
}

// A driver that will not record the primary context's events on a partition's stream may do so on
// the partition as a whole: such an event is reached later, when what other streams of the
// partition had in hand is done too, but never too early.
Result<void> CudaDevice::record_on_partition(device::Event event, device::Stream stream,
                                             CUresult refusal) {
  const Driver& driver = this->driver();
  CUgreenCtx green = nullptr;
  const bool of_other_context =
      refusal == CUDA_ERROR_INVALID_HANDLE || refusal == CUDA_ERROR_INVALID_CONTEXT;
  if (of_other_context && driver.cuGreenCtxRecordEvent && driver.cuStreamGetGreenCtx &&
      context_->attempt(driver.cuStreamGetGreenCtx, raw(stream), &green) == CUDA_SUCCESS &&
      green != nullptr) {
    return context_->call(driver.cuGreenCtxRecordEvent, green, raw(event));
  }
  return std::unexpected<Error>(context_->failure(refusal, driver.cuEventRecord.name));
}

Result<void> CudaDevice::wait(device::Stream stream, device::Event event) {
  return context_->call(driver().cuStreamWaitEvent, raw(stream), raw(event), CU_EVENT_WAIT_DEFAULT);
}

Result<bool> CudaDevice::query(device::Event event) {
  if (WatchedEvents::is_one(event)) {
    auto reached = watched_.query(event);
    if (!reached || *reached) moved();
    return reached;
  }
  const CUresult result = context_->attempt(driver().cuEventQuery, raw(event));
  if (result == CUDA_ERROR_NOT_READY) return false;
  moved();
  if (result == CUDA_SUCCESS) return true;
  return std::unexpected<Error>(context_->failure(result, driver().cuEventQuery.name));
}

Result<float> CudaDevice::elapsed_ms(device::Event start, device::Event stop) {
  float milliseconds = 0;
  if (auto got = context_->call(driver().cuEventElapsedTime, &milliseconds, raw(start), raw(stop));
      !got) {
    return std::unexpected(got.error());
  }
  return milliseconds;
}

// The driver offers no "any of these events", and its blocking waits cost an interrupt a kernel.
void CudaDevice::wait_for_progress(std::chrono::microseconds timeout) {
  if (timeout <= microseconds::zero()) return;
  const std::chrono::nanoseconds still(now_ns() - moved_ns_.load(std::memory_order_relaxed));
  if (still < kYields) {
    std::this_thread::yield();
    return;
  }
  ask_for_short_sleeps();
  std::this_thread::sleep_for(std::clamp<std::chrono::nanoseconds>(
      still / kSleepPart, kShortestSleep, std::max(timeout, kShortestSleep)));
}

}  // namespace slate::cuda
