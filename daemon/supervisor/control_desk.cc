#include "daemon/supervisor/control_desk.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/log.h"
#include "daemon/profile/profile_desk.h"
#include "daemon/supervisor/reception.h"
#include "daemon/supervisor/session_rules.h"
#include "ipc/packets.h"

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;

constexpr auto kClientTimeout = 5s;
constexpr auto kStatusTimeout = 1s;  // then the status says what is known without the engine
constexpr auto kAnswerTimeout = 10s;

bool is_administrators(ipc::ControlVerb verb) {
  return verb == ipc::ControlVerb::kProfileSet || verb == ipc::ControlVerb::kProfileForget ||
         verb == ipc::ControlVerb::kProfileGroup || verb == ipc::ControlVerb::kTrace ||
         verb == ipc::ControlVerb::kRenew || verb == ipc::ControlVerb::kUpgrade;
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

void ControlDesk::greet(ipc::Visitor visitor) {
  const auto same = [&visitor](const Connection& each) { return each.visitor.uid == visitor.uid; };
  if (std::ranges::count_if(connections_, same) >= kMostOfUser) {
    return send_refusal(visitor.socket.get(),
                        {ErrorCode::kLimit, "too many questions of this user at a time"}, true);
  }
  if (!ipc::send_welcome(visitor.socket.get(), ipc::Welcome{})) return;
  Connection connection;
  connection.visitor = std::move(visitor);
  connection.deadline = Clock::now() + kClientTimeout;
  connections_.push_back(std::move(connection));
}

void ControlDesk::add_to(PollSet& polls) const {
  for (const Connection& connection : connections_) {
    polls.add_deadline(connection.deadline);
    short events = 0;
    if (connection.state == State::kAsking) events = POLLIN;
    if (connection.state == State::kAnswering) events = POLLOUT;
    polls.add(connection.visitor.socket.get(), events);
  }
}

void ControlDesk::service(const Asked& engines) {
  std::erase_if(connections_,
                [&](Connection& connection) { return !service_one(connection, engines); });
}

/// False when the connection is over.
bool ControlDesk::service_one(Connection& connection, const Asked& engines) {
  if ((poll_now(connection.visitor.socket.get(), 0) & (POLLHUP | POLLERR)) != 0) return false;
  if (connection.state == State::kAsking && !read_request(connection, engines)) return false;
  if (connection.state == State::kWaiting && Clock::now() >= connection.deadline)
    reports_are_there(connection);
  if (connection.state == State::kAnswering && !write_output(connection)) return false;
  return Clock::now() < connection.deadline;
}

bool ControlDesk::read_request(Connection& connection, const Asked& engines) {
  std::array<char, ipc::kMaxControlBytes> bytes;
  const iovec piece{bytes.data(), bytes.size()};
  const auto packet = ipc::receive_packet(connection.visitor.socket.get(), {&piece, 1});
  if (!packet) return false;
  if (!*packet) return true;
  ipc::ControlRequest request;
  if ((*packet)->bytes < sizeof(request)) return false;
  std::memcpy(&request, bytes.data(), sizeof(request));
  const std::size_t text_bytes = (*packet)->bytes - sizeof(request);
  if (request.magic != ipc::kMagic || request.text_bytes != text_bytes) return false;
  connection.verb = request.verb;
  serve(connection, request, {bytes.data() + sizeof(request), text_bytes}, engines);
  return true;
}

void ControlDesk::serve(Connection& connection, const ipc::ControlRequest& request,
                        const std::string& text, const Asked& engines) {
  const std::uint32_t asker = connection.visitor.uid;
  const bool is_hidden =
      request.verb == ipc::ControlVerb::kProfile && !services_.shows_profiles(asker);
  if (is_hidden || (is_administrators(request.verb) && !is_administrator(asker))) {
    return answer(connection, fail(ErrorCode::kPermission,
                                   "this is for root, or the user whom slated runs as"));
  }
  switch (request.verb) {
    case ipc::ControlVerb::kStatus:
      return ask(connection, {.type = LinkType::kStatusRequest}, {}, engines);
    case ipc::ControlVerb::kSetSession:
    case ipc::ControlVerb::kSetProgram:
    case ipc::ControlVerb::kForgetProgram:
      return answer(connection, services_.change(request, text, asker));
    case ipc::ControlVerb::kEndSession:
    case ipc::ControlVerb::kSuspend:
    case ipc::ControlVerb::kResume:
      return answer(connection, services_.change_sessions(request.verb, text, asker));
    case ipc::ControlVerb::kRenew:
    case ipc::ControlVerb::kUpgrade:
      return answer(connection, services_.renew(request.verb));
    case ipc::ControlVerb::kProfile:
    case ipc::ControlVerb::kProfileSet:
    case ipc::ControlVerb::kProfileForget:
      return ask(connection, {.type = LinkType::kProfileRequest},
                 profile_request_text(profile_request(request, text)), engines);
    case ipc::ControlVerb::kProfileGroup: {
      const auto group = parse_group_request(text);
      if (!group) return answer(connection, std::unexpected(group.error()));
      return ask(connection, {.type = LinkType::kProfileRequest}, profile_request_text(*group),
                 engines);
    }
    case ipc::ControlVerb::kTrace: {
      // Not for a NaN, nor for more seconds than the number of microseconds holds.
      const double seconds = request.seconds > 0 ? std::min(request.seconds, 1e9) : 0;
      const auto microseconds = static_cast<std::uint64_t>(std::ceil(seconds * 1e6));
      return ask(connection, {.type = LinkType::kTraceRequest, .limit = microseconds}, {}, engines);
    }
  }
  answer(connection, fail(ErrorCode::kNotSupported, "slated does not know this request"));
}

void ControlDesk::ask(Connection& connection, LinkHeader question, const std::string& text,
                      const Asked& engines) {
  connection.request = next_request_++;
  question.number = connection.request;
  const bool is_status = question.type == LinkType::kStatusRequest;
  for (const auto& [domain, engine] : engines) {
    const bool is_meant = is_status || domain == Domain{};
    if (is_meant && engine->link().try_send(question, text))
      connection.waits_for.insert(engine->serial);
  }
  if (connection.waits_for.empty()) return reports_are_there(connection);
  connection.state = State::kWaiting;
  connection.deadline = Clock::now() + (is_status ? Clock::duration(kStatusTimeout)
                                                  : Clock::duration(kAnswerTimeout));
}

void ControlDesk::report_came(std::uint64_t engine, const LinkMessage& message) {
  for (Connection& connection : connections_) {
    if (connection.state != State::kWaiting || connection.request != message.header.number)
      continue;
    std::string& report = connection.reports[engine];
    report += message.text;
    if ((message.header.flags & kLastPiece) == 0) continue;
    if (message.header.code != ErrorCode::kNone) {
      answer(connection, fail(message.header.code, std::move(report)));
      continue;
    }
    connection.waits_for.erase(engine);
    if (connection.waits_for.empty()) reports_are_there(connection);
  }
}

void ControlDesk::engine_died(std::uint64_t engine) {
  for (Connection& connection : connections_) {
    if (connection.state != State::kWaiting || connection.waits_for.erase(engine) == 0) continue;
    connection.reports.erase(engine);
    if (connection.waits_for.empty()) reports_are_there(connection);
  }
}

/// No more reports come. A status says what it can without an engine's part; for the rest there is
/// no answer.
void ControlDesk::reports_are_there(Connection& connection) {
  for (const std::uint64_t engine : connection.waits_for) connection.reports.erase(engine);
  std::vector<std::string> reports;
  for (auto& [engine, report] : connection.reports) reports.push_back(std::move(report));
  if (connection.verb == ipc::ControlVerb::kStatus)
    return answer(connection, services_.describe(reports, connection.visitor.uid));
  if (!reports.empty()) return answer(connection, std::move(reports.front()));
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
    const std::size_t left = connection.output.size() - connection.written;
    const iovec piece{connection.output.data() + connection.written,
                      std::min(left, ipc::kMaxControlBytes)};
    // Without room the socket is looked at again; when the peer is gone, service_one() sees it.
    if (!ipc::send_packet(connection.visitor.socket.get(), {&piece, 1}, {}, MSG_DONTWAIT))
      return true;
    connection.written += piece.iov_len;
    // Who goes on reading may take as long as a long answer takes.
    connection.deadline = Clock::now() + kClientTimeout;
  }
  return false;
}

}  // namespace slate::daemon
