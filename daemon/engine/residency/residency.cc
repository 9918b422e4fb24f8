#include "daemon/engine/residency/residency.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/sizes.h"

namespace slate::daemon {

using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::milliseconds kHostLook{5};  // how often a pool that grows is looked at

}  // namespace

Residency::Residency(device::Device& device, Settings settings, HostPool::Settings host,
                     Listener listener)
    : settings_(settings), host_(device, std::move(host)), listener_(std::move(listener)) {}

std::uint64_t Residency::used() const {
  return taken_ + outside_ + unknown_;
}

Residency::Counts Residency::counts() const {
  const MutexLock lock(mutex_);
  Counts counts = counts_;
  counts.capacity = settings_.capacity;
  counts.used = used();
  counts.bytes_per_ms = rates_.bytes_per_ms();
  counts.host = host_.counts();
  return counts;
}

Residency::Motion Residency::motion(const Tenant& tenant) const {
  const MutexLock lock(mutex_);
  Motion motion{.leaves = tenant.leaving_ > 0, .comes = tenant.wait_.fetches()};
  if (!tenant.wait_.is_waiting() || tenant.wait_.arrives()) return motion;
  for (const auto& each : tenants_) {
    if (each.get() != &tenant && each->leaving_ > 0)
      motion.waits_for.push_back(each->spec_.session);
  }
  if (!motion.waits_for.empty() || !next_) return motion;
  motion.waits_for = *next_ == tenant.spec_.session ? holders_ : std::vector{*next_};
  return motion;
}

std::shared_ptr<Residency::Tenant> Residency::enter(TenantSpec spec) {
  auto tenant = std::make_shared<Tenant>(std::move(spec), Clock::now());
  const MutexLock lock(mutex_);
  tenants_.push_back(tenant);
  update_looks();
  host_.get_ready();
  return tenant;
}

void Residency::leave(const std::shared_ptr<Tenant>& tenant) {
  const MutexLock lock(mutex_);
  SLATE_CHECK(tenant->charged_ == 0 && tenant->taken_ == 0);
  std::erase(tenants_, tenant);
  if (tenants_.empty()) unknown_ = 0;
}

/// Bytes on the host that are enough for whatever leaves: what does not fit on the device, and as
/// much again as one session may need at once.
std::uint64_t Residency::host_wanted(std::uint64_t more, std::uint64_t of_one) const {
  const std::uint64_t beyond = difference(charged_ + more + outside_, settings_.capacity);
  if (beyond == 0) return 0;
  std::uint64_t largest = of_one;
  for (const auto& each : tenants_) largest = std::max(largest, each->charged_);
  return beyond + std::min(largest, settings_.capacity);
}

Result<void> Residency::charge(Tenant& tenant, std::uint64_t bytes) {
  std::uint64_t wanted = 0, soon = 0;
  {
    const MutexLock lock(mutex_);
    wanted = host_wanted(bytes, tenant.charged_ + bytes);
    if (wanted > settings_.swap) {
      return fail(ErrorCode::kOutOfMemory,
                  fmt::format("{} bytes more: {} bytes of swap would be needed, there are {}",
                              bytes, wanted, settings_.swap));
    }
    tenant.charged_ += bytes;
    charged_ += bytes;
    if (charged_ > settings_.capacity / 4 * 3)
      soon = std::min(settings_.swap, host_wanted(bytes, tenant.charged_ + bytes));
  }
  // Sessions go on with what they have on the device, until the host's memory is there.
  if (!host_.can_grow_to(wanted)) {
    if (const auto grown = host_.grow_to(wanted); !grown) {
      uncharge(tenant, bytes);
      return fail(ErrorCode::kOutOfMemory, grown.error().message);
    }
  }
  host_.grow_ahead(std::max(wanted, soon));
  return {};
}

std::uint64_t Residency::chargeable(const Tenant& tenant) const {
  constexpr std::uint64_t kStep = 1 << 20;
  const MutexLock lock(mutex_);
  std::uint64_t least = 0, most = (settings_.capacity + settings_.swap) / kStep;
  while (least < most) {
    const std::uint64_t middle = (least + most + 1) / 2, bytes = middle * kStep;
    if (host_wanted(bytes, tenant.charged_ + bytes) <= settings_.swap) {
      least = middle;
    } else {
      most = middle - 1;
    }
  }
  return least * kStep;
}

