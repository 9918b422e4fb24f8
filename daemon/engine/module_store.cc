#include "daemon/engine/module_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/digest.h"
#include "base/out_of_memory.h"

namespace slate::daemon {
namespace {

/// Nobody hears of it.
std::unexpected<Error> put_off() {
  return fail(ErrorCode::kUnavailable, "the session may leave this engine first");
}

}  // namespace

Result<void> ModuleStore::may_begin(std::uint64_t id) const {
  if (id == 0 || modules_.contains(id))
    return fail(ErrorCode::kProtocol, fmt::format("module id {} is not a new one", id));
  if (loaded_.count() + uploads_.count() >= kMostModules)
    return fail(ErrorCode::kLimit, "too many modules");
  return {};
}

/// Only machine code that comes without its PTX has no fence.
bool ModuleStore::is_put_off(std::uint32_t kind, std::string_view source) const {
  return kind == ipc::kImageElf && source.empty() && puts_off_ && puts_off_();
}

Result<void> ModuleStore::add_chunk(const ipc::ModuleLoad& chunk,
                                    std::span<const std::byte> bytes) {
  if (put_off_ && put_off_->first == chunk.module) {
    ModuleImage image = std::move(put_off_->second);
    put_off_.reset();
    return load(chunk.module, std::move(image));
  }
  auto image = uploads_.add(chunk, bytes, may_begin(chunk.module));
  if (!image) return std::unexpected(image.error());
  if (!*image) return {};
  return load(chunk.module, std::move(**image));
}

Result<bool> ModuleStore::offer(const ipc::ModuleOffer& offered) {
  if (offered.image_kind != ipc::kImagePtx && offered.image_kind != ipc::kImageElf)
    return fail(ErrorCode::kProtocol, fmt::format("image kind {}", offered.image_kind));
  if (uploads_.has(offered.module)) return fail(ErrorCode::kProtocol, "a module was begun twice");
  if (const auto may = may_begin(offered.module); !may) return std::unexpected(may.error());
  if (loading_.has_places(offered.module)) return false;
  DigestBytes digest;
  static_assert(sizeof(digest) == sizeof(offered.digest));
  std::memcpy(digest.data(), offered.digest, sizeof(offered.digest));
  const auto image = images_->find(loader_.uid, offered.image_kind, digest);
  if (!image) return false;
  if (is_put_off(image->kind, {})) return put_off();
  std::optional<Charge> charge;
  auto loaded = attempt([&] { return loading_.load_known(image, charge.emplace(loaded_)); });
  const auto done = add(offered.module, digest, *charge, std::move(loaded));
  if (!done) return std::unexpected(done.error());
  report(offered.module, image->kind, image->bytes, {}, charge->variables());
  return true;
}

Result<void> ModuleStore::load(std::uint64_t id, ModuleImage image, PastHome past) {
  if (is_put_off(image.kind, image.source)) {
    put_off_.emplace(id, std::move(image));
    return put_off();
  }
  // Of the PTX where there is some: it is the same on every device.
  const DigestBytes digest =
      digest_of(image.source.empty() ? std::span<const std::byte>(image.bytes)
                                     : std::as_bytes(std::span(image.source)));
  const bool is_shared =
      image.source.empty() && image.bytes.size() >= ipc::kLeastOffered && !loading_.has_places(id);
  std::optional<Charge> charge;
  ImageStore::Image known;
  auto loaded = attempt([&] {
    charge.emplace(loaded_);
    if (!is_shared) return loading_.load(id, image, *charge, past);
    if (known == nullptr)
      known = images_->add(loader_.uid, image.kind, digest, std::move(image.bytes));
    return loading_.load_known(known, *charge, past);
  });
  const auto done = add(id, digest, *charge, std::move(loaded));
  if (!done) return done;
  const std::span<const std::byte> bytes = is_shared ? modules_.at(id).image->bytes : image.bytes;
  report(id, image.kind, bytes, image.source, charge->variables());
  return done;
}

Result<LoadedImage> ModuleStore::attempt(const std::function<Result<LoadedImage>()>& load) {
  Result<LoadedImage> loaded;
  const Attempt once = [&]() -> Result<void> {
    loaded = or_out_of_memory(load);
    return loaded ? Result<void>() : std::unexpected(loaded.error());
  };
  if (attempts_) {
    attempts_(once);
  } else {
    (void)once();
  }
  return loaded;
}

Result<void> ModuleStore::load_whole(std::uint64_t id, ModuleImage image, PastHome past) {
  if (const auto may = may_begin(id); !may) return may;
  return load(id, std::move(image), past);
}

void ModuleStore::report(std::uint64_t id, std::uint32_t kind, std::span<const std::byte> image,
                         std::string_view source, std::uint64_t variables) const {
  if (!report_) return;
  const auto& home = modules_.at(id).own.home;
  report_(id, kind, image, source, home ? home->memory.base : 0, home ? 0 : variables);
}

Result<void> ModuleStore::add(std::uint64_t id, const DigestBytes& digest, Charge& charge,
                              Result<LoadedImage> loaded) {
  Result<void> done;
  if (!loaded) {
    done = std::unexpected(loaded.error());
  } else {
    done = loaded_.add(loaded->own.handle, charge, LoadedModules::Kind::kOwn, loaded->bytes(),
                       loaded->shared);
  }
  if (!done) {
    if (loaded) loading_.forget_home(loaded->own);
    loading_.forget_places(id);
    return done;
  }
  if (loaded->own.home && loaded->own.home->constants && fence_ != nullptr)
    fence_->constants().watch(loaded->own.home->constants);
  Module module{std::move(*loaded)};
  std::memcpy(&module.code, digest.data(), sizeof(module.code));
  modules_.emplace(id, std::move(module));
  return {};
}

Result<void> ModuleStore::place(std::uint64_t id, std::string name, device::Address address) {
  if (id == 0 || name.empty() || name.size() > kMostPlacedNameBytes || modules_.contains(id))
    return fail(ErrorCode::kProtocol, fmt::format("a variable placed in module {}", id));
  return loading_.place(id, std::move(name), address);
}

Result<const ModuleStore::Module*> ModuleStore::find_module(std::uint64_t id) const {
  const auto found = modules_.find(id);
  if (found == modules_.end()) return fail(ErrorCode::kInvalidHandle, "no such module");
  return &found->second;
}

Result<ModuleStore::Forgotten> ModuleStore::forget(std::uint64_t id) {
  const auto found = find_module(id);
  if (!found) return std::unexpected(found.error());
  const ProgramModule& own = (*found)->own;
  Forgotten forgotten{.modules = {own.handle}, .home = own.home ? own.home->memory.base : 0};
  std::vector<device::Module>& unused = forgotten.modules;
  std::erase_if(functions_, [&](const auto& entry) {
    const FunctionRecord& kernel = entry.second;
    if (kernel.module != id) return false;
    if (kernel.form_module != device::Module{}) unused.push_back(kernel.form_module);
    return true;
  });
  for (const device::Module module : fenced_.forget(id)) unused.push_back(module);
  std::erase_if(globals_, [id](const auto& entry) { return entry.second.module == id; });
  modules_.erase(id);
  loading_.forget_places(id);
  for (const device::Module module : unused) loaded_.retire(module);
  return forgotten;
}

Result<FoundFunction> ModuleStore::find_kernel(const Module& module, const std::string& name) {
  if (module.shared) return module.shared->find_function(name);
  const auto function = device_.find_function(module.own.handle, name);
  if (!function) return std::unexpected(function.error());
  auto info = device_.function_info(*function);
  if (!info) return std::unexpected(info.error());
  return FoundFunction{*function, std::move(*info)};
}

Result<const FunctionRecord*> ModuleStore::add_function(std::uint64_t module, std::uint64_t id,
                                                        const std::string& name) {
  if (id == 0 || functions_.contains(id)) {
    return fail(ErrorCode::kProtocol, fmt::format("function id {} is not a new one", id));
  }
  if (functions_.size() >= kMostFunctions) return fail(ErrorCode::kLimit, "too many functions");
  const auto owner = find_module(module);
  if (!owner) return std::unexpected(owner.error());
  if (const auto noted = loaded_.note_host_bytes((*owner)->own.handle); !noted)
    return std::unexpected(noted.error());
  auto found = or_out_of_memory([&] { return find_kernel(**owner, name); });
  if (!found) return std::unexpected(found.error());
  FunctionRecord record;
  record.function = found->function;
  record.info = std::move(found->info);
  record.shared = (*owner)->shared;
  record.name = std::make_shared<const std::string>(name);
  record.module = module;
  record.code = (*owner)->code;
  if ((*owner)->own.home != nullptr) record.bank = (*owner)->own.home->constants;
  if ((*owner)->source != nullptr && maker_->wants_forms())
    record.form_progress = FormProgress::kNew;
  record.parameter_bytes = parameter_bytes_of(record.info);
  return &functions_.emplace(id, std::move(record)).first->second;
}

Result<FunctionRecord*> ModuleStore::find_function(std::uint64_t id) {
  const auto found = functions_.find(id);
  if (found == functions_.end()) return fail(ErrorCode::kInvalidHandle, "no such function");
  return &found->second;
}

Result<FunctionRecord*> ModuleStore::fenced(std::uint64_t id, FunctionRecord& kernel,
                                            const LaunchOf& launch) {
  const auto owner = find_module(kernel.module);
  if (!owner) return std::unexpected(owner.error());
  return fenced_.find(id, kernel, (*owner)->source, (*owner)->own, launch);
}

void ModuleStore::attend_unserved(std::uint64_t id, const FunctionRecord& kernel,
                                  const injector::LaunchValues& launch) {
  const auto owner = find_module(kernel.module);
  if (owner) fenced_.attend_unserved(id, (*owner)->source, (*owner)->own, launch);
}

Result<injector::Reach> ModuleStore::reach_of(const FunctionRecord& kernel) {
  if (kernel.forms != nullptr) return kernel.forms->analysis.reach;
  const auto owner = find_module(kernel.module);
  if (!owner) return std::unexpected(owner.error());
  if ((*owner)->source == nullptr)
    return fail(ErrorCode::kNotSupported, "its module has no PTX, which tells what it reaches");
  auto forms = maker_->analyse((*owner)->source, *kernel.name, loader_);
  if (!forms) return std::unexpected(forms.error());
  return std::move(forms->analysis.reach);
}

void ModuleStore::attend(FunctionRecord& kernel) {
  const auto owner = modules_.find(kernel.module);
  if (owner != modules_.end()) forms_.attend(kernel, owner->second);
}

void ModuleStore::order_forms(FunctionRecord& kernel) {
  const auto owner = modules_.find(kernel.module);
  if (owner != modules_.end()) forms_.order(kernel, owner->second);
}

Result<device::AddressRange> ModuleStore::find_global(std::uint64_t module,
                                                      const std::string& name) {
  const auto owner = find_module(module);
  if (!owner) return std::unexpected(owner.error());
  const ProgramModule& own = (*owner)->own;
  const auto range = own.find(device_, name);
  if (range) globals_.insert_or_assign(range->base, Global{range->bytes, module});
  if (range && fence_ != nullptr && own.home == nullptr) fence_->add_variable(own.handle, *range);
  return range;
}

std::optional<device::AddressRange> ModuleStore::at_home(const FunctionRecord& kernel,
                                                         const std::string& variable) const {
  const auto owner = modules_.find(kernel.module);
  if (owner == modules_.end() || owner->second.own.home == nullptr) return std::nullopt;
  const VariableMap& variables = owner->second.own.home->variables;
  const auto found = variables.find(variable);
  return found == variables.end() ? std::nullopt : std::optional(found->second);
}

/// Null: it is in none.
const ModuleHome* ModuleStore::home_at(device::Address address) const {
  for (const auto& [id, module] : modules_) {
    const ModuleHome* const home = module.own.home.get();
    if (home != nullptr && home->memory.contains(address, 1)) return home;
  }
  return nullptr;
}

std::optional<device::AddressRange> ModuleStore::variable_at(device::Address address) const {
  const ModuleHome* const home = home_at(address);
  if (home == nullptr) return std::nullopt;
  for (const auto& [name, range] : home->variables) {
    if (range.contains(address, 1)) return range;
  }
  return std::nullopt;
}

bool ModuleStore::may_write_constants(FunctionRecord& kernel) {
  constexpr std::uint32_t kLaunchesBeforeReading = 8;
  if (kernel.is_fenced || kernel.unread_launches == kLaunchesBeforeReading)
    return kernel.may_write_constants;
  if (++kernel.unread_launches == kLaunchesBeforeReading) {
    const auto reach = or_out_of_memory([&] { return reach_of(kernel); });
    kernel.may_write_constants = !reach || reach->may_write_constants();
  }
  return kernel.may_write_constants;
}

bool ModuleStore::owns(device::Address address, std::uint64_t bytes) const {
  const auto next = globals_.upper_bound(address);
  if (next == globals_.begin()) return false;
  const auto& [base, global] = *std::prev(next);
  return device::AddressRange{base, global.bytes}.contains(address, bytes);
}

void ModuleStore::release() {
  if (maker_ != nullptr) maker_->forget(session_);
  uploads_.clear();
  loading_.forget_all_places();
  functions_.clear();
  fenced_.clear();
  globals_.clear();
  modules_.clear();
  loaded_.release();
}

}  // namespace slate::daemon
