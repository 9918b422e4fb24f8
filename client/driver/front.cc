#include "client/driver/front.h"

#include <array>
#include <cstdio>

#include "client/session/error_table.h"
#include "client/session/say.h"

namespace slate::driver {
namespace {

/// CUresult and cudaError_t share their numbers but for these.
CUresult result_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidConfiguration:
      return CUDA_ERROR_INVALID_VALUE;
    case ErrorCode::kUnavailable:
    case ErrorCode::kProtocol:
      return CUDA_ERROR_DEVICE_UNAVAILABLE;
    default:
      return static_cast<CUresult>(client::cuda_error_number(code));
  }
}

CUresult result_of(client::Refusal why) {
  using client::Refusal;
  switch (why) {
    case Refusal::kNone:
      break;
    case Refusal::kInvalidValue:
    case Refusal::kInvalidDirection:
    case Refusal::kInvalidPitch:
    case Refusal::kBadElements:
    case Refusal::kBadFilter:
    case Refusal::kBadNormalization:
      return CUDA_ERROR_INVALID_VALUE;
    case Refusal::kOutOfMemory:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case Refusal::kNotSupported:
      return CUDA_ERROR_NOT_SUPPORTED;
    case Refusal::kIllegalState:
      return CUDA_ERROR_ILLEGAL_STATE;
    case Refusal::kInvalidHandle:
      return CUDA_ERROR_INVALID_HANDLE;
    case Refusal::kInvalidDevice:
      return CUDA_ERROR_INVALID_DEVICE;
    case Refusal::kHandleOfEnded:
      return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    case Refusal::kAlreadyRegistered:
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    case Refusal::kNotRegistered:
      return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    case Refusal::kInvalidFunction:
      return CUDA_ERROR_NOT_FOUND;
    case Refusal::kUnsupportedLimit:
      return CUDA_ERROR_UNSUPPORTED_LIMIT;
    case Refusal::kNotReady:
      return CUDA_ERROR_NOT_READY;
    case Refusal::kCaptureRefused:
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    case Refusal::kCaptureInvalid:
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    case Refusal::kCaptureMerge:
      return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    case Refusal::kCaptureUnmatched:
      return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    case Refusal::kCaptureUnjoined:
      return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    case Refusal::kCaptureIsolation:
      return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    case Refusal::kCaptureImplicit:
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    case Refusal::kCaptureWrongThread:
      return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    case Refusal::kCapturedEvent:
      return CUDA_ERROR_CAPTURED_EVENT;
  }
  return CUDA_ERROR_UNKNOWN;
}

}  // namespace

Failure::Failure(const Error& error) noexcept : code(result_of(error.code)) {
  client::say_failure(error);
}

Failure::Failure(const client::Refused& refused) noexcept
    : Failure(refused.why == client::Refusal::kNone ? Failure(refused.error)
                                                    : Failure(result_of(refused.why))) {}

void tell_failure(const char* name, CUresult code) noexcept {
  if (!client::verbose() || code == CUDA_ERROR_NOT_READY) return;
  const char* number = nullptr;
  std::array<char, 160> line;
  if (cuGetErrorName(code, &number) != CUDA_SUCCESS) number = "an unknown error";
  std::snprintf(line.data(), line.size(), "%s: %s", name, number);
  client::say(line.data());
}

}  // namespace slate::driver
