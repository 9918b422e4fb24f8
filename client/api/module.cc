// The functions of slate.h on modules.
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "client/api/compile.h"
#include "client/api/handles.h"
#include "client/session/code_image.h"
#include "client/session/process.h"

namespace slate::api {
namespace {

Outcome<client::Session*> healthy_session() {
  auto session = client::Process::get().session();
  if (!session) return refuse(session.error());
  if (auto ok = (*session)->check(); !ok) return refuse(ok.error());
  return *session;
}

/// The session of `module`, if nothing is wrong with it.
Outcome<client::Session*> healthy_session_of(const Module& module) {
  auto session = session_of(module);
  if (!session) return session;
  if (auto ok = (*session)->check(); !ok) return refuse(ok.error());
  return session;
}

/// Host code may use them by their addresses, which slate_module_global() tells. Requires: no other
/// thread knows the module yet.
Result<std::vector<client::PlacedVariable>> place_managed(
    client::Session& session, const std::vector<client::ManagedName>& names,
    Module& module) SLATE_NO_THREAD_SAFETY_ANALYSIS {
  std::vector<client::PlacedVariable> placed;
  for (const client::ManagedName& each : names) {
    const auto address =
        session.host_memory().allocate_managed(each.bytes, client::kTagManagedVariable, 0);
    if (!address) return std::unexpected(address.error());
    module.managed.push_back(*address);
    module.variables.emplace(each.name, ipc::GlobalReply{*address, each.bytes});
    placed.push_back({each.name, *address});
  }
  return placed;
}

void free_managed(client::Session& session, const Module& module) {
  for (const std::uint64_t address : module.managed)
    (void)session.host_memory().free_managed(address, client::kTagManagedVariable);
}

Outcome<slate_module*> load(client::Session& session, std::string_view ptx, WrittenNames written,
                            std::string log) {
  const auto bytes = std::as_bytes(std::span(ptx));
  auto module = std::make_shared<Module>();
  module->session = session.serial();
  module->names = names_in(ptx);
  module->written = std::move(written);
  module->log = std::move(log);
  const client::Image image{client::ImageKind::kPtx, 0, {bytes.begin(), bytes.end()}};
  const client::CodeNames names = client::names_in(image);
  const auto placed = place_managed(session, names.managed, *module);
  auto id = placed ? session.modules().load(image, *placed) : std::unexpected(placed.error());
  if (!id) {
    free_managed(session, *module);
    return refuse(id.error());
  }
  module->id = *id;
  return Handles::get().add(module);
}

Outcome<slate_module*> load_ptx(std::string_view ptx) {
  while (ptx.ends_with('\0')) ptx.remove_suffix(1);
  if (!is_ptx(ptx)) {
    return refuse(SLATE_ERROR_INVALID_PTX, "the text is no PTX: it does not begin with .version");
  }
  auto session = healthy_session();
  if (!session) return std::unexpected(session.error());
  return load(**session, ptx, {}, {});
}

slate_status compiler_status(ErrorCode code) {
  if (code == ErrorCode::kInvalidPtx) return SLATE_ERROR_INVALID_SOURCE;
  if (code == ErrorCode::kNotSupported) return SLATE_ERROR_NO_COMPILER;
  return refuse(Error{code, {}}).error().status;
}

Outcome<slate_module*> load_source(std::string_view text, source::SourceOptions options) {
  while (text.ends_with('\0')) text.remove_suffix(1);
  if (text.empty()) return refuse(SLATE_ERROR_INVALID_VALUE, "the source is empty");
  auto session = healthy_session();
  if (!session) return std::unexpected(session.error());
  options.architecture = (*session)->capability();
  auto compiled = compile_cached(text, options, user_cache());
  if (!compiled) {
    return refuse(compiler_status(compiled.error().code), std::move(compiled.error().message));
  }
  return load(**session, compiled->ptx, std::move(compiled->kernels), std::move(compiled->log));
}

/// Copies `count` texts; nothing when one is missing.
bool copy_texts(const char* const* texts, std::size_t count, std::vector<std::string>& to) {
  if (count > 0 && texts == nullptr) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (texts[i] == nullptr) return false;
    to.emplace_back(texts[i]);
  }
  return true;
}

Outcome<source::SourceOptions> options_of(const slate_source_options* given) {
  source::SourceOptions options;
  if (given == nullptr) return options;
  if (given->name != nullptr) options.name = given->name;
  if (given->directory != nullptr) options.directory = given->directory;
  if (!copy_texts(given->include_directories, given->include_directory_count,
                  options.include_directories) ||
      !copy_texts(given->options, given->option_count, options.options) ||
      !copy_texts(given->instances, given->instance_count, options.instances)) {
    return refuse(SLATE_ERROR_INVALID_VALUE, "a text in the options is null");
  }
  for (const void* reserved : given->reserved) {
    if (reserved == nullptr) continue;
    return refuse(SLATE_ERROR_INVALID_VALUE, "the options' reserved pointers have to be null");
  }
  return options;
}

Outcome<std::string> read_file(const char* path) {
  struct stat status {};
  std::ifstream file(path, std::ios::binary);
  if (!file || ::stat(path, &status) != 0 || S_ISDIR(status.st_mode)) {
    const int reason = S_ISDIR(status.st_mode) ? EISDIR : errno;
    return refuse(SLATE_ERROR_FILE_NOT_FOUND,
                  std::string(path) + " cannot be read: " + std::strerror(reason));
  }
  std::string text;
  std::array<char, 64 << 10> chunk;
  while (file.read(chunk.data(), chunk.size()) || file.gcount() > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) {
    return refuse(SLATE_ERROR_OPERATING_SYSTEM, std::string(path) + " cannot be read");
  }
  return text;
}

Outcome<slate_module*> load_file(const char* path, const slate_source_options* given) {
  auto options = options_of(given);
  if (!options) return std::unexpected(options.error());
  const auto text = read_file(path);
  if (!text) return std::unexpected(text.error());
  if (text->empty()) return refuse(SLATE_ERROR_INVALID_VALUE, std::string(path) + " is empty");
  if (text->starts_with("\x7f"
                        "ELF") ||
      text->starts_with("\x50\xed\x55\xba")) {
    return refuse(SLATE_ERROR_NOT_SUPPORTED,
                  std::string(path) +
                      " holds machine code or a fat binary: slate loads PTX and "
                      "CUDA C++ source at run time");
  }
  if (is_ptx(*text)) return load_ptx(*text);
  if (given == nullptr || given->name == nullptr) options->name = path;
  if (options->directory.empty()) {
    options->directory = std::filesystem::path(path).parent_path().string();
  }
  return load_source(*text, std::move(*options));
}

/// Gives `made` to the caller.
template <typename T>
Outcome<void> hand_over(T** where, Outcome<T*> made) {
  if (!made) return std::unexpected(std::move(made.error()));
  *where = *made;
  return {};
}

Outcome<std::string> name_in_ptx(const char* wanted, const std::vector<std::string>& candidates,
                                 const Module& module, const char* kind) {
  auto name = resolve(wanted, candidates, module.written);
  if (name) return std::move(*name);
  std::string message = name.error().message;
  if (name.error().ambiguous) {
    return refuse(SLATE_ERROR_INVALID_VALUE, message + ": use the name of the PTX");
  }
  message += std::string(" of the module's ") + kind;
  if (std::strchr(wanted, '<') != nullptr) {
    message += "; template instances have to be made by the source or asked for in the options";
  }
  return refuse(SLATE_ERROR_NOT_FOUND, std::move(message));
}

std::unexpected<Failure> unloaded_meanwhile() {
  return refuse(SLATE_ERROR_INVALID_HANDLE, "the module was unloaded meanwhile");
}

Outcome<slate_kernel*> kernel_of(const std::shared_ptr<Module>& module, const char* wanted) {
  auto session = healthy_session_of(*module);
  if (!session) return std::unexpected(session.error());
  const auto name = name_in_ptx(wanted, module->names.kernels, *module, "kernels");
  if (!name) return std::unexpected(name.error());
  MutexLock lock(module->mutex);
  const auto known = module->kernels.find(*name);
  if (known != module->kernels.end()) return known->second;
  if (module->unloaded) return unloaded_meanwhile();
  auto kernel = std::make_shared<Kernel>();
  kernel->module = module;
  kernel->name = *name;
  auto function = (*session)->kernels().find(module->id, *name);
  if (!function) return refuse(function.error(), "kernel " + *name);
  kernel->function = std::move(*function);
  slate_kernel* const handle = Handles::get().add(std::move(kernel));
  if (handle == nullptr) return unloaded_meanwhile();
  module->kernels.emplace(*name, handle);
  return handle;
}

Outcome<ipc::GlobalReply> variable_of(Module& module, const char* wanted) {
  auto session = healthy_session_of(module);
  if (!session) return std::unexpected(session.error());
  const auto name = name_in_ptx(wanted, module.names.variables, module, "variables");
  if (!name) return std::unexpected(name.error());
  MutexLock lock(module.mutex);
  const auto known = module.variables.find(*name);
  if (known != module.variables.end()) return known->second;
  if (module.unloaded) return unloaded_meanwhile();
  auto reply = (*session)->modules().find_global(module.id, *name);
  if (!reply) return refuse(reply.error(), "variable " + *name);
  module.variables.emplace(*name, *reply);
  return *reply;
}

/// Takes a module that is out of the table out of its session, if that still lives.
void unload(Module& module) {
  const auto session = session_of(module);
  // In a child of fork() the locks may be those of threads that do not exist.
  if (!session) return;
  MutexLock lock(module.mutex);
  WriteLock life(module.life);
  module.unloaded = true;
  for (const auto& [name, place] : module.variables) {
    (*session)->memory().table().erase(place.address, client::kTagGlobal);
  }
  // Nobody is left to tell: a session that cannot take the command has lost the module anyway.
  [[maybe_unused]] const auto ignored = (*session)->modules().unload(module.id);
  free_managed(**session, module);
}

}  // namespace
}  // namespace slate::api

