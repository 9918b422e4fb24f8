#include "daemon/engine/form_maker.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "base/log.h"
#include "base/out_of_memory.h"
#include "daemon/dispatch/device_dispatch.h"

namespace slate::daemon {
namespace {

using Clock = std::chrono::steady_clock;

// Part of every key: to be raised when the forms themselves change.
constexpr std::string_view kFormat = "21";
constexpr int kLowestPriority = 19;
/// The orders' thread takes turns as a user of its own. As a user whose sessions load large modules
/// it would wait for them, and all users' orders with it.
constexpr uid_t kOwnTurns = ~uid_t{0};
/// The reader of a larger text is not kept for the module's next kernel.
constexpr std::uint64_t kMostKeptText = 3 << 20;

DigestBytes digest_of_both(std::string_view text, const std::vector<std::byte>* code) {
  Digest digest;
  digest.add(std::as_bytes(std::span(text)));
  if (code != nullptr) digest.add(*code);
  return digest.finish();
}

FormMaker::Outcome nothing(const std::string& kernel, const std::string& why, double cost_ms = 0) {
  MadeForms made = without_forms(kernel, why);
  made.cost_ms = cost_ms;
  return std::make_shared<const MadeForms>(std::move(made));
}

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

}  // namespace

FormSource::FormSource(std::string ptx, std::shared_ptr<const std::vector<std::byte>> native)
    : text(std::move(ptx)), code(std::move(native)), digest(digest_of_both(text, code.get())) {}

FormMaker::FormMaker(Compiler& compiler, Settings settings)
    : compiler_(compiler), settings_(settings) {}

FormMaker::~FormMaker() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

cache::Key FormMaker::key_of(const FormSource& source, const std::string& kernel, Fencing fence,
                             const FirstLaunch& launch) const {
  cache::KeyBuilder key = compiler_.key("forms");
  key.add("forms", kFormat)
      .add("profile", settings_.profiles ? "1" : "0")
      .add("module", std::as_bytes(std::span(source.digest)))
      .add("kernel", kernel);
  if (fence != Fencing::kNone) {
    key.add("fence", fmt::format("{} {}", static_cast<int>(fence), settings_.reserved_shared));
  } else if (settings_.dispatch) {
    key.add("dispatch", dispatch_text(""));
  }
  if (launch.further != 0) {
    const auto& block = launch.block;
    key.add("further", fmt::format("{} {} {} {} {}", launch.further, block[0], block[1], block[2],
                                   launch.shared_bytes));
  }
  return key.finish();
}

FormMaker::Outcome FormMaker::find(const FormSource& source, const std::string& kernel,
                                   Fencing fence, const FirstLaunch& launch) {
  const auto bytes = compiler_.find(key_of(source, kernel, fence, launch));
  if (!bytes) return nullptr;
  auto made = unpack(*bytes);
  if (!made) {
    log_debug("{}: {}", kernel, made.error().message);
    return nullptr;
  }
  const MutexLock lock(mutex_);
  ++counts_.from_cache;
  return std::make_shared<const MadeForms>(std::move(*made));
}

Result<injector::KernelForms> FormMaker::analyse(const std::shared_ptr<const FormSource>& source,
                                                 const std::string& kernel, const Loader& loader) {
  if (const Outcome found = find(*source, kernel)) return found->forms;
  const auto turn = compiler_.begin_turn(loader, source->text.size());
  if (!turn) return std::unexpected(turn.error());
  auto reader = take_reader(source, loader);
  if (!reader) return std::unexpected(reader.error());
  auto text = (*reader)->write_forms({.kernel = kernel}, loader.is_over);
  keep_reader(std::move(*reader), source);
  if (!text) return std::unexpected(text.error());
  return std::move(text->forms);
}

FormMaker::Outcome FormMaker::make(const std::shared_ptr<const FormSource>& source,
                                   const std::string& kernel, const Loader& loader, Fencing fence,
                                   const FirstLaunch& launch) {
  if (Outcome found = find(*source, kernel, fence, launch)) return found;
  return make_anew(source, kernel, loader, fence, launch);
}

FormMaker::Outcome FormMaker::make_anew(const std::shared_ptr<const FormSource>& source,
                                        const std::string& kernel, const Loader& loader,
                                        Fencing fence, const FirstLaunch& launch) {
  auto begin = Clock::now();
  auto made = or_out_of_memory([&]() -> Result<MadeForms> {
    const auto turn = compiler_.begin_turn(loader, source->text.size());
    if (!turn) return std::unexpected(turn.error());
    begin = Clock::now();
    auto reader = take_reader(source, loader);
    if (!reader) return std::unexpected(reader.error());
    auto result = make_from(**reader, *source, kernel, loader, fence, launch);
    keep_reader(std::move(*reader), source);
    return result;
  });
  if (!made) {
    log_debug("{} has no forms for now: {}", kernel, made.error().message);
    return nothing(kernel, made.error().message, ms_since(begin));
  }
  if (made->why_none.empty()) {
    log_debug("the forms of {} took {:.0f} ms", kernel, made->cost_ms);
  } else {
    log_debug("{} has no forms: {}", kernel, made->why_none);
  }
  if (compiler_.compiles()) compiler_.store(key_of(*source, kernel, fence, launch), pack(*made));
  const MutexLock lock(mutex_);
  ++(made->why_none.empty() ? counts_.made : counts_.without_forms);
  counts_.cost_ms += made->cost_ms;
  return std::make_shared<const MadeForms>(std::move(*made));
}

Result<MadeForms> FormMaker::make_from(TextReader& reader, const FormSource& source,
                                       const std::string& kernel, const Loader& loader,
                                       Fencing fence, FirstLaunch launch) {
  FormCompiler compile;
  if (compiler_.compiles()) {
    compile = [this](std::string_view ptx) {
      return compiler_.compile(ptx, settings_.most_a_kernel);
    };
  }
  FormLinker link;
  if (compile && settings_.dispatch && fence == Fencing::kNone) {
    link = [this](std::span<const std::string> texts) {
      return compiler_.link(texts, settings_.most_a_kernel);
    };
  }
  const FormOrder order{.kernel = kernel,
                        .native = source.code ? std::span<const std::byte>(*source.code)
                                              : std::span<const std::byte>(),
                        .profile = settings_.profiles,
                        .link = link,
                        .fence = fence,
                        .reserved_shared = settings_.reserved_shared,
                        .launch = std::move(launch)};
  const auto write = [&](const FormRequest& request) {
    return reader.write_forms(request, loader.is_over);
  };
  return make_forms(write, order, compile);
}

Result<FormMaker::Reader> FormMaker::take_reader(const std::shared_ptr<const FormSource>& source,
                                                 const Loader& loader) {
  {
    const MutexLock lock(mutex_);
    if (reader_ != nullptr && reader_source_.lock() == source) return std::move(reader_);
  }
  return compiler_.open_reader(source->text, loader);
}

void FormMaker::keep_reader(Reader reader, const std::shared_ptr<const FormSource>& source) {
  if (!reader->is_good() || source->text.size() > kMostKeptText) return;
  const MutexLock lock(mutex_);
  reader_.swap(reader);
  reader_source_ = source;
}

std::shared_ptr<FormMaker::Order> FormMaker::order(Owner owner,
                                                   std::shared_ptr<const FormSource> source,
                                                   std::string kernel, Fencing fence,
                                                   FirstLaunch launch) {
  auto order = std::make_shared<Order>();
  order->source_ = std::move(source);
  order->kernel_ = std::move(kernel);
  order->fence_ = fence;
  order->launch_ = std::move(launch);
  order->owner_ = owner;
  {
    const MutexLock lock(mutex_);
    queues_[owner].push_back(order);
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  changed_.notify_all();
  return order;
}

void FormMaker::forget(std::uint64_t session) {
  const MutexLock lock(mutex_);
  std::erase_if(queues_, [session](const auto& each) { return each.first.session == session; });
  spent_ms_.erase(session);
  if (reader_source_.expired()) reader_.reset();
}

FormMaker::Counts FormMaker::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

void FormMaker::run() {
  // Of this thread, and of the assemblers that it starts.
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLowestPriority);
  MutexLock lock(mutex_);
  while (const std::shared_ptr<Order> order = next(lock)) {
    lock.unlock();
    Outcome outcome;
    if (may_still_spend(order->owner_.session)) {
      Loader loader{.uid = kOwnTurns};
      if (is_dropped_with_its_session(*order->source_))
        loader.is_over = [&order] { return order.use_count() == 1; };
      outcome = make(order->source_, order->kernel_, loader, order->fence_, order->launch_);
      spend(order->owner_.session, outcome->cost_ms);
    } else {
      outcome = nothing(order->kernel_, "its session's kernels took slate too long");
    }
    order->outcome_ = std::move(outcome);
    order->done_.store(true, std::memory_order_release);
    lock.lock();
  }
}

/// What was begun of a small text is finished, and kept for the program's next run: programs that
/// always end first would never have forms.
bool FormMaker::is_dropped_with_its_session(const FormSource& source) const {
  constexpr std::uint64_t kMostFinished = 1 << 20;
  return source.text.size() > kMostFinished || !compiler_.compiles();
}

/// Of the user behind the one served last, the session behind his last one. Requires: there are
/// queues.
std::map<FormMaker::Owner, FormMaker::Queue>::iterator FormMaker::next_queue() {
  constexpr std::uint64_t kBehindAll = ~std::uint64_t{0};
  auto first = queues_.upper_bound({last_uid_, kBehindAll});
  if (first == queues_.end()) first = queues_.begin();
  last_uid_ = first->first.uid;
  const auto [last, is_new] = last_of_user_.try_emplace(last_uid_);
  const auto behind = is_new ? first : queues_.upper_bound(last->second);
  const bool has_more = behind != queues_.end() && behind->first.uid == last_uid_;
  const auto queue = has_more ? behind : first;
  last->second = queue->first;
  return queue;
}

/// The next order; null at the end.
std::shared_ptr<FormMaker::Order> FormMaker::next(MutexLock& lock) {
  for (;;) {
    if (ending_) return nullptr;
    if (queues_.empty()) {
      reader_.reset();
      last_of_user_.clear();
      changed_.wait(lock);
      continue;
    }
    const auto queue = next_queue();
    std::shared_ptr<Order> order = queue->second.front().lock();
    queue->second.pop_front();
    if (queue->second.empty()) queues_.erase(queue);
    if (order != nullptr) return order;
  }
}

bool FormMaker::may_still_spend(std::uint64_t session) {
  const MutexLock lock(mutex_);
  const auto spent = spent_ms_.find(session);
  return (spent == spent_ms_.end() ? 0 : spent->second) <
         static_cast<double>(settings_.most_a_session.count());
}

void FormMaker::spend(std::uint64_t session, double ms) {
  const MutexLock lock(mutex_);
  spent_ms_[session] += ms;
}

}  // namespace slate::daemon
