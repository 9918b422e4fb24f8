#include "device/cuda/cuda_device.h"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "device/cuda/cuda_device_impl.h"
#include "device/cuda/modules.h"

namespace slate::cuda {
namespace {

using std::chrono::microseconds;

// Rounds of wait_for_progress() that only yield before the sleeps begin: with the caller's own
// queries about as long as a short kernel takes.
constexpr std::uint32_t kYieldRounds = 64;
constexpr microseconds kFirstSleep{5};
constexpr microseconds kLongestSleep{100};

/// 5, 10, 20 ... 100 microseconds.
microseconds sleep_of_round(std::uint32_t round) {
  const std::uint32_t doublings = std::min<std::uint32_t>(round - kYieldRounds, 8);
  return std::min(kFirstSleep * (1 << doublings), kLongestSleep);
}

/// Linux rounds sleeps up by 50 microseconds unless a thread asks it not to.
void ask_for_short_sleeps() {
  thread_local const int asked = ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
  std::ignore = asked;
}

}  // namespace

Result<std::unique_ptr<device::Device>> open_cuda_device(int ordinal) {
  const Result<Driver> driver = start_driver();
  if (!driver) return std::unexpected(driver.error());
  return CudaDevice::open(*driver, ordinal);
}

bool driver_finds_a_gpu() {
  const Result<Driver> driver = start_driver();
  int count = 0;
  return driver && driver->cuDeviceGetCount(&count) == CUDA_SUCCESS && count > 0;
}

Result<std::unique_ptr<device::Device>> CudaDevice::open(const Driver& driver, int ordinal) {
  auto context = Context::open(driver, ordinal);
  if (!context) return std::unexpected(context.error());
  auto space = AddressSpace::open(**context);
  if (!space) return std::unexpected(space.error());
  return std::unique_ptr<device::Device>(new CudaDevice(std::move(*context), std::move(*space)));
}

CudaDevice::CudaDevice(std::unique_ptr<Context> context, std::unique_ptr<AddressSpace> space)
    : context_(std::move(context)), space_(std::move(space)) {}

Result<std::uint64_t> CudaDevice::free_memory() {
  std::size_t available = 0;
  std::size_t total = 0;
  if (auto got = context_->call(driver().cuMemGetInfo, &available, &total); !got) {
    return std::unexpected(got.error());
  }
  return available;
}

Result<void> CudaDevice::register_host(void* memory, std::size_t bytes) {
  return context_->call(driver().cuMemHostRegister, memory, bytes, CU_MEMHOSTREGISTER_PORTABLE);
}

void CudaDevice::unregister_host(void* memory) {
  std::ignore = context_->call(driver().cuMemHostUnregister, memory);
}

Result<device::Module> CudaDevice::load_module(device::ImageKind kind,
                                               std::span<const std::byte> image) {
  auto module = cuda::load_module(*context_, kind, image);
  if (!module) return std::unexpected(module.error());
  return to_handle<device::Module>(*module);
}

void CudaDevice::unload_module(device::Module module) {
  std::ignore = context_->call(driver().cuModuleUnload, raw(module));
}

Result<device::Function> CudaDevice::find_function(device::Module module, const std::string& name) {
  auto function = cuda::find_function(*context_, raw(module), name);
  if (!function) return std::unexpected(function.error());
  return to_handle<device::Function>(*function);
}

Result<device::FunctionInfo> CudaDevice::function_info(device::Function function) {
  return cuda::function_info(*context_, raw(function));
}

Result<void> CudaDevice::set_max_dynamic_shared(device::Function function, std::uint32_t bytes) {
  return cuda::set_max_dynamic_shared(*context_, raw(function), bytes);
}

Result<device::AddressRange> CudaDevice::find_global(device::Module module,
                                                     const std::string& name) {
  return cuda::find_global(*context_, raw(module), name);
}

Result<device::Stream> CudaDevice::create_stream(int priority) {
  CUstream stream = nullptr;
  if (auto made = context_->call(driver().cuStreamCreateWithPriority, &stream,
                                 CU_STREAM_NON_BLOCKING, context_->clamp_priority(priority));
      !made) {
    return std::unexpected(made.error());
  }
  return to_handle<device::Stream>(stream);
}

void CudaDevice::destroy_stream(device::Stream stream) {
  std::ignore = context_->call(driver().cuStreamDestroy, raw(stream));
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

void CudaDevice::destroy_event(device::Event event) {
  std::ignore = context_->call(driver().cuEventDestroy, raw(event));
}

Result<void> CudaDevice::record(device::Event event, device::Stream stream) {
  idle_rounds_.store(0, std::memory_order_relaxed);  // new work: it may well be short
  return context_->call(driver().cuEventRecord, raw(event), raw(stream));
}

Result<void> CudaDevice::wait(device::Stream stream, device::Event event) {
  return context_->call(driver().cuStreamWaitEvent, raw(stream), raw(event), CU_EVENT_WAIT_DEFAULT);
}

Result<bool> CudaDevice::query(device::Event event) {
  const CUresult result = context_->attempt(driver().cuEventQuery, raw(event));
  if (result == CUDA_ERROR_NOT_READY) return false;
  idle_rounds_.store(0, std::memory_order_relaxed);
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
// So: yield while things move, which finds a short kernel's end at once, and sleep longer and
// longer while nothing does, so that a long kernel burns no core. record() and a finished query()
// start over.
void CudaDevice::wait_for_progress(std::chrono::microseconds timeout) {
  if (timeout <= microseconds::zero()) return;
  const std::uint32_t round = idle_rounds_.fetch_add(1, std::memory_order_relaxed);
  if (round < kYieldRounds) {
    std::this_thread::yield();
    return;
  }
  ask_for_short_sleeps();
  std::this_thread::sleep_for(std::min(timeout, sleep_of_round(round)));
}

}  // namespace slate::cuda
