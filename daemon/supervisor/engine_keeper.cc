#include "daemon/supervisor/engine_keeper.h"

#include <fmt/format.h>

#include <cstring>

#include "base/log.h"

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstDelay = 100ms;
constexpr auto kLongestDelay = 10s;
constexpr int kFailuresUntilTrouble = 3;

}  // namespace

void EngineKeeper::add_to(PollSet& polls) const {
  for (const auto* engine : {&active_, &spare_}) {
    if (!*engine) continue;
    const bool has_to_hear = stopping_ && !(*engine)->told_to_stop;
    polls.add((*engine)->link().fd(), has_to_hear ? POLLIN | POLLOUT : POLLIN);
    polls.add((*engine)->exit_fd(), POLLIN);
    if (const auto next = (*engine)->heartbeat.next()) polls.add_deadline(*next);
  }
  for (const EngineProcess& engine : leaving_) polls.add(engine.exit_fd(), POLLIN);
  if (stopping_) return;
  if (!active_) polls.add_deadline(start_at_);
  if (wants_spare()) polls.add_deadline(*spare_at_);
}

/// From spare_at_ on.
bool EngineKeeper::wants_spare() const {
  return config_.spare_engine && !spare_ && active_ && active_->ready && spare_at_;
}

void EngineKeeper::service() {
  if (active_) service_active();
  if (spare_) service_spare();
  service_leaving();
  if (stopping_) tell_stop();
  start_due();
}

void EngineKeeper::start_due() {
  const auto now = Clock::now();
  if (stopping_ || hopeless_) return;
  if (!active_ && now >= start_at_) start_active();
  if (!wants_spare() || now < *spare_at_) return;
  auto started = EngineProcess::start(program_, config_);
  if (started) {
    spare_.emplace(std::move(*started));
  } else {
    spare_at_ = now + kLongestDelay;
  }
}

void EngineKeeper::start_active() {
  auto started = EngineProcess::start(program_, config_);
  if (!started) return start_up_failed(started.error());
  active_.emplace(std::move(*started));
  log_debug("engine started, pid {}", active_->pid());
}

/// Reads what the engine says. False when its end of the link is closed.
bool EngineKeeper::read(EngineProcess& engine, bool is_active) {
  while (true) {
    auto received = engine.link().receive();
    if (!received) return false;
    if (!*received) return true;
    LinkMessage& message = **received;
    engine.heartbeat.heard(Clock::now());
    switch (message.header.type) {
      case LinkType::kReady:
        if (message.text.size() != sizeof(DeviceInfo)) return false;
        std::memcpy(&engine.device, message.text.data(), sizeof(DeviceInfo));
        engine.ready = true;
        if (!is_active) log_debug("spare engine {} is ready", engine.pid());
        if (is_active) {
          log_info("engine {} is ready on {}", engine.pid(), engine.device.name);
          failures_ = 0;
          trouble_.clear();
          was_ever_ready_ = true;
          spare_at_ = Clock::now();
          events_.ready();
        }
        break;
      case LinkType::kStartFailed:
      case LinkType::kFault:
        engine.last_words = Error{message.header.code, message.text};
        engine.start_failed = message.header.type == LinkType::kStartFailed;
        engine.culprit = message.header.session;
        engine.is_frozen =
            message.header.type == LinkType::kFault && (message.header.flags & kFrozen) != 0;
        break;
      case LinkType::kAlive:
        break;
      default:
        if (is_active) events_.message(std::move(message));
    }
  }
}

