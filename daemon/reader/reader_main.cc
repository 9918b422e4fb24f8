#include "daemon/reader/reader_main.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "base/out_of_memory.h"
#include "daemon/reader/reading.h"
#include "daemon/reader/sandbox.h"

namespace slate::daemon {
namespace {

bool receive(void* to, std::size_t bytes) {
  auto* at = static_cast<std::byte*>(to);
  while (bytes != 0) {
    const ssize_t got = ::read(kReaderFd, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool send(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  while (bytes != 0) {
    const ssize_t put = ::write(kReaderFd, at, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    at += put;
    bytes -= static_cast<std::size_t>(put);
  }
  return true;
}

bool receive_size(std::uint64_t& size) {
  return receive(&size, sizeof(size)) && size <= kMostReadBytes;
}

bool send_message(std::span<const std::byte> bytes) {
  const std::uint64_t size = bytes.size();
  return send(&size, sizeof(size)) && send(bytes.data(), bytes.size());
}

std::vector<std::byte> answer_to(Reading& reading, std::span<const std::byte> question) {
  auto answer = or_out_of_memory(
      [&]() -> Result<std::vector<std::byte>> { return reading.answer(question); });
  if (answer) return std::move(*answer);
  return Reading::refusal(
      {ErrorCode::kLimit, "slate needs more memory to read this text than it gives to one"});
}

int serve(std::string text) {
  Reading reading(std::move(text));
  std::uint64_t size = 0;
  while (receive_size(size)) {
    std::vector<std::byte> question(size);
    if (!receive(question.data(), question.size())) return 0;
    if (!send_message(answer_to(reading, question))) return 0;
  }
  return 0;
}

}  // namespace

int run_reader() {
  std::uint64_t size = 0;
  if (!receive_size(size)) return 0;
  auto ready = limit_reader(size);
  if (ready) ready = enter_sandbox();
  const std::string_view why = ready ? std::string_view() : ready.error().message;
  if (!send_message(std::as_bytes(std::span(why))) || !ready) return 1;
  std::string text(size, '\0');
  if (!receive(text.data(), text.size())) return 0;
  return serve(std::move(text));
}

}  // namespace slate::daemon
