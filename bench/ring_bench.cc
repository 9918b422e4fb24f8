// Commands a second from one thread to another through the command ring, a bare FIFO and a UNIX
// socket, and what a round trip takes; the same record, the size of a small launch, each time.
// Needs no GPU. One JSON line a carrier.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "bench/median.h"
#include "tests/unit/ipc/channel_pair.h"

namespace {

using namespace slate;
using namespace slate::bench;

struct Record {
  ipc::Launch launch;
  std::array<std::byte, 40> parameters;
};

struct Numbers {
  double per_second;
  double round_trip_us;
};

double seconds_since(std::int64_t start) {
  return static_cast<double>(now_ns() - start) * 1e-9;
}

/// `send` sends one record without waiting, `ask` sends one and waits for its answer.
Numbers measure(int count, const std::function<void()>& send, const std::function<void()>& ask) {
  ask();
  const std::int64_t start = now_ns();
  for (int i = 0; i < count; ++i) send();
  ask();
  const double rate = count / seconds_since(start);
  std::vector<double> trips;
  for (int i = 0; i < std::max(count / 100, 20); ++i) {
    const std::int64_t begin = now_ns();
    ask();
    trips.push_back(seconds_since(begin) * 1e6);
  }
  return {rate, median(std::move(trips))};
}

Numbers through_ring(int count) {
  auto pair = ipc::make_channel_pair();
  std::thread engine([&] {
    ipc::Command command;
    while (pair.engine->wait() == ipc::EngineChannel::Wait::kCommand) {
      while (pair.engine->try_pop(command).value_or(false)) {
        const auto& header = command.header;
        if (header.reply_slot == ipc::kNoReply) continue;
        pair.engine->reply(header.reply_slot, header.reply_sequence, {});
      }
    }
  });
  const Record record{};
  const auto numbers = measure(
      count,
      [&] {
        const auto sent = pair.client->post(ipc::CommandType::kLaunch, ipc::bytes_of(record.launch),
                                            record.parameters);
        if (!sent) std::abort();
      },
      [&] {
        const auto asked =
            pair.client->call(ipc::CommandType::kSynchronize, ipc::bytes_of(ipc::Target{}), {}, {});
        if (!asked) std::abort();
      });
  pair.client.reset();
  engine.join();
  return numbers;
}

/// Reads or writes all of `bytes`; false at the end of the stream.
template <typename Call>
bool whole(Call call, int fd, std::byte* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t done = call(fd, bytes, count);
    if (done <= 0) return false;
    bytes += done;
    count -= static_cast<std::size_t>(done);
  }
  return true;
}

/// A record's first byte says whether it wants an answer of one byte.
Numbers through_descriptors(int count, int to, int from, int answers_out, int answers_in) {
  std::thread engine([=] {
    std::array<std::byte, sizeof(Record)> bytes;
    while (whole(::read, from, bytes.data(), bytes.size())) {
      if (bytes[0] != std::byte{0}) whole(::write, answers_out, bytes.data(), 1);
    }
  });
  std::array<std::byte, sizeof(Record)> quiet{}, asking{};
  asking[0] = std::byte{1};
  const auto numbers = measure(
      count, [&] { whole(::write, to, quiet.data(), quiet.size()); },
      [&] {
        std::byte answer{};
        whole(::write, to, asking.data(), asking.size());
        whole(::read, answers_in, &answer, 1);
      });
  ::shutdown(to, SHUT_WR);
  ::close(to);
  engine.join();
  return numbers;
}

Numbers through_fifo(int count) {
  int there[2], back[2];
  if (::pipe2(there, O_CLOEXEC) != 0 || ::pipe2(back, O_CLOEXEC) != 0) std::abort();
  const auto numbers = through_descriptors(count, there[1], there[0], back[1], back[0]);
  for (const int fd : {there[0], back[0], back[1]}) ::close(fd);
  return numbers;
}

Numbers through_socket(int count) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  const int answers = ::dup(ends[0]);
  const auto numbers = through_descriptors(count, ends[0], ends[1], ends[1], answers);
  ::close(answers);
  ::close(ends[1]);
  return numbers;
}

void print(const char* carrier, const Numbers& numbers) {
  std::printf("{\"case\": \"%s\", \"per_second\": %.0f, \"round_trip_us\": %.3f}\n", carrier,
              numbers.per_second, numbers.round_trip_us);
}

}  // namespace

int main(int argc, char** argv) {
  const bool small = argc > 1 && std::string(argv[1]) == "--small";
  const int count = small ? 2000 : 500'000;
  print("command ring", through_ring(count));
  print("bare FIFO", through_fifo(count));
  print("UNIX socket", through_socket(count));
  return 0;
}