/// Asks an engine that is silent, and ends one that hangs. A core dump may take its time; the
/// second look ends that, too.
void EngineKeeper::watch(EngineProcess& engine) {
  const auto now = Clock::now();
  if (engine.heartbeat.should_ask(now)) {
    // A link without room is a question, too: the engine has not read the ones before.
    (void)engine.link().try_send({.type = LinkType::kAlive});
    engine.heartbeat.asked(now);
  }
  if (!engine.heartbeat.is_hung(now)) return;
  if (engine.last_words) return engine.kill();
  engine.last_words =
      Error{ErrorCode::kUnavailable,
            fmt::format("the engine did not answer for {} s", config_.engine_timeout_seconds)};
  log_error("engine {} hangs: it did not answer for {} s", engine.pid(),
            config_.engine_timeout_seconds);
  engine.abort();
  engine.heartbeat.asked(now);
}

/// Why the engine serves nobody any more; nullopt: it does, or it is not known yet. The process of
/// a frozen one may still be there.
std::optional<Error> EngineKeeper::end_of(EngineProcess& engine, bool is_active) {
  if (engine.is_frozen) return engine.last_words;
  if ((poll_now(engine.exit_fd(), POLLIN) & POLLIN) == 0) return std::nullopt;
  (void)read(engine, is_active);
  return engine.ended();
}

void EngineKeeper::service_active() {
  // An engine that closed its link is of no use, even if it hangs on its way out.
  if (!read(*active_, true)) active_->kill();
  watch(*active_);
  const auto cause = end_of(*active_, true);
  if (!cause) return;
  EngineProcess engine = std::move(*active_);
  active_.reset();
  const bool hopeless =
      engine.start_failed && !was_ever_ready_ && cause->code == ErrorCode::kInvalidValue;
  if (hopeless) hopeless_ = *cause;
  replace(*cause, engine.culprit, engine.ready);
  if (engine.pid() != 0) leaving_.push_back(std::move(engine));
}

void EngineKeeper::replace(const Error& cause, std::uint64_t culprit, bool was_ready) {
  if (stopping_) return;
  if (!was_ready) return start_up_failed(cause);
  ++restarts_;
  last_fault_ = fmt::format("{}: {}", error_name(cause.code), cause.message);
  log_warning("engine replaced: {}", last_fault_);
  events_.died(cause, culprit);
  start_at_ = Clock::now();
  if (!spare_) return;
  active_.emplace(std::move(*spare_));
  spare_.reset();
  spare_at_ = Clock::now();
  if (active_->ready) events_.ready();
}

void EngineKeeper::start_up_failed(const Error& cause) {
  ++failures_;
  const auto delay =
      std::min<Clock::duration>(kFirstDelay * (1 << std::min(failures_, 10)), kLongestDelay);
  start_at_ = Clock::now() + delay;
  log_error("engine did not start: {}", cause.message);
  last_fault_ = fmt::format("{}: {}", error_name(cause.code), cause.message);
  if (failures_ >= kFailuresUntilTrouble)
    trouble_ = "slate's engine does not start: " + cause.message;
}

void EngineKeeper::service_spare() {
  if (!read(*spare_, false)) spare_->kill();
  watch(*spare_);
  const auto cause = end_of(*spare_, false);
  if (!cause) return;
  log_warning("spare engine ended: {}", cause->message);
  spare_.reset();
  spare_at_ = Clock::now() + kLongestDelay;
}

void EngineKeeper::service_leaving() {
  std::erase_if(leaving_, [](EngineProcess& engine) {
    return (poll_now(engine.exit_fd(), POLLIN) & POLLIN) != 0 && engine.ended();
  });
}

void EngineKeeper::stop(const std::string& reason) {
  stopping_ = true;
  stop_reason_ = reason;
  tell_stop();
}

/// Those whose link is full hear of it later.
void EngineKeeper::tell_stop() {
  for (auto* engine : {&active_, &spare_}) {
    if (!*engine || (*engine)->told_to_stop) continue;
    const auto told = (*engine)->link().try_send({.type = LinkType::kStop}, stop_reason_);
    (*engine)->told_to_stop = told.has_value();
  }
}

void EngineKeeper::kill_all() {
  active_.reset();
  spare_.reset();
  leaving_.clear();
}

}  // namespace slate::daemon
