#include "client/session/error_table.h"

namespace slate::client {

int cuda_error_number(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kNone:
      return 0;
    case ErrorCode::kInvalidValue:
      return 1;
    case ErrorCode::kOutOfMemory:
      return 2;  // MemoryAllocation
    case ErrorCode::kNotSupported:
      return 801;
    case ErrorCode::kInvalidHandle:
      return 400;  // InvalidResourceHandle
    case ErrorCode::kSymbolNotFound:
      return 500;
    case ErrorCode::kInvalidPtx:
      return 218;
    case ErrorCode::kNoKernelImage:
      return 209;  // NoKernelImageForDevice
    case ErrorCode::kInvalidConfiguration:
      return 9;
    case ErrorCode::kOutOfResources:
      return 701;  // LaunchOutOfResources
    case ErrorCode::kIllegalAddress:
      return 700;
    case ErrorCode::kMisalignedAddress:
      return 716;
    case ErrorCode::kIllegalInstruction:
      return 715;
    case ErrorCode::kLaunchFailed:
      return 719;  // LaunchFailure
    case ErrorCode::kLaunchTimeout:
      return 702;
    case ErrorCode::kAssert:
      return 710;
    case ErrorCode::kInitialization:
      return 3;  // InitializationError
    case ErrorCode::kUnavailable:
      return 46;  // DevicesUnavailable
    case ErrorCode::kProtocol:
      return 46;  // no longer on speaking terms: as good as gone
    case ErrorCode::kPermission:
      return 800;  // NotPermitted
    case ErrorCode::kLimit:
      return 2;  // a share used up, as memory is
    case ErrorCode::kIo:
      return 304;  // OperatingSystem
    case ErrorCode::kInternal:
      return 999;  // Unknown
    case ErrorCode::kCooperativeTooLarge:
      return 720;
    case ErrorCode::kInvalidClusterSize:
      return 912;
  }
  return 999;
}

}  // namespace slate::client
