// Result<T> and Error: how a failed request reaches the session boundary, where one table
// (client/session/error_table.h) makes a cudaError_t of it. Not for broken invariants: those abort
// (base/check.h). Plain values. Thread: any.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace slate {

/// What went wrong, in CUDA's own categories, so that the client's table is one to one. The values
/// are in messages: append only.
enum class ErrorCode : std::uint32_t {
  kNone = 0,
  kInvalidValue = 1,          // an argument out of range, an address that is not the session's
  kOutOfMemory = 2,           // device memory, or the session's share of it, is used up
  kNotSupported = 3,          // this device or this version of slate cannot do it
  kInvalidHandle = 4,         // unknown stream, event, module or function id
  kSymbolNotFound = 5,        // no such function or variable in the module
  kInvalidPtx = 6,            // PTX that does not parse or assemble
  kNoKernelImage = 7,         // no code in the module fits this device
  kInvalidConfiguration = 8,  // grid, block or shared memory beyond the device's limits
  kOutOfResources = 9,        // too many registers or too much shared memory for this block size
  kIllegalAddress = 10,       // sticky: a kernel touched memory that is not its own
  kMisalignedAddress = 11,    // sticky
  kIllegalInstruction = 12,   // sticky
  kLaunchFailed = 13,         // sticky: trap, or any other fault inside a kernel
  kLaunchTimeout = 14,        // sticky: the kernel cannot make progress (deadlock found by sim)
  kAssert = 15,               // sticky: device-side assert
  kInitialization = 16,       // no daemon, or it refused the session
  kUnavailable = 17,          // the daemon or its engine is gone
  kProtocol = 18,             // the peer broke the protocol
  kPermission = 19,           // not this user's
  kLimit = 20,                // a configured limit of sessions, handles or queue space
  kIo = 21,                   // the operating system said no
  kInternal = 22,             // a failure inside slate or the driver that fits nothing above
  kCooperativeTooLarge = 23,  // a cooperative grid whose blocks are not all resident at once
  kInvalidClusterSize = 24,   // clusters that the kernel, or this device, cannot have
};

/// The name in the enum without the k, for logs and JSON ("IllegalAddress").
std::string_view error_name(ErrorCode code);

/// Whether CUDA lets a process do no more GPU work after this error.
bool is_sticky(ErrorCode code);

/// A failure; see ErrorCode for its kinds.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // one sentence for the log and stderr, with names, without a newline
};

template <typename T>
using Result = std::expected<T, Error>;

/// The error side of a Result: `return fail(ErrorCode::kInvalidValue, "block of 2000 threads");`
inline std::unexpected<Error> fail(ErrorCode code, std::string message) {
  return std::unexpected<Error>(Error{code, std::move(message)});
}

/// An Error of kIo with `what` and the text of errno, or of `error_number`.
std::unexpected<Error> fail_errno(std::string_view what);
std::unexpected<Error> fail_errno(std::string_view what, int error_number);

}  // namespace slate