using namespace slate::api;

extern "C" {

slate_status slate_module_load_ptx(slate_module** module, const char* ptx, size_t bytes) noexcept {
  return guarded([&]() -> Outcome<void> {
    if (module == nullptr) return deny_null("the place for the module");
    if (ptx == nullptr) return deny_null("the PTX");
    if (bytes == 0) return refuse(SLATE_ERROR_INVALID_VALUE, "the PTX is empty");
    return hand_over(module, load_ptx({ptx, bytes}));
  });
}

slate_status slate_module_load_source(slate_module** module, const char* source, size_t bytes,
                                      const slate_source_options* given) noexcept {
  return guarded([&]() -> Outcome<void> {
    if (module == nullptr) return deny_null("the place for the module");
    if (source == nullptr) return deny_null("the source");
    auto options = options_of(given);
    if (!options) return std::unexpected(options.error());
    return hand_over(module, load_source({source, bytes}, std::move(*options)));
  });
}

slate_status slate_module_load_file(slate_module** module, const char* path,
                                    const slate_source_options* options) noexcept {
  return guarded([&]() -> Outcome<void> {
    if (module == nullptr) return deny_null("the place for the module");
    if (path == nullptr) return deny_null("the path");
    return hand_over(module, load_file(path, options));
  });
}

slate_status slate_module_unload(slate_module* handle) noexcept {
  return guarded([&]() -> Outcome<void> {
    const std::shared_ptr<Module> module = Handles::get().remove(handle);
    if (module == nullptr) return std::unexpected(Handles::get().find(handle).error());
    unload(*module);
    return {};
  });
}

slate_status slate_module_log(const char** log, slate_module* handle) noexcept {
  return guarded([&]() -> Outcome<void> {
    if (log == nullptr) return deny_null("the place for the log");
    const auto module = Handles::get().find(handle);
    if (!module) return std::unexpected(module.error());
    *log = (*module)->log.c_str();
    return {};
  });
}

slate_status slate_module_kernel(slate_kernel** kernel, slate_module* handle,
                                 const char* name) noexcept {
  return guarded([&]() -> Outcome<void> {
    if (kernel == nullptr) return deny_null("the place for the kernel");
    if (name == nullptr) return deny_null("the kernel's name");
    const auto module = Handles::get().find(handle);
    if (!module) return std::unexpected(module.error());
    return hand_over(kernel, kernel_of(*module, name));
  });
}

slate_status slate_module_global(void** address, size_t* bytes, slate_module* handle,
                                 const char* name) noexcept {
  return guarded([&]() -> Outcome<void> {
    if (name == nullptr) return deny_null("the variable's name");
    const auto module = Handles::get().find(handle);
    if (!module) return std::unexpected(module.error());
    const auto place = variable_of(**module, name);
    if (!place) return std::unexpected(place.error());
    if (address != nullptr) *address = reinterpret_cast<void*>(place->address);
    if (bytes != nullptr) *bytes = place->bytes;
    return {};
  });
}

}  // extern "C"
