// Questions about kernels, their settings, and occupancy. A kernel and a function are the same
// here.
#include "client/driver/front.h"
#include "client/occupancy/occupancy.h"

namespace slate::driver {
namespace {

/// `body`, a (Session&, Function&) -> Answer, with a loaded kernel, as a (Session&) -> Answer.
/// Requires: `body` outlives it.
template <typename Body>
auto with_kernel(const void* handle, const Body& body) noexcept {
  return [handle, &body](Session& session) -> Answer {
    auto function = loaded_kernel(session, handle);
    if (!function) return std::unexpected(function.error());
    return body(session, **function);
  };
}

/// Runs `body` with a kernel. That takes no context.
template <typename Body>
CUresult about_kernel(const void* handle, const Body& body,
                      const char* name = __builtin_FUNCTION()) noexcept {
  return without_context(with_kernel(handle, body), name);
}

/// As above, with a context.
template <typename Body>
CUresult about_function(CUfunction handle, const Body& body,
                        const char* name = __builtin_FUNCTION()) noexcept {
  return with_session(with_kernel(handle, body), name);
}

Answer get_attribute(const client::Function& function, int attribute, int* value) {
  const ipc::FunctionReply& info = function.info;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return give(value, info.max_threads_per_block);
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return give(value, info.static_shared_bytes);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      return give(value, info.constant_bytes);
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      return give(value, info.local_bytes);
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return give(value, info.registers);
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      return give(value, info.ptx_version);
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return give(value, info.binary_version);
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      return give(value, 0);
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return give(value, function.max_dynamic_shared.load());
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return give(value, function.shared_carveout.load());
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      return give(value, info.needs_cluster);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      return give(value, client::required_cluster(function)[static_cast<std::size_t>(
                             attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)]);
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      return give(value, function.non_portable_clusters.load());
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return give(value, function.cluster_scheduling.load());
    default:
      return deny(CUDA_ERROR_INVALID_VALUE);
  }
}

Answer set_attribute(Session& session, client::Function& function, int attribute, int value) {
  return session.kernels().set_attribute(function, static_cast<FunctionAttribute>(attribute),
                                         value);
}

Maybe<client::Kernel*> kernel_of(const void* handle) {
  return client::kernel_of(handle);
}

bool is_cache_config(int config) {
  return config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL;
}

CUresult occupancy(int* blocks, CUfunction handle, int block_size, std::size_t dynamic_shared,
                   unsigned flags) noexcept {
  return about_function(handle, [&](Session& session, client::Function& function) -> Answer {
    if (block_size <= 0 || (flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE}) != 0)
      return deny(CUDA_ERROR_INVALID_VALUE);
    return give(blocks,
                client::active_blocks(session.device(), function, block_size, dynamic_shared));
  });
}

CUresult best_block_size(int* grid, int* block, CUfunction handle, CUoccupancyB2DSize shared_of,
                         std::size_t dynamic_shared, int most, unsigned flags) noexcept {
  return about_function(handle, [&](Session& session, client::Function& function) -> Answer {
    if (grid == nullptr || block == nullptr || most < 0 ||
        (flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE}) != 0) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    const auto choice =
        client::best_block_size(session.device(), function, shared_of, dynamic_shared, most);
    if (!choice) return deny(CUDA_ERROR_INVALID_VALUE);
    *grid = choice->blocks;
    *block = choice->block_size;
    return {};
  });
}

