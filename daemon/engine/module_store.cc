#include "daemon/engine/module_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/check.h"
#include "base/log.h"
#include "base/out_of_memory.h"
#include "daemon/engine/module_variables.h"
#include "injector/cache/digest.h"

namespace slate::daemon {

ModuleStore::~ModuleStore() {
  SLATE_CHECK(loaded_.empty());
}

Result<void> ModuleStore::check_first_chunk(const ipc::ModuleLoad& chunk) const {
  if (chunk.module == 0 || modules_.contains(chunk.module)) {
    return fail(ErrorCode::kProtocol, fmt::format("module id {} is not a new one", chunk.module));
  }
  if (chunk.image_kind != ipc::kImagePtx && chunk.image_kind != ipc::kImageElf) {
    return fail(ErrorCode::kProtocol, fmt::format("image kind {}", chunk.image_kind));
  }
  if (count() + uploads_.size() >= kMostModules) {
    return fail(ErrorCode::kLimit, "too many modules");
  }
  if (chunk.total_bytes > kMostImageBytes - upload_bytes_) {
    return fail(ErrorCode::kLimit, fmt::format("a module image of {} bytes", chunk.total_bytes));
  }
  return {};
}

Result<void> ModuleStore::add_chunk(const ipc::ModuleLoad& chunk,
                                    std::span<const std::byte> bytes) {
  auto upload = uploads_.find(chunk.module);
  if (chunk.offset == 0) {
    if (upload != uploads_.end()) return fail(ErrorCode::kProtocol, "a module was begun twice");
    if (const auto checked = check_first_chunk(chunk); !checked) return checked;
    upload = uploads_.emplace(chunk.module, Upload{chunk.total_bytes, chunk.image_kind, {}}).first;
    upload_bytes_ += chunk.total_bytes;
  } else if (upload == uploads_.end()) {
    // Its first chunk was refused; that error has been told.
    return fail(ErrorCode::kInvalidHandle, "the module was refused");
  }
  Upload& image = upload->second;
  if (chunk.offset != image.bytes.size() || chunk.total_bytes != image.total ||
      bytes.size() > image.total - image.bytes.size()) {
    return fail(ErrorCode::kProtocol, "module chunks out of order");
  }
  const auto appended = or_out_of_memory([&]() -> Result<void> {
    image.bytes.insert(image.bytes.end(), bytes.begin(), bytes.end());
    return {};
  });
  if (!appended) {
    upload_bytes_ -= image.total;
    uploads_.erase(upload);
    return appended;
  }
  if (image.bytes.size() < image.total) return {};
  const Upload complete = std::move(image);
  uploads_.erase(upload);
  upload_bytes_ -= complete.total;
  return load(chunk.module, complete);
}

/// The memory of a module's variables, charged before it is taken: others may need it.
class ModuleStore::Charge {
 public:
  explicit Charge(ModuleStore& store) : store_(store) {}
  ~Charge() {
    if (bytes_ != 0) store_.memory_->finish_charge(bytes_, false);
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

  Result<void> take(std::uint64_t variables) {
    const std::uint64_t bytes = store_.device_.variable_memory(variables);
    if (store_.memory_ == nullptr || bytes == 0 || bytes_ != 0) return {};
    const auto charged = store_.charge_(bytes);
    refused_ = !charged;
    if (charged) bytes_ = bytes;
    return charged;
  }
  bool refused() const { return refused_; }
  /// The module is there, and has the charge.
  std::uint64_t keep() { return std::exchange(bytes_, 0); }

 private:
  ModuleStore& store_;
  std::uint64_t bytes_ = 0;
  bool refused_ = false;
};

void ModuleStore::give_back(const Loaded& loaded) {
  if (loaded.charged != 0) memory_->finish_charge(loaded.charged, loaded.retired);
}

Result<FormModule> ModuleStore::load_image(std::uint64_t id, const Upload& upload, Charge& charge) {
  if (upload.image_kind == ipc::kImagePtx) {
    const auto text = place_variables(
        id, {reinterpret_cast<const char*>(upload.bytes.data()), upload.bytes.size()});
    if (!text) return std::unexpected(text.error());
    return load_ptx(*text, charge);
  }
  if (placed_.contains(id)) {
    return fail(ErrorCode::kNotSupported,
                "managed variables need PTX, and the program has machine code only");
  }
  if (const auto charged = charge.take(variable_bytes(upload.bytes)); !charged)
    return std::unexpected(charged.error());
  const auto module = device_.load_module(device::ImageKind::kCubin, upload.bytes);
  if (!module) return std::unexpected(module.error());
  return FormModule{.module = *module, .kernels = {}, .code = 0};
}

Result<void> ModuleStore::load(std::uint64_t id, const Upload& upload) {
  Charge charge(*this);
  auto loaded = or_out_of_memory([&] { return load_image(id, upload, charge); });
  if (!loaded) {
    forget_places(id);
    return std::unexpected(loaded.error());
  }
  const device::Module module = loaded->module;
  {
    const std::lock_guard lock(mutex_);
    loaded_.emplace(module, Loaded{.charged = charge.keep()});
  }
  if (const auto noted = note_host_bytes(module); !noted) {
    forget_places(id);
    unload_now(module);
    return noted;
  }
  const cache::DigestBytes digest = cache::digest_of(upload.bytes);
  std::memcpy(&loaded->code, digest.data(), sizeof(loaded->code));
  modules_.emplace(id, std::move(*loaded));
  return {};
}

/// A module's functions, too, take memory when they are found.
Result<void> ModuleStore::note_host_bytes(device::Module module) {
  const std::uint64_t bytes = device_.host_bytes(module);
  const std::lock_guard lock(mutex_);
  host_bytes_ += bytes - std::exchange(loaded_.at(module).host_bytes, bytes);
  if (host_bytes_ <= kMostHostBytes) return {};
  return fail(ErrorCode::kLimit, fmt::format("the code of the session's modules takes {} bytes of "
                                             "the engine's memory; {} are allowed",
                                             host_bytes_, kMostHostBytes));
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
  const auto turn = compiler_.begin_turn(text.size());
  const auto module = ptx::parse(std::string(text), ptx::ParseLimits::for_text(text.size()));
  if (!module) return std::unexpected(module.error());
  auto result = injector::place_variables(**module, placed->second);
  if (!result) return result;
  for (const injector::PlacedVariable& each : placed->second) {
    const ptx::Variable& variable = *(*module)->find_variable(each.name);
    if (!owns_host_(each.address, variable.bytes)) {
      return fail(ErrorCode::kInvalidValue,
                  fmt::format("{} is placed in memory that is not the session's", each.name));
    }
    auto* const to = reinterpret_cast<std::byte*>(each.address);
    std::memset(to, 0, variable.bytes);
    std::memcpy(to, variable.initial.data(),
                std::min<std::size_t>(variable.initial.size(), variable.bytes));
  }
  return result;
}

/// With all forms; as it is where that does not work.
Result<FormModule> ModuleStore::load_ptx(std::string_view text, Charge& charge) {
  std::optional<std::uint64_t> variables;
  if (injects_) {
    const auto rewrite = [&](const injector::InjectOptions& options) {
      const auto turn = compiler_.begin_turn(text.size());
      const auto look = [&](const ptx::Module& module) { variables = variable_bytes(module); };
      return or_out_of_memory([&] { return rewriter_of(text, look)(options); });
    };
    const auto compile = [&](std::string_view injected) -> Result<device::Module> {
      if (const auto charged = charge.take(*variables); !charged)
        return std::unexpected(charged.error());
      return compiler_.load(std::as_bytes(std::span(injected)));
    };
    auto forms = load_forms(device_, rewrite, compile, profiles_);
    if (forms || charge.refused()) return forms;
    log_info("a module is loaded without forms: {}", forms.error().message);
  }
  if (!variables) {
    const auto read = read_variables(text);
    if (!read) return std::unexpected(read.error());
    variables = *read;
  }
  if (const auto charged = charge.take(*variables); !charged)
    return std::unexpected(charged.error());
  const auto module = compiler_.load(std::as_bytes(std::span(text)));
  if (!module) return std::unexpected(module.error());
  return FormModule{.module = *module, .kernels = {}, .code = 0};
}

/// What only the device can read it may take: 0.
Result<std::uint64_t> ModuleStore::read_variables(std::string_view text) {
  if (memory_ == nullptr) return 0;
  const auto turn = compiler_.begin_turn(text.size());
  ptx::ParseLimits limits = ptx::ParseLimits::for_text(text.size());
  limits.bodies = false;
  const auto parsed = ptx::parse(std::string(text), limits);
  if (parsed) return variable_bytes(**parsed);
  if (parsed.error().code == ErrorCode::kInvalidPtx) return 0;
  return std::unexpected(parsed.error());
}

Result<const FormModule*> ModuleStore::find_module(std::uint64_t id) const {
  const auto found = modules_.find(id);
  if (found == modules_.end()) return fail(ErrorCode::kInvalidHandle, "no such module");
  return &found->second;
}

Result<device::Module> ModuleStore::forget(std::uint64_t id) {
  const auto found = find_module(id);
  if (!found) return std::unexpected(found.error());
  const device::Module module = (*found)->module;
  std::erase_if(functions_, [id](const auto& entry) { return entry.second.module == id; });
  std::erase_if(globals_, [id](const auto& entry) { return entry.second.module == id; });
  modules_.erase(id);
  forget_places(id);
  const std::lock_guard lock(mutex_);
  Loaded& loaded = loaded_.at(module);
  if (loaded.charged != 0) {
    loaded.retired = true;
    memory_->retire_charge();
  }
  return module;
}

void ModuleStore::unload_now(device::Module module) {
  Loaded loaded;
  {
    const std::lock_guard lock(mutex_);
    const auto node = loaded_.extract(module);
    SLATE_CHECK(!node.empty());
    loaded = node.mapped();
    host_bytes_ -= loaded.host_bytes;
  }
  device_.unload_module(module);
  give_back(loaded);
}

Result<const FunctionRecord*> ModuleStore::add_function(std::uint64_t module, std::uint64_t id,
                                                        const std::string& name) {
  if (id == 0 || functions_.contains(id)) {
    return fail(ErrorCode::kProtocol, fmt::format("function id {} is not a new one", id));
  }
  if (functions_.size() >= kMostFunctions) return fail(ErrorCode::kLimit, "too many functions");
  const auto owner = find_module(module);
  if (!owner) return std::unexpected(owner.error());
  if (const auto noted = note_host_bytes((*owner)->module); !noted)
    return std::unexpected(noted.error());
  const auto function =
      or_out_of_memory([&] { return device_.find_function((*owner)->module, name); });
  if (!function) return std::unexpected(function.error());
  auto info = device_.function_info(*function);
  if (!info) return std::unexpected(info.error());
  FunctionRecord record{.function = *function,
                        .info = std::move(*info),
                        .name = std::make_shared<const std::string>(name),
                        .module = module,
                        .device_module = (*owner)->module,
                        .forms = (*owner)->find(name),
                        .worker = {},
                        .compact_worker = {},
                        .slice = {},
                        .profile = {},
                        .reason_told = false,
                        .code = (*owner)->code,
                        .rooms = {},
                        .refusals = {},
                        .profiles = {},
                        .trace_name = {}};
  for (const auto& parameter : record.info.parameters) {
    record.parameter_bytes = std::max(record.parameter_bytes, parameter.offset + parameter.size);
  }
  return &functions_.emplace(id, std::move(record)).first->second;
}

Result<FunctionRecord*> ModuleStore::find_function(std::uint64_t id) {
  const auto found = functions_.find(id);
  if (found == functions_.end()) return fail(ErrorCode::kInvalidHandle, "no such function");
  return &found->second;
}

Result<device::AddressRange> ModuleStore::find_global(std::uint64_t module,
                                                      const std::string& name) {
  const auto owner = find_module(module);
  if (!owner) return std::unexpected(owner.error());
  const auto range = device_.find_global((*owner)->module, name);
  if (range) globals_.insert_or_assign(range->base, Global{range->bytes, module});
  return range;
}

bool ModuleStore::owns(device::Address address, std::uint64_t bytes) const {
  const auto next = globals_.upper_bound(address);
  if (next == globals_.begin()) return false;
  const auto& [base, global] = *std::prev(next);
  return device::AddressRange{base, global.bytes}.contains(address, bytes);
}

std::size_t ModuleStore::count() const {
  const std::lock_guard lock(mutex_);
  return loaded_.size();
}

void ModuleStore::release() {
  uploads_.clear();
  placed_.clear();
  functions_.clear();
  globals_.clear();
  modules_.clear();
  // Unloading may wait for kernels, and nobody who only asks how many there are is to wait for it.
  std::map<device::Module, Loaded> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(loaded_);
    host_bytes_ = 0;
  }
  for (const auto& [module, loaded] : all) {
    device_.unload_module(module);
    give_back(loaded);
  }
}

}  // namespace slate::daemon
