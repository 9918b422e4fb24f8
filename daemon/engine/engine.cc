#include "daemon/engine/engine.h"

#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <ranges>
#include <system_error>

#include "base/check.h"
#include "base/log.h"
#include "base/out_of_memory.h"
#include "daemon/profile/database.h"
#include "daemon/profile/profile_desk.h"
#include "injector/cache/cache.h"

namespace slate::daemon {
namespace {

using Clock = std::chrono::steady_clock;

/// Time in which a thread that has begun to write to a client is done.
constexpr std::chrono::milliseconds kLastWrites{1};
/// Part of the device's memory below which it counts as full.
constexpr std::uint64_t kScarce = 32;
/// How long sessions may take to end after kStop.
constexpr std::chrono::seconds kStopGrace{3};
/// Time without sessions after which the heap's free memory goes back.
constexpr std::chrono::milliseconds kTrimAfter{2000};

std::chrono::milliseconds kill_grace(const Config& config) {
  return std::chrono::milliseconds(static_cast<int>(config.kill_grace_seconds * 1000));
}

nlohmann::json to_json(const SessionStatus& status) {
  return {{"id", status.id},
          {"state", phase_name(status.phase)},
          {"memory_used", status.memory_used},
          {"memory_limit", status.memory_limit},
          {"pinned_used", status.pinned_used},
          {"code_memory", status.code_memory},
          {"resident", status.places.on_device},
          {"swapped", status.places.on_host},
          {"waits_for_memory", status.places.waits},
          {"moves", status.places.leaves  ? nlohmann::json("out")
                    : status.places.comes ? nlohmann::json("in")
                                          : nlohmann::json()},
          {"waits_for", status.places.waits_for},
          {"launches", status.launches},
          {"launches_running", status.launches_running},
          {"copies", status.copies},
          {"bytes_to_device", status.bytes_to_device},
          {"bytes_to_host", status.bytes_to_host},
          {"streams", status.streams},
          {"modules", status.modules}};
}

void add_to(nlohmann::json& session, const ClientStatus& client) {
  session["weight"] = client.weight;
  session["priority"] = client.priority;
  session["waits"] = client.waits;
  if (client.kernel.empty()) return;
  session["kernel"] = client.kernel;
  session["form"] = scheduler::form_name(client.form);
  session["sms"] = client.sms;
  session["blocks"] = client.blocks;
  session["blocks_done"] = client.blocks_done;
}

nlohmann::json to_json(const FormService& forms, const FormMaker::Counts& made) {
  return {{"choice", form_choice_name(forms.choice())},
          {"dispatch", dispatch_choice_name(forms.dispatch())},
          {"dispatched", forms.dispatched()},
          {"kernels_made", made.made},
          {"kernels_without", made.without_forms},
          {"kernels_from_cache", made.from_cache},
          {"making_ms", made.cost_ms},
          {"native", forms.launches(injector::Form::kNative)},
          {"worker", forms.launches(injector::Form::kWorker)},
          {"slice", forms.launches(injector::Form::kSlice)},
          {"profile", forms.launches(injector::Form::kProfile)}};
}

nlohmann::json to_json(const FenceMemory& fence) {
  const FenceMemory::Counts counts = fence.counts();
  return {{"choice", fence_choice_name(fence.choice())},
          {"on", fence.is_on()},
          {"kernels", counts.fenced},
          {"unfenced", counts.unfenced},
          {"launches", counts.launches},
          {"bounded", counts.bounded}};
}

nlohmann::json to_json(const cache::Statistics& statistics) {
  return {{"hits", statistics.hits},
          {"misses", statistics.misses},
          {"stores", statistics.stores},
          {"damaged", statistics.damaged},
          {"evicted", statistics.evicted}};
}

/// With a reserve where several users may come.
MemoryLedger ledger_of(std::uint64_t total, const Config& config) {
  const double part = config.serve_everybody ? config.memory_reserve_percent / 100 : 0;
  return MemoryLedger(total, static_cast<std::uint64_t>(static_cast<double>(total) * part));
}

/// What the device has free now: its context, and programs without slate, have the rest.
std::uint64_t free_memory(device::Device& device) {
  const std::uint64_t all = device.info().total_memory;
  return std::min(all, device.free_memory().value_or(all));
}

/// What sessions may have together.
std::uint64_t all_memory(device::Device& device, const Config& config) {
  const std::uint64_t part = config.device_memory.bytes_of(device.info().total_memory);
  return config.swap.bytes > 0 ? part + config.swap.bytes : std::min(part, free_memory(device));
}

/// Null without a swap.
std::shared_ptr<Residency> residency_of(device::Device& device, const Config& config,
                                        Trace& trace) {
  if (config.swap.bytes == 0) return nullptr;
  constexpr std::uint64_t kLargestPiece = 256 << 20, kLargestChunk = 512 << 20;
  // Modules and the driver's own objects take some of it, too.
  constexpr std::uint64_t kDriversPart = 32;
  const std::uint64_t grain = device.granularity();
  // Not what is free now: an engine may begin beside another one that it takes over from.
  const std::uint64_t all = device.info().total_memory;
  const std::uint64_t capacity =
      std::min(config.device_memory.bytes_of(all), all - all / kDriversPart) / grain * grain;
  const std::uint64_t piece =
      std::clamp(std::bit_floor(std::max<std::uint64_t>(capacity / 8, 1)), grain, kLargestPiece);
  const std::uint64_t swap = config.swap.bytes / grain * grain;
  return std::make_shared<Residency>(
      device,
      Residency::Settings{.capacity = capacity,
                          .swap = swap,
                          .piece = piece,
                          .overhead = config.swap_overhead_percent / 100,
                          .evicts_always = std::getenv("SLATE_TEST_EVICT") != nullptr},
      HostPool::Settings{.pinned = config.swap_pinned.bytes,
                         .ready = std::min(config.swap_ready.bytes, swap),
                         .directory = config.swap_directory,
                         .chunk = std::clamp(std::bit_floor(std::max<std::uint64_t>(swap / 16, 1)),
                                             piece, kLargestChunk),
                         .most = swap},
      [&trace](std::uint64_t session, bool out, std::uint64_t bytes, double ms) {
        trace.memory_moved(session, out, bytes, ms);
      });
}

nlohmann::json to_json(const Residency::Counts& counts) {
  return {{"capacity", counts.capacity},
          {"used", counts.used},
          {"host_bytes", counts.host.bytes},
          {"host_pinned", counts.host.pinned},
          {"host_used", counts.host.used},
          {"moved_out", counts.moved_out},
          {"moved_in", counts.moved_in},
          {"out_ms", counts.out_ms},
          {"in_ms", counts.in_ms},
          {"evictions", counts.evictions},
          {"clean_out", counts.clean_out},
          {"copied_in", counts.copied_in},
          {"bytes_per_s", 1e3 * counts.bytes_per_ms},
          {"host_kept", counts.host.kept}};
}

}  // namespace

std::string cause_for(std::uint64_t session, const RunningKernels& kernels) {
  std::vector<std::string> own, others;
  for (const auto& [id, names] : kernels) {
    auto& list = id == session ? own : others;
    list.insert(list.end(), names.begin(), names.end());
  }
  if (own.empty() && others.empty()) return {};
  if (session == 0) return fmt::format("; running: {}", fmt::join(others, ", "));
  if (others.empty()) return fmt::format("; by its own kernel {}", fmt::join(own, " or "));
  if (own.empty())
    return fmt::format("; by another program's kernel {}", fmt::join(others, " or "));
  return fmt::format("; by its own kernel {}, or another program's {}", fmt::join(own, " or "),
                     fmt::join(others, " or "));
}

std::filesystem::path cache_directory(const Config& config) {
  return config.cache_dir.empty() ? cache::default_directory("/var/cache/slate")
                                  : std::filesystem::path(config.cache_dir);
}

Engine::Engine(std::unique_ptr<device::Device> device, EngineLink link, Config config,
               ReaderSettings readers, ExitNow exit_now)
    : config_(std::move(config)),
      exit_now_(std::move(exit_now)),
      device_(std::move(device)),
      memory_(ledger_of(all_memory(*device_, config_), config_)),
      pinned_(ledger_of(HostBlocks::default_budget(), config_)),
      code_(ledger_of(HostBlocks::default_limit(), config_)),
      compiler_(*device_, open_cache(*device_, cache_directory(config_), config_.cache_size.bytes),
                std::move(readers)),
      form_maker_(compiler_,
                  {.forms = config_.form != FormChoice::kNative,
                   .profiles = config_.scheduler.intensities,
                   .at_once = config_.form != FormChoice::kAuto || config_.scheduler.forms_at_once,
                   .dispatch = config_.dispatch == DispatchChoice::kDevice,
                   .reserved_shared = reserved_shared(device_->info())}),
      forms_(*device_, config_.form, config_.scheduler.intensities,
             config_.form != FormChoice::kNative || config_.fence != FenceChoice::kNever ||
                     config_.swap.bytes > 0
                 ? &form_maker_
                 : nullptr,
             config_.dispatch),
      local_(std::make_shared<LocalMemory>(*device_)),
      fence_(config_.fence == FenceChoice::kNever
                 ? nullptr
                 : std::make_shared<FenceMemory>(*device_, config_.fence, config_.unfenced)),
      images_(std::make_shared<ImageStore>(config_.image_store.bytes)),
      link_(std::move(link)),
      completer_(*device_),
      trace_(config_.trace_events),
      residency_(residency_of(*device_, config_, trace_)),
      executor_(*device_, forms_, completer_, trace_,
                policy_maker(config_.policy, config_.scheduler), config_.scheduler),
      profiles_(executor_, state_directory(config_.state_dir), device_->info().name),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  SLATE_CHECK(wake_);
  device_->set_stall_hooks({[this] {
                              stalls_.begin();
                              executor_.begin_rest();
                            },
                            [this] {
                              executor_.end_rest();
                              stalls_.end();
                            }});
  if (fence_)
    device_->set_unmap_hook([this](device::AddressRange range) { fence_->forget(range); });
}

