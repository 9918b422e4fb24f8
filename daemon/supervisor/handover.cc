#include "daemon/supervisor/handover.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <span>
#include <utility>

#include "base/whole_bytes.h"
#include "ipc/shared_memory.h"

namespace slate::daemon {
namespace {

using nlohmann::json;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

int Handover::pass(int fd) {
  if (fd >= 0 && ::fcntl(fd, F_SETFD, 0) == 0) passed_.push_back(fd);
  return fd;
}

/// Engines that start later must not inherit them.
void Handover::keep_all() {
  for (const int fd : std::exchange(passed_, {})) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

Error Handover::run(const std::string& program, const std::vector<std::string>& arguments,
                    const json& state) {
  const std::string text = state.dump(-1, ' ', false, json::error_handler_t::replace);
  const auto memory = ipc::make_shared_memory("slate-handover", text.size());
  Error why{ErrorCode::kIo, {}};
  if (memory && write_all(memory->get(), bytes_of(text))) {
    pass(memory->get());
    std::vector<char*> words;
    words.reserve(arguments.size() + 1);
    for (const std::string& each : arguments) words.push_back(const_cast<char*>(each.c_str()));
    words.push_back(nullptr);
    ::setenv(kVariable, std::to_string(memory->get()).c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    ::execv(program.c_str(), words.data());
    why.message = program + ": " + std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
    ::unsetenv(kVariable);                                // NOLINT(concurrency-mt-unsafe)
  } else {
    why.message = memory ? "the state could not be written" : memory.error().message;
  }
  keep_all();
  return why;
}

Result<json> Handover::received() {
  const char* const number = ::getenv(kVariable);  // NOLINT(concurrency-mt-unsafe)
  if (number == nullptr) return json();
  const std::string_view digits = number;
  int fd = -1;
  std::from_chars(digits.data(), digits.data() + digits.size(), fd);
  ::unsetenv(kVariable);  // NOLINT(concurrency-mt-unsafe)
  const UniqueFd memory = take(fd);
  struct stat size {};
  if (!memory || ::fstat(memory.get(), &size) != 0 || ::lseek(memory.get(), 0, SEEK_SET) != 0)
    return fail_errno("the state of the slated before");
  std::string text(static_cast<std::size_t>(size.st_size), '\0');
  if (!read_all(memory.get(), std::as_writable_bytes(std::span(text))))
    return fail_errno("the state of the slated before");
  text.resize(std::strlen(text.c_str()));  // shared memory is whole pages
  json state = json::parse(text, nullptr, false);
  if (!state.is_object()) return fail(ErrorCode::kProtocol, "the slated before left no state");
  return state;
}

UniqueFd Handover::take(const json& number) {
  UniqueFd fd(number.get<int>());
  if (fd) ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  return fd;
}

}  // namespace slate::daemon
