// Driver: the functions of libcuda.so.1 that slate calls, found by name at run time, and the one
// table that turns a CUresult into an Error. Not the context (context.h) and not the device
// (cuda_device.h). A plain value, immutable once loaded; tests fill one with functions of their
// own. Thread: any.
#pragma once

#include <cuda.h>

#include <string>
#include <type_traits>

#include "base/result.h"

// cuda.h renames functions to their versions (cuMemGetInfo is a macro for cuMemGetInfo_v2), so each
// name below stands for the very symbol that the header's prototype describes.
// clang-format off
#define SLATE_CUDA_FUNCTIONS(F)                                                                   \
  F(cuInit) F(cuGetErrorName) F(cuGetErrorString) F(cuDriverGetVersion) F(cuDeviceGetCount)       \
  F(cuDeviceGet) F(cuDeviceGetName) F(cuDeviceGetUuid) F(cuDeviceGetPCIBusId)                     \
  F(cuDeviceTotalMem) F(cuDeviceGetAttribute) F(cuDevicePrimaryCtxSetFlags)                       \
  F(cuDevicePrimaryCtxRetain) F(cuDevicePrimaryCtxRelease) F(cuCtxSetCurrent)                     \
  F(cuCtxGetStreamPriorityRange) F(cuMemGetInfo) F(cuMemGetAllocationGranularity)                 \
  F(cuMemAddressReserve) F(cuMemAddressFree) F(cuMemCreate) F(cuMemRelease) F(cuMemMap)           \
  F(cuMemUnmap) F(cuMemSetAccess) F(cuMemExportToShareableHandle)                                 \
  F(cuMemImportFromShareableHandle) F(cuMemHostRegister) F(cuMemHostUnregister)                   \
  F(cuModuleLoadDataEx) F(cuModuleUnload) F(cuModuleGetFunction) F(cuModuleGetGlobal)             \
  F(cuFuncLoad) F(cuFuncGetName) F(cuFuncGetAttribute) F(cuFuncSetAttribute)                      \
  F(cuFuncGetParamInfo) F(cuOccupancyMaxActiveBlocksPerMultiprocessor)                            \
  F(cuMemHostAlloc) F(cuMemFreeHost) F(cuMemHostGetDevicePointer) F(cuStreamQuery)                \
  F(cuStreamCreateWithPriority) F(cuStreamDestroy) F(cuStreamSynchronize)                         \
  F(cuStreamWaitEvent) F(cuEventCreate) F(cuEventDestroy) F(cuEventRecord) F(cuEventQuery)        \
  F(cuEventElapsedTime) F(cuLaunchKernel) F(cuMemcpyHtoDAsync) F(cuMemcpyDtoHAsync)               \
  F(cuMemcpyDtoDAsync) F(cuMemcpy2DAsync) F(cuMemsetD8Async) F(cuMemsetD16Async)                  \
  F(cuMemsetD32Async) F(cuMemsetD2D16Async)                                                       \
  F(cuMemsetD2D8Async) F(cuMemsetD2D32Async) F(cuArray3DCreate) F(cuArrayDestroy)                 \
  F(cuMipmappedArrayCreate) F(cuMipmappedArrayGetLevel) F(cuMipmappedArrayDestroy)                \
  F(cuMemcpy3DAsync) F(cuTexObjectCreate) F(cuTexObjectDestroy) F(cuSurfObjectCreate)             \
  F(cuSurfObjectDestroy)

// Optional functions. Without one of them an ability of the device is missing; its Error names the
// function.
#define SLATE_CUDA_OPTIONAL_FUNCTIONS(F)                                                          \
  F(cuDeviceGetDevResource) F(cuDevSmResourceSplitByCount)                 \
  F(cuDevResourceGenerateDesc) F(cuGreenCtxCreate) F(cuGreenCtxDestroy) F(cuGreenCtxStreamCreate) \
  F(cuGreenCtxRecordEvent) F(cuStreamGetGreenCtx) F(cuStreamWriteValue64) F(cuLaunchKernelEx)     \
  F(cuOccupancyMaxActiveClusters) F(cuOccupancyMaxPotentialClusterSize) F(cuCtxGetLimit)          \
  F(cuCtxSetLimit) F(cuFuncGetModule) F(cuGraphCreate) F(cuGraphDestroy) F(cuGraphAddKernelNode)  \
  F(cuGraphKernelNodeSetAttribute) F(cuGraphInstantiate) F(cuGraphExecDestroy)                    \
  F(cuGraphExecKernelNodeSetParams) F(cuGraphLaunch) F(cuGraphAddMemcpyNode)                     \
  F(cuGraphExecMemcpyNodeSetParams) F(cuTensorMapEncodeTiled) F(cuTensorMapEncodeIm2col)          \
  F(cuTensorMapEncodeIm2colWide)
// clang-format on

namespace slate::cuda {

template <typename Signature>
struct Entry;

/// One function of the driver, with the symbol's name for messages.
template <typename... Parameters>
struct Entry<CUresult(Parameters...)> {
  CUresult (*function)(Parameters...) = nullptr;
  const char* name = "";

  /// Whether the driver has the function.
  explicit operator bool() const { return function != nullptr; }
  CUresult operator()(std::type_identity_t<Parameters>... arguments) const {
    return function(arguments...);
  }
};

#define SLATE_CUDA_TEXT_OF(name) #name
#define SLATE_CUDA_TEXT(name) SLATE_CUDA_TEXT_OF(name)
#define SLATE_CUDA_MEMBER(function) \
  Entry<decltype(::function)> function{nullptr, SLATE_CUDA_TEXT(function)};

struct Driver {
  SLATE_CUDA_FUNCTIONS(SLATE_CUDA_MEMBER)
  SLATE_CUDA_OPTIONAL_FUNCTIONS(SLATE_CUDA_MEMBER)  // null where the driver lacks them
};

#undef SLATE_CUDA_MEMBER

inline constexpr const char* kDriverLibrary = "libcuda.so.1";

/// Opens the library, for good, and finds all functions; optional ones may be missing. Does not
/// initialise the driver. Errors: kNotSupported naming the library and what is missing.
Result<Driver> load_driver(const char* library = kDriverLibrary);

/// Calls cuInit(). Errors: kUnavailable when the driver finds no usable GPU.
Result<void> start_driver(const Driver& driver);

/// Errors: kNotSupported naming the function, when this driver lacks it.
template <typename Signature>
Result<void> check_present(const Entry<Signature>& entry) {
  if (entry) return {};
  return fail(ErrorCode::kNotSupported,
              std::string("the GPU driver has no function ") + entry.name);
}

/// The ErrorCode for a failure of the driver.
ErrorCode error_code(CUresult result);

/// The Error of a failed call: "cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY (out of memory)". Requires:
/// `result` is a failure.
Error describe(const Driver& driver, CUresult result, const char* call);

}  // namespace slate::cuda
