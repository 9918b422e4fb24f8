#include "client/session/graph_memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "client/session/process.h"

namespace slate::client {
namespace {

/// All such memory of the process, by session and address.
struct All {
  Mutex mutex;
  using Key = std::pair<std::uint64_t, std::uint64_t>;
  std::map<Key, std::weak_ptr<GraphMemory>> memories SLATE_GUARDED_BY(mutex);
  std::set<Key> left SLATE_GUARDED_BY(mutex);  // the program's, as its graphs are gone
  GraphMemory::Totals totals SLATE_GUARDED_BY(mutex);
};

All& all() {
  static All* const instance = new All;
  return *instance;
}

// CU_GRAPH_MEM_ATTR_*
constexpr int kUsedCurrent = 0;
constexpr int kUsedHigh = 1;
constexpr int kReservedCurrent = 2;
constexpr int kReservedHigh = 3;

}  // namespace

Allowed<std::shared_ptr<GraphMemory>> GraphMemory::make(Session& session, std::uint64_t bytes) {
  if (bytes == 0) return refuse(Refusal::kInvalidValue);
  auto address = session.memory().allocate(bytes);
  if (!address) return std::unexpected<Refused>(std::move(address.error()));
  std::shared_ptr<GraphMemory> made(new GraphMemory(session.serial(), *address, bytes));
  const MutexLock lock(all().mutex);
  all().memories[{session.serial(), *address}] = made;
  Totals& totals = all().totals;
  totals.reserved += bytes;
  totals.reserved_high = std::max(totals.reserved_high, totals.reserved);
  return made;
}

GraphMemory::~GraphMemory() {
  {
    const MutexLock lock(all().mutex);
    all().memories.erase({session_, address_});
    all().totals.reserved -= bytes_;
    if (allocated_) all().totals.used -= bytes_;
    if (allocated_) all().left.insert({session_, address_});
  }
  Session* const session = Process::get().current(session_);
  if (allocated_ || session == nullptr) return;
  (void)session->memory().free(
      address_);  // fails only when the session has ended, and the memory with it
}

bool GraphMemory::is_allocated() const {
  const MutexLock lock(all().mutex);
  return allocated_;
}

void GraphMemory::set_allocated(bool allocated) {
  const MutexLock lock(all().mutex);
  if (allocated == allocated_) return;
  allocated_ = allocated;
  Totals& totals = all().totals;
  totals.used = allocated ? totals.used + bytes_ : totals.used - bytes_;
  totals.used_high = std::max(totals.used_high, totals.used);
}

std::shared_ptr<GraphMemory> GraphMemory::find(Session& session, std::uint64_t address) {
  const MutexLock lock(all().mutex);
  const auto at = all().memories.find({session.serial(), address});
  return at == all().memories.end() ? nullptr : at->second.lock();
}

bool GraphMemory::is_of_graphs(Session& session, std::uint64_t address) {
  const MutexLock lock(all().mutex);
  const All::Key key{session.serial(), address};
  return all().memories.contains(key) || all().left.contains(key);
}

Allowed<bool> GraphMemory::free_by_program(Session& session, std::uint64_t address) {
  const auto memory = find(session, address);
  if (!memory) {
    const MutexLock lock(all().mutex);
    all().left.erase({session.serial(), address});
    return false;
  }
  if (!memory->is_allocated()) return refuse(Refusal::kInvalidValue);
  memory->set_allocated(false);
  return true;
}

GraphMemory::Totals GraphMemory::totals() {
  const MutexLock lock(all().mutex);
  return all().totals;
}

Allowed<std::uint64_t> GraphMemory::attribute(int number) {
  const Totals now = totals();
  switch (number) {
    case kUsedCurrent:
      return now.used;
    case kUsedHigh:
      return now.used_high;
    case kReservedCurrent:
      return now.reserved;
    case kReservedHigh:
      return now.reserved_high;
    default:
      return refuse(Refusal::kInvalidValue);
  }
}

Allowed<void> GraphMemory::set_attribute(int number, std::uint64_t value) {
  if (value != 0) return refuse(Refusal::kInvalidValue);
  const MutexLock lock(all().mutex);
  Totals& now = all().totals;
  if (number == kUsedHigh) {
    now.used_high = now.used;
  } else if (number == kReservedHigh) {
    now.reserved_high = now.reserved;
  } else {
    return refuse(Refusal::kInvalidValue);
  }
  return {};
}

void GraphMemory::lock_for_fork() {
  all().mutex.lock();
}

void GraphMemory::unlock_after_fork() {
  all().mutex.unlock();
}

}  // namespace slate::client
