#include "client/session/code.h"

#include <algorithm>
#include <cstring>

#include "client/session/code_image.h"

namespace slate::client {
namespace {

/// Errors that the same code would meet again, as opposed to want of memory or of a daemon.
bool is_about_code(ErrorCode code) {
  return code == ErrorCode::kInvalidPtx || code == ErrorCode::kNoKernelImage ||
         code == ErrorCode::kInvalidValue || code == ErrorCode::kNotSupported;
}

std::vector<ManagedVariable*> managed_of(const FatBinary& binary,
                                         std::vector<ManagedVariable>& all) {
  std::vector<ManagedVariable*> found;
  for (ManagedVariable& variable : all) {
    if (variable.binary == &binary) found.push_back(&variable);
  }
  return found;
}

}  // namespace

FatBinary* Code::add_binary(const void* wrapper) {
  auto binary = std::make_unique<FatBinary>();
  binary->wrapper = wrapper;
  WriteLock lock(names_mutex_);
  binaries_.push_back(std::move(binary));
  return binaries_.back().get();
}

void Code::add_kernel(FatBinary* binary, const void* host, const char* name) {
  auto kernel = std::make_unique<Kernel>();
  kernel->binary = binary;
  kernel->name = name;
  WriteLock lock(names_mutex_);
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
  WriteLock lock(names_mutex_);
  variables_[host] = std::move(variable);
}

void Code::add_managed(FatBinary* binary, void** host, const char* name, std::uint64_t bytes) {
  MutexLock lock(loading_mutex_);
  managed_.push_back({binary, name, host, bytes, 0, 0, nullptr, nullptr});
}

void Code::remove_binary(FatBinary* binary, Session* session) {
  MutexLock loading(loading_mutex_);
  WriteLock names(names_mutex_);
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
      session->memory().table().erase(variable.address, kTagGlobal);
    }
    return true;
  });
  if (session != nullptr && binary->session == session->serial()) {
    // Nobody is left to tell: a session that cannot take the command has lost the module anyway.
    if (binary->module != 0) (void)session->modules().unload(binary->module);
  }
  // Their memory stays until the session ends: destructors of static objects may still use them.
  std::erase_if(managed_, [&](ManagedVariable& variable) {
    if (variable.binary != binary) return false;
    [[maybe_unused]] const std::byte* left = variable.plain.release();
    return true;
  });
  std::erase_if(binaries_, [&](const auto& item) { return item.get() == binary; });
}

Kernel* Code::find_kernel(const void* host) const {
  ReadLock lock(names_mutex_);
  const auto at = kernels_.find(host);
  return at == kernels_.end() ? nullptr : at->second;
}

Variable* Code::find_variable(const void* host) const {
  ReadLock lock(names_mutex_);
  const auto at = variables_.find(host);
  return at == variables_.end() ? nullptr : at->second.get();
}

Result<void> Code::place_managed(Session& session, FatBinary& binary) {
  for (ManagedVariable* variable : managed_of(binary, managed_)) {
    if (variable->session == session.serial()) continue;
    auto address = session.host_memory().allocate_managed(variable->bytes, kTagManagedVariable, 0);
    if (!address) return std::unexpected(address.error());
    variable->session = session.serial();
    variable->address = *address;
  }
  return {};
}

FatBinary* Code::add_library_with(const void* wrapper) {
  auto library = std::make_unique<FatBinary>();
  library->wrapper = wrapper;
  library->is_library = true;
  WriteLock lock(names_mutex_);
  return binaries_.emplace_back(std::move(library)).get();
}

FatBinary* Code::add_library(Image image) {
  FatBinary* const library = add_library_with(nullptr);
  MutexLock lock(loading_mutex_);
  learn_names(*library, image);
  library->image = std::move(image);
  return library;
}

FatBinary* Code::add_lazy_library(const void* wrapper) {
  return add_library_with(wrapper);
}