void Residency::charge_anyway(Tenant& tenant, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  tenant.charged_ += bytes;
  charged_ += bytes;
}

void Residency::uncharge(Tenant& tenant, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  SLATE_CHECK(tenant.charged_ >= bytes);
  tenant.charged_ -= bytes;
  charged_ -= bytes;
}

bool Residency::take_at_once(Tenant& tenant, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  if (waiting_ > 0 || used() + bytes > settings_.capacity) return false;
  tenant.taken_ += bytes;
  taken_ += bytes;
  tenant.shown_.store(tenant.taken_);
  return true;
}

void Residency::take_anyway(Tenant& tenant, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  tenant.taken_ += bytes;
  taken_ += bytes;
  tenant.shown_.store(tenant.taken_);
}

void Residency::give(Tenant& tenant, std::uint64_t bytes, bool moved) {
  {
    const MutexLock lock(mutex_);
    SLATE_CHECK(tenant.taken_ >= bytes);
    tenant.taken_ -= bytes;
    taken_ -= bytes;
    tenant.shown_.store(tenant.taken_);
    tenant.leaving_ = difference(tenant.leaving_, bytes);
    if (moved) {
      counts_.moved_out += bytes;
      host_full_.reset();
    }
    update_looks();
  }
  room_.notify_all();
}

void Residency::lock(Tenant& tenant, std::uint64_t bytes) {
  const MutexLock guard(mutex_);
  tenant.locked_ += bytes;
}

void Residency::unlock(Tenant& tenant, std::uint64_t bytes) {
  const MutexLock guard(mutex_);
  tenant.locked_ -= bytes;
}

void Residency::take_outside(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  outside_ += bytes;
}

void Residency::give_outside(std::uint64_t bytes) {
  {
    const MutexLock lock(mutex_);
    SLATE_CHECK(outside_ >= bytes);
    outside_ -= bytes;
  }
  room_.notify_all();
}

void Residency::set_whole(Tenant& tenant, bool whole) {
  const MutexLock lock(mutex_);
  tenant.is_whole_ = whole;
  update_looks();
}

/// While somebody waits, all note when they use their memory.
void Residency::update_looks() {
  for (const auto& each : tenants_) {
    each->looks_.store(settings_.evicts_always || waiting_ > 0 || each->leaving_ > 0 ||
                       !each->is_whole_);
  }
}

void Residency::note_use(Tenant& tenant) {
  const MutexLock lock(mutex_);
  tenant.wait_.use(Clock::now());
}

std::uint64_t Residency::asked(Tenant& tenant) const {
  const MutexLock lock(mutex_);
  return tenant.leaving_;
}

void Residency::cannot_leave(Tenant& tenant) {
  const MutexLock lock(mutex_);
  tenant.leaving_ = 0;
  update_looks();
}

bool Residency::begins_turn(const Tenant& tenant) const {
  const MutexLock lock(mutex_);
  return tenant.wait_.begins_turn();
}

std::uint64_t Residency::most_on_device(const Tenant& tenant) const {
  const MutexLock lock(mutex_);
  std::uint64_t others = outside_ + unknown_;
  for (const auto& each : tenants_) others += each.get() == &tenant ? 0 : each->locked_;
  return difference(settings_.capacity, others);
}

void Residency::note_host_full() {
  const MutexLock lock(mutex_);
  const auto now = Clock::now();
  if (!host_full_ || now > *host_full_ + settings_.full_host_wait) host_full_since_ = now;
  host_full_ = now;
}

void Residency::begin_wait(Tenant& tenant, std::uint64_t missing, std::uint64_t spare) {
  const MutexLock lock(mutex_);
  const auto now = Clock::now();
  tenant.wait_.begin(now, missing, spare);
  tenant.waits_.store(true);
  // Others' last use was not noted until now.
  if (waiting_++ == 0) {
    for (const auto& each : tenants_) each->wait_.use(now);
  }
  update_looks();
}

void Residency::end_wait(Tenant& tenant) {
  {
    const MutexLock lock(mutex_);
    tenant.wait_.end(Clock::now(), tenant.leaving_ > 0);
    tenant.waits_.store(false);
    --waiting_;
    update_looks();
  }
  room_.notify_all();
}

