#include "daemon/supervisor/control_desk.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/log.h"
#include "daemon/profile/profile_desk.h"
#include "daemon/supervisor/registry.h"
#include "daemon/supervisor/session_rules.h"

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;

constexpr auto kClientTimeout = 5s;
constexpr auto kStatusTimeout = 1s;  // then the status says what is known without the engine
constexpr auto kEngineTimeout = 10s;
constexpr std::size_t kMostConnections = 64;

bool is_administrators(ipc::ControlVerb verb) {
  return verb == ipc::ControlVerb::kProfileSet || verb == ipc::ControlVerb::kProfileForget ||
         verb == ipc::ControlVerb::kProfileGroup || verb == ipc::ControlVerb::kTrace;
}

ProfileRequest profile_request(const ipc::ControlRequest& request, const std::string& text) {
  ProfileRequest profile;
  profile.kernel = text;
  if (request.verb == ipc::ControlVerb::kProfileForget)
    profile.kind = ProfileRequest::Kind::kForget;
  if (request.verb != ipc::ControlVerb::kProfileSet) return profile;
  profile.kind = ProfileRequest::Kind::kSet;
  if ((request.fields & ipc::kHasCompute) != 0) profile.compute = request.compute;
  if ((request.fields & ipc::kHasMemory) != 0) profile.memory = request.memory;
  if ((request.fields & ipc::kHasForm) != 0) {
    profile.form = request.form == ipc::kAnyForm
                       ? -1
                       : static_cast<int>(std::min(request.form, ipc::kAnyForm));
  }
  return profile;
}

}  // namespace

bool ControlDesk::meets_in(const std::string& directory) const {
  return std::ranges::find(connections_, directory, &Connection::directory) != connections_.end();
}

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
  if (connection.state == State::kWaiting && Clock::now() >= connection.deadline)
    no_report(connection);
  if (connection.state == State::kAnswering && !write_output(connection)) return false;
  return Clock::now() < connection.deadline;
}

bool ControlDesk::read_request(Connection& connection, EngineProcess* engine) {
  if (poll_now(connection.fifos.from_client.get(), POLLIN) == 0) return true;
  std::array<char, ipc::kMaxControlBytes> bytes;
  // The client writes it in one piece, and pipes keep pieces of this size whole.
  const ssize_t got = ::read(connection.fifos.from_client.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  ipc::ControlRequest request;
  if (got < static_cast<ssize_t>(sizeof(request))) return false;
  std::memcpy(&request, bytes.data(), sizeof(request));
  const std::size_t text_bytes = static_cast<std::size_t>(got) - sizeof(request);
  if (request.magic != ipc::kMagic || request.text_bytes != text_bytes) return false;
  connection.verb = request.verb;
  serve(connection, request, {bytes.data() + sizeof(request), text_bytes}, engine);
  return true;
}

void ControlDesk::serve(Connection& connection, const ipc::ControlRequest& request,
                        const std::string& text, EngineProcess* engine) {
  const std::uint32_t asker = connection.fifos.owner;
  if (is_administrators(request.verb) && !is_administrator(asker)) {
    return answer(connection, fail(ErrorCode::kPermission,
                                   "this is for root, or the user whom slated runs as"));
  }
  switch (request.verb) {
    case ipc::ControlVerb::kStatus:
      return ask_engine(connection, {.type = LinkType::kStatusRequest}, {}, engine);
    case ipc::ControlVerb::kSetSession:
    case ipc::ControlVerb::kSetProgram:
    case ipc::ControlVerb::kForgetProgram:
      return answer(connection, services_.change(request, text, asker));
    case ipc::ControlVerb::kProfile:
    case ipc::ControlVerb::kProfileSet:
    case ipc::ControlVerb::kProfileForget:
      return ask_engine(connection, {.type = LinkType::kProfileRequest},
                        profile_request_text(profile_request(request, text)), engine);
    case ipc::ControlVerb::kProfileGroup: {
      const auto group = parse_group_request(text);
      if (!group) return answer(connection, std::unexpected(group.error()));
      return ask_engine(connection, {.type = LinkType::kProfileRequest},
                        profile_request_text(*group), engine);
    }
    case ipc::ControlVerb::kTrace: {
      // Not for a NaN, nor for more seconds than the number of microseconds holds.
      const double seconds = request.seconds > 0 ? std::min(request.seconds, 1e9) : 0;
      const auto microseconds = static_cast<std::uint64_t>(std::ceil(seconds * 1e6));
      return ask_engine(connection, {.type = LinkType::kTraceRequest, .limit = microseconds}, {},
                        engine);
    }
  }
  answer(connection, fail(ErrorCode::kNotSupported, "slated does not know this request"));
}

void ControlDesk::ask_engine(Connection& connection, LinkHeader question, const std::string& text,
                             EngineProcess* engine) {
  connection.request = next_request_++;
  question.number = connection.request;
  if (engine == nullptr || !engine->link().try_send(question, text)) return no_report(connection);
  connection.state = State::kWaiting;
  const bool is_status = question.type == LinkType::kStatusRequest;
  connection.deadline = Clock::now() + (is_status ? Clock::duration(kStatusTimeout)
                                                  : Clock::duration(kEngineTimeout));
}

void ControlDesk::report_came(const LinkMessage& message) {
  for (Connection& connection : connections_) {
    if (connection.state != State::kWaiting || connection.request != message.header.number)
      continue;
    connection.report += message.text;
    if ((message.header.flags & kLastPiece) == 0) continue;
    std::string report = std::move(connection.report);
    if (message.header.code != ErrorCode::kNone) {
      answer(connection, fail(message.header.code, std::move(report)));
    } else if (connection.verb == ipc::ControlVerb::kStatus) {
      answer(connection, services_.describe(report));
    } else {
      answer(connection, std::move(report));
    }
  }
}

void ControlDesk::engine_died() {
  for (Connection& connection : connections_) {
    if (connection.state == State::kWaiting) no_report(connection);
  }
}

/// A status says what it can without the engine; for the rest there is no answer.
void ControlDesk::no_report(Connection& connection) {
  if (connection.verb == ipc::ControlVerb::kStatus)
    return answer(connection, services_.describe({}));
  answer(connection, fail(ErrorCode::kUnavailable, "slate's engine does not answer"));
}

void ControlDesk::answer(Connection& connection, const Result<std::string>& result) {
  const std::string& text = result ? *result : result.error().message;
  ipc::ControlReply reply;
  if (!result) reply.status = static_cast<std::uint32_t>(result.error().code);
  reply.bytes = static_cast<std::uint32_t>(text.size());
  connection.output.assign(reinterpret_cast<const char*>(&reply), sizeof(reply));
  connection.output += text;
  connection.state = State::kAnswering;
  connection.deadline = Clock::now() + kClientTimeout;
}

bool ControlDesk::write_output(Connection& connection) {
  while (connection.written < connection.output.size()) {
    const ssize_t done =
        ::write(connection.fifos.to_client.get(), connection.output.data() + connection.written,
                connection.output.size() - connection.written);
    if (done < 0) return errno == EAGAIN || errno == EINTR;
    connection.written += static_cast<std::size_t>(done);
    // Who goes on reading may take as long as a long answer takes.
    connection.deadline = Clock::now() + kClientTimeout;
  }
  return false;
}

}  // namespace slate::daemon
