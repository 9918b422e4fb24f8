#include "tools/control_client.h"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "ipc/meeting.h"
#include "ipc/packets.h"

namespace slate::tools {
namespace {

using namespace std::chrono_literals;

constexpr auto kConnectTimeout = 3s;
constexpr auto kStatusTimeout = 5s;
constexpr std::size_t kMostBytes = 1 << 30;

/// A stream that comes in packets. It ends when the daemon goes, or is silent for `timeout`.
class Answer {
 public:
  Answer(int socket, std::chrono::milliseconds timeout) : socket_(socket), timeout_(timeout) {}

  Result<std::string> read(std::size_t size) {
    while (come_.size() < size) {
      pollfd poller{socket_, POLLIN, 0};
      if (::poll(&poller, 1, static_cast<int>(timeout_.count())) == 0)
        return fail(ErrorCode::kUnavailable, "slated does not answer");
      std::array<char, ipc::kMaxControlBytes> buffer;
      const iovec piece{buffer.data(), buffer.size()};
      const auto packet = ipc::receive_packet(socket_, {&piece, 1});
      if (!packet) return fail(ErrorCode::kUnavailable, "slated ended while it answered");
      if (*packet) come_.append(buffer.data(), (*packet)->bytes);
    }
    std::string text = come_.substr(0, size);
    come_.erase(0, size);
    return text;
  }

 private:
  const int socket_;
  const std::chrono::milliseconds timeout_;
  std::string come_;  // and was not read yet
};

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
  const iovec piece{question.data(), question.size()};
  const int socket = connection->socket.get();
  if (const auto sent = ipc::send_packet(socket, {&piece, 1}); !sent)
    return std::unexpected(sent.error());
  Answer stream(socket, timeout);
  const auto head = stream.read(sizeof(ipc::ControlReply));
  if (!head) return head;
  ipc::ControlReply reply;
  std::memcpy(&reply, head->data(), sizeof(reply));
  if (reply.magic != ipc::kMagic || reply.bytes > kMostBytes) {
    return fail(ErrorCode::kProtocol, "slated's answer makes no sense");
  }
  auto answer = stream.read(reply.bytes);
  if (answer && reply.status != 0) return fail(static_cast<ErrorCode>(reply.status), *answer);
  return answer;
}

int print_answer(const Result<std::string>& answer) {
  if (!answer) {
    fmt::print(stderr, "slatectl: {}\n", answer.error().message);
    return 1;
  }
  std::fputs(answer->c_str(), stdout);
  return 0;
}

Result<std::string> ask_status(const std::string& runtime_dir) {
  return ask_daemon(runtime_dir, {}, {}, kStatusTimeout);
}

}  // namespace slate::tools