/// `largest`: the size of the largest cluster, else the number of clusters.
CUresult ask_about_clusters(int* value, CUfunction handle, const CUlaunchConfig* config,
                            bool largest) noexcept {
  return about_function(handle, [&](Session& session, client::Function& function) -> Answer {
    if (value == nullptr || config == nullptr ||
        (config->numAttrs > 0 && config->attrs == nullptr)) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    client::LaunchConfig asked{{config->gridDimX, config->gridDimY, config->gridDimZ},
                               {config->blockDimX, config->blockDimY, config->blockDimZ},
                               config->sharedMemBytes};
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
      const auto& size = config->attrs[i].value.clusterDim;
      asked.cluster = {size.x, size.y, size.z};
    }
    return give(value, session.kernels().ask_about_clusters(function, asked, largest));
  });
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return about_kernel(kernel, [&](Session&, client::Function&) {
    return give(function, reinterpret_cast<CUfunction>(kernel));
  });
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  return about_kernel(kernel, [&](Session&, client::Function&) -> Answer {
    auto known = kernel_of(kernel);
    if (!known) return std::unexpected(known.error());
    return give(library, reinterpret_cast<CUlibrary>((*known)->binary));
  });
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  return about_function(function, [&](Session&, client::Function&) -> Answer {
    auto known = kernel_of(function);
    if (!known) return std::unexpected(known.error());
    return give(module, reinterpret_cast<CUmodule>((*known)->binary));
  });
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  return initialised([&]() -> Answer {
    auto known = kernel_of(kernel);
    if (!known) return std::unexpected(known.error());
    return give(name, (*known)->name.c_str());
  });
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  return initialised([&]() -> Answer {
    auto known = kernel_of(function);
    if (!known) return std::unexpected(known.error());
    return give(name, (*known)->name.c_str());
  });
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice device) {
  const int number = attribute;
  return about_kernel(kernel, [&](Session&, client::Function& function) -> Answer {
    if (auto ok = need_device(device); !ok) return ok;
    return get_attribute(function, number, value);
  });
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice device) {
  const int number = attribute;
  return about_kernel(kernel, [&](Session& session, client::Function& function) -> Answer {
    if (auto ok = need_device(device); !ok) return ok;
    return set_attribute(session, function, number, value);
  });
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  const int number = attribute;
  return about_function(function, [&](Session&, client::Function& known) {
    return get_attribute(known, number, value);
  });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  const int number = attribute;
  return about_function(function, [&](Session& session, client::Function& known) {
    return set_attribute(session, known, number, value);
  });
}

CUresult cuKernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset,
                              std::size_t* size) {
  return about_kernel(kernel, [&](Session&, client::Function& known) -> Answer {
    return client::tell_parameter(known, index, offset, size);
  });
}

CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset,
                            std::size_t* size) {
  return about_function(function, [&](Session&, client::Function& known) -> Answer {
    return client::tell_parameter(known, index, offset, size);
  });
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  return initialised([&]() -> Answer {
    auto known = kernel_of(function);
    if (!known) return std::unexpected(known.error());
    const bool loaded = (*known)->function.load(std::memory_order_acquire) != nullptr;
    return give(state,
                loaded ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED);
  });
}

CUresult cuFuncLoad(CUfunction function) {
  return about_function(function, [](Session&, client::Function&) -> Answer { return {}; });
}

// Hints.

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device) {
  const int number = config;
  return about_kernel(kernel, [&](Session&, client::Function&) -> Answer {
    if (!is_cache_config(number)) return deny(CUDA_ERROR_INVALID_VALUE);
    return need_device(device);
  });
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  const int number = config;
  return about_function(function, [&](Session&, client::Function&) -> Answer {
    if (!is_cache_config(number)) return deny(CUDA_ERROR_INVALID_VALUE);
    return {};
  });
}

CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config) {
  const int number = config;
  return about_function(function, [&](Session&, client::Function&) -> Answer {
    if (number < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE ||
        number > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    return {};
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                     int block_size, std::size_t dynamic_shared) {
  return occupancy(blocks, function, block_size, dynamic_shared, CU_OCCUPANCY_DEFAULT);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                              int block_size,
                                                              std::size_t dynamic_shared,
                                                              unsigned flags) {
  return occupancy(blocks, function, block_size, dynamic_shared, flags);
}

CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                          CUoccupancyB2DSize shared_of, std::size_t dynamic_shared,
                                          int most) {
  return best_block_size(grid, block, function, shared_of, dynamic_shared, most,
                         CU_OCCUPANCY_DEFAULT);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                   CUoccupancyB2DSize shared_of,
                                                   std::size_t dynamic_shared, int most,
                                                   unsigned flags) {
  return best_block_size(grid, block, function, shared_of, dynamic_shared, most, flags);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, CUfunction function,
                                                 int blocks, int block_size) {
  return about_function(function, [&](Session& session, client::Function& known) -> Answer {
    if (bytes == nullptr || blocks <= 0 || block_size <= 0) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto left = client::available_dynamic_shared(session.device(), known, blocks, block_size);
    if (!left) return deny(CUDA_ERROR_INVALID_VALUE);
    return give(bytes, *left);
  });
}

CUresult cuOccupancyMaxActiveClusters(int* count, CUfunction function,
                                      const CUlaunchConfig* config) {
  return ask_about_clusters(count, function, config, false);
}

CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction function,
                                            const CUlaunchConfig* config) {
  return ask_about_clusters(size, function, config, true);
}

}  // extern "C"
