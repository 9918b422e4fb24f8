// Refused: why the core did not do what the program asked for. An Error comes from the session. A
// Refusal is a rule of CUDA; each of CUDA's APIs has its own number for it.
#pragma once

#include <expected>
#include <utility>

#include "base/result.h"

namespace slate::client {

enum class Refusal {
  kNone,
  kInvalidValue,
  kOutOfMemory,
  kNotSupported,
  kIllegalState,
  kInvalidHandle,
  kInvalidDevice,
  kHandleOfEnded,      // a handle of an earlier session
  kAlreadyRegistered,  // host memory of which some is pinned
  kNotRegistered,
  kInvalidFunction,   // a kernel that is not in the code
  kInvalidDirection,  // a copy's direction that does not exist, or that its sides contradict
  kInvalidPitch,      // rows or slices that are too short
  kUnsupportedLimit,  // a limit that the device does not have
  kBadElements,       // elements that no array has
  kBadFilter,         // a texture's elements that cannot be filtered
  kBadNormalization,  // a texture's elements that cannot be read as fractions
  kNotReady,          // work that is not done, or an event that is not reached
  kCaptureRefused,    // a call that no stream can capture, or that a capture forbids
  kCaptureInvalid,    // the capture was lost earlier
  kCaptureMerge,      // an event of another capture
  kCaptureUnmatched,  // the end on another stream than the beginning
  kCaptureUnjoined,   // work that the first stream does not wait for
  kCaptureIsolation,  // an event that was recorded outside the capture
  kCaptureImplicit,   // work that the default stream would have to wait for
  kCaptureWrongThread,
  kCapturedEvent,  // an event whose last record was captured
};

struct Refused {
  Refusal why = Refusal::kNone;
  Error error;  // the reason if `why` is kNone

  Refused(Refusal rule) : why(rule) {}                 // NOLINT: meant to convert
  Refused(Error reason) : error(std::move(reason)) {}  // NOLINT: meant to convert
};

template <typename T>
using Allowed = std::expected<T, Refused>;

inline std::unexpected<Refused> refuse(Refusal why) {
  return std::unexpected<Refused>(why);
}

}  // namespace slate::client
