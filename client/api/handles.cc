#include "client/api/handles.h"

#include <pthread.h>

#include "client/session/process.h"

namespace slate::api {

Handles& Handles::get() {
  static Handles* const instance = new Handles;
  return *instance;
}

Handles::Handles() {
  // A child must not find the table half changed. The handlers' `get()` finds the static made: no
  // fork runs them before this constructor has returned but its own thread's, which does not fork.
  const auto lock = []() SLATE_NO_THREAD_SAFETY_ANALYSIS { get().mutex_.lock(); };
  const auto unlock = []() SLATE_NO_THREAD_SAFETY_ANALYSIS { get().mutex_.unlock(); };
  ::pthread_atfork(lock, unlock, unlock);
}

std::uintptr_t Handles::next_number() {
  constexpr std::uintptr_t kStep = 16;  // a number that looks like a pointer, and is none of ours
  return last_number_ += kStep;
}

slate_module* Handles::add(const std::shared_ptr<Module>& module) {
  MutexLock lock(mutex_);
  module->handle = reinterpret_cast<slate_module*>(next_number());
  modules_.emplace(module->handle, module);
  return module->handle;
}

slate_kernel* Handles::add(std::shared_ptr<Kernel> kernel) {
  MutexLock lock(mutex_);
  if (!modules_.contains(kernel->module->handle)) return nullptr;
  auto* const handle = reinterpret_cast<slate_kernel*>(next_number());
  kernels_.emplace(handle, std::move(kernel));
  return handle;
}

std::shared_ptr<Module> Handles::remove(slate_module* module) {
  MutexLock lock(mutex_);
  const auto at = modules_.find(module);
  if (at == modules_.end()) return nullptr;
  std::shared_ptr<Module> removed = std::move(at->second);
  modules_.erase(at);
  std::erase_if(kernels_, [&](const auto& item) { return item.second->module == removed; });
  return removed;
}

Outcome<std::shared_ptr<Module>> Handles::find(slate_module* module) const {
  MutexLock lock(mutex_);
  const auto at = modules_.find(module);
  if (at != modules_.end()) return at->second;
  return refuse(SLATE_ERROR_INVALID_HANDLE, module == nullptr
                                                ? "the module is null"
                                                : "there is no such module, or it was unloaded");
}

Outcome<std::shared_ptr<Kernel>> Handles::find(slate_kernel* kernel) const {
  MutexLock lock(mutex_);
  const auto at = kernels_.find(kernel);
  if (at != kernels_.end()) return at->second;
  return refuse(SLATE_ERROR_INVALID_HANDLE, kernel == nullptr
                                                ? "the kernel is null"
                                                : "there is no such kernel, or its module was "
                                                  "unloaded");
}

Outcome<client::Session*> session_of(const Module& module) {
  if (client::Session* const session = client::Process::get().current(module.session)) {
    return session;
  }
  return refuse(SLATE_ERROR_SESSION_ENDED,
                "the module was loaded into a session that has ended: cudaDeviceReset() and fork() "
                "lose all modules");
}

}  // namespace slate::api