Engine::~Engine() {
  SLATE_CHECK(sessions_.empty());
  executor_.stop_preparing();  // the last user of the hooks
  device_->set_stall_hooks({});
  device_->set_unmap_hook({});
}

int Engine::run() {
  const DeviceInfo& info = device_->info();
  const auto told = link_.send({.type = LinkType::kReady,
                                .number = kLinkVersion,
                                .limit = free_memory(*device_),
                                .user_limit = device_->own_bytes()},
                               {reinterpret_cast<const char*>(&info), sizeof(info)});
  if (!told) return 1;
  while (true) {
    int timeout =
        may_be_blocked() || is_fenced() ? static_cast<int>(BlockingWatch::kEvery.count()) : -1;
    const auto until = [](Clock::time_point end) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
      return std::max(static_cast<int>(left.count()), 0);
    };
    if (trim_at_ && sessions_.empty()) timeout = until(*trim_at_);
    if (stopping_) {
      if (sessions_.empty()) return 0;
      timeout = until(stop_deadline_);
      if (timeout == 0) return 1;
    }
    pollfd pollers[2] = {{link_.fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    if (::poll(pollers, 2, timeout) < 0 && errno != EINTR) return 1;
    if (trim_at_ && sessions_.empty() && Clock::now() >= *trim_at_) {
      // Each thread's arena keeps what its sessions have freed.
      ::malloc_trim(0);
      if (residency_) residency_->host().trim();
      trim_at_.reset();
    }
    if (pollers[1].revents != 0) join_finished();
    if (pollers[0].revents != 0 && !read_messages()) return 1;
    if (may_be_blocked()) watch_blocking();
    if (is_fenced()) watch_fence();
  }
}

bool Engine::is_fenced() const {
  return fence_ != nullptr && fence_->is_on() && !sessions_.empty() && !stopping_;
}

/// Threads may wait long for one that the fence has ended. Their program hears of it all the same.
void Engine::watch_fence() {
  for (const auto& [id, running] : sessions_) running.session->look_at_fence();
}

/// True: the fence is on from now on.
bool Engine::count_users(bool others_come) {
  if (fence_ == nullptr) return false;
  std::set<uid_t> users;
  for (const auto& [id, running] : sessions_) users.insert(running.session->uid());
  return fence_->add_users(users, others_come);
}

std::vector<EarlierLaunches::Session> Engine::launchers() const {
  std::vector<EarlierLaunches::Session> all;
  for (const auto& [id, running] : sessions_)
    all.push_back({.id = id, .uid = running.session->uid(), .launcher = running.session.get()});
  return all;
}

/// On the session's thread, before it takes any memory: until no kernel runs that another user has
/// launched without a fence. The supervisor may have a better engine. False: the session has left.
bool Engine::wait_for_earlier(Session& session) {
  if (fence_ == nullptr || !fence_->is_on()) return true;
  const auto since = Clock::now();
  bool is_told = false;
  while (!session.is_stopping()) {
    const auto now = Clock::now();
    {
      const MutexLock lock(mutex_);
      Running& running = sessions_.at(session.id());
      running.waits_for = earlier_.of_others(session.uid(), now, launchers());
      running.waits_since = since;
      if (running.waits_for.empty()) return true;
    }
    if (session.departure().leave_unbegun()) return false;
    if (!is_told && now >= since + kPatience) {
      (void)link_.send({.type = LinkType::kSessionWaits, .session = session.id()});
      is_told = true;
    }
    std::this_thread::sleep_for(EarlierLaunches::kSeen);
  }
  return true;
}

/// Those that wait for others' earlier launches: whoever keeps them waiting for too long is ended.
void Engine::add_waiting(std::vector<SessionUse>& uses) {
  const auto use_of = [&uses](const Session& session) -> SessionUse& {
    const auto found = std::ranges::find(uses, session.id(), &SessionUse::session);
    if (found != uses.end()) return *found;
    return uses.emplace_back(SessionUse{
        .session = session.id(), .uid = session.uid(), .most_blocking = session.most_blocking()});
  };
  const MutexLock lock(mutex_);
  for (const auto& [id, running] : sessions_) {
    if (running.waits_for.empty()) continue;
    SessionUse& waiting = use_of(*running.session);
    waiting.waits_since = running.waits_since;
    waiting.waits_for = running.waits_for;
    for (const std::uint64_t other : running.waits_for) {
      const auto found = sessions_.find(other);
      if (found == sessions_.end()) continue;
      SessionUse& holder = use_of(*found->second.session);
      if (!holder.holds_since) holder.holds_since = running.waits_since;
    }
  }
}

bool Engine::may_be_blocked() const {
  return sessions_.size() > 1 && !stopping_;
}

void Engine::watch_blocking() {
  auto uses = executor_.uses();
  add_waiting(uses);
  if (!BlockingWatch::is_needed(uses)) return;
  const StallLog::Stalls stalls = stalls_.all();
  for (SessionUse& use : uses) {
    const auto session = sessions_.find(use.session);
    if (session == sessions_.end()) continue;
    const auto stall = stalls.find(session->second.thread.get_id());
    if (stall != stalls.end()) {
      use.stalled_since = stall->second;
    } else if (!stalls.empty() && session->second.session->is_busy()) {
      // Most such calls keep all other threads' calls waiting (measured: docs/security.md).
      use.stalled_since = *std::ranges::min_element(stalls | std::views::values);
    }
  }
  for (const auto& verdict : blocking_.look(Clock::now(), uses)) end_blocker(verdict);
}

/// Ends the session, or the engine where the session's work goes on all the same.
void Engine::end_blocker(const BlockingWatch::Verdict& verdict) {
  const std::uint64_t id = verdict.session;
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  const Session& session = *found->second.session;
  const std::string kernels = fmt::format("{}", fmt::join(session.running_kernels(), ", "));
  const double seconds = std::chrono::duration<double>(verdict.waited).count();
  if (!verdict.stays) {
    const MutexLock lock(mutex_);
    (void)link_.send({.type = LinkType::kBlame, .session = id},
                     fmt::format("kept session {} waiting for {:.1f} s", verdict.waiting, seconds));
    return found->second.session->fail(
        {ErrorCode::kLaunchTimeout,
         fmt::format("it kept launches of another user waiting for {:.1f} s: {}. The administrator "
                     "may raise max_blocking_ms for a user, a group or a program",
                     seconds, kernels)});
  }
  const std::string text =
      fmt::format("session {} keeps session {} waiting for {:.1f} s, and cannot be stopped: {}", id,
                  verdict.waiting, seconds, kernels);
  if (config_.blocked_engine == BlockedEngine::kKeep) return log_error("{}", text);
  end_process({ErrorCode::kUnavailable, "the engine was replaced because " + text}, {});
}

/// False when the supervisor is gone.
bool Engine::read_messages() {
  while (true) {
    auto message = link_.receive();
    if (!message) return false;
    if (!*message) return true;
    handle(std::move(**message));
  }
}

void Engine::handle(LinkMessage message) {
  switch (message.header.type) {
    case LinkType::kHold:
      if (message.fds.size() != 1) return;
      held_[message.header.session].insert_or_assign(
          {static_cast<BookKind>(message.header.flags), message.header.number},
          std::move(message.fds.front()));
      return;
    case LinkType::kAddSession:
      return add_session(std::move(message));
    case LinkType::kFence: {
      const MutexLock lock(fence_mutex_);
      fences_answered_ = message.header.number;
      fence_passed_.notify_all();
      return;
    }
    case LinkType::kStatusRequest:
      return send_status(message.header.number);
    case LinkType::kSetSession:
      // It may have ended meanwhile.
      (void)executor_.set(message.header.session, message.header.weight, message.header.priority);
      return;
    case LinkType::kProfileRequest:
      return answer_profile(message.header.number, message.text);
    case LinkType::kTraceRequest:
      return send_trace(message.header.number, message.header.limit);
    case LinkType::kAlive:
      (void)link_.send({.type = LinkType::kAlive});
      return;
    case LinkType::kStop:
      return stop_sessions(message.text);
    case LinkType::kEndSession:
      return end_session(message.header.session, message.text);
    case LinkType::kLeave:
      if (Session* const session = find_session(message.header.session))
        session->departure().want({.to_host = (message.header.flags & kToHost) != 0,
                                   .when_idle = (message.header.flags & kWhenIdle) != 0});
      return;
    case LinkType::kShareTime:
      return share_time(std::move(message));
    case LinkType::kSessionStays:
      if (Session* const session = find_session(message.header.session))
        session->departure().stay();
      return;
    default:
      log_error("unexpected message {} from the supervisor", static_cast<int>(message.header.type));
  }
}

/// Without the page this engine takes what the device gives it.
void Engine::share_time(LinkMessage message) {
  std::unique_ptr<TimePage> page;
  if (!message.fds.empty()) {
    auto mapped = TimePage::from_fd(std::move(message.fds.front()));
    if (!mapped) return log_error("{}", mapped.error().message);
    page = std::move(*mapped);
  }
  executor_.share_time(std::move(page), message.header.number);
}

void Engine::refuse(std::uint64_t session, const std::string& reason) {
  order_->end(session);
  log_warning("session {}: {}", session, reason);
  (void)link_.send({.type = LinkType::kSessionEnded, .session = session},
                   std::string_view(reason).substr(0, kMaxLinkText));
}

void Engine::add_session(LinkMessage message) {
  if (ending_.load()) return;  // the supervisor gives it to the next engine
  profiles_.session_comes();
  const LinkHeader& header = message.header;
  auto held = held_.extract(header.session);
  if (message.fds.size() != 5)
    return refuse(header.session, "slate's engine has no file descriptors left for this session");
  auto segment = ipc::Segment::from_fd(std::move(message.fds[3]));
  if (!segment) return refuse(header.session, segment.error().message);
  auto book = Book::from_fd(std::move(message.fds[4]));
  if (!book) return refuse(header.session, book.error().message);
  SessionSpec spec{
      .id = header.session,
      .pid = header.pid,
      .uid = header.uid,
      .program = std::move(message.text),
      .memory_limit = header.limit,
      .account = std::make_unique<MemoryLedger::Account>(memory_, header.uid, header.user_limit),
      .weight = header.weight,
      .user_weight = header.user_weight,
      .priority = header.priority,
      .most_blocking = std::chrono::milliseconds(static_cast<std::int64_t>(header.max_blocking_ms)),
      .ends = {std::move(message.fds[0]), std::move(message.fds[1]), std::move(message.fds[2])},
      .segment = std::move(*segment),
      .pinned = std::make_shared<MemoryLedger::Account>(pinned_, header.uid),
      .code = std::make_shared<MemoryLedger::Account>(code_, header.uid),
      .memory_wait =
          std::chrono::milliseconds(static_cast<std::int64_t>(config_.memory_wait_seconds * 1000)),
      .local = local_,
      .staging = staging_,
      .exports = exports_,
      .images = images_,
      .fence = fence_,
      .residency = residency_,
      .book = std::make_shared<SessionBook>(*device_, std::move(*book),
                                            held ? std::move(held.mapped()) : HeldMemory(),
                                            holder_of(header.session)),
      .order = order_,
      .suspected_of = header.code};
  if (spec.suspected_of != ErrorCode::kNone) order_->expect(header.session);
  SessionHooks hooks{
      [this](const Error& fault) { device_lost(fault); },
      [this](std::uint64_t id) { session_stuck(id); },
      [this](std::string_view function) { unsupported_calls_.count(function); },
      [this](const SessionStatus& last) {
        (void)link_.send(
            {.type = LinkType::kSessionLeft, .session = last.id, .number = last.launches});
      },
      [this](std::uint64_t id, const std::string& why) {
        (void)link_.send({.type = LinkType::kSessionStays, .session = id},
                         std::string_view(why).substr(0, kMaxLinkText));
      },
      [this](std::uint64_t id, bool waits) {
        (void)link_.send(
            {.type = LinkType::kUnfenced, .session = id, .flags = waits ? kWaitsForWord : 0});
      }};
  const std::uint64_t id = spec.id;
  const auto begun = or_out_of_memory([&]() -> Result<void> {
    begin_session(std::make_unique<Session>(*device_, compiler_, executor_, completer_,
                                            std::move(spec), std::move(hooks), kill_grace(config_)),
                  (header.flags & kOthersCome) != 0);
    return {};
  });
  if (begun) return;
  {
    const MutexLock lock(mutex_);
    sessions_.erase(id);
  }
  refuse(id, begun.error().message);
}

SessionBook::Holder Engine::holder_of(std::uint64_t session) {
  const auto header = [session](LinkType type, Book::Key key) {
    return LinkHeader{.type = type,
                      .session = session,
                      .number = key.second,
                      .flags = static_cast<std::uint32_t>(key.first)};
  };
  return {.hold =
              [this, header](Book::Key key, int memory) {
                const int fds[] = {memory};
                return link_.send(header(LinkType::kHold, key), {}, fds);
              },
          .let_go =
              [this, header](Book::Key key) {
                // On a lost device the next engine needs it.
                if (!device_->lost()) (void)link_.send(header(LinkType::kLetGo, key));
              },
          .settle = [this] { wait_for_supervisor(); },
          .make_room =
              [this] {
                const std::uint64_t total = device_->info().total_memory;
                if (device_->free_memory().value_or(total) > total / kScarce) return false;
                (void)link_.send({.type = LinkType::kNeedsRoom});
                wait_for_supervisor();
                return true;
              }};
}

/// Not for long: a supervisor that is busy gives memory back late, no more.
void Engine::wait_for_supervisor() {
  MutexLock lock(fence_mutex_);
  const std::uint64_t number = ++fences_;
  if (!link_.send({.type = LinkType::kFence, .number = number})) return;
  fence_passed_.wait_for(lock, std::chrono::seconds(1),
                         [&]() SLATE_REQUIRES(fence_mutex_) { return fences_answered_ >= number; });
}

void Engine::begin_session(std::unique_ptr<Session> session, bool others_come) {
  Session* const body = session.get();
  const std::uint64_t id = body->id();
  const MutexLock lock(mutex_);
  const auto others = launchers();
  auto& running = sessions_[id];
  running.session = std::move(session);
  // Before its first launch.
  if (count_users(others_come)) earlier_.fence_came(Clock::now(), others);
  try {
    running.thread = std::thread([this, body, id] {
      if (wait_for_earlier(*body)) body->run();
      session_finished(id);
    });
  } catch (const std::system_error& error) {
    sessions_.erase(id);
    refuse(id, std::string("slate has no thread left for this session: ") + error.what());
    return;
  }
  // A session that comes while the engine stops goes at once.
  if (stopping_) body->stop("slated is stopping");
}

void Engine::session_finished(std::uint64_t session) {
  {
    const MutexLock lock(mutex_);
    finished_.push_back(session);
  }
  const std::uint64_t one = 1;
  SLATE_CHECK(::write(wake_.get(), &one, sizeof(one)) == sizeof(one));
}

void Engine::join_finished() {
  std::uint64_t count = 0;
  (void)!::read(wake_.get(), &count, sizeof(count));
  std::vector<Running> ended;
  {
    const MutexLock lock(mutex_);
    for (const std::uint64_t id : finished_) {
      const auto found = sessions_.find(id);
      ended.push_back(std::move(found->second));
      sessions_.erase(found);
    }
    finished_.clear();
  }
  trim_at_ = Clock::now() + kTrimAfter;
  count_users();
  for (Running& running : ended) {
    running.thread.join();
    const bool faulted = running.session->faulted();
    if (faulted) ++faults_;
    const Departure& departure = running.session->departure();
    const bool left = departure.has_left(), told = departure.has_told();
    const auto last = running.session->status();
    running.session.reset();
    // On a lost device a session ends for that reason, which the supervisor learns as one fault.
    if (ending_.load() || told) continue;
    (void)link_.send({.type = left ? LinkType::kSessionLeft : LinkType::kSessionEnded,
                      .session = last.id,
                      .number = last.launches,
                      .flags = faulted ? kSessionFaulted : 0});
  }
}

void Engine::send_trace(std::uint64_t request, std::uint64_t microseconds) {
  const auto snapshot = trace_.snapshot(static_cast<double>(microseconds) / 1e6);
  (void)link_.send_report(request, chrome_json(snapshot, executor_.machine()));
}

void Engine::answer_profile(std::uint64_t number, const std::string& text) {
  const auto request = parse_profile_request(text);
  Result<std::string> answer = request ? Result<std::string>() : std::unexpected(request.error());
  if (request && request->changes_table()) {
    executor_.with_profiles([&](scheduler::ProfileTable& table) {
      answer = answer_profile_request(*request, table, executor_.machine(), config_.scheduler);
    });
  } else if (request) {
    scheduler::ProfileTable copy;
    executor_.with_profiles([&](const scheduler::ProfileTable& table) { copy = table; });
    answer = answer_profile_request(*request, copy, executor_.machine(), config_.scheduler);
  }
  (void)link_.send_report(number, answer ? *answer : answer.error().message,
                          answer ? ErrorCode::kNone : answer.error().code);
}

void Engine::send_status(std::uint64_t request) {
  nlohmann::json report;
  report["sessions"] = nlohmann::json::array();
  std::uint64_t faults = 0;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, running] : sessions_) {
      auto session = to_json(running.session->status());
      if (const auto client = executor_.status(id)) add_to(session, *client);
      report["sessions"].push_back(std::move(session));
      if (running.session->faulted()) ++faults;
    }
  }
  report["faults"] = faults;
  if (const auto statistics = compiler_.cache_statistics()) report["cache"] = to_json(*statistics);
  report["forms"] = to_json(forms_, form_maker_.counts());
  if (fence_) report["fence"] = to_json(*fence_);
  if (residency_) report["swap"] = to_json(residency_->counts());
  report["unsupported"] = unsupported_calls_.snapshot();
  report["policy"] = executor_.policy_name();
  report["arrangement"] = executor_.arrangement();
  const scheduler::Machine& machine = executor_.machine();
  report["peaks"] = {{"peak_gflops", machine.peak_gflops}, {"peak_gbytes", machine.peak_gbytes}};
  if (const auto free = device_->free_memory()) report["memory_free"] = *free;
  (void)link_.send_report(request,
                          report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void Engine::stop_sessions(const std::string& reason) {
  stopping_ = true;
  stop_deadline_ = Clock::now() + kStopGrace;
  const MutexLock lock(mutex_);
  for (auto& [id, running] : sessions_) running.session->stop(reason);
}

void Engine::end_session(std::uint64_t session, const std::string& reason) {
  held_.erase(session);
  const MutexLock lock(mutex_);
  if (Session* const found = find_session(session)) found->stop(reason);
}

/// Null: it has ended meanwhile. Control thread.
Session* Engine::find_session(std::uint64_t session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : found->second.session.get();
}

void Engine::device_lost(const Error& fault) {
  RunningKernels running;
  std::vector<std::uint64_t> with_kernels, with_unfenced;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, each] : sessions_) {
      auto kernels = each.session->running_kernels();
      if (kernels.empty()) continue;
      with_kernels.push_back(id);
      if (each.session->runs_unfenced()) with_unfenced.push_back(id);
      running.emplace(id, std::move(kernels));
    }
  }
  // No kernel behind the fence can lose the device, others can.
  const auto culprit = order_->culprit(with_unfenced.empty() ? with_kernels : with_unfenced);
  if (running.contains(culprit))
    std::erase_if(running, [culprit](const auto& each) { return each.first != culprit; });
  end_process(fault, running, culprit);
}

