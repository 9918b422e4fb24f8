// The part of the driver's interface that comparisons with a real GPU use. Opened at run time, so
// that the tests start without a GPU, and are skipped.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace slate::sim {

/// The functions by their documented signatures.
struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*load)(void**, const void*) = nullptr;
  int (*unload)(void*) = nullptr;
  int (*function)(void**, void*, const char*) = nullptr;
  int (*allocate)(std::uint64_t*, std::size_t) = nullptr;
  int (*to_device)(std::uint64_t, const void*, std::size_t) = nullptr;
  int (*to_host)(void*, std::uint64_t, std::size_t) = nullptr;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**) = nullptr;
  bool open() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return false;
    const auto get = [library](auto& pointer, const char* name) {
      pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(dlsym(library, name));
      return pointer != nullptr;
    };
    void* context = nullptr;
    return get(init, "cuInit") && get(retain, "cuDevicePrimaryCtxRetain") &&
           get(set_current, "cuCtxSetCurrent") && get(load, "cuModuleLoadData") &&
           get(unload, "cuModuleUnload") && get(function, "cuModuleGetFunction") &&
           get(allocate, "cuMemAlloc_v2") && get(to_device, "cuMemcpyHtoD_v2") &&
           get(to_host, "cuMemcpyDtoH_v2") && get(launch, "cuLaunchKernel") && init(0) == 0 &&
           retain(&context, 0) == 0 && set_current(context) == 0;
  }
};

}  // namespace slate::sim
