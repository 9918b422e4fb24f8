#include "daemon/engine/module_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/digest.h"
#include "base/out_of_memory.h"
#include "base/user_log.h"
#include "daemon/dispatch/module_variables.h"
#include "daemon/engine/made_modules.h"

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

Result<ModuleStore::Module> ModuleStore::load_image(std::uint64_t id, const ModuleImage& image,
                                                    Charge& charge, PastHome past) {
  if (image.kind == ipc::kImagePtx) {
    auto text = place_variables(
        id, {reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()});
    if (!text) return std::unexpected(text.error());
    return load_ptx(std::move(*text), charge, past);
  }
  if (placed_.contains(id)) {
    return fail(ErrorCode::kNotSupported,
                "managed variables need PTX, and the program has machine code only");
  }
  return load_elf(image, charge, past);
}

/// Loads machine code, with its variables at home where they can be. Without a source nobody knows
/// what its kernels do with constants' addresses.
Result<ProgramModule> ModuleStore::load_code(std::span<const std::byte> code,
                                             std::string_view source, Charge& charge,
                                             PastHome past) {
  const auto load = [&](std::span<const std::byte> bytes) -> Result<device::Module> {
    if (const auto charged = charge.take(variable_bytes(bytes)); !charged)
      return std::unexpected(charged.error());
    return device_.load_module(device::ImageKind::kCubin, bytes);
  };
  const Constants constants =
      source.empty() || takes_constants_addresses(source) ? Constants::kStay : Constants::kMove;
  const auto move = [&](device::AddressRange home) { return move_home(code, home.base); };
  auto homed = homes_.load(home_bytes(code, constants), past, move, load);
  if (!homed) return std::unexpected(homed.error());
  if (*homed) return std::move(**homed);
  const auto module = load(code);
  if (!module) return std::unexpected(module.error());
  return ProgramModule{.handle = *module, .home = nullptr};
}

/// The program's own machine code. Where the device refuses it, its source is compiled instead.
Result<ModuleStore::Module> ModuleStore::load_elf(const ModuleImage& image, Charge& charge,
                                                  PastHome past) {
  auto module = load_code(image.bytes, image.source, charge, past);
  const bool may_retry =
      !module && !image.source.empty() && module.error().code == ErrorCode::kNoKernelImage;
  if (may_retry) return load_ptx(image.source, charge, past);
  if (!module) return std::unexpected(module.error());
  Module loaded;
  loaded.own = std::move(*module);
  if (maker_ != nullptr && !image.source.empty()) {
    loaded.source = std::make_shared<const FormSource>(
        image.source, std::make_shared<const std::vector<std::byte>>(image.bytes));
  }
  return loaded;
}

Result<bool> ModuleStore::offer(const ipc::ModuleOffer& offered) {
  if (offered.image_kind != ipc::kImagePtx && offered.image_kind != ipc::kImageElf)
    return fail(ErrorCode::kProtocol, fmt::format("image kind {}", offered.image_kind));
  if (uploads_.has(offered.module)) return fail(ErrorCode::kProtocol, "a module was begun twice");
  if (const auto may = may_begin(offered.module); !may) return std::unexpected(may.error());
  if (placed_.contains(offered.module)) return false;
  DigestBytes digest;
  static_assert(sizeof(digest) == sizeof(offered.digest));
  std::memcpy(digest.data(), offered.digest, sizeof(offered.digest));
  const auto image = images_->find(loader_.uid, offered.image_kind, digest);
  if (!image) return false;
  if (is_put_off(image->kind, {})) return put_off();
  std::optional<Charge> charge;
  auto loaded = attempt([&] { return load_known(image, charge.emplace(loaded_), std::nullopt); });
  const auto done = add(offered.module, digest, *charge, std::move(loaded));
  if (!done) return std::unexpected(done.error());
  report(offered.module, image->kind, image->bytes, {}, charge->variables());
  return true;
}