void Engine::session_stuck(std::uint64_t session) {
  if (!config_.kill_stuck_engine) return;
  end_process({ErrorCode::kUnavailable,
               fmt::format("the engine was replaced because session {} left work that does not end",
                           session)},
              {}, session);
}

void Engine::end_process(Error fault, const RunningKernels& kernels, std::uint64_t culprit) {
  if (ending_.exchange(true)) {
    // What this thread has learned from the lost device is not for its client.
    while (!ended_.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return;
  }
  {
    const MutexLock lock(mutex_);
    for (auto& [id, running] : sessions_) {
      if (id != culprit && !running.session->departure().why_bound()) {
        running.session->departure().freeze();
      } else if (running.session->begun()) {
        running.session->fail({fault.code, fault.message + cause_for(id, kernels)});
      }
    }
  }
  // Whatever writes now has looked before.
  std::this_thread::sleep_for(kLastWrites);
  fault.message += cause_for(0, kernels);
  log_error("engine ends: {}: {}", error_name(fault.code), fault.message);
  fault.message.resize(std::min(fault.message.size(), kMaxLinkText));
  (void)link_.send({.type = LinkType::kFault,
                    .code = fault.code,
                    .session = culprit,
                    .flags = device_->lost() && device_->stops_when_lost() ? kFrozen : 0},
                   fault.message);
  exit_now_(kEngineFaultStatus);
  ended_.store(true);
}

}  // namespace slate::daemon
