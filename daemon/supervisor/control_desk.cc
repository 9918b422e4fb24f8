#include "daemon/supervisor/control_desk.h"

#include <unistd.h>

#include <cstring>

#include "base/log.h"
#include "daemon/supervisor/registry.h"

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;

constexpr auto kClientTimeout = 5s;
constexpr auto kEngineTimeout = 1s;
constexpr std::size_t kMostConnections = 64;

}  // namespace

void ControlDesk::greet(const ipc::Hello& hello) {
  auto fifos = ipc::open_session_fifos(runtime_dir_, hello);
  if (!fifos) return log_debug("no way to answer slatectl: {}", fifos.error().message);
  const std::string directory = display_name(hello.directory, sizeof(hello.directory));
  const bool speaks_ours = hello.protocol == ipc::kProtocolVersion;
  if (!speaks_ours || connections_.size() >= kMostConnections) {
    send_refusal(fifos->to_client.get(),
                 {ErrorCode::kInitialization, speaks_ours ? "too many control connections"
                                                          : "another version of slate's protocol"});
    ipc::remove_session_directory(runtime_dir_, directory);
    return;
  }
  if (!ipc::send_welcome(fifos->to_client.get(), ipc::Welcome{})) return;
  Connection connection;
  connection.fifos = std::move(*fifos);
  connection.directory = directory;
  connection.deadline = Clock::now() + kClientTimeout;
  connections_.push_back(std::move(connection));
}

void ControlDesk::add_to(PollSet& polls) const {
  for (const Connection& connection : connections_) {
    polls.add_deadline(connection.deadline);
    if (connection.state == State::kAsking) polls.add(connection.fifos.from_client.get(), POLLIN);
    const bool writing = connection.state == State::kAnswering;
    polls.add(connection.fifos.to_client.get(), writing ? POLLOUT : short{0});
  }
}

void ControlDesk::service(EngineProcess* engine) {
  for (auto connection = connections_.begin(); connection != connections_.end();) {
    if (service_one(*connection, engine)) {
      ++connection;
    } else {
      ipc::remove_session_directory(runtime_dir_, connection->directory);
      connection = connections_.erase(connection);
    }
  }
}

/// False when the connection is over.
bool ControlDesk::service_one(Connection& connection, EngineProcess* engine) {
  if ((poll_now(connection.fifos.to_client.get(), 0) & POLLERR) != 0) return false;
  if (connection.state == State::kAsking && !read_request(connection, engine)) return false;
  if (connection.state == State::kWaiting && Clock::now() >= connection.deadline) {
    answer(connection, {});
  }
  if (connection.state == State::kAnswering && !write_output(connection)) return false;
  return Clock::now() < connection.deadline;
}

bool ControlDesk::read_request(Connection& connection, EngineProcess* engine) {
  if (poll_now(connection.fifos.from_client.get(), POLLIN) == 0) return true;
  ipc::ControlRequest request;
  // The client writes it in one piece, and pipes keep pieces of this size whole.
  const ssize_t got = ::read(connection.fifos.from_client.get(), &request, sizeof(request));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got != sizeof(request) || request.magic != ipc::kMagic ||
      request.verb != ipc::ControlVerb::kStatus) {
    return false;
  }
  connection.request = next_request_++;
  const LinkHeader question{.type = LinkType::kStatusRequest, .number = connection.request};
  if (engine != nullptr && engine->link().send(question)) {
    connection.state = State::kWaiting;
    connection.deadline = Clock::now() + kEngineTimeout;
  } else {
    answer(connection, {});
  }
  return true;
}

void ControlDesk::report_came(const LinkMessage& message) {
  for (Connection& connection : connections_) {
    if (connection.state != State::kWaiting || connection.request != message.header.number)
      continue;
    connection.report += message.text;
    if ((message.header.flags & kLastPiece) != 0) answer(connection, connection.report);
  }
}

void ControlDesk::engine_died() {
  for (Connection& connection : connections_) {
    if (connection.state == State::kWaiting) answer(connection, {});
  }
}

void ControlDesk::answer(Connection& connection, const std::string& report) {
  const std::string text = describe_(report);
  ipc::ControlReply reply;
  reply.bytes = static_cast<std::uint32_t>(text.size());
  connection.output.assign(reinterpret_cast<const char*>(&reply), sizeof(reply));
  connection.output += text;
  connection.state = State::kAnswering;
  connection.deadline = Clock::now() + kClientTimeout;
}

bool ControlDesk::write_output(Connection& connection) {
  while (!connection.output.empty()) {
    const ssize_t done = ::write(connection.fifos.to_client.get(), connection.output.data(),
                                 connection.output.size());
    if (done < 0) return errno == EAGAIN || errno == EINTR;
    connection.output.erase(0, static_cast<std::size_t>(done));
  }
  return false;
}

}  // namespace slate::daemon