/// Machine code without variables is the same for all sessions. Only its functions' attributes
/// change, and SharedModule sees to these.
Result<ModuleStore::Module> ModuleStore::load_known(const ImageStore::Image& image, Charge& charge,
                                                    PastHome past) {
  const std::span<const std::byte> bytes = image->bytes;
  Result<Module> loaded;
  if (image->kind == ipc::kImagePtx) {
    loaded = load_ptx(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                      charge, past);
  } else if (variable_bytes(bytes) > 0) {
    loaded = load_elf({.kind = image->kind, .bytes = {bytes.begin(), bytes.end()}, .source = {}},
                      charge, past);
  } else {
    auto shared = image->module_on(device_);
    if (!shared) return std::unexpected(shared.error());
    loaded = Module{};
    loaded->own.handle = (*shared)->handle;
    loaded->shared = std::move(*shared);
  }
  if (loaded) loaded->image = image;
  return loaded;
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
      image.source.empty() && image.bytes.size() >= ipc::kLeastOffered && !placed_.contains(id);
  std::optional<Charge> charge;
  ImageStore::Image known;
  auto loaded = attempt([&] {
    charge.emplace(loaded_);
    if (!is_shared) return load_image(id, image, *charge, past);
    if (known == nullptr)
      known = images_->add(loader_.uid, image.kind, digest, std::move(image.bytes));
    return load_known(known, *charge, past);
  });
  const auto done = add(id, digest, *charge, std::move(loaded));
  if (!done) return done;
  const std::span<const std::byte> bytes = is_shared ? modules_.at(id).image->bytes : image.bytes;
  report(id, image.kind, bytes, image.source, charge->variables());
  return done;
}

Result<ModuleStore::Module> ModuleStore::attempt(const std::function<Result<Module>()>& load) {
  Result<Module> loaded;
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
                              Result<Module> loaded) {
  Result<void> done;
  if (!loaded) {
    done = std::unexpected(loaded.error());
  } else {
    done = loaded_.add(loaded->own.handle, charge, LoadedModules::Kind::kOwn, loaded->bytes(),
                       loaded->shared);
  }
  if (!done) {
    forget_places(id);
    return done;
  }
  std::memcpy(&loaded->code, digest.data(), sizeof(loaded->code));
  if (loaded->own.home && loaded->own.home->constants && fence_ != nullptr)
    fence_->constants().watch(loaded->own.home->constants);
  modules_.emplace(id, std::move(*loaded));
  return {};
}

Result<void> ModuleStore::place(std::uint64_t id, std::string name, device::Address address) {
  if (id == 0 || name.empty() || name.size() > kMostPlacedNameBytes || modules_.contains(id))
    return fail(ErrorCode::kProtocol, fmt::format("a variable placed in module {}", id));
  if (placed_count_ >= kMostPlaced) return fail(ErrorCode::kLimit, "too many placed variables");
  ++placed_count_;
  placed_[id].push_back({std::move(name), address});
  return {};
}

void ModuleStore::forget_places(std::uint64_t id) {
  const auto found = placed_.find(id);
  if (found == placed_.end()) return;
  placed_count_ -= found->second.size();
  placed_.erase(found);
}

/// The module's text with its placed variables out of it, and their initial contents in their
/// places.
Result<std::string> ModuleStore::place_variables(std::uint64_t id, std::string_view text) {
  const auto placed = placed_.find(id);
  if (placed == placed_.end()) return std::string(text);
  const auto turn = compiler_.begin_turn(loader_, text.size());
  if (!turn) return std::unexpected(turn.error());
  const auto reader = compiler_.open_reader(text, loader_);
  if (!reader) return std::unexpected(reader.error());
  auto result = (*reader)->place_variables(placed->second, loader_.is_over);
  if (!result) return std::unexpected(result.error());
  for (std::size_t i = 0; i < placed->second.size(); ++i) {
    const injector::PlacedVariable& each = placed->second[i];
    const PlacedText::Contents& contents = result->contents[i];
    if (!owns_host_(each.address, contents.bytes)) {
      return fail(ErrorCode::kInvalidValue,
                  fmt::format("{} is placed in memory that is not the session's", each.name));
    }
    auto* const to = reinterpret_cast<std::byte*>(each.address);
    std::memset(to, 0, contents.bytes);
    std::ranges::copy(std::span(contents.beginning)
                          .first(std::min<std::size_t>(contents.beginning.size(), contents.bytes)),
                      to);
  }
  return std::move(result->text);
}

/// A text that the device itself reads, with its variables at home. Nullopt as
/// VariableHomes::load(), also for a text that cannot be read.
Result<std::optional<ProgramModule>> ModuleStore::load_text_at_home(std::string_view text,
                                                                    Charge& charge, PastHome past) {
  const bool may_have_some =
      text.find(".global .") != text.npos || text.find(".const .") != text.npos;
  if (!past && (!homes_.has_memory() || !may_have_some || takes_constants_addresses(text)))
    return std::nullopt;
  auto turn = compiler_.begin_turn(loader_, text.size());
  if (!turn) return std::unexpected(turn.error());
  const auto reader = compiler_.open_reader(text, loader_);
  const auto variables =
      reader ? (*reader)->variable_bytes(loader_.is_over) : Result<std::uint64_t>(0);
  return homes_.load(
      home_bytes_of_text(variables.value_or(0)), past,
      [&](device::AddressRange home) -> Result<HomedCode> {
        if (!reader) return std::unexpected(reader.error());
        return (*reader)->move_home(home, loader_.is_over);
      },
      [&](std::span<const std::byte> code) -> Result<device::Module> {
        *turn = {};  // loading takes one itself
        const auto loaded = compiler_.load(
            code, loader_, [&charge](std::uint64_t bytes) { return charge.take(bytes); });
        if (!loaded) return std::unexpected(loaded.error());
        return loaded->module;
      });
}

