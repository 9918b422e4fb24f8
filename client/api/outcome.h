// The outcome of a function of slate.h: a status, and for a failure the thread's last message.
// guarded() is around each of these functions: no exception leaves libslate. Any thread.
#pragma once

#include <exception>
#include <expected>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

#define SLATE_C_ONLY  // slate::Error of the C++ layer is for users; here it is base/result.h's
#include "client/slate.h"

namespace slate::api {

struct Failure {
  slate_status status = SLATE_ERROR_UNKNOWN;
  std::string message;
};

template <typename T>
using Outcome = std::expected<T, Failure>;

inline std::unexpected<Failure> refuse(slate_status status, std::string message) {
  return std::unexpected<Failure>(Failure{status, std::move(message)});
}

inline std::unexpected<Failure> deny_null(const char* what) {
  return refuse(SLATE_ERROR_INVALID_VALUE, std::string(what) + " is null");
}

/// An error of the session core or of the daemon; `about` ("kernel blur") opens its message.
std::unexpected<Failure> refuse(const Error& error, std::string_view about = {});

/// Keeps `message` as the thread's last message, and returns `status`.
slate_status remember(slate_status status, std::string_view message) noexcept;

/// The thread's message from remember(); "" before the first one.
const char* last_message() noexcept;

/// Runs `body`, an () -> Outcome<void>, and catches everything.
template <typename Body>
slate_status guarded(const Body& body) noexcept {
  try {
    const Outcome<void> outcome = body();
    if (outcome) return SLATE_SUCCESS;
    return remember(outcome.error().status, outcome.error().message);
  } catch (const std::bad_alloc&) {
    return remember(SLATE_ERROR_OUT_OF_MEMORY, "the host is out of memory");
  } catch (const std::exception& caught) {
    return remember(SLATE_ERROR_UNKNOWN, caught.what());
  } catch (...) {
    return remember(SLATE_ERROR_UNKNOWN, "unknown failure");
  }
}

}  // namespace slate::api
