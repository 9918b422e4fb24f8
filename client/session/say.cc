#include "client/session/say.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_set>

#include "base/mutex.h"

namespace slate::client {
namespace {

/// Never destroyed: a program's own exit handlers may still call CUDA.
struct Said {
  Mutex mutex;
  std::unordered_set<std::string> texts SLATE_GUARDED_BY(mutex);
};

Said& said() {
  static Said* const instance = new Said;
  return *instance;
}

/// Errors that a program cannot explain by its number alone, and that do not come in masses. Those
/// that last, the session says by itself.
bool worth_saying(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotSupported:
    case ErrorCode::kInvalidPtx:
    case ErrorCode::kNoKernelImage:
    case ErrorCode::kInitialization:
    case ErrorCode::kProtocol:
    case ErrorCode::kPermission:
    case ErrorCode::kLimit:
    case ErrorCode::kIo:
    case ErrorCode::kInternal:
      return true;
    default:
      return false;
  }
}

}  // namespace

void say(std::string_view text) noexcept {
  // One write(), so that lines of several threads and processes do not mix.
  std::array<char, 1024> line;
  constexpr std::string_view kPrefix = "slate: ";
  const std::size_t room = line.size() - kPrefix.size() - 1;
  const std::size_t length = text.size() < room ? text.size() : room;
  std::memcpy(line.data(), kPrefix.data(), kPrefix.size());
  std::memcpy(line.data() + kPrefix.size(), text.data(), length);
  line[kPrefix.size() + length] = '\n';
  const int before = errno;
  [[maybe_unused]] const ssize_t n =
      ::write(STDERR_FILENO, line.data(), kPrefix.size() + length + 1);
  errno = before;
}

void say_once(std::string_view text) noexcept {
  try {
    MutexLock lock(said().mutex);
    if (!said().texts.emplace(text).second) return;
  } catch (...) {
    // Out of memory: better said twice than not at all.
  }
  say(text);
}

void say_failure(const Error& error) noexcept {
  if (verbose()) {
    say(error.message);
  } else if (worth_saying(error.code)) {
    say_once(error.message);
  }
}

bool verbose() noexcept {
  static const bool answer = [] {
    const char* value = std::getenv("SLATE_VERBOSE");
    return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
  }();
  return answer;
}

}  // namespace slate::client
