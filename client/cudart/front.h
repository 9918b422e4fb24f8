// What every file of the front shares: how a call finds the session, and how its outcome becomes a
// cudaError_t. An exported function is one expression: answer(), with_device() or with_session()
// around a lambda. These catch everything, so no exception leaves libslate, and keep the thread's
// last error.
#pragma once

#include <cuda_runtime_api.h>

#include <exception>
#include <expected>
#include <new>

#include "base/result.h"
#include "client/cudart/process.h"
#include "client/session/session.h"

namespace slate::cudart {

using client::Session;

/// Why a call failed. Made from an Error it also tells the user, as far as that is wished.
struct Failure {
  cudaError_t code;
  Failure(cudaError_t number) noexcept : code(number) {}  // NOLINT: meant to convert
  Failure(const Error& error) noexcept;                   // NOLINT: meant to convert
};

using Answer = std::expected<void, Failure>;
template <typename T>
using Maybe = std::expected<T, Failure>;

inline std::unexpected<Failure> deny(cudaError_t code) {
  return std::unexpected<Failure>(code);
}

/// Makes `code` the thread's last error, if it is an error (cudaErrorNotReady is none). Returns it.
cudaError_t remember(cudaError_t code) noexcept;

/// Runs `body`, an () -> Answer.
template <typename Body>
cudaError_t answer(const Body& body) noexcept {
  try {
    const Answer outcome = body();
    return outcome ? cudaSuccess : remember(outcome.error().code);
  } catch (const std::bad_alloc&) {
    return remember(cudaErrorMemoryAllocation);
  } catch (...) {
    return remember(cudaErrorUnknown);
  }
}

/// Runs `body`, a (Session&) -> Answer, with the session, be it healthy or not. For what a session
/// that suffered a lasting error still answers in CUDA, and for launches, which find out by
/// themselves.
template <typename Body>
cudaError_t with_device(const Body& body) noexcept {
  return answer([&]() -> Answer {
    auto session = Process::get().session();
    if (!session) return std::unexpected<Failure>(session.error());
    return body(**session);
  });
}

/// The same, but a lasting error, or that of an earlier asynchronous call, is the answer instead.
template <typename Body>
cudaError_t with_session(const Body& body) noexcept {
  return with_device([&](Session& session) -> Answer {
    if (auto ok = session.check(); !ok) return std::unexpected<Failure>(ok.error());
    return body(session);
  });
}

/// Writes what kernels have printed to stdout, and their failed assertions to stderr. Every call
/// that waits for the device does this.
void write_printed(Session& session);

// --- Handles
// -------------------------------------------------------------------------------------------------

/// What stream 0 means: the entry points that end in _ptsz and _ptds are those of programs compiled
/// with per-thread default streams.
enum class DefaultStream { kLegacy, kPerThread };

/// The id behind a stream handle.
Maybe<std::uint64_t> stream_id(Session& session, cudaStream_t stream, DefaultStream zero);
/// Also ends what it captures, and forgets its attributes.
Answer destroy_stream(Session& session, std::uint64_t stream);
/// The id behind an event handle.
Maybe<std::uint64_t> event_id(Session& session, cudaEvent_t event);

inline std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}
inline void* pointer_to(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

/// The kernel that a host function pointer, or a cudaKernel_t, stands for.
Maybe<client::Kernel*> kernel_of(const void* function);
/// The same, loaded.
Maybe<client::Function*> function_of(Session& session, const void* function);

}  // namespace slate::cudart
