#include "fake_driver.h"

#include <fmt/core.h>

#include <cstdlib>
#include <cstring>

#include "base/check.h"

namespace slate::cuda {
namespace {

FakeDriver* fake = nullptr;
std::uint64_t next_handle = 0x1000;

template <typename Handle>
Handle make_handle() {
  return reinterpret_cast<Handle>(next_handle += 16);
}

std::string without_version(std::string_view symbol) {
  const std::size_t at = symbol.rfind("_v");
  return std::string(symbol.substr(0, at));
}

CUresult attribute(int* value, CUdevice_attribute which, CUdevice) {
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      *value = 64;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      *value = 0x7fffffff;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      *value = 65535;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = 0;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      *value = FakeDriver::kMaxPitch;
      break;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
      *value = fake->writes_words ? 1 : 0;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult load(CUmodule* module, const void*, unsigned int count, CUjit_option* options,
              void** values) {
  for (unsigned int i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) {
      std::strcpy(static_cast<char*>(values[i]), "line 3: no such opcode\nline 9: gave up\n");
    }
  }
  *module = make_handle<CUmodule>();
  return fake->note("cuModuleLoadDataEx", fmt::format("{} options", count));
}

CUresult occupancy(int* blocks, CUfunction, int threads, std::size_t shared_bytes) {
  *blocks = fake->resident_blocks;
  return fake->note("cuOccupancyMaxActiveBlocksPerMultiprocessor",
                    fmt::format("{} {}", threads, shared_bytes));
}

CUresult launch(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                unsigned int, unsigned int, CUstream stream, void** parameters, void** extra) {
  SLATE_CHECK(parameters == nullptr);
  fake->last_parameters.clear();
  if (extra != nullptr) {
    SLATE_CHECK(extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER &&
                extra[2] == CU_LAUNCH_PARAM_BUFFER_SIZE);
    fake->last_parameters.assign(static_cast<const char*>(extra[1]),
                                 *static_cast<std::size_t*>(extra[3]));
  }
  fake->green.ran_on(stream);
  return fake->note("cuLaunchKernel");
}

/// "cuLaunchKernelEx", and the attributes that have a number.
CUresult launch_extended(const CUlaunchConfig* config, CUfunction, void** parameters, void**) {
  SLATE_CHECK(parameters == nullptr);
  std::string attributes;
  for (unsigned int i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute& its = config->attrs[i];
    if (its.id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
      attributes += fmt::format("priority {} ", its.value.priority);
    if (its.id == CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
      attributes += fmt::format("carveout {}", its.value.sharedMemCarveout);
    if (its.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
      attributes += fmt::format("overlaps {}", its.value.programmaticStreamSerializationAllowed);
  }
  return fake->note("cuLaunchKernelEx", attributes);
}

CUresult parameter_info(CUfunction, std::size_t index, std::size_t* offset, std::size_t* size) {
  constexpr std::size_t kLayout[][2] = {{0, 1}, {8, 8}, {16, 4}};
  if (index >= std::size(kLayout)) return CUDA_ERROR_INVALID_VALUE;
  *offset = kLayout[index][0];
  *size = kLayout[index][1];
  return fake->note("cuFuncGetParamInfo");
}

void answer_about_the_gpu(Driver& driver) {
  driver.cuGetErrorName.function = [](CUresult result, const char** name) {
    *name = result == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER";
    return CUDA_SUCCESS;
  };
  driver.cuGetErrorString.function = [](CUresult, const char** text) {
    *text = "as the test asked";
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetCount.function = [](int* count) {
    *count = 1;
    return fake->note("cuDeviceGetCount");
  };
  driver.cuDriverGetVersion.function = [](int* version) {
    *version = 13010;
    return fake->note("cuDriverGetVersion");
  };
  driver.cuDeviceGetName.function = [](char* name, int size, CUdevice) {
    std::strncpy(name, "Fake", static_cast<std::size_t>(size));
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetAttribute.function = attribute;
  driver.cuDevicePrimaryCtxRetain.function = [](CUcontext* context, CUdevice) {
    *context = make_handle<CUcontext>();
    return fake->note("cuDevicePrimaryCtxRetain");
  };
  driver.cuCtxGetStreamPriorityRange.function = [](int* least, int* greatest) {
    *least = 0;
    *greatest = -5;
    return fake->note("cuCtxGetStreamPriorityRange");
  };
}

void answer_about_limits(Driver& driver) {
  driver.cuCtxGetLimit.function = [](std::size_t* value, CUlimit) {
    *value = 1024;
    return fake->note("cuCtxGetLimit");
  };
  driver.cuCtxSetLimit.function = [](CUlimit limit, std::size_t value) {
    return fake->note("cuCtxSetLimit", fmt::format("{} {}", static_cast<int>(limit), value));
  };
}

void answer_about_memory(Driver& driver) {
  driver.cuMemGetAllocationGranularity.function = [](std::size_t* bytes, const CUmemAllocationProp*,
                                                     CUmemAllocationGranularity_flags) {
    *bytes = FakeDriver::kGranularity;
    return fake->note("cuMemGetAllocationGranularity");
  };
  driver.cuMemAddressReserve.function = [](CUdeviceptr* base, std::size_t, std::size_t align,
                                           CUdeviceptr wished, unsigned long long) {
    fake->wished_address = wished;
    fake->wished_alignment = align;
    *base = std::uint64_t{1} << 40;
    return fake->note("cuMemAddressReserve");
  };
  driver.cuMemCreate.function = [](CUmemGenericAllocationHandle* handle, std::size_t,
                                   const CUmemAllocationProp*, unsigned long long) {
    *handle = next_handle += 16;
    return fake->note("cuMemCreate");
  };
  driver.cuMemMap.function = [](CUdeviceptr base, std::size_t bytes, std::size_t,
                                CUmemGenericAllocationHandle, unsigned long long) {
    return fake->note("cuMemMap", fmt::format("{:#x} {:#x}", base, bytes));
  };
  driver.cuMemUnmap.function = [](CUdeviceptr base, std::size_t bytes) {
    return fake->note("cuMemUnmap", fmt::format("{:#x} {:#x}", base, bytes));
  };
  driver.cuMemHostAlloc.function = [](void** memory, std::size_t bytes, unsigned int) {
    *memory = std::aligned_alloc(4096, bytes);
    return fake->note("cuMemHostAlloc");
  };
  driver.cuMemFreeHost.function = [](void* memory) {
    std::free(memory);
    return fake->note("cuMemFreeHost");
  };
  driver.cuMemHostGetDevicePointer.function = [](CUdeviceptr* address, void* memory, unsigned int) {
    *address = reinterpret_cast<CUdeviceptr>(memory) + fake->host_memory_offset;
    return fake->note("cuMemHostGetDevicePointer");
  };
  driver.cuMipmappedArrayCreate.function = [](CUmipmappedArray* array,
                                              const CUDA_ARRAY3D_DESCRIPTOR*, unsigned int levels) {
    *array = make_handle<CUmipmappedArray>();
    return fake->note("cuMipmappedArrayCreate", std::to_string(levels));
  };
  driver.cuMemsetD8Async.function = [](CUdeviceptr to, unsigned char value, std::size_t count,
                                       CUstream) {
    return fake->note("cuMemsetD8Async", fmt::format("{:#x} {:#x} {}", to, value, count));
  };
  driver.cuMemsetD32Async.function = [](CUdeviceptr to, unsigned int value, std::size_t count,
                                        CUstream) {
    if (to == FakeGreen::kTable) fake->green.clear_table();
    return fake->note("cuMemsetD32Async", fmt::format("{:#x} {:#x} {}", to, value, count));
  };
}

void answer_about_work(Driver& driver) {
  driver.cuStreamCreateWithPriority.function = [](CUstream* stream, unsigned int, int priority) {
    *stream = make_handle<CUstream>();
    return fake->note("cuStreamCreateWithPriority", std::to_string(priority));
  };
  driver.cuEventCreate.function = [](CUevent* event, unsigned int flags) {
    *event = make_handle<CUevent>();
    return fake->note("cuEventCreate", std::to_string(flags));
  };
  driver.cuModuleLoadDataEx.function = load;
  driver.cuModuleGetFunction.function = [](CUfunction* function, CUmodule module,
                                           const char* name) {
    *function = make_handle<CUfunction>();
    fake->modules[*function] = module;
    return fake->note("cuModuleGetFunction", name);
  };
  driver.cuFuncGetName.function = [](const char** name, CUfunction) {
    *name = "kernel";
    return fake->note("cuFuncGetName");
  };
  driver.cuOccupancyMaxActiveBlocksPerMultiprocessor.function = occupancy;
  driver.cuFuncGetParamInfo.function = parameter_info;
  driver.cuLaunchKernel.function = launch;
  driver.cuLaunchKernelEx.function = launch_extended;
  driver.cuMemcpyDtoHAsync.function = [](void* to, CUdeviceptr from, std::size_t bytes, CUstream) {
    if (from == FakeGreen::kTable) std::memcpy(to, fake->green.table().data(), bytes);
    return fake->note("cuMemcpyDtoHAsync", fmt::format("{:#x} {}", from, bytes));
  };
  driver.cuModuleGetGlobal.function = [](CUdeviceptr* base, std::size_t* bytes, CUmodule,
                                         const char*) {
    *base = FakeGreen::kTable;
    *bytes = FakeGreen::kTableWords * sizeof(std::uint32_t);
    return fake->note("cuModuleGetGlobal");
  };
  driver.cuMemcpyHtoDAsync.function = [](CUdeviceptr to, const void*, std::size_t bytes, CUstream) {
    return fake->note("cuMemcpyHtoDAsync", fmt::format("{:#x} {}", to, bytes));
  };
  driver.cuMemcpy2DAsync.function = [](const CUDA_MEMCPY2D* copy, CUstream) {
    return fake->note("cuMemcpy2DAsync", fmt::format("{}x{}", copy->WidthInBytes, copy->Height));
  };
}

void answer_about_graphs(Driver& driver) {
  driver.cuFuncGetModule.function = [](CUmodule* module, CUfunction function) {
    *module = fake->module_of(function);
    return fake->note("cuFuncGetModule");
  };
  driver.cuGraphCreate.function = [](CUgraph* graph, unsigned int) {
    *graph = make_handle<CUgraph>();
    return fake->note("cuGraphCreate");
  };
  driver.cuGraphAddKernelNode.function = [](CUgraphNode* node, CUgraph, const CUgraphNode*,
                                            std::size_t before,
                                            const CUDA_KERNEL_NODE_PARAMS* its) {
    *node = make_handle<CUgraphNode>();
    return fake->note("cuGraphAddKernelNode", fmt::format("{} {}", its->gridDimX, before));
  };
  driver.cuGraphKernelNodeSetAttribute.function = [](CUgraphNode, CUkernelNodeAttrID attribute,
                                                     const CUkernelNodeAttrValue* value) {
    if (attribute == CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
      return fake->note("cuGraphKernelNodeSetAttribute",
                        fmt::format("carveout {}", value->sharedMemCarveout));
    }
    SLATE_CHECK(attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY);
    return fake->note("cuGraphKernelNodeSetAttribute", fmt::format("priority {}", value->priority));
  };
  driver.cuGraphInstantiate.function = [](CUgraphExec* executable, CUgraph,
                                          unsigned long long flags) {
    *executable = make_handle<CUgraphExec>();
    const bool of_nodes = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0;
    return fake->note("cuGraphInstantiate", of_nodes ? "with the nodes' priorities" : "");
  };
  driver.cuGraphExecKernelNodeSetParams.function = [](CUgraphExec, CUgraphNode,
                                                      const CUDA_KERNEL_NODE_PARAMS* its) {
    // Of parameter_info(): the second parameter.
    std::uint64_t value = 0;
    std::memcpy(&value, its->kernelParams[1], sizeof(value));
    return fake->note("cuGraphExecKernelNodeSetParams", std::to_string(value));
  };
  driver.cuGraphAddMemcpyNode.function = [](CUgraphNode* node, CUgraph, const CUgraphNode*,
                                            std::size_t, const CUDA_MEMCPY3D* copy, CUcontext) {
    *node = make_handle<CUgraphNode>();
    return fake->note("cuGraphAddMemcpyNode", fmt::format("{}", copy->WidthInBytes));
  };
  driver.cuGraphExecMemcpyNodeSetParams.function = [](CUgraphExec, CUgraphNode,
                                                      const CUDA_MEMCPY3D* copy, CUcontext) {
    return fake->note(
        "cuGraphExecMemcpyNodeSetParams",
        fmt::format("{:#x} {:#x} {}", copy->dstDevice, copy->srcDevice, copy->WidthInBytes));
  };
  driver.cuGraphLaunch.function = [](CUgraphExec, CUstream) { return fake->note("cuGraphLaunch"); };
}

/// As FakeGreen says, unless the test wants the call to fail.
template <typename Answer>
CUresult noted(const char* symbol, const std::string& arguments, Answer answer) {
  const CUresult wanted = fake->note(symbol, arguments);
  return wanted == CUDA_SUCCESS ? answer() : wanted;
}

void answer_about_green_contexts(Driver& driver) {
  driver.cuDeviceGetDevResource.function = [](CUdevice, CUdevResource* resource,
                                              CUdevResourceType) {
    return noted("cuDeviceGetDevResource", "", [&] { return fake->green.resource(resource); });
  };
  driver.cuDevSmResourceSplitByCount.function = [](CUdevResource* parts, unsigned int* count,
                                                   const CUdevResource*, CUdevResource* rest,
                                                   unsigned int flags, unsigned int size) {
    return noted("cuDevSmResourceSplitByCount", std::to_string(size),
                 [&] { return fake->green.split(parts, count, rest, flags, size); });
  };
  driver.cuDevResourceGenerateDesc.function = [](CUdevResourceDesc* description,
                                                 CUdevResource* parts, unsigned int count) {
    return noted("cuDevResourceGenerateDesc", std::to_string(count),
                 [&] { return fake->green.describe(description, parts, count); });
  };
  driver.cuGreenCtxCreate.function = [](CUgreenCtx* green, CUdevResourceDesc description, CUdevice,
                                        unsigned int) {
    return noted("cuGreenCtxCreate", "", [&] {
      *green = make_handle<CUgreenCtx>();
      fake->green.create(*green, description);
      return CUDA_SUCCESS;
    });
  };
  driver.cuGreenCtxDestroy.function = [](CUgreenCtx green) {
    fake->green.destroy(green);
    return fake->note("cuGreenCtxDestroy");
  };
  driver.cuGreenCtxStreamCreate.function = [](CUstream* stream, CUgreenCtx green,
                                              unsigned int flags, int priority) {
    return noted("cuGreenCtxStreamCreate", fmt::format("{} {}", flags, priority), [&] {
      *stream = make_handle<CUstream>();
      fake->green.create_stream(*stream, green);
      return CUDA_SUCCESS;
    });
  };
  driver.cuStreamGetGreenCtx.function = [](CUstream stream, CUgreenCtx* green) {
    *green = fake->green.green_of(stream);
    return fake->note("cuStreamGetGreenCtx");
  };
  driver.cuStreamDestroy.function = [](CUstream stream) {
    fake->green.destroy_stream(stream);
    return fake->note("cuStreamDestroy");
  };
  driver.cuStreamWriteValue64.function = [](CUstream, CUdeviceptr at, cuuint64_t value,
                                            unsigned int flags) {
    return noted("cuStreamWriteValue64", fmt::format("{} {}", value, flags), [&] {
      fake->unwritten.emplace_back(reinterpret_cast<std::uint64_t*>(at), value);
      return CUDA_SUCCESS;
    });
  };
}

}  // namespace

FakeDriver::FakeDriver() {
  SLATE_CHECK(fake == nullptr);
  fake = this;
  // Every function only notes its name at first.
#define SLATE_FAKE(symbol) \
  driver_.symbol.function = [](auto...) { return fake->note(SLATE_CUDA_TEXT(symbol)); };
  SLATE_CUDA_FUNCTIONS(SLATE_FAKE)
  SLATE_CUDA_OPTIONAL_FUNCTIONS(SLATE_FAKE)
#undef SLATE_FAKE
  answer_about_the_gpu(driver_);
  answer_about_limits(driver_);
  answer_about_memory(driver_);
  answer_about_work(driver_);
  answer_about_graphs(driver_);
  answer_about_green_contexts(driver_);
}

FakeDriver::~FakeDriver() {
  fake = nullptr;
}

void FakeDriver::fail(const std::string& function, CUresult result) {
  std::lock_guard lock(mutex_);
  failures_[function] = result;
}

CUresult FakeDriver::note(const char* symbol, const std::string& arguments) {
  const std::string function = without_version(symbol);
  std::lock_guard lock(mutex_);
  calls_.push_back(arguments.empty() ? function : function + " " + arguments);
  const auto found = failures_.find(function);
  return found == failures_.end() ? CUDA_SUCCESS : found->second;
}

std::vector<std::string> FakeDriver::calls() const {
  std::lock_guard lock(mutex_);
  return calls_;
}

void FakeDriver::forget_calls() {
  std::lock_guard lock(mutex_);
  calls_.clear();
}

std::size_t FakeDriver::count(std::string_view function) const {
  std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(
      calls_, [&](const std::string& call) { return call.substr(0, call.find(' ')) == function; }));
}

}  // namespace slate::cuda
