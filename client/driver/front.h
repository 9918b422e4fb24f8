// What all files of the front share: which calls may be made now, how a call finds the session, and
// how its outcome becomes a CUresult. An exported function is one expression: one of the functions
// below around a lambda. These catch everything, so that no exception leaves the library.
//
// cuda.h is read as the driver's own sources read it: every version of a function has its own name
// here, such as cuMemAlloc_v2. The variants for per-thread default streams (_ptds, _ptsz) are
// generated: they set Thread::zero and call the function without the suffix.
#pragma once

#define __CUDA_API_VERSION_INTERNAL  // NOLINT: the header's own switch
#include <cuda.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <expected>
#include <new>
#include <optional>

#include "base/result.h"
#include "client/driver/contexts.h"
#include "client/driver/life.h"
#include "client/session/box_copy.h"
#include "client/session/captures.h"
#include "client/session/process.h"
#include "client/session/program_streams.h"
#include "client/session/session.h"

namespace slate::driver {

using client::address_of;
using client::Allowed;
using client::Captures;
using client::number_of;
using client::pointer_to;
using client::Process;
using client::Session;

/// Why a call failed. Made from an Error it also tells the user, if that is wished.
struct Failure {
  CUresult code;
  Failure(CUresult number) noexcept : code(number) {}  // NOLINT: meant to convert
  Failure(const Error& error) noexcept;                // NOLINT: meant to convert
  Failure(const client::Refused& refused) noexcept;    // NOLINT: meant to convert
};

using Answer = std::expected<void, Failure>;
template <typename T>
using Maybe = std::expected<T, Failure>;

inline std::unexpected<Failure> deny(CUresult code) {
  return std::unexpected<Failure>(code);
}

/// Says that a call failed, if the user wants to know of each.
void tell_failure(const char* name, CUresult code) noexcept;

/// Runs `body`, an () -> Answer, whether or not cuInit() was called. `name`, here and below: the
/// function that calls.
template <typename Body>
CUresult answer(const Body& body, const char* name = __builtin_FUNCTION()) noexcept {
  try {
    const Answer outcome = body();
    if (outcome) [[likely]]
      return CUDA_SUCCESS;
    tell_failure(name, outcome.error().code);
    return outcome.error().code;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

/// Runs `body`, an () -> Answer, between cuInit() and the program's end, not in a forked child.
template <typename Body>
CUresult initialised(const Body& body, const char* name = __builtin_FUNCTION()) noexcept {
  if (const CUresult unusable = Life::usable(); unusable != CUDA_SUCCESS) [[unlikely]]
    return unusable;
  return answer(body, name);
}

/// Runs `body`, a (Session&) -> Answer, with the session, healthy or not, and without looking for a
/// context. For calls about the device.
template <typename Body>
CUresult with_device(const Body& body, const char* name = __builtin_FUNCTION()) noexcept {
  return initialised(
      [&]() -> Answer {
        auto session = Process::get().session();
        if (!session) return std::unexpected<Failure>(session.error());
        return body(**session);
      },
      name);
}

/// As above, if the thread has a live context. For calls that the driver answers after a lasting
/// error, and for launches, which check by themselves.
template <typename Body>
CUresult with_context(const Body& body, const char* name = __builtin_FUNCTION()) noexcept {
  return with_device(
      [&](Session& session) -> Answer {
        if (const CUresult unusable = Contexts::usable(); unusable != CUDA_SUCCESS) [[unlikely]]
          return deny(unusable);
        return body(session);
      },
      name);
}

/// `body`, a (Session&) -> Answer, but a lasting error, or that of an earlier asynchronous call, is
/// the answer instead. Requires: `body` outlives what is returned.
template <typename Body>
auto if_healthy(const Body& body) noexcept {
  return [&body](Session& session) -> Answer {
    if (auto ok = session.check(); !ok) return std::unexpected<Failure>(ok.error());
    return body(session);
  };
}

/// As with_context(), but if_healthy().
template <typename Body>
CUresult with_session(const Body& body, const char* name = __builtin_FUNCTION()) noexcept {
  return with_context(if_healthy(body), name);
}

/// As with_device(), but if_healthy(). For calls that take no context.
template <typename Body>
CUresult without_context(const Body& body, const char* name = __builtin_FUNCTION()) noexcept {
  return with_device(if_healthy(body), name);
}

/// The id behind a stream handle; null is the default stream that this call means (Thread::zero).
inline Maybe<std::uint64_t> stream_id(Session& session, CUstream stream) {
  return client::stream_of(session, address_of(stream), this_thread().zero);
}
/// The id behind an event handle.
inline Maybe<std::uint64_t> event_id(Session& session, CUevent event) {
  return client::event_of(session, address_of(event));
}

/// The kernel behind a CUfunction or CUkernel, loaded into the session. CUDA_ERROR_INVALID_HANDLE.
inline Maybe<client::Function*> loaded_kernel(Session& session, const void* handle) {
  if (handle == nullptr) return deny(CUDA_ERROR_INVALID_HANDLE);
  return client::function_of(session, handle);
}
/// As above, quickly: requires, as in the driver, that the handle is null or can be read.
inline Maybe<client::Function*> launched_kernel(Session& session, CUfunction handle) {
  if (handle == nullptr) return deny(CUDA_ERROR_INVALID_HANDLE);
  std::uint64_t mark = 0;
  std::memcpy(&mark, handle, sizeof(mark));
  if (mark != client::Kernel::kMark) [[unlikely]]
    return deny(CUDA_ERROR_INVALID_HANDLE);
  const auto& kernel = *reinterpret_cast<const client::Kernel*>(handle);
  client::Function* const known = kernel.function.load(std::memory_order_acquire);
  if (known != nullptr && known->session == session.serial()) [[likely]]
    return known;
  return loaded_kernel(session, handle);
}

/// Writes a value to a place of the caller's.
template <typename T, typename U>
Answer give(T* where, const U& value) {
  if (where == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
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

/// Refuses any device but number 0, the daemon's.
inline Answer need_device(CUdevice device) {
  if (device != 0) return deny(CUDA_ERROR_INVALID_DEVICE);
  return {};
}

}  // namespace slate::driver
