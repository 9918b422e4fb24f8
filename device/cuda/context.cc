#include "device/cuda/context.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "device/cuda/used_memory.h"

namespace slate::cuda {
namespace {

std::atomic<std::uint64_t> last_generation = 0;

// Which Context this thread made current last. A comparison with it replaces a driver call on every
// request; a number, because a new Context may be given the address of a destroyed one.
thread_local std::uint64_t current_generation = 0;

}  // namespace

Result<std::unique_ptr<Context>> Context::open(const Driver& driver, int ordinal, bool measures) {
  int count = 0;
  if (const CUresult result = driver.cuDeviceGetCount(&count); result != CUDA_SUCCESS) {
    return std::unexpected<Error>(describe(driver, result, driver.cuDeviceGetCount.name));
  }
  if (ordinal < 0 || ordinal >= count) {
    return fail(count == 0 ? ErrorCode::kUnavailable : ErrorCode::kInvalidValue,
                "there is no GPU number " + std::to_string(ordinal) + ": the driver finds " +
                    std::to_string(count));
  }
  CUdevice device = 0;
  if (const CUresult result = driver.cuDeviceGet(&device, ordinal); result != CUDA_SUCCESS) {
    return std::unexpected<Error>(describe(driver, result, driver.cuDeviceGet.name));
  }
  std::unique_ptr<Context> context(new Context(driver, device));
  context->read_info();
  const auto retained = measures ? context->retain_measured() : context->retain();
  if (!retained) return std::unexpected(retained.error());
  return context;
}

Context::Context(const Driver& driver, CUdevice device)
    : driver_(driver), device_(device), generation_(++last_generation) {}

Context::~Context() {
  if (context_ == nullptr) return;
  if (current_generation == generation_) driver_.cuCtxSetCurrent(nullptr);
  driver_.cuDevicePrimaryCtxRelease(device_);
}

Result<void> Context::retain() {
  // The primary context, because green contexts are made from it. Waits are rare and may be long (a
  // map waits for its zeros), and the daemon has many threads: sleep in the driver, burn no core.
  const CUresult flags = driver_.cuDevicePrimaryCtxSetFlags(device_, CU_CTX_SCHED_BLOCKING_SYNC);
  if (flags != CUDA_SUCCESS && flags != CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE) {
    return std::unexpected<Error>(failure(flags, driver_.cuDevicePrimaryCtxSetFlags.name));
  }
  if (const CUresult result = driver_.cuDevicePrimaryCtxRetain(&context_, device_);
      result != CUDA_SUCCESS) {
    context_ = nullptr;
    return std::unexpected<Error>(failure(result, driver_.cuDevicePrimaryCtxRetain.name));
  }
  return call(driver_.cuCtxGetStreamPriorityRange, &lowest_priority_, &highest_priority_);
}

Result<void> Context::retain_measured() {
  const UsedMemory used(info_.uuid);
  const auto before = used.now();
  const auto retained = retain();
  const auto behind = used.now();
  if (before && behind && *behind > *before) own_bytes_ = *behind - *before;
  return retained;
}

CUresult Context::make_current() {
  if (current_generation == generation_) [[likely]]
    return CUDA_SUCCESS;
  const CUresult result = driver_.cuCtxSetCurrent(context_);
  if (result == CUDA_SUCCESS) current_generation = generation_;
  return result;
}

// What an older driver or GPU does not know stays zero, so the answers are not checked.
void Context::read_info() {
  driver_.cuDeviceGetName(info_.name, sizeof(info_.name), device_);
  CUuuid uuid{};
  driver_.cuDeviceGetUuid(&uuid, device_);
  static_assert(sizeof(uuid.bytes) == sizeof(info_.uuid));
  std::memcpy(info_.uuid, uuid.bytes, sizeof(info_.uuid));
  driver_.cuDeviceGetPCIBusId(info_.pci_bus_id, sizeof(info_.pci_bus_id), device_);
  std::size_t total = 0;
  driver_.cuDeviceTotalMem(&total, device_);
  info_.total_memory = total;
  int version = 0;
  driver_.cuDriverGetVersion(&version);
  info_.driver_version = version;
  for (int i = 1; i < kDeviceAttributeCount; ++i) {
    int value = 0;
    const auto attribute = static_cast<CUdevice_attribute>(i);
    if (driver_.cuDeviceGetAttribute(&value, attribute, device_) == CUDA_SUCCESS) {
      info_.attributes[i] = value;
    }
  }
  state_what_slate_gives(info_);
}

int Context::clamp_priority(int priority) const {
  return std::clamp(priority, highest_priority_, lowest_priority_);
}

Error Context::failure(CUresult result, const char* call) {
  Error error = describe(driver_, result, call);
  // It may mean anything; when nothing else works either, it was the context's end.
  if (result == CUDA_ERROR_UNKNOWN) {
    std::size_t free = 0, total = 0;
    if (attempt(driver_.cuMemGetInfo, &free, &total) != CUDA_SUCCESS) {
      error.code = ErrorCode::kLaunchFailed;
    }
  }
  if (is_sticky(error.code)) lost_.store(true, std::memory_order_release);
  return error;
}

}  // namespace slate::cuda
