#include "daemon/engine/loaded_modules.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"

namespace slate::daemon {

LoadedModules::Charge::~Charge() {
  if (bytes_ != 0) modules_.memory_->finish_charge(bytes_, false);
}

Result<void> LoadedModules::Charge::take(std::uint64_t variables) {
  variables_ = std::max(variables_, variables);
  const std::uint64_t bytes = modules_.device_.variable_memory(variables_);
  if (modules_.memory_ == nullptr || bytes <= bytes_) return {};
  const auto charged = modules_.charge_(bytes - bytes_);
  if (charged) bytes_ = bytes;
  return charged;
}

LoadedModules::~LoadedModules() {
  SLATE_CHECK(loaded_.empty());
}

Result<void> LoadedModules::add(device::Module module, Charge& charge, Kind kind,
                                std::uint64_t source_bytes, std::shared_ptr<SharedModule> shared) {
  {
    const MutexLock lock(mutex_);
    const auto [at, is_new] = loaded_.try_emplace(module);
    if (is_new) {
      at->second = Loaded{.kind = kind,
                          .source_bytes = source_bytes,
                          .charged = std::exchange(charge.bytes_, 0),
                          .shared = std::move(shared)};
    } else {
      SLATE_CHECK(shared != nullptr && charge.bytes_ == 0);
      ++at->second.uses;
    }
  }
  auto noted = note_host_bytes(module);
  if (!noted) unload_now(module);
  return noted;
}

Result<void> LoadedModules::note_host_bytes(device::Module module) {
  const std::uint64_t code_bytes = device_.host_bytes(module);
  const MutexLock lock(mutex_);
  Loaded& loaded = loaded_.at(module);
  const std::uint64_t bytes = code_bytes + loaded.source_bytes;
  const auto taken = take_host_bytes(loaded.host_bytes, bytes);
  if (taken) loaded.host_bytes = bytes;
  return taken;
}

/// Changes what one module has.
Result<void> LoadedModules::take_host_bytes(std::uint64_t before, std::uint64_t now) {
  if (now > before && host_bytes_ - before + now > kMostHostBytes) {
    return fail(ErrorCode::kLimit,
                fmt::format("the code of the session's modules takes {} bytes of the engine's "
                            "memory; {} are allowed",
                            host_bytes_ - before + now, kMostHostBytes));
  }
  if (account_ != nullptr && now < before) account_->give(before - now);
  if (account_ != nullptr && now > before) {
    if (const auto taken = account_->take(now - before); !taken)
      return fail(ErrorCode::kLimit, "the engine's memory for code: " + taken.error().message);
  }
  host_bytes_ += now - before;
  return {};
}

std::uint64_t LoadedModules::host_bytes() const {
  const MutexLock lock(mutex_);
  return host_bytes_;
}

void LoadedModules::retire(device::Module module) {
  const MutexLock lock(mutex_);
  Loaded& loaded = loaded_.at(module);
  if (loaded.charged == 0) return;
  loaded.retired = true;
  memory_->retire_charge();
}

void LoadedModules::unload_now(device::Module module) {
  Loaded loaded;
  {
    const MutexLock lock(mutex_);
    const auto found = loaded_.find(module);
    SLATE_CHECK(found != loaded_.end());
    if (--found->second.uses > 0) return;
    loaded = std::move(found->second);
    loaded_.erase(found);
    (void)take_host_bytes(loaded.host_bytes, 0);
  }
  unload(module, std::move(loaded));
}

std::size_t LoadedModules::count() const {
  const MutexLock lock(mutex_);
  std::size_t count = 0;
  for (const auto& [module, loaded] : loaded_) count += loaded.kind == Kind::kOwn ? loaded.uses : 0;
  return count;
}

void LoadedModules::release() {
  // Unloading may wait for kernels, and a mere count must not wait for it.
  std::map<device::Module, Loaded> all;
  {
    const MutexLock lock(mutex_);
    all.swap(loaded_);
    (void)take_host_bytes(host_bytes_, 0);
  }
  for (auto& [module, loaded] : all) unload(module, std::move(loaded));
}

void LoadedModules::unload(device::Module module, Loaded loaded) {
  if (loaded.shared == nullptr) device_.unload_module(module);
  loaded.shared = nullptr;
  if (loaded.charged != 0) memory_->finish_charge(loaded.charged, loaded.retired);
}

}  // namespace slate::daemon