/// Whether the host's memory for it is there. A session that had to wait for it would stop working
/// too early.
bool Residency::may_ask(const scheduler::MemoryDecision& decision) const {
  std::uint64_t wanted = 0;
  for (const scheduler::MemoryLeave& leave : decision.leave) wanted += leave.bytes;
  if (wanted == 0) return true;
  if (host_full_ && Clock::now() < *host_full_ + settings_.full_host_look) return false;
  for (const auto& each : tenants_) wanted += each->leaving_;
  return wanted <= host_.ready();
}

/// Asks sessions to leave as the policy says.
scheduler::MemoryDecision Residency::decide() {
  std::vector<scheduler::SessionMemory> sessions;
  const auto now = Clock::now();
  for (const auto& each : tenants_) {
    const bool busy = !each->wait_.arrives() && each->spec_.busy && each->spec_.busy();
    auto memory = each->wait_.memory(
        now, {.taken = each->taken_, .leaving = each->leaving_, .locked = each->locked_}, busy);
    memory.session = each->spec_.session;
    memory.weight = each->spec_.weight;
    memory.priority = each->spec_.priority;
    sessions.push_back(memory);
  }
  const scheduler::MemoryRules rules{.capacity = settings_.capacity,
                                     .outside = outside_ + unknown_,
                                     .bytes_per_ms = rates_.bytes_per_ms(),
                                     .overhead = settings_.overhead};
  auto decision = scheduler::decide_memory(sessions, rules, now);
  next_ = decision.next;
  holders_ = decision.holders;
  if (!may_ask(decision)) {
    decision.leave.clear();
    decision.again = std::min(decision.again, Clock::now() + kHostLook);
  }
  for (const scheduler::MemoryLeave& leave : decision.leave) {
    for (const auto& each : tenants_) {
      if (each->spec_.session != leave.session) continue;
      each->leaving_ += leave.bytes;
      if (leave.session != decision.next) each->wait_.end_turn();
      ++counts_.evictions;
      if (each->spec_.wake) each->spec_.wake();
    }
  }
  if (!decision.leave.empty()) update_looks();
  return decision;
}

/// Whether somebody leaves. If not, those that wait do so for the end of others' turns.
bool Residency::is_room_coming() const {
  return std::ranges::any_of(tenants_, [](const auto& each) { return each->leaving_ > 0; });
}

Residency::Taken Residency::take(Tenant& tenant, std::uint64_t bytes,
                                 std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  MutexLock lock(mutex_);
  while (true) {
    const auto decision = decide();
    if (decision.next == tenant.spec_.session) {
      if (used() + bytes <= settings_.capacity && tenant.leaving_ == 0) break;
      if (decision.beyond > 0 && difference(tenant.wait_.missing(), decision.beyond) < bytes)
        return Taken::kNever;
    }
    if (host_full_ && Clock::now() > host_full_since_ + settings_.full_host_wait)
      return Taken::kNever;
    const auto until = std::min(deadline, decision.again);
    if (decision.next != tenant.spec_.session || !is_room_coming())
      tenant.wait_.block(Clock::now());
    if (Clock::now() >= deadline || tenant.leaving_ > 0) return Taken::kNotYet;
    room_.wait_for(lock, until - Clock::now());
  }
  tenant.wait_.take(Clock::now(), bytes);
  tenant.taken_ += bytes;
  taken_ += bytes;
  tenant.shown_.store(tenant.taken_);
  counts_.moved_in += bytes;
  return Taken::kYes;
}

void Residency::untake(Tenant& tenant, std::uint64_t bytes) {
  {
    const MutexLock lock(mutex_);
    counts_.moved_in -= bytes;
  }
  give(tenant, bytes, false);
}

void Residency::note_full(Tenant& tenant, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  tenant.taken_ -= bytes;
  taken_ -= bytes;
  tenant.wait_.untake(bytes);
  tenant.shown_.store(tenant.taken_);
  // At least as much as was missing is in use, so that the same does not happen again.
  unknown_ += difference(settings_.capacity, used() + bytes) + bytes;
}

void Residency::do_without(Tenant& tenant, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  tenant.wait_.do_without(bytes);
}

void Residency::note_clean(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  counts_.clean_out += bytes;
}

void Residency::note_move(const Tenant& tenant, bool out, std::uint64_t bytes, double ms) {
  if (listener_) listener_(tenant.spec_.session, out, bytes, ms);
  const MutexLock lock(mutex_);
  (out ? counts_.out_ms : counts_.in_ms) += ms;
  if (!out) counts_.copied_in += bytes;
  rates_.note(out, bytes, ms);
}

}  // namespace slate::daemon
