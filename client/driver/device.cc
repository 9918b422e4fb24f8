// cuInit(), and what programs ask of the device: loads from what the daemon has said of it. There
// is one device, number 0.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "client/driver/front.h"
#include "client/session/bus_address.h"

namespace slate::driver {
namespace {

constexpr int kDriverVersion = 13000;  // CUDA 13.0, whose functions there are
static_assert(CU_DEVICE_ATTRIBUTE_MAX <= kDeviceAttributeCount);

/// Runs `body`, a (const DeviceInfo&) -> Answer, for device 0.
template <typename Body>
CUresult about_device(CUdevice device, const Body& body,
                      const char* name = __builtin_FUNCTION()) noexcept {
  return with_device(
      [&](Session& session) -> Answer {
        if (auto ok = need_device(device); !ok) return ok;
        return body(session.device());
      },
      name);
}

CUresult give_uuid(CUuuid* uuid, CUdevice device) noexcept {
  return about_device(device, [&](const DeviceInfo& info) -> Answer {
    if (uuid == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    std::memcpy(uuid->bytes, info.uuid, sizeof(uuid->bytes));
    return {};
  });
}

/// There is no other device: questions about two have the answer for one with itself.
Answer need_pair(CUdevice device, CUdevice peer) {
  if (auto ok = need_device(device); !ok) return ok;
  return need_device(peer);
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuInit(unsigned flags) {
  return answer([&]() -> Answer {
    if (flags != 0) return deny(CUDA_ERROR_INVALID_VALUE);
    if (const CUresult now = Life::usable(); now == CUDA_ERROR_DEINITIALIZED || Life::is_forked()) {
      return deny(now);
    }
    auto session = Process::get().session();
    if (!session) return std::unexpected<Failure>(session.error());
    Life::begin();
    return {};
  });
}

CUresult cuDriverGetVersion(int* version) {
  if (Life::usable() == CUDA_ERROR_DEINITIALIZED) return CUDA_ERROR_DEINITIALIZED;
  return answer([&]() -> Answer { return give(version, kDriverVersion); });
}

CUresult cuDeviceGetCount(int* count) {
  return initialised([&]() -> Answer { return give(count, 1); });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return initialised([&]() -> Answer {
    if (device == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto ok = need_device(ordinal); !ok) return ok;
    return give(device, 0);
  });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return about_device(device, [&](const DeviceInfo& info) -> Answer {
    if (name == nullptr || length <= 0) return deny(CUDA_ERROR_INVALID_VALUE);
    std::snprintf(name, static_cast<std::size_t>(length), "%s", info.name);
    return {};
  });
}

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  return about_device(device,
                      [&](const DeviceInfo& info) { return give(bytes, info.total_memory); });
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return give_uuid(uuid, device);
}
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return give_uuid(uuid, device);
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  const int number = attribute;
  return about_device(device, [&](const DeviceInfo& info) -> Answer {
    if (number < 1 || number >= CU_DEVICE_ATTRIBUTE_MAX) return deny(CUDA_ERROR_INVALID_VALUE);
    return give(value, info.attributes[number]);
  });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return about_device(device, [&](const DeviceInfo& info) -> Answer {
    if (major == nullptr || minor == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    *major = info.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
    *minor = info.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
    return {};
  });
}

CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice device) {
  return about_device(device, [&](const DeviceInfo& info) -> Answer {
    if (properties == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto of = [&info](CUdevice_attribute attribute) { return info.attributes[attribute]; };
    *properties = {};
    properties->maxThreadsPerBlock = of(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    for (int i = 0; i < 3; ++i) {
      properties->maxThreadsDim[i] = info.attributes[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i];
      properties->maxGridSize[i] = info.attributes[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i];
    }
    properties->sharedMemPerBlock = of(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    properties->totalConstantMemory = of(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    properties->SIMDWidth = of(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    properties->memPitch = of(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    properties->regsPerBlock = of(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    properties->clockRate = of(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    properties->textureAlign = of(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    return {};
  });
}

CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  return about_device(device, [&](const DeviceInfo& info) -> Answer {
    if (text == nullptr || length < client::kBusIdBytes) return deny(CUDA_ERROR_INVALID_VALUE);
    std::snprintf(text, static_cast<std::size_t>(length), "%s", client::bus_id(info).c_str());
    return {};
  });
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  return with_device([&](Session& session) -> Answer {
    if (device == nullptr || text == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto ours = client::is_bus_id(session.device(), text);
    if (!ours) return deny(CUDA_ERROR_INVALID_VALUE);
    if (!*ours) return deny(CUDA_ERROR_INVALID_DEVICE);
    return give(device, 0);
  });
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return initialised([&]() -> Answer {
    if (can == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto ok = need_pair(device, peer); !ok) return ok;
    return give(can, 0);
  });
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice device,
                                 CUdevice peer) {
  const int number = attribute;
  return initialised([&]() -> Answer {
    if (value == nullptr || number < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
        number > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    if (auto ok = need_pair(device, peer); !ok) return ok;
    return deny(CUDA_ERROR_INVALID_DEVICE);  // as for any device with itself
  });
}

CUresult cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType type, CUdevice device) {
  const int number = type;
  return initialised([&]() -> Answer {
    if (number < 0 || number >= CU_EXEC_AFFINITY_TYPE_MAX) return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto ok = need_device(device); !ok) return ok;
    return give(supported, 0);  // it takes a context under MPS
  });
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return initialised([&]() -> Answer { return give(mode, CU_MODULE_LAZY_LOADING); });
}

}  // extern "C"
