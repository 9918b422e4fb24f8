#include "base/result.h"

#include <cerrno>
#include <cstring>
#include <system_error>

namespace slate {

std::string_view error_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNone:
      return "None";
    case ErrorCode::kInvalidValue:
      return "InvalidValue";
    case ErrorCode::kOutOfMemory:
      return "OutOfMemory";
    case ErrorCode::kNotSupported:
      return "NotSupported";
    case ErrorCode::kInvalidHandle:
      return "InvalidHandle";
    case ErrorCode::kSymbolNotFound:
      return "SymbolNotFound";
    case ErrorCode::kInvalidPtx:
      return "InvalidPtx";
    case ErrorCode::kNoKernelImage:
      return "NoKernelImage";
    case ErrorCode::kInvalidConfiguration:
      return "InvalidConfiguration";
    case ErrorCode::kOutOfResources:
      return "OutOfResources";
    case ErrorCode::kIllegalAddress:
      return "IllegalAddress";
    case ErrorCode::kMisalignedAddress:
      return "MisalignedAddress";
    case ErrorCode::kIllegalInstruction:
      return "IllegalInstruction";
    case ErrorCode::kLaunchFailed:
      return "LaunchFailed";
    case ErrorCode::kLaunchTimeout:
      return "LaunchTimeout";
    case ErrorCode::kAssert:
      return "Assert";
    case ErrorCode::kInitialization:
      return "Initialization";
    case ErrorCode::kUnavailable:
      return "Unavailable";
    case ErrorCode::kProtocol:
      return "Protocol";
    case ErrorCode::kPermission:
      return "Permission";
    case ErrorCode::kLimit:
      return "Limit";
    case ErrorCode::kIo:
      return "Io";
    case ErrorCode::kInternal:
      return "Internal";
    case ErrorCode::kCooperativeTooLarge:
      return "CooperativeTooLarge";
    case ErrorCode::kInvalidClusterSize:
      return "InvalidClusterSize";
  }
  return "Unknown";
}

bool is_sticky(ErrorCode code) {
  switch (code) {
    case ErrorCode::kIllegalAddress:
    case ErrorCode::kMisalignedAddress:
    case ErrorCode::kIllegalInstruction:
    case ErrorCode::kLaunchFailed:
    case ErrorCode::kLaunchTimeout:
    case ErrorCode::kAssert:
    case ErrorCode::kUnavailable:
      return true;
    default:
      return false;
  }
}

std::unexpected<Error> fail_errno(std::string_view what) {
  return fail_errno(what, errno);
}

std::unexpected<Error> fail_errno(std::string_view what, int error_number) {
  return fail(ErrorCode::kIo,
              std::string(what) + ": " + std::generic_category().message(error_number));
}

}  // namespace slate
