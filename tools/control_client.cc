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
constexpr auto kReplyTimeout = 5s;
constexpr std::size_t kMostBytes = 64 << 20;

/// Reads exactly `size` bytes unless the daemon goes or `deadline` comes first.
Result<std::string> read_exactly(int fd, std::size_t size,
                                 std::chrono::steady_clock::time_point deadline) {
  std::string text;
  std::array<char, 65536> buffer;
  while (text.size() < size) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return fail(ErrorCode::kUnavailable, "slated does not answer");
    pollfd poller{fd, POLLIN, 0};
    ::poll(&poller, 1, static_cast<int>(left.count()));
    const ssize_t got = ::read(fd, buffer.data(), std::min(buffer.size(), size - text.size()));
    if (got == 0) return fail(ErrorCode::kUnavailable, "slated ended while it answered");
    if (got < 0 && errno != EAGAIN && errno != EINTR) return fail_errno("reading slated's answer");
    if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

Result<std::string> ask_status(const std::string& runtime_dir) {
  const auto connection = ipc::connect_to_daemon(ipc::runtime_directory(runtime_dir),
                                                 ipc::HelloKind::kControl, kConnectTimeout);
  if (!connection) return std::unexpected(connection.error());
  const ipc::ControlRequest request;
  if (::write(connection->to_daemon.get(), &request, sizeof(request)) != sizeof(request)) {
    return fail_errno("asking slated");
  }
  const int fd = connection->from_daemon.get();
  const auto deadline = std::chrono::steady_clock::now() + kReplyTimeout;
  const auto head = read_exactly(fd, sizeof(ipc::ControlReply), deadline);
  if (!head) return head;
  ipc::ControlReply reply;
  std::memcpy(&reply, head->data(), sizeof(reply));
  if (reply.magic != ipc::kMagic || reply.bytes > kMostBytes) {
    return fail(ErrorCode::kProtocol, "slated's answer makes no sense");
  }
  auto text = read_exactly(fd, reply.bytes, deadline);
  if (text && reply.status != 0) return fail(static_cast<ErrorCode>(reply.status), *text);
  return text;
}

}  // namespace slate::tools
