#include "daemon/reader/text_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/out_of_memory.h"
#include "base/spawn.h"
#include "base/unique_fd.h"
#include "base/user_log.h"
#include "daemon/reader/reader_main.h"

namespace slate::daemon {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// How often a question asks whether it is still wanted, and what it has cost.
constexpr milliseconds kAskAgain{20};

class ReaderHere final : public TextReader {
 public:
  explicit ReaderHere(std::string_view text, IsOver is_over)
      : reading_(std::string(text), std::move(is_over)) {}
  bool is_good() const override { return true; }

 private:
  Result<std::vector<std::byte>> ask(const Question& question, const IsOver& /*is_over*/) override {
    return or_out_of_memory(
        [&]() -> Result<std::vector<std::byte>> { return reading_.answer(pack(question)); });
  }

  Reading reading_;
};

/// A child that is killed and reaped with the object.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {
    if (::clock_getcpuclockid(pid, &clock_) != 0) clock_ = CLOCK_PROCESS_CPUTIME_ID;
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Processor time so far.
  milliseconds cpu() const {
    timespec time{};
    if (pid_ == 0 || ::clock_gettime(clock_, &time) != 0) return {};
    return std::chrono::duration_cast<milliseconds>(std::chrono::seconds(time.tv_sec) +
                                                    std::chrono::nanoseconds(time.tv_nsec));
  }
  /// How it ended, as of waitpid(); one that has not ended is killed.
  int end() {
    if (pid_ == 0) return status_;
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status_;
  }

 private:
  pid_t pid_;  // 0 once reaped
  clockid_t clock_{};
  int status_ = 0;
};

class ReaderProcess final : public TextReader {
 public:
  ReaderProcess(const ReaderSettings& settings, pid_t pid, UniqueFd socket, std::size_t text_bytes)
      : settings_(settings),
        child_(pid),
        socket_(std::move(socket)),
        most_answer_((std::size_t{32} << 20) + 4 * text_bytes) {}

  /// Gives it the text. Errors: kIo, with its words if it has any.
  Result<void> begin(std::string_view text, const IsOver& is_over) {
    const Limit limit = limit_from_now(is_over);
    const std::uint64_t size = text.size();
    if (const auto sent = send(&size, sizeof(size), limit); !sent) return sent;
    const auto why = receive_message(limit);
    if (!why) return std::unexpected(why.error());
    if (!why->empty()) {
      return fail(ErrorCode::kIo, "readers of code cannot be confined: " +
                                      std::string(reinterpret_cast<const char*>(why->data()),
                                                  std::min<std::size_t>(why->size(), 512)));
    }
    return send(text.data(), text.size(), limit);
  }

  bool is_good() const override { return static_cast<bool>(socket_); }

 private:
  struct Limit {
    Clock::time_point time;
    milliseconds cpu;
    const IsOver& is_over;
  };

  Limit limit_from_now(const IsOver& is_over) const {
    return {Clock::now() + settings_.most_wait, child_.cpu() + settings_.most_cpu, is_over};
  }

  Result<std::vector<std::byte>> ask(const Question& question, const IsOver& is_over) override {
    if (!socket_) return fail(ErrorCode::kIo, "the reader of this code has ended");
    const Limit limit = limit_from_now(is_over);
    const std::vector<std::byte> bytes = pack(question);
    const std::uint64_t size = bytes.size();
    auto done = send(&size, sizeof(size), limit);
    if (done) done = send(bytes.data(), bytes.size(), limit);
    if (!done) return std::unexpected(done.error());
    return receive_message(limit);
  }

  Result<std::vector<std::byte>> receive_message(const Limit& limit) {
    std::uint64_t size = 0;
    if (const auto got = receive(&size, sizeof(size), limit); !got)
      return std::unexpected(got.error());
    if (size > most_answer_) return give_up({ErrorCode::kIo, "a reader's answer is too long"});
    return or_out_of_memory([&]() -> Result<std::vector<std::byte>> {
      std::vector<std::byte> bytes(size);
      if (const auto got = receive(bytes.data(), bytes.size(), limit); !got)
        return std::unexpected(got.error());
      return bytes;
    });
  }

  Result<void> send(const void* data, std::size_t bytes, const Limit& limit) {
    const auto* at = static_cast<const std::byte*>(data);
    return transfer(bytes, POLLOUT, limit, [&](std::size_t left) {
      const ssize_t put = ::send(socket_.get(), at, left, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put > 0) at += put;
      return put;
    });
  }

  Result<void> receive(void* to, std::size_t bytes, const Limit& limit) {
    auto* at = static_cast<std::byte*>(to);
    return transfer(bytes, POLLIN, limit, [&](std::size_t left) {
      const ssize_t got = ::recv(socket_.get(), at, left, MSG_DONTWAIT);
      if (got > 0) at += got;
      return got;
    });
  }

