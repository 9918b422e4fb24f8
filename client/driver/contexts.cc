#include "client/driver/contexts.h"

#include <algorithm>

#include "client/session/process.h"

namespace slate::driver {

constinit thread_local Thread thread_state;

CUresult LocalStorage::put(void* key, void* value, Destructor destructor) {
  MutexLock lock(mutex_);
  const std::size_t used = used_.load(std::memory_order_relaxed);
  std::size_t at = 0;
  while (at < used && entries_[at].key.load(std::memory_order_relaxed) != key) ++at;
  if (at == used) {
    // An entry whose key is null was removed.
    at = 0;
    while (at < used && entries_[at].key.load(std::memory_order_relaxed) != nullptr) ++at;
  }
  if (at == kMost) return CUDA_ERROR_OUT_OF_MEMORY;
  Entry& entry = entries_[at];
  entry.destructor = destructor;
  entry.value.store(value, std::memory_order_relaxed);
  entry.key.store(key, std::memory_order_release);
  if (at == used) used_.store(used + 1, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult LocalStorage::remove(void* key) {
  MutexLock lock(mutex_);
  for (std::size_t i = 0; i < used_.load(std::memory_order_relaxed); ++i) {
    if (entries_[i].key.load(std::memory_order_relaxed) != key) continue;
    entries_[i].key.store(nullptr, std::memory_order_release);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_HANDLE;
}

CUresult LocalStorage::get(void* key, void** value) const {
  const std::size_t used = used_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < used; ++i) {
    if (entries_[i].key.load(std::memory_order_acquire) != key) continue;
    *value = entries_[i].value.load(std::memory_order_relaxed);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_HANDLE;
}

void LocalStorage::clear(CUcontext context) {
  struct Due {
    void *key, *value;
    Destructor destructor;
  };
  std::vector<Due> due;
  {
    MutexLock lock(mutex_);
    for (std::size_t i = 0; i < used_.load(std::memory_order_relaxed); ++i) {
      Entry& entry = entries_[i];
      void* const key = entry.key.exchange(nullptr, std::memory_order_acq_rel);
      if (key != nullptr && entry.destructor != nullptr)
        due.push_back({key, entry.value.load(std::memory_order_relaxed), entry.destructor});
    }
  }
  // Without the lock: they are code of strangers.
  for (const Due& each : due) each.destructor(context, each.key, each.value);
}

Contexts& Contexts::get() {
  static Contexts* const instance = new Contexts;
  return *instance;
}

Contexts::Contexts()
    : all_([] {
        std::vector<std::unique_ptr<Context>> first;
        first.push_back(std::make_unique<Context>(std::uint64_t{1}, true));
        return first;
      }()),
      primary_(all_.front().get()) {}

Context* Contexts::find(CUcontext handle) const {
  if (handle == primary_->handle()) [[likely]]
    return primary_;
  MutexLock lock(mutex_);
  for (const auto& each : all_) {
    if (each->handle() == handle) return each.get();
  }
  return nullptr;
}

void Contexts::retain_primary() {
  MutexLock lock(mutex_);
  ++retained_;
  if (primary_->is_active.exchange(true, std::memory_order_acq_rel)) return;
  ++active_;
}

CUresult Contexts::release_primary() {
  {
    MutexLock lock(mutex_);
    if (retained_ == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--retained_ > 0) return CUDA_SUCCESS;
  }
  end(*primary_);
  return CUDA_SUCCESS;
}

void Contexts::reset_primary() {
  end(*primary_);
}

Context& Contexts::create(unsigned flags) {
  MutexLock lock(mutex_);
  auto fresh = std::make_unique<Context>(std::uint64_t{all_.size() + 1}, false);
  fresh->flags = flags;
  fresh->is_active = true;
  ++active_;
  return *all_.emplace_back(std::move(fresh));
}

CUresult Contexts::destroy(Context& context) {
  if (context.is_primary || !context.is_active.load(std::memory_order_acquire))
    return CUDA_ERROR_INVALID_CONTEXT;
  end(context);
  return CUDA_SUCCESS;
}

void Contexts::end(Context& context) {
  if (!context.is_active.load(std::memory_order_acquire)) return;
  // The destructors may still call us with the context.
  context.storage.clear(context.handle());
  bool was_last = false;
  {
    MutexLock lock(mutex_);
    if (!context.is_active.exchange(false, std::memory_order_acq_rel)) return;
    was_last = --active_ == 0;
  }
  client::Session* const session = client::Process::get().current();
  if (session == nullptr) return;
  // What still runs may print. An error of it ends with the context.
  (void)session->waiting().synchronize(ipc::TargetKind::kSession, 0);
  session->printing().write();
  if (was_last) client::Process::get().reset();
}

}  // namespace slate::driver
