// An engine without device or sessions, for tests of the supervisor: it takes what it is sent, and
// its reports say what that was.
#include <poll.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/device_info.h"
#include "daemon/engine_link.h"

namespace slate::daemon {
namespace {

using nlohmann::json;

class FakeEngine {
 public:
  explicit FakeEngine(int control_fd) : link_(UniqueFd(control_fd)) {}

  int run() {
    DeviceInfo info{};
    std::strcpy(info.name, "fake");
    info.total_memory = 1 << 20;
    if (!link_.send({.type = LinkType::kReady,
                     .number = kLinkVersion,
                     .limit = info.total_memory,
                     .user_limit = is_spare() ? 1u << 16 : 0u},
                    {reinterpret_cast<const char*>(&info), sizeof(info)})) {
      return 1;
    }
    while (true) {
      pollfd poller{link_.fd(), POLLIN, 0};
      ::poll(&poller, 1, -1);
      auto message = link_.receive();
      if (!message) return 1;
      if (*message && (*message)->header.type == LinkType::kStop) return 0;
      if (*message && !serve(**message)) return 1;
    }
  }

 private:
  /// By the first message.
  bool is_spare() const {
    while (true) {
      pollfd poller{link_.fd(), POLLIN, 0};
      ::poll(&poller, 1, -1);
      const auto message = link_.receive();
      if (!message) return false;
      if (*message) return ((*message)->header.flags & kSpare) != 0;
    }
  }
  bool serve(LinkMessage& message) {
    const LinkHeader& header = message.header;
    switch (header.type) {
      case LinkType::kAddSession:
        fds_.push_back(std::move(message.fds));
        [[fallthrough]];
      case LinkType::kSetSession:
        sessions_[header.session]["id"] = header.session;
        sessions_[header.session]["weight"] = header.weight;
        sessions_[header.session]["priority"] = header.priority;
        return true;
      case LinkType::kShareTime:
        time_["times"] = time_["times"].get<int>() + 1;
        time_["pages"] = time_["pages"].get<int>() + static_cast<int>(message.fds.size());
        time_["serial"] = header.number;
        return true;
      case LinkType::kEndSession:
        sessions_[header.session]["end"] = message.text;
        return true;
      case LinkType::kLeave:
        sessions_[header.session]["leaves"] = true;
        return true;
      case LinkType::kSessionStays:
        sessions_[header.session]["stays"] = true;
        return true;
      case LinkType::kStatusRequest: {
        json sessions = json::array(), all = json::array();
        for (const auto& [id, session] : sessions_) all.push_back(id);
        for (const auto& [id, session] : sessions_) {
          sessions.push_back(session);
          sessions.back()["waits_for"] = all;
        }
        const json report = {{"sessions", sessions}, {"policy", "none"}, {"time", time_}};
        return link_.send_report(header.number, report.dump()).has_value();
      }
      case LinkType::kAlive:
        return link_.send({.type = LinkType::kAlive}).has_value();
      case LinkType::kProfileRequest:
        if (json::parse(message.text)["kernel"] == "die") return false;
        if (const std::string kernel = json::parse(message.text)["kernel"];
            kernel.starts_with("blame ")) {
          const LinkHeader blame{.type = LinkType::kBlame,
                                 .session = std::stoull(kernel.substr(6))};
          return link_.send(blame, "kept others waiting") && echo(header.number, message.text);
        } else if (kernel.starts_with("fault ")) {
          (void)link_.send({.type = LinkType::kFault,
                            .code = ErrorCode::kIllegalAddress,
                            .session = std::stoull(kernel.substr(6))},
                           "the device is lost");
          return false;
        }
        if (json::parse(message.text)["kernel"] == "unknown")
          return link_.send_report(header.number, "no such", ErrorCode::kInvalidValue).has_value();
        return echo(header.number, message.text);
      case LinkType::kTraceRequest: {
        // Many pieces.
        const json report = {{"microseconds", header.limit}, {"filler", std::string(1 << 20, 'x')}};
        return link_.send_report(header.number, report.dump()).has_value();
      }
      default:
        return true;
    }
  }

  bool echo(std::uint64_t number, const std::string& request) {
    json answer = json::parse(request);
    answer["changed"] = 7;
    answer["kernels"] =
        json::array({{{"id", 0}, {"name", "_Z5scalePfi"}, {"samples", 1}, {"class", "H_M"}}});
    return link_.send_report(number, answer.dump()).has_value();
  }

  EngineLink link_;
  std::map<std::uint64_t, json> sessions_;
  json time_ = {{"times", 0}, {"pages", 0}, {"serial", 0}};  // what it heard of other engines
  std::vector<std::vector<UniqueFd>> fds_;                   // open, so that the sessions live
};

}  // namespace
}  // namespace slate::daemon

int main(int argc, char** argv) {
  using namespace slate::daemon;
  if (argc != 2 || argv[1] != kEngineArgument) return 2;
  return FakeEngine(kEngineLinkFd).run();
}
