#include "device/cuda/used_memory.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstddef>
#include <string>

namespace slate::cuda {
namespace {

/// nvmlMemory_t.
struct Memory {
  unsigned long long total, free, used;  // bytes
};

/// Functions of nvml.h return 0 on success.
template <typename... Parameters>
bool call(void* library, const char* name, Parameters... arguments) {
  using Function = int (*)(Parameters...);
  const auto function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr && function(arguments...) == 0;
}

/// As NVML wants it.
std::string name_of(UsedMemory::Uuid uuid) {
  std::string name = "GPU";
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) name += '-';
    name += fmt::format("{:02x}", uuid[i]);
  }
  return name;
}

}  // namespace

UsedMemory::UsedMemory(Uuid uuid, const char* library)
    : library_(::dlopen(library, RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) return;
  if (!call(library_, "nvmlInit_v2")) {
    ::dlclose(library_);
    library_ = nullptr;
    return;
  }
  const std::string name = name_of(uuid);
  void* device = nullptr;
  if (call(library_, "nvmlDeviceGetHandleByUUID", name.c_str(), &device)) device_ = device;
}

UsedMemory::~UsedMemory() {
  if (library_ == nullptr) return;
  (void)call(library_, "nvmlShutdown");
  ::dlclose(library_);
}

std::optional<std::uint64_t> UsedMemory::now() const {
  Memory memory{};
  if (device_ == nullptr || !call(library_, "nvmlDeviceGetMemoryInfo", device_, &memory))
    return std::nullopt;
  return memory.used;
}

}  // namespace slate::cuda
