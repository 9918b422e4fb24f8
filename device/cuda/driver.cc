#include "device/cuda/driver.h"

#include <dlfcn.h>

#include <string>
#include <utility>

namespace slate::cuda {
namespace {

std::unexpected<Error> missing_symbol(const char* library, const char* symbol) {
  return fail(ErrorCode::kNotSupported, std::string(library) + " has no function " + symbol +
                                            ": slate needs a GPU driver of CUDA 12.8 or newer");
}

/// Fills one entry; false when the library lacks it.
template <typename Signature>
bool find(void* handle, Entry<Signature>& entry) {
  entry.function = reinterpret_cast<decltype(entry.function)>(::dlsym(handle, entry.name));
  return entry.function != nullptr;
}

// Not in the headers of CUDA 12.8, but in what newer drivers return.
constexpr int kTensorMemoryLeak = 721;

/// Faults of the GPU: after each of these the process can do no more GPU work.
ErrorCode fault_code(CUresult result) {
  switch (static_cast<int>(result)) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
      return ErrorCode::kIllegalAddress;
    case CUDA_ERROR_MISALIGNED_ADDRESS:
      return ErrorCode::kMisalignedAddress;
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_INVALID_PC:
      return ErrorCode::kIllegalInstruction;
    case CUDA_ERROR_ASSERT:
      return ErrorCode::kAssert;
    case CUDA_ERROR_LAUNCH_TIMEOUT:
      return ErrorCode::kLaunchTimeout;
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case kTensorMemoryLeak:
      return ErrorCode::kLaunchFailed;
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_MPS_RPC_FAILURE:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kInternal;
  }
}

}  // namespace

Result<Driver> load_driver(const char* library) {
  // NODELETE: once initialised the driver has threads of its own, so it can never be unloaded.
  void* handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    return fail(ErrorCode::kNotSupported, std::string("no NVIDIA driver: cannot open ") + library +
                                              " (" + (reason != nullptr ? reason : "unknown") +
                                              ")");
  }
  Driver driver;
#define SLATE_CUDA_FIND(function) \
  if (!find(handle, driver.function)) return missing_symbol(library, driver.function.name);
  SLATE_CUDA_FUNCTIONS(SLATE_CUDA_FIND)
#undef SLATE_CUDA_FIND
#define SLATE_CUDA_TRY(function) find(handle, driver.function);
  SLATE_CUDA_OPTIONAL_FUNCTIONS(SLATE_CUDA_TRY)
#undef SLATE_CUDA_TRY
  return driver;
}

Result<void> start_driver(const Driver& driver) {
  const CUresult result = driver.cuInit(0);
  if (result == CUDA_SUCCESS) return {};
  const Error error = describe(driver, result, "cuInit");
  return fail(ErrorCode::kUnavailable,
              std::string(kDriverLibrary) + " finds no usable GPU: " + error.message);
}

ErrorCode error_code(CUresult result) {
  switch (result) {
    case CUDA_SUCCESS:
      return ErrorCode::kNone;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_ALREADY_MAPPED:
    case CUDA_ERROR_NOT_MAPPED:
    case CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED:
    case CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED:
      return ErrorCode::kInvalidValue;
    case CUDA_ERROR_OUT_OF_MEMORY:
      return ErrorCode::kOutOfMemory;
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return ErrorCode::kInvalidPtx;
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      return ErrorCode::kNoKernelImage;
    case CUDA_ERROR_INVALID_HANDLE:
      return ErrorCode::kInvalidHandle;
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND:
      return ErrorCode::kSymbolNotFound;
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
      return ErrorCode::kCooperativeTooLarge;
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      return ErrorCode::kOutOfResources;
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
      return ErrorCode::kInvalidClusterSize;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_INVALID_RESOURCE_TYPE:
    case CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_JIT_COMPILATION_DISABLED:
    case CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC:
    case CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER:
      return ErrorCode::kNotSupported;
    case CUDA_ERROR_NOT_PERMITTED:
      return ErrorCode::kPermission;
    case CUDA_ERROR_OPERATING_SYSTEM:
      return ErrorCode::kIo;
    default:
      return fault_code(result);
  }
}

Error describe(const Driver& driver, CUresult result, const char* call) {
  std::string message = std::string(call) + ": ";
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.cuGetErrorName(result, &name) == CUDA_SUCCESS && name != nullptr) {
    message += name;
  } else {
    message += "CUDA error " + std::to_string(result);
  }
  if (driver.cuGetErrorString(result, &text) == CUDA_SUCCESS && text != nullptr) {
    message += std::string(" (") + text + ")";
  }
  return Error{error_code(result), std::move(message)};
}

}  // namespace slate::cuda
