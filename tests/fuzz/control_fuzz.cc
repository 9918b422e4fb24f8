// What slatectl sends: a control packet for the desk, and the texts for settings and profiles.
// The first byte says who asks. There is no engine, but its profile desk gets what the supervisor
// would send.
#include <sys/socket.h>

#include <array>
#include <cstdlib>

#include "base/check.h"
#include "daemon/profile/profile_desk.h"
#include "daemon/supervisor/control_desk.h"
#include "daemon/supervisor/session_search.h"
#include "daemon/supervisor/settings_desk.h"
#include "ipc/packets.h"
#include "tests/fuzz/target.h"

namespace slate::fuzz {
namespace {

constexpr std::uint8_t kAsRoot = 1;      // of the first byte
constexpr std::uint8_t kWithHeader = 2;  // the input has no magic and no length: they are put right
constexpr uid_t kUser = 12345;

ipc::Visitor visitor_of(UniqueFd socket, uid_t uid) {
  return {.socket = std::move(socket), .uid = uid, .groups = {uid}, .pid = 1};
}

/// The profile desk of an engine with two kernels.
void ask_profiles(std::string_view text) {
  scheduler::ProfileTable table;
  const scheduler::Machine machine{.sm_count = 132, .units = 17, .sms_per_unit = 8};
  for (const char* name : {"_Z5scalePfi", "copy"}) {
    const auto id = table.find_or_add({.code = 1, .name = name, .block = {128, 1, 1}});
    table.kernel(id).alone[0] = {.ms = 1, .samples = 4};
  }
  for (const auto& request :
       {daemon::parse_group_request(text), daemon::parse_profile_request(text)}) {
    if (!request) continue;
    const std::string sent = daemon::profile_request_text(*request);
    const auto came = daemon::parse_profile_request(sent);
    SLATE_CHECK(came && daemon::profile_request_text(*came) == sent);
    (void)daemon::answer_profile_request(*came, table, machine, {});
    (void)daemon::answer_profile_request({}, table, machine, {});
  }
}

}  // namespace

void run(Input input) {
  const auto how = take<std::uint8_t>(input);
  ask_profiles(text_of(input));
  const daemon::UserRules rules{daemon::Config{}};
  daemon::ProgramStore programs{{}};
  daemon::Engines engines("/nothing", {}, {}, {});  // never served, so that none starts
  daemon::Registry registry("/tmp", rules, programs, engines);
  daemon::SettingsDesk settings(rules, programs, registry);
  auto session = ipc::make_socket_pair();
  auto control = ipc::make_socket_pair();
  if (!session || !control) std::abort();
  ipc::Hello hello;
  std::memcpy(hello.program, "train", 6);
  registry.greet(hello, visitor_of(std::move(session->first), kUser), {});
  daemon::ControlDesk desk(
      {.describe = [](const std::vector<std::string>&, std::uint32_t) { return std::string("{}"); },
       .shows_profiles = [](std::uint32_t asker) { return asker == 0; },
       .change = [&](const ipc::ControlRequest& request, const std::string& text,
                     std::uint32_t asker) { return settings.change(request, text, asker); },
       .change_sessions =
           [&](ipc::ControlVerb verb, const std::string& text, std::uint32_t asker) {
             return daemon::change_sessions(registry, verb, text, asker);
           },
       .renew = [](ipc::ControlVerb) { return std::string("{}"); }});
  desk.greet(visitor_of(std::move(control->first), (how & kAsRoot) != 0 ? 0 : kUser));
  std::array<std::byte, ipc::kMaxControlBytes + 1> packet{};
  const std::size_t size = std::min(input.size(), packet.size());
  if (size > 0) std::memcpy(packet.data(), input.data(), size);
  if ((how & kWithHeader) != 0 && size >= sizeof(ipc::ControlRequest)) {
    ipc::ControlRequest request;
    std::memcpy(&request, packet.data(), sizeof(request));
    request.magic = ipc::kMagic;
    request.text_bytes = static_cast<std::uint32_t>(size - sizeof(request));
    std::memcpy(packet.data(), &request, sizeof(request));
  }
  const iovec piece{packet.data(), size};
  (void)ipc::send_packet(control->second.get(), {&piece, 1}, {}, MSG_DONTWAIT);
  for (int i = 0; i < 3; ++i) desk.service({});
}

}  // namespace slate::fuzz
