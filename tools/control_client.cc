#include "tools/control_client.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "ipc/rendezvous.h"

namespace slate::tools {
namespace {

using namespace std::chrono_literals;

constexpr auto kConnectTimeout = 3s;
constexpr auto kStatusTimeout = 5s;
constexpr std::size_t kMostBytes = 1 << 30;

/// Reads exactly `size` bytes unless the daemon goes, or is silent for `timeout`.
Result<std::string> read_exactly(int fd, std::size_t size, std::chrono::milliseconds timeout) {
  std::string text;
  std::array<char, 65536> buffer;
  while (text.size() < size) {
    pollfd poller{fd, POLLIN, 0};
    if (::poll(&poller, 1, static_cast<int>(timeout.count())) == 0)
      return fail(ErrorCode::kUnavailable, "slated does not answer");
    const ssize_t got = ::read(fd, buffer.data(), std::min(buffer.size(), size - text.size()));
    if (got == 0) return fail(ErrorCode::kUnavailable, "slated ended while it answered");
    if (got < 0 && errno != EAGAIN && errno != EINTR) return fail_errno("reading slated's answer");
    if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

Result<std::string> ask_daemon(const std::string& runtime_dir, ipc::ControlRequest request,
                               std::string_view text, std::chrono::milliseconds timeout) {
  request.text_bytes = static_cast<std::uint32_t>(text.size());
  std::string question(reinterpret_cast<const char*>(&request), sizeof(request));
  question += text;
  if (question.size() > ipc::kMaxControlBytes)
    return fail(ErrorCode::kInvalidValue, "the name is too long");
  const auto connection = ipc::connect_to_daemon(ipc::runtime_directory(runtime_dir),
                                                 ipc::HelloKind::kControl, kConnectTimeout);
  if (!connection) return std::unexpected(connection.error());
  if (::write(connection->to_daemon.get(), question.data(), question.size()) !=
      static_cast<ssize_t>(question.size())) {
    return fail_errno("asking slated");
  }
  const int fd = connection->from_daemon.get();
  const auto head = read_exactly(fd, sizeof(ipc::ControlReply), timeout);
  if (!head) return head;
  ipc::ControlReply reply;
  std::memcpy(&reply, head->data(), sizeof(reply));
  if (reply.magic != ipc::kMagic || reply.bytes > kMostBytes) {
    return fail(ErrorCode::kProtocol, "slated's answer makes no sense");
  }
  auto answer = read_exactly(fd, reply.bytes, timeout);
  if (answer && reply.status != 0) return fail(static_cast<ErrorCode>(reply.status), *answer);
  return answer;
}

Result<std::string> ask_status(const std::string& runtime_dir) {
  return ask_daemon(runtime_dir, {}, {}, kStatusTimeout);
}

}  // namespace slate::tools
