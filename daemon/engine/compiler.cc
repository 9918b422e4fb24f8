#include "daemon/engine/compiler.h"

#include "base/log.h"
#include "base/out_of_memory.h"

namespace slate::daemon {
namespace {

// Part of every key: raise it when slate itself asks the device for other code from the same text.
constexpr std::string_view kFormat = "1";

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Not the code's fault, so other code would fare no better.
bool is_about_the_device(const Error& error) {
  return error.code == ErrorCode::kOutOfMemory || is_sticky(error.code);
}

}  // namespace

Compiler::Compiler(device::Device& device, std::unique_ptr<cache::CompileCache> cache)
    : device_(device),
      identity_(cache != nullptr ? device.compiler_identity().value_or("") : ""),
      cache_(std::move(cache)) {}

bool Compiler::compiles() const {
  return cache_ != nullptr && !identity_.empty() && !code_refused_;
}

Result<Compiler::Loaded> Compiler::load(std::span<const std::byte> ptx, const Loader& loader) {
  const auto as_text = [](Result<device::Module> module) -> Result<Loaded> {
    if (!module) return std::unexpected(module.error());
    return Loaded{*module, nullptr};
  };
  if (!compiles()) return as_text(load_on_device(ptx, loader));
  const cache::Key key = key_of(text_of(ptx));
  Answer code = obtain({key, true}, text_of(ptx));
  if (!code) return as_text(load_as_text(ptx, code.error()));
  auto module = device_.load_module(device::ImageKind::kCubin, *code->bytes);
  if (!module && code->from_cache && !is_about_the_device(module.error())) {
    log_warning("the device refuses code from the compile cache, which is compiled again: {}",
                module.error().message);
    code = obtain({key, false}, text_of(ptx));
    if (!code) return as_text(load_as_text(ptx, code.error()));
    module = device_.load_module(device::ImageKind::kCubin, *code->bytes);
  }
  if (module) return Loaded{*module, code->bytes};
  if (is_about_the_device(module.error())) return std::unexpected(module.error());
  auto loaded = load_as_text(ptx, module.error());
  // The text was good, the code was not: so will be all that this compiler writes.
  if (loaded) code_refused_ = true;
  return as_text(loaded);
}

/// Loads PTX as it is. sim parses it in this process. The driver may take minutes, and no other
/// thread should wait for that.
Result<device::Module> Compiler::load_on_device(std::span<const std::byte> ptx,
                                                const Loader& loader) {
  const auto turn =
      device_.info().is_simulated != 0 ? turns_.begin(loader, ptx.size()) : LoadTurns::Turn();
  if (!turn) return std::unexpected(turn.error());
  return or_out_of_memory([&] { return device_.load_module(device::ImageKind::kPtx, ptx); });
}

/// Says why, once for each engine, but only of text that the device takes: other text is its
/// program's fault.
Result<device::Module> Compiler::load_as_text(std::span<const std::byte> ptx, const Error& why) {
  if (is_about_the_device(why)) return std::unexpected(why);
  auto module = device_.load_module(device::ImageKind::kPtx, ptx);
  if (module) {
    const LogLevel level = text_told_.exchange(true) ? LogLevel::kDebug : LogLevel::kInfo;
    log(level, "the driver compiles what ptxas does not: {}", why.message);
  }
  return module;
}

std::optional<cache::Statistics> Compiler::cache_statistics() const {
  if (cache_ == nullptr || identity_.empty()) return std::nullopt;
  return cache_->statistics();
}

cache::Key Compiler::key_of(std::string_view ptx) const {
  return key("machine code").add("ptx", ptx).finish();
}

cache::KeyBuilder Compiler::key(std::string_view what) const {
  cache::KeyBuilder builder;
  builder.add("what", what)
      .add("slate", SLATE_VERSION)
      .add("format", kFormat)
      .add("compiler", identity_);
  return builder;
}

std::optional<std::vector<std::byte>> Compiler::find(const cache::Key& key) {
  if (!compiles()) return std::nullopt;
  return cache_->find(key);
}

/// The first thread that asks compiles; the others wait for it. Otherwise they would compile the
/// same, and compilations take most of a session's start.
Compiler::Answer Compiler::obtain(const Request& request, std::string_view ptx) {
  std::promise<Answer> promise;
  std::shared_future<Answer> others;
  {
    const MutexLock lock(mutex_);
    const auto [at, is_first] = under_way_.try_emplace(request);
    if (is_first) {
      at->second = promise.get_future().share();
    } else {
      others = at->second;
    }
  }
  if (others.valid()) return others.get();
  // The threads that wait get an answer, whatever happens.
  Answer answer = or_out_of_memory([&] { return find_or_compile(request, ptx); });
  promise.set_value(answer);
  const MutexLock lock(mutex_);
  under_way_.erase(request);
  return answer;
}

Compiler::Answer Compiler::find_or_compile(const Request& request, std::string_view ptx) {
  const auto& [key, may_be_cached] = request;
  if (may_be_cached) {
    if (auto found = cache_->find(key)) {
      return Code{std::make_shared<const std::vector<std::byte>>(std::move(*found)), true};
    }
  }
  auto compiled = device_.compile(ptx);
  if (!compiled) return std::unexpected(std::move(compiled.error()));
  store(key, *compiled);
  return Code{std::make_shared<const std::vector<std::byte>>(std::move(*compiled)), false};
}

void Compiler::store(const cache::Key& key, std::span<const std::byte> value) {
  const auto stored = cache_->store(key, value);
  if (stored) return;
  // A full disk stays full: say it once, loudly.
  const LogLevel level = store_failed_.exchange(true) ? LogLevel::kDebug : LogLevel::kWarning;
  log(level, "compiled code is not kept: {}", stored.error().message);
}

std::unique_ptr<cache::CompileCache> open_cache(const device::Device& device,
                                                const std::filesystem::path& directory,
                                                std::uint64_t most_bytes) {
  if (most_bytes == 0) return nullptr;
  if (const auto identity = device.compiler_identity(); !identity) {
    const LogLevel level = device.info().is_simulated ? LogLevel::kDebug : LogLevel::kInfo;
    log(level, "the driver compiles all PTX: {}", identity.error().message);
    return nullptr;
  }
  auto cache = cache::CompileCache::open(directory, most_bytes);
  if (cache) return std::move(*cache);
  log_warning("working without a compile cache: {}", cache.error().message);
  return nullptr;
}

}  // namespace slate::daemon
