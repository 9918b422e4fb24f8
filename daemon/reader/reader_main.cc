#include "daemon/reader/reader_main.h"

#include <cstdint>
#include <span>
#include <vector>

#include "base/out_of_memory.h"
#include "base/whole_bytes.h"
#include "daemon/reader/reading.h"
#include "daemon/reader/sandbox.h"

namespace slate::daemon {
namespace {

bool receive_size(std::uint64_t& size) {
  return read_all(kReaderFd, std::as_writable_bytes(std::span(&size, 1))) && size <= kMostReadBytes;
}

bool send_message(std::span<const std::byte> bytes) {
  const std::uint64_t size = bytes.size();
  return write_all(kReaderFd, std::as_bytes(std::span(&size, 1))) && write_all(kReaderFd, bytes);
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
    if (!read_all(kReaderFd, question)) return 0;
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
  if (!read_all(kReaderFd, std::as_writable_bytes(std::span(text)))) return 0;
  return serve(std::move(text));
}

}  // namespace slate::daemon
