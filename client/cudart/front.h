// What all files of the front share: how a call finds the session, and how its outcome becomes a
// cudaError_t. An exported function is one expression: answer(), with_device() or with_session()
// around a lambda. These catch everything, so that no exception leaves libslate, and keep the
// thread's last error.
#pragma once

#include <cuda_runtime_api.h>

#include <exception>
#include <expected>
#include <new>

#include "base/result.h"
#include "client/session/box_copy.h"
#include "client/session/captures.h"
#include "client/session/process.h"
#include "client/session/program_streams.h"
#include "client/session/session.h"

namespace slate::cudart {

using client::address_of;
using client::Allowed;
using client::Captures;
using client::DefaultStream;
using client::number_of;
using client::pointer_to;
using client::Process;
using client::Session;

inline constexpr auto kLegacy = DefaultStream::kLegacy;
inline constexpr auto kPerThread = DefaultStream::kPerThread;

/// Why a call failed. Made from an Error it also tells the user, if that is wished.
struct Failure {
  cudaError_t code;
  Failure(cudaError_t number) noexcept : code(number) {}  // NOLINT: meant to convert
  Failure(const Error& error) noexcept;                   // NOLINT: meant to convert
  Failure(const client::Refused& refused) noexcept;       // NOLINT: meant to convert
};

using Answer = std::expected<void, Failure>;
template <typename T>
using Maybe = std::expected<T, Failure>;

inline std::unexpected<Failure> deny(cudaError_t code) {
  return std::unexpected<Failure>(code);
}

/// Makes `code` the thread's last error, and returns it. cudaErrorNotReady is no error.
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

/// Runs `body`, a (Session&) -> Answer, with the session, healthy or not. For calls that CUDA
/// answers after a lasting error, and for launches, which check by themselves.
template <typename Body>
cudaError_t with_device(const Body& body) noexcept {
  return answer([&]() -> Answer {
    auto session = Process::get().session();
    if (!session) return std::unexpected<Failure>(session.error());
    return body(**session);
  });
}

/// As above, but a lasting error, or that of an earlier asynchronous call, is the answer instead.
template <typename Body>
cudaError_t with_session(const Body& body) noexcept {
  return with_device([&](Session& session) -> Answer {
    if (auto ok = session.check(); !ok) return std::unexpected<Failure>(ok.error());
    return body(session);
  });
}

/// The id behind a stream handle. A null handle is the legacy default stream. In the entry points
/// that end in _ptsz and _ptds it is the thread's own: programs may be compiled so.
inline Maybe<std::uint64_t> stream_id(Session& session, cudaStream_t stream, DefaultStream zero) {
  return client::stream_of(session, address_of(stream), zero);
}
/// The id behind an event handle.
inline Maybe<std::uint64_t> event_id(Session& session, cudaEvent_t event) {
  return client::event_of(session, address_of(event));
}
/// The kernel behind a host function pointer or a cudaKernel_t.
inline Maybe<client::Kernel*> kernel_of(const void* function) {
  return client::kernel_of(function);
}
/// As kernel_of(), loaded into the session.
inline Maybe<client::Function*> loaded_function(Session& session, const void* function) {
  return client::function_of(session, function);
}

/// Writes a value to a place of the caller's.
template <typename T, typename U>
Answer give(T* where, const U& value) {
  if (where == nullptr) return deny(cudaErrorInvalidValue);
  *where = static_cast<T>(value);
  return {};
}

/// Writes the value, if there is one.
template <typename T, typename U, typename E>
Answer give(T* where, const std::expected<U, E>& value) {
  if (!value) return std::unexpected<Failure>(value.error());
  return give(where, *value);
}

/// Writes an address, or the handle that an id is to the program, if there is one.
template <typename T, typename E>
Answer give_address(T* where, const std::expected<std::uint64_t, E>& value) {
  if (!value) return std::unexpected<Failure>(value.error());
  return give(where, client::address_as<T>(*value));
}

/// Refuses work that cannot be captured, if its stream captures or it would break a capture.
inline std::optional<Answer> refuse_capture(Session& session, std::uint64_t stream) {
  if (!session.captures().takes(stream)) return std::nullopt;
  return Answer(session.captures().refuse_work(stream));
}

}  // namespace slate::cudart
