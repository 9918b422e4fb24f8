#include "client/session/code.h"

#include <algorithm>

namespace slate::client {
namespace {

/// Errors that the same code would meet again, as opposed to want of memory or of a daemon.
bool is_about_code(ErrorCode code) {
  return code == ErrorCode::kInvalidPtx || code == ErrorCode::kNoKernelImage ||
         code == ErrorCode::kInvalidValue || code == ErrorCode::kNotSupported;
}

}  // namespace

FatBinary* Code::add_binary(const void* wrapper) {
  auto binary = std::make_unique<FatBinary>();
  binary->wrapper = wrapper;
  std::unique_lock lock(names_mutex_);
  binaries_.push_back(std::move(binary));
  return binaries_.back().get();
}

void Code::add_kernel(FatBinary* binary, const void* host, const char* name) {
  auto kernel = std::make_unique<Kernel>();
  kernel->binary = binary;
  kernel->name = name;
  std::unique_lock lock(names_mutex_);
  all_kernels_.push_back(std::move(kernel));
  Kernel* const made = all_kernels_.back().get();
  kernels_[host] = made;
  kernels_[made] = made;
}

void Code::add_variable(FatBinary* binary, const void* host, const char* name,
                        std::uint64_t bytes) {
  auto variable = std::make_unique<Variable>();
  variable->binary = binary;
  variable->name = name;
  variable->bytes = bytes;
  std::unique_lock lock(names_mutex_);
  variables_[host] = std::move(variable);
}

void Code::add_managed(FatBinary* binary, const char* name) {
  std::lock_guard lock(loading_mutex_);
  if (binary->managed_variable.empty()) binary->managed_variable = name;
}

void Code::remove_binary(FatBinary* binary, Session* session) {
  std::lock_guard loading(loading_mutex_);
  std::unique_lock names(names_mutex_);
  std::erase_if(kernels_, [&](const auto& item) { return item.second->binary == binary; });
  for (auto& kernel : all_kernels_) {
    if (kernel->binary != binary) continue;
    kernel->binary = nullptr;
    kernel->function.store(nullptr, std::memory_order_release);
  }
  std::erase_if(variables_, [&](const auto& item) {
    const Variable& variable = *item.second;
    if (variable.binary != binary) return false;
    if (session != nullptr && variable.session == session->serial()) {
      session->memory().erase(variable.address, kTagGlobal);
    }
    return true;
  });
  if (session != nullptr && binary->session == session->serial()) {
    // Nobody is left to tell: a session that cannot take the command has lost the module anyway.
    if (binary->module != 0) (void)session->unload_module(binary->module);
  }
  std::erase_if(binaries_, [&](const auto& item) { return item.get() == binary; });
}

Kernel* Code::find_kernel(const void* host) const {
  std::shared_lock lock(names_mutex_);
  const auto at = kernels_.find(host);
  return at == kernels_.end() ? nullptr : at->second;
}

Variable* Code::find_variable(const void* host) const {
  std::shared_lock lock(names_mutex_);
  const auto at = variables_.find(host);
  return at == variables_.end() ? nullptr : at->second.get();
}

Result<void> Code::send_image(Session& session, FatBinary& binary) {
  auto image = image_of_wrapper(binary.wrapper, session.capability());
  if (!image) return std::unexpected(image.error());
  auto module = session.load_module(*image);
  if (!module) return std::unexpected(module.error());
  binary.module = *module;
  return {};
}

Result<void> Code::load_binary(Session& session, FatBinary& binary) {
  if (binary.session == session.serial()) {
    if (binary.refusal) return std::unexpected(*binary.refusal);
    return {};
  }
  if (!binary.managed_variable.empty()) {
    return fail(ErrorCode::kNotSupported,
                "__managed__ variables are not supported yet (" + binary.managed_variable + ")");
  }
  binary.module = 0;
  binary.refusal.reset();
  auto sent = send_image(session, binary);
  if (!sent && !is_about_code(sent.error().code)) return sent;
  if (!sent) binary.refusal = sent.error();
  binary.session = session.serial();
  return sent;
}

Result<Function*> Code::load_function(Session& session, Kernel& kernel) {
  std::lock_guard lock(loading_mutex_);
  Function* known = kernel.function.load(std::memory_order_acquire);
  if (known != nullptr && known->session == session.serial()) return known;
  if (kernel.binary == nullptr) {
    return fail(ErrorCode::kInvalidHandle, "kernel " + kernel.name + " was unloaded");
  }
  if (auto ok = load_binary(session, *kernel.binary); !ok) return std::unexpected(ok.error());
  auto function = session.find_function(kernel.binary->module, kernel.name);
  if (!function) return std::unexpected(function.error());
  kernel.made.push_back(std::move(*function));
  kernel.function.store(kernel.made.back().get(), std::memory_order_release);
  return kernel.made.back().get();
}

Result<Range> Code::place_locked(Session& session, Variable& variable) {
  if (variable.session == session.serial()) {
    return Range{variable.address, variable.bytes, kTagGlobal};
  }
  if (auto ok = load_binary(session, *variable.binary); !ok) return std::unexpected(ok.error());
  auto global = session.find_global(variable.binary->module, variable.name);
  if (!global) return std::unexpected(global.error());
  variable.address = global->address;
  variable.bytes = global->bytes;
  variable.session = session.serial();
  return Range{variable.address, variable.bytes, kTagGlobal};
}

Result<Range> Code::place(Session& session, Variable& variable) {
  std::lock_guard lock(loading_mutex_);
  return place_locked(session, variable);
}

void Code::place_all(Session& session) {
  std::lock_guard loading(loading_mutex_);
  std::shared_lock names(names_mutex_);
  for (const auto& [host, variable] : variables_) {
    if (variable->binary->session != session.serial()) continue;
    // One that is missing from the image stays unknown, as it would be to the program.
    [[maybe_unused]] const auto ignored = place_locked(session, *variable);
  }
}

void Code::lock_for_fork() {
  loading_mutex_.lock();
  names_mutex_.lock();
}

void Code::unlock_after_fork(bool in_child) {
  if (in_child) {
    // A writer's lock knows its thread by a number that the child's thread does not have.
    std::construct_at(&names_mutex_);
  } else {
    names_mutex_.unlock();
  }
  loading_mutex_.unlock();
}

}  // namespace slate::client