void Code::learn_names(FatBinary& library, const Image& image) {
  if (!library.is_library || library.has_names) return;
  CodeNames names = names_in(image);
  library.kernel_names = std::move(names.kernels);
  // So that their addresses are known, whoever tells them to the program.
  WriteLock lock(names_mutex_);
  for (std::string& name : names.variables) {
    auto variable = std::make_unique<Variable>();
    variable->binary = &library;
    variable->name = std::move(name);
    const Variable* const key = variable.get();
    variables_.emplace(key, std::move(variable));
  }
  for (ManagedName& each : names.managed) {
    auto own = std::make_unique<void*>(nullptr);
    void** const host = own.get();
    managed_.push_back(
        {&library, std::move(each.name), host, each.bytes, 0, 0, nullptr, std::move(own)});
  }
  library.has_names = true;
}

Result<const Image*> Code::image_of(Session& session, FatBinary& binary) {
  if (!binary.image) {
    auto unpacked = image_of_wrapper(binary.wrapper, session.capability(), session.runs_ptx_only());
    if (!unpacked) return std::unexpected(unpacked.error());
    binary.image = std::move(*unpacked);
  }
  learn_names(binary, *binary.image);
  return &*binary.image;
}

Result<std::vector<std::string>> Code::library_kernels(Session& session, FatBinary& library) {
  MutexLock lock(loading_mutex_);
  if (!library.has_names) {
    if (auto image = image_of(session, library); !image) return std::unexpected(image.error());
  }
  return library.kernel_names;
}

bool Code::is_library(const FatBinary* binary) const {
  ReadLock lock(names_mutex_);
  return std::ranges::any_of(
      binaries_, [binary](const auto& each) { return each.get() == binary && each->is_library; });
}

Result<Kernel*> Code::library_kernel(Session& session, FatBinary& library,
                                     const std::string& name) {
  Kernel* kernel = nullptr;
  {
    WriteLock lock(names_mutex_);
    const auto known = std::ranges::find_if(all_kernels_, [&](const auto& each) {
      return each->binary == &library && each->name == name;
    });
    if (known != all_kernels_.end()) kernel = known->get();
  }
  if (kernel == nullptr) {
    auto fresh = std::make_unique<Kernel>();
    fresh->binary = &library;
    fresh->name = name;
    if (auto loaded = function(session, *fresh); !loaded) return std::unexpected(loaded.error());
    WriteLock lock(names_mutex_);
    kernel = all_kernels_.emplace_back(std::move(fresh)).get();
    kernels_[kernel] = kernel;
    return kernel;
  }
  if (auto loaded = function(session, *kernel); !loaded) return std::unexpected(loaded.error());
  return kernel;
}

Result<Range> Code::library_variable(Session& session, FatBinary& library,
                                     const std::string& name) {
  const auto known = [&]() SLATE_REQUIRES_SHARED(names_mutex_) -> Variable* {
    for (const auto& [host, each] : variables_) {
      if (each->binary == &library && each->name == name) return each.get();
    }
    return nullptr;
  };
  Variable* variable = nullptr;
  {
    ReadLock lock(names_mutex_);
    variable = known();
  }
  if (variable != nullptr) return place(session, *variable);
  auto fresh = std::make_unique<Variable>();
  fresh->binary = &library;
  fresh->name = name;
  auto found = place(session, *fresh);
  if (!found) return found;
  WriteLock lock(names_mutex_);
  // Another thread may have been quicker.
  if (known() == nullptr) {
    variable = fresh.get();
    variables_[variable] = std::move(fresh);
  }
  return found;
}

Result<Range> Code::library_managed(Session& session, FatBinary& library, const std::string& name) {
  MutexLock lock(loading_mutex_);
  if (auto ok = load_binary(session, library); !ok) return std::unexpected(ok.error());
  for (const ManagedVariable* each : managed_of(library, managed_)) {
    if (each->name == name) return Range{each->address, each->bytes, kTagManagedVariable};
  }
  return fail(ErrorCode::kSymbolNotFound, "no managed variable " + name + " in the library");
}

