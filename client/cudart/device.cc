// The device and the process's settings for it. There is one device, number 0: the daemon's.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include "client/cudart/front.h"
#include "client/cudart/properties.h"
#include "client/session/bus_address.h"
#include "client/session/say.h"

namespace slate::cudart {
namespace {

/// Attribute numbers that CUDA 13.0 knows.
constexpr int kFirstAttribute = 1;
constexpr int kLastAttribute = cudaDevAttrMax - 1;
static_assert(kLastAttribute < kDeviceAttributeCount);

constexpr unsigned kUserFlags =
    cudaDeviceScheduleMask | cudaDeviceMapHost | cudaDeviceLmemResizeToMax | cudaDeviceSyncMemops;

/// Of cudaSetDeviceFlags.
constinit std::atomic<unsigned> device_flags{0};

bool bad_schedule(unsigned flags) {
  const unsigned schedule = flags & cudaDeviceScheduleMask;
  return (schedule & (schedule - 1)) != 0;
}

Answer need_device(int device) {
  if (device != 0) return deny(cudaErrorInvalidDevice);
  return {};
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;
using namespace slate;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (count != nullptr) *count = 0;
  return with_device([&](Session&) -> Answer {
    if (count == nullptr) return deny(cudaErrorInvalidValue);
    *count = 1;
    return {};
  });
}

cudaError_t cudaGetDevice(int* device) {
  return with_device([&](Session&) -> Answer {
    if (device == nullptr) return deny(cudaErrorInvalidValue);
    *device = 0;
    return {};
  });
}

cudaError_t cudaSetDevice(int device) {
  return with_device([&](Session&) -> Answer { return need_device(device); });
}

cudaError_t cudaInitDevice(int device, unsigned flags, unsigned how) {
  return with_device([&](Session&) -> Answer {
    if ((how & cudaInitDeviceFlagsAreValid) != 0) {
      if ((flags & ~kUserFlags) != 0 || bad_schedule(flags)) return deny(cudaErrorInvalidValue);
      device_flags = flags;
    }
    return need_device(device);
  });
}

cudaError_t cudaSetValidDevices(int* devices, int count) {
  return with_device([&](Session&) -> Answer {
    for (int i = 0; i < count; ++i) {
      if (devices == nullptr || devices[i] != 0) return deny(cudaErrorInvalidValue);
    }
    return {};
  });
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  return with_device([&](Session&) -> Answer {
    if (device == nullptr || wanted == nullptr) return deny(cudaErrorInvalidValue);
    *device = 0;
    return {};
  });
}

cudaError_t cudaDeviceReset() {
  return answer([&]() -> Answer {
    if (Session* session = Process::get().current()) {
      if (session->host_functions().is_own_thread()) return deny(cudaErrorNotPermitted);
      // What still runs may print, and CUDA shows that. An error of it ends with the session.
      [[maybe_unused]] const auto ignored =
          session->waiting().synchronize(ipc::TargetKind::kSession, 0);
      session->printing().write();
    }
    Process::get().reset();
    Process::get().limits().reset();
    return {};
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return with_device([&](Session& session) -> Answer {
    if (properties == nullptr) return deny(cudaErrorInvalidValue);
    if (auto ok = need_device(device); !ok) return ok;
    fill_properties(session.device(), *properties);
    return {};
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  const int number = attribute;
  return with_device([&](Session& session) -> Answer {
    if (value == nullptr || number < kFirstAttribute || number > kLastAttribute) {
      return deny(cudaErrorInvalidValue);
    }
    if (auto ok = need_device(device); !ok) return ok;
    *value = session.device().attributes[number];
    return {};
  });
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return with_device([&](Session&) -> Answer {
    if (flags == nullptr) return deny(cudaErrorInvalidValue);
    *flags = device_flags | cudaDeviceMapHost;
    return {};
  });
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
  return answer([&]() -> Answer {
    if ((flags & ~kUserFlags) != 0 || bad_schedule(flags)) return deny(cudaErrorInvalidValue);
    device_flags = flags;
    return {};
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return with_device([&](Session& session) -> Answer {
    if (text == nullptr || length < client::kBusIdBytes) return deny(cudaErrorInvalidValue);
    if (auto ok = need_device(device); !ok) return ok;
    std::snprintf(text, static_cast<std::size_t>(length), "%s",
                  client::bus_id(session.device()).c_str());
    return {};
  });
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return with_device([&](Session& session) -> Answer {
    if (device == nullptr || text == nullptr) return deny(cudaErrorInvalidValue);
    const auto ours = client::is_bus_id(session.device(), text);
    if (!ours) return deny(cudaErrorInvalidValue);
    if (!*ours) return deny(cudaErrorInvalidDevice);
    *device = 0;
    return {};
  });
}

cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit) {
  const int number = limit;
  return with_session([&](Session& session) -> Answer {
    if (value == nullptr) return deny(cudaErrorInvalidValue);
    return give(value, Process::get().limits().get(session, number));
  });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value) {
  const int number = limit;
  return with_session([&](Session& session) -> Answer {
    return Process::get().limits().set(session, number, value);
  });
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return with_session([&](Session&) -> Answer {
    if (config == nullptr) return deny(cudaErrorInvalidValue);
    *config = cudaFuncCachePreferNone;
    return {};
  });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  const int number = config;
  return with_session([&](Session&) -> Answer {
    if (number < cudaFuncCachePreferNone || number > cudaFuncCachePreferEqual) {
      return deny(cudaErrorInvalidValue);
    }
    return {};  // a hint
  });
}

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return with_session([&](Session&) -> Answer {
    if (config == nullptr) return deny(cudaErrorInvalidValue);
    *config = cudaSharedMemBankSizeFourByte;
    return {};
  });
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
  const int number = config;
  return with_session([&](Session&) -> Answer {
    if (number < cudaSharedMemBankSizeDefault || number > cudaSharedMemBankSizeEightByte) {
      return deny(cudaErrorInvalidValue);
    }
    return {};  // without effect on every GPU since Maxwell
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return with_device([&](Session&) -> Answer {
    if (can == nullptr) return deny(cudaErrorInvalidValue);
    if (device != 0 || peer != 0) return deny(cudaErrorInvalidDevice);
    *can = 0;
    return {};
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return with_session([&](Session&) -> Answer {
    if (flags != 0) return deny(cudaErrorInvalidValue);
    return deny(peer == 0 ? cudaErrorPeerAccessUnsupported : cudaErrorInvalidDevice);
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return with_session([&](Session&) -> Answer {
    return deny(peer == 0 ? cudaErrorPeerAccessNotEnabled : cudaErrorInvalidDevice);
  });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int, int) {
  const int number = attribute;
  return with_device([&](Session&) -> Answer {
    if (value == nullptr || number < cudaDevP2PAttrPerformanceRank ||
        number > cudaDevP2PAttrOnlyPartialNativeAtomicSupported) {
      return deny(cudaErrorInvalidValue);
    }
    return deny(cudaErrorInvalidDevice);  // as for any device with itself: there is no other one
  });
}

cudaError_t cudaCtxResetPersistingL2Cache() {
  return with_session([&](Session&) -> Answer { return {}; });  // a hint
}

cudaError_t cudaDriverGetVersion(int* version) {
  return answer([&]() -> Answer {
    if (version == nullptr) return deny(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return {};
  });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return cudaDriverGetVersion(version);
}

cudaError_t cudaProfilerStart() {
  return cudaSuccess;
}
cudaError_t cudaProfilerStop() {
  return cudaSuccess;
}

}  // extern "C"