Result<ModuleStore::Module> ModuleStore::load_ptx(std::string text, Charge& charge, PastHome past) {
  Module module;
  std::shared_ptr<const std::vector<std::byte>> code;
  if (!compiler_.compiles()) {
    auto homed = load_text_at_home(text, charge, past);
    if (!homed) return std::unexpected(homed.error());
    if (*homed) module.own = std::move(**homed);
  }
  if (module.own.handle == device::Module{}) {
    const auto load = [&](std::span<const std::byte> bytes) -> Result<device::Module> {
      auto own = load_code(bytes, text, charge, past);
      if (!own) return std::unexpected(own.error());
      module.own = std::move(*own);
      return module.own.handle;
    };
    auto loaded = compiler_.load(
        std::as_bytes(std::span(text)), loader_,
        [&charge](std::uint64_t bytes) { return charge.take(bytes); }, load);
    if (!loaded) return std::unexpected(loaded.error());
    // The driver may have taken the text instead.
    if (module.own.handle != loaded->module) module.own = {.handle = loaded->module, .home = {}};
    code = std::move(loaded->code);
  }
  if (maker_ != nullptr) {
    module.source = std::make_shared<const FormSource>(std::move(text), std::move(code));
  }
  return module;
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
  forget_places(id);
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

namespace {

/// A kernel whose launches took so long in all has cost more than its forms will.
constexpr double kMattersMs = 10;

bool matters(const FunctionRecord& kernel) {
  double longest = 0;
  for (const ProfileRecord& profile : kernel.profiles)
    longest = std::max(longest, profile.expected_ms);
  return longest * static_cast<double>(kernel.launches) >= kMattersMs;
}

}  // namespace

void ModuleStore::attend(FunctionRecord& kernel) {
  ++kernel.launches;
  const auto owner = modules_.find(kernel.module);
  if (owner == modules_.end() || kernel.form_progress == FormProgress::kSettled) return;
  const std::shared_ptr<const FormSource>& source = owner->second.source;
  if (kernel.form_progress == FormProgress::kNew) {
    // What is there already is worth having from the beginning.
    const Fencing fence = kernel.is_fenced ? Fencing::kForms : Fencing::kNone;
    auto made = maker_->at_once() ? maker_->make(source, *kernel.name, loader_, fence)
                                  : maker_->find(*source, *kernel.name, fence);
    if (made != nullptr) return settle(kernel, std::move(made));
    kernel.form_progress = FormProgress::kWatched;
  } else if (kernel.form_progress == FormProgress::kOrdered && kernel.form_order->done()) {
    settle(kernel, kernel.form_order->outcome());
  }
}

void ModuleStore::order_forms(FunctionRecord& kernel) {
  const auto owner = modules_.find(kernel.module);
  if (owner == modules_.end() || !matters(kernel)) return;
  kernel.form_order = maker_->order({loader_.uid, session_}, owner->second.source, *kernel.name,
                                    kernel.is_fenced ? Fencing::kForms : Fencing::kNone);
  kernel.form_progress = FormProgress::kOrdered;
}

void ModuleStore::settle(FunctionRecord& kernel, FormMaker::Outcome made) {
  kernel.form_progress = FormProgress::kSettled;
  kernel.form_order.reset();
  if (!made->code.empty()) {
    const auto loaded = or_out_of_memory([&] { return load_forms(kernel, *made); });
    if (!loaded) {
      log_of_user(loader_.uid, LogLevel::kInfo, "{} has no forms: {}", *kernel.name,
                  loaded.error().message);
      return;
    }
  }
  kernel.made = std::move(made);
  kernel.forms = &kernel.made->forms;
}

Result<void> ModuleStore::load_forms(FunctionRecord& kernel, const MadeForms& made) {
  const ProgramModule& own = modules_.at(kernel.module).own;
  const auto module = load_made(device_, loaded_, made, own);
  if (!module) return std::unexpected(module.error());
  kernel.form_module = *module;
  return kernel.is_fenced ? fenced_.tell(kernel, *module, made, own) : Result<void>();
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
  placed_.clear();
  functions_.clear();
  fenced_.clear();
  globals_.clear();
  modules_.clear();
  loaded_.release();
}

}  // namespace slate::daemon
