#include "client/session/session.h"

#include "client/session/captures.h"
#include "client/session/say.h"
#include "client/session/wishes.h"

namespace slate::client {

namespace {

/// Says the end: a program that checks no error would go on, and end well, with wrong results.
void say_end(const Error& error) {
  say("the session of this program has ended: " + std::string(error_name(error.code)) + ": " +
      error.message + ". Nothing that it still asks of the GPU is carried out.");
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(const std::string& runtime_dir,
                                               const ipc::Patience& patience,
                                               std::uint64_t serial) {
  auto channel = ipc::ClientChannel::connect(runtime_dir, patience, environment_wishes());
  if (!channel) return std::unexpected(channel.error());
  return std::make_unique<Session>(std::move(*channel), serial);
}

Session::Session(std::unique_ptr<ipc::ClientChannel> channel, std::uint64_t serial)
    : serial_(serial),
      wire_(std::move(channel), serial),
      streams_(wire_),
      events_(wire_, streams_),
      arrays_(wire_),
      memory_(*this),
      host_memory_(*this),
      waiting_(*this, wire_, streams_, events_, host_memory_.guard()),
      host_functions_(*this),
      copies_(*this),
      modules_(*this),
      kernels_(*this),
      virtual_memory_(*this),
      printing_(*this),
      heap_(*this),
      captures_(std::make_unique<Captures>(streams_.table())) {
  wire_.channel().on_end(say_end);
}

Session::~Session() {
  host_functions_.stop();
  host_memory_.guard().stop();
  host_memory_.unmap_unnamed();
  printing_.unmap();
}

void Session::abandon() {
  host_functions_.stop();
  host_memory_.guard().stop();
  wire_.channel().abandon();
}

std::uint32_t Session::capability() const {
  constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
  const auto& attributes = device().attributes;
  return static_cast<std::uint32_t>(attributes[kMajor] * 10 + attributes[kMinor]);
}

Result<void> Session::check() {
  host_memory_.guard().open_if_done();
  if (auto ok = wire_.channel().check(); !ok) return ok;
  return earlier_error();
}

Result<void> Session::earlier_error() {
  if (auto ok = printing_.look_for_assertions(); !ok) return ok;
  const Error error = wire_.channel().take_async_error();
  if (error.code == ErrorCode::kNone) [[likely]]
    return {};
  const std::string name(error_name(error.code));
  const std::string text = "an earlier call that had returned was refused: " + name +
                           (error.message.empty() ? "" : ": " + error.message);
  // It went unseen, and a program that checks nothing goes on with wrong data.
  say_once(text);
  return fail(error.code, text);
}

Result<void> Session::report_unsupported(std::string_view function) {
  return wire_.channel().post(ipc::CommandType::kUnsupportedCall,
                              std::as_bytes(std::span(function.substr(0, ipc::kMostNameBytes))));
}

}  // namespace slate::client