  /// Moves bytes until all are there. The limits are looked at before each wait: a reader that a
  /// text has taken over may trickle.
  template <typename Move>
  Result<void> transfer(std::size_t left, short event, const Limit& limit, const Move& move) {
    while (left != 0) {
      if (const auto why = beyond(limit)) return give_up(*why);
      const ssize_t moved = move(left);
      if (moved > 0) {
        left -= static_cast<std::size_t>(moved);
        continue;
      }
      const bool waits = moved < 0 && (errno == EAGAIN || errno == EINTR);
      if (!waits) return give_up(how_it_ended());
      pollfd poller{socket_.get(), event, 0};
      (void)::poll(&poller, 1, static_cast<int>(kAskAgain.count()));
    }
    return {};
  }

  std::optional<Error> beyond(const Limit& limit) const {
    if (child_.cpu() > limit.cpu)
      return Error{ErrorCode::kLimit, "its text takes too much processor time to read"};
    if (Clock::now() > limit.time)
      return Error{ErrorCode::kIo, "its text could not be read in time"};
    if (limit.is_over && limit.is_over())
      return Error{ErrorCode::kIo, "its code is no longer wanted"};
    return std::nullopt;
  }

  Error how_it_ended() {
    const int status = child_.end();
    std::string how = fmt::format("status {}", WEXITSTATUS(status));
    if (WIFSIGNALED(status)) how = fmt::format("signal {}", sigabbrev_np(WTERMSIG(status)));
    log_of_user(kUnknownUser, LogLevel::kWarning, "a reader of a program's code ended by {}", how);
    return {ErrorCode::kIo, fmt::format("the reader of its code ended by {}", how)};
  }

  /// No further question: what is left of the answer would be taken for the next one.
  std::unexpected<Error> give_up(Error why) {
    socket_.reset();
    child_.end();
    return std::unexpected(std::move(why));
  }

  const ReaderSettings settings_;
  Child child_;
  UniqueFd socket_;  // none: it has ended
  const std::size_t most_answer_;
};

}  // namespace

Result<std::unique_ptr<TextReader>> TextReader::open(const ReaderSettings& settings,
                                                     std::string_view text, const IsOver& is_over) {
  if (settings.program.empty()) return std::make_unique<ReaderHere>(text, is_over);
  if (text.size() > kMostReadBytes) return fail(ErrorCode::kLimit, "a text of more than 1 GiB");
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno("a reader's socket");
  UniqueFd ours(ends[0]);
  UniqueFd its(ends[1]);
  Spawn spawn;
  for (const int fd : {0, 1, 2})
    posix_spawn_file_actions_addopen(spawn.files(), fd, "/dev/null", O_RDWR, 0);
  posix_spawn_file_actions_adddup2(spawn.files(), its.get(), kReaderFd);
  posix_spawn_file_actions_addclosefrom_np(spawn.files(), kReaderFd + 1);
  spawn.in_own_group();
  const std::string words[] = {"slated", std::string(kReaderArgument)};
  const auto pid = spawn.start(settings.program, words);
  if (!pid) return std::unexpected(pid.error());
  its.reset();  // so that its end shows here
  auto reader = std::make_unique<ReaderProcess>(settings, *pid, std::move(ours), text.size());
  if (const auto begun = reader->begin(text, is_over); !begun)
    return std::unexpected(begun.error());
  return reader;
}

Result<std::uint64_t> TextReader::variable_bytes(const IsOver& is_over) {
  const auto answer = ask({.topic = Topic::kVariables}, is_over);
  if (!answer) return std::unexpected(answer.error());
  return unpack_variables(*answer);
}

Result<PlacedText> TextReader::place_variables(std::span<const injector::PlacedVariable> placed,
                                               const IsOver& is_over) {
  const auto answer =
      ask({.topic = Topic::kPlaces, .placed = {placed.begin(), placed.end()}}, is_over);
  if (!answer) return std::unexpected(answer.error());
  return unpack_places(*answer, placed.size());
}

Result<HomedCode> TextReader::move_home(device::AddressRange home, const IsOver& is_over) {
  const auto answer = ask({.topic = Topic::kHome, .home = home}, is_over);
  if (!answer) return std::unexpected(answer.error());
  return unpack_home(*answer, home);
}

Result<FormText> TextReader::write_forms(const FormRequest& request, const IsOver& is_over) {
  const auto answer = ask({.topic = Topic::kForms, .forms = request}, is_over);
  if (!answer) return std::unexpected(answer.error());
  return unpack_forms(*answer, request);
}

}  // namespace slate::daemon
