// The first packet of a program, and what the registry makes of it. Then the answer's reader.
// The first byte says how many descriptors come with it.
#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "base/check.h"
#include "daemon/supervisor/registry.h"
#include "ipc/packets.h"
#include "tests/fuzz/target.h"

namespace slate::fuzz {
namespace {

constexpr uid_t kUser = 12345;

/// Puts right what every Hello of this version has, so that the rest of it counts.
constexpr std::uint8_t kWithMagic = 128;

daemon::Config config() {
  daemon::Config config;
  config.programs.push_back({"train", "", {.weight = 2, .priority = 3}});
  config.users.push_back({.name = "12345", .weight = 2, .max_sessions = 3, .memory = {}});
  return config;
}

void send(int socket, std::uint8_t how, Input input) {
  std::vector<std::byte> packet(input.begin(), input.end());
  if ((how & kWithMagic) != 0) {
    packet.resize(sizeof(ipc::Hello));
    const ipc::Hello right;
    std::memcpy(packet.data(), &right, offsetof(ipc::Hello, kind));
  }
  const UniqueFd spare(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::vector<int> fds(how % (ipc::kMostPacketFds + 1), spare.get());
  const iovec piece{packet.data(), packet.size()};
  (void)ipc::send_packet(socket, {&piece, 1}, fds, MSG_DONTWAIT);
}

}  // namespace

void run(Input input) {
  static const daemon::UserRules rules(config());
  const auto how = take<std::uint8_t>(input);
  auto ends = ipc::make_socket_pair();
  if (!ends) std::abort();
  send(ends->second.get(), how, input);
  ipc::Visitor visitor{.socket = std::move(ends->first), .uid = kUser, .groups = {}, .pid = 1};
  const auto hello = ipc::receive_hello(visitor);
  if (!hello || !*hello) return;
  daemon::ProgramStore programs{{}};
  daemon::Engines engines("/nothing", {}, {}, {});  // never served, so that none starts
  daemon::Registry registry("/tmp", rules, programs, engines);
  registry.greet(**hello, std::move(visitor), {});
  SLATE_CHECK(registry.sessions().size() == 1);
  const daemon::SessionRecord& record = registry.sessions().begin()->second;
  SLATE_CHECK(record.standing.now.weight > 0 &&
              record.standing.now.weight <= record.standing.most.weight);
  SLATE_CHECK(record.standing.now.priority <= record.standing.most.priority);
  for (const char letter : record.program) SLATE_CHECK(letter >= ' ' && letter <= '~');
  registry.service();
  registry.end_all("over");
}

}  // namespace slate::fuzz