Result<void> Code::load(Session& session, FatBinary& binary) {
  MutexLock lock(loading_mutex_);
  return load_binary(session, binary);
}

std::optional<Range> Code::find_managed(Session& session, std::uint64_t address) const {
  MutexLock lock(loading_mutex_);
  for (const ManagedVariable& variable : managed_) {
    if (variable.session == session.serial() && variable.address == address)
      return Range{address, variable.bytes, kTagManagedVariable};
  }
  return std::nullopt;
}

void Code::detach_managed(const Session* session) {
  MutexLock lock(loading_mutex_);
  for (ManagedVariable& variable : managed_) {
    const bool of_session = session != nullptr && variable.session == session->serial();
    if (!of_session && *variable.host != nullptr) continue;
    variable.plain = std::make_unique<std::byte[]>(variable.bytes);
    if (*variable.host != nullptr)
      std::memcpy(variable.plain.get(), *variable.host, variable.bytes);
    *variable.host = variable.plain.get();
    variable.session = 0;
  }
}

Result<void> Code::send_image(Session& session, FatBinary& binary) {
  auto image = image_of(session, binary);
  if (!image) return std::unexpected(image.error());
  std::vector<PlacedVariable> placed;
  if (auto ok = place_managed(session, binary); !ok) return ok;
  for (const ManagedVariable* each : managed_of(binary, managed_))
    placed.push_back({each->name, each->address});
  auto module = session.modules().load(**image, placed);
  // Another session would unpack it again.
  if (binary.wrapper != nullptr) binary.image.reset();
  if (!module) return std::unexpected(module.error());
  for (ManagedVariable* each : managed_of(binary, managed_)) {
    *each->host = reinterpret_cast<void*>(static_cast<std::uintptr_t>(each->address));
    each->plain.reset();
  }
  binary.module = *module;
  return {};
}

Result<void> Code::load_binary(Session& session, FatBinary& binary) {
  if (binary.session == session.serial()) {
    if (binary.refusal) return std::unexpected(*binary.refusal);
    return {};
  }
  binary.module = 0;
  binary.refusal.reset();
  auto sent = send_image(session, binary);
  if (!sent && !is_about_code(sent.error().code)) return sent;
  if (!sent) binary.refusal = sent.error();
  binary.session = session.serial();
  may_have_unplaced_ = true;
  return sent;
}

Result<Function*> Code::load_function(Session& session, Kernel& kernel) {
  MutexLock lock(loading_mutex_);
  Function* known = kernel.function.load(std::memory_order_acquire);
  if (known != nullptr && known->session == session.serial()) return known;
  if (kernel.binary == nullptr) {
    return fail(ErrorCode::kInvalidHandle, "kernel " + kernel.name + " was unloaded");
  }
  if (auto ok = load_binary(session, *kernel.binary); !ok) return std::unexpected(ok.error());
  auto function = session.kernels().find(kernel.binary->module, kernel.name);
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
  auto global = session.modules().find_global(variable.binary->module, variable.name);
  if (!global) return std::unexpected(global.error());
  variable.address = global->address;
  variable.bytes = global->bytes;
  variable.session = session.serial();
  return Range{variable.address, variable.bytes, kTagGlobal};
}

Result<Range> Code::place(Session& session, Variable& variable) {
  MutexLock lock(loading_mutex_);
  return place_locked(session, variable);
}

void Code::place_all(Session& session) {
  if (!may_have_unplaced_) return;
  MutexLock loading(loading_mutex_);
  ReadLock names(names_mutex_);
  for (const auto& [host, variable] : variables_) {
    if (variable->binary->session != session.serial()) continue;
    if (variable->absent_in == session.serial()) continue;
    // One that is missing from the image stays unknown, as it would be to the program.
    if (!place_locked(session, *variable)) variable->absent_in = session.serial();
  }
  may_have_unplaced_ = false;
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
