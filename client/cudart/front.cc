#include "client/cudart/front.h"

#include "client/cudart/last_error.h"
#include "client/session/error_table.h"
#include "client/session/say.h"

namespace slate::cudart {
namespace {

thread_local cudaError_t last_error_of_thread = cudaSuccess;

cudaError_t result_of(client::Refusal why) {
  using client::Refusal;
  switch (why) {
    case Refusal::kNone:
      break;
    case Refusal::kInvalidValue:
      return cudaErrorInvalidValue;
    case Refusal::kOutOfMemory:
      return cudaErrorMemoryAllocation;
    case Refusal::kNotSupported:
      return cudaErrorNotSupported;
    case Refusal::kIllegalState:
      return cudaErrorIllegalState;
    case Refusal::kInvalidHandle:
      return cudaErrorInvalidResourceHandle;
    case Refusal::kInvalidDevice:
      return cudaErrorInvalidDevice;
    case Refusal::kHandleOfEnded:
      return cudaErrorContextIsDestroyed;
    case Refusal::kAlreadyRegistered:
      return cudaErrorHostMemoryAlreadyRegistered;
    case Refusal::kNotRegistered:
      return cudaErrorHostMemoryNotRegistered;
    case Refusal::kInvalidFunction:
      return cudaErrorInvalidDeviceFunction;
    case Refusal::kInvalidDirection:
      return cudaErrorInvalidMemcpyDirection;
    case Refusal::kInvalidPitch:
      return cudaErrorInvalidPitchValue;
    case Refusal::kUnsupportedLimit:
      return cudaErrorUnsupportedLimit;
    case Refusal::kBadElements:
      return cudaErrorInvalidChannelDescriptor;
    case Refusal::kBadFilter:
      return cudaErrorInvalidFilterSetting;
    case Refusal::kBadNormalization:
      return cudaErrorInvalidNormSetting;
    case Refusal::kNotReady:
      return cudaErrorNotReady;
    case Refusal::kCaptureRefused:
      return cudaErrorStreamCaptureUnsupported;
    case Refusal::kCaptureInvalid:
      return cudaErrorStreamCaptureInvalidated;
    case Refusal::kCaptureMerge:
      return cudaErrorStreamCaptureMerge;
    case Refusal::kCaptureUnmatched:
      return cudaErrorStreamCaptureUnmatched;
    case Refusal::kCaptureUnjoined:
      return cudaErrorStreamCaptureUnjoined;
    case Refusal::kCaptureIsolation:
      return cudaErrorStreamCaptureIsolation;
    case Refusal::kCaptureImplicit:
      return cudaErrorStreamCaptureImplicit;
    case Refusal::kCaptureWrongThread:
      return cudaErrorStreamCaptureWrongThread;
    case Refusal::kCapturedEvent:
      return cudaErrorCapturedEvent;
  }
  return cudaErrorUnknown;
}

}  // namespace

Failure::Failure(const Error& error) noexcept
    : code(static_cast<cudaError_t>(client::cuda_error_number(error.code))) {
  client::say_failure(error);
}

Failure::Failure(const client::Refused& refused) noexcept
    : Failure(refused.why == client::Refusal::kNone ? Failure(refused.error)
                                                    : Failure(result_of(refused.why))) {}

cudaError_t remember(cudaError_t code) noexcept {
  if (code != cudaSuccess && code != cudaErrorNotReady) last_error_of_thread = code;
  return code;
}

cudaError_t& last_error() noexcept {
  return last_error_of_thread;
}

}  // namespace slate::cudart
