#include "daemon/engine/compiler.h"

#include <algorithm>

#include "base/log.h"
#include "base/out_of_memory.h"
#include "daemon/dispatch/module_variables.h"

namespace slate::daemon {
namespace {

// Part of every key: raise it when slate itself asks the device for other code from the same text.
constexpr std::string_view kFormat = "1";
/// What a text that is compiled counts for in the load turns: an assembler takes a core, too. So
/// one user has at most eight at a time.
constexpr std::uint64_t kLeastCompiled = LoadQueue::kBytesOfUser / 8;

/// A larger text that the assembler refuses is refused. The driver would compile it in this
/// process, with all the memory and time that it wants.
constexpr std::size_t kMostForDriver = 4 << 20;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

bool is_about_the_device(const Error& error) {
  return error.code == ErrorCode::kOutOfMemory || is_sticky(error.code);
}

Compiler::Compiler(device::Device& device, std::unique_ptr<cache::CompileCache> cache,
                   ReaderSettings readers)
    : device_(device),
      identity_(cache != nullptr ? device.compiler_identity().value_or("") : ""),
      cache_(std::move(cache)),
      readers_(std::move(readers)) {}

bool Compiler::compiles() const {
  return cache_ != nullptr && !identity_.empty() && !code_refused_;
}

Result<Compiler::Loaded> Compiler::load(std::span<const std::byte> ptx, const Loader& loader,
                                        const ChargeVariables& charge, const LoadCode& load_code) {
  const auto load = [&](const Code& code) {
    return load_code ? load_code(*code.bytes) : load_plain(*code.bytes, charge);
  };
  const auto as_text = [](Result<device::Module> module) -> Result<Loaded> {
    if (!module) return std::unexpected(module.error());
    return Loaded{*module, nullptr};
  };
  if (!compiles()) return as_text(load_on_device(ptx, loader, charge));
  const cache::Key key = key_of(text_of(ptx));
  Answer code = obtain({key, true}, text_of(ptx), loader.uid);
  if (!code) return as_text(load_as_text(ptx, code.error(), loader, charge));
  auto module = load(*code);
  if (!module && code->from_cache && !is_about_the_device(module.error())) {
    log_warning("the device refuses code from the compile cache, which is compiled again: {}",
                module.error().message);
    code = obtain({key, false}, text_of(ptx), loader.uid);
    if (!code) return as_text(load_as_text(ptx, code.error(), loader, charge));
    module = load(*code);
  }
  if (module) return Loaded{*module, code->bytes};
  if (is_about_the_device(module.error())) return std::unexpected(module.error());
  auto loaded = load_as_text(ptx, module.error(), loader, charge);
  // The text was good, the code was not: so will be all that this compiler writes.
  if (loaded) code_refused_ = true;
  return as_text(loaded);
}

/// Machine code says what its variables take.
Result<device::Module> Compiler::load_plain(std::span<const std::byte> code,
                                            const ChargeVariables& charge) {
  if (const auto charged = charge(variable_bytes(code)); !charged)
    return std::unexpected(charged.error());
  return device_.load_module(device::ImageKind::kCubin, code);
}

/// Loads PTX as it is. sim parses it in this process. The driver may take minutes, and no other
/// thread should wait for that.
Result<device::Module> Compiler::load_on_device(std::span<const std::byte> ptx,
                                                const Loader& loader,
                                                const ChargeVariables& charge) {
  const auto variables = read_variables(text_of(ptx), loader);
  if (!variables) return std::unexpected(variables.error());
  if (const auto charged = charge(*variables); !charged) return std::unexpected(charged.error());
  const auto turn =
      device_.info().is_simulated != 0 ? turns_.begin(loader, ptx.size()) : LoadTurns::Turn();
  if (!turn) return std::unexpected(turn.error());
  return or_out_of_memory([&] { return device_.load_module(device::ImageKind::kPtx, ptx); });
}

/// What an assembler of another version than the driver refuses, the driver may take. Says why,
/// once for each engine, but only of text that the device takes: other text is its program's fault.
Result<device::Module> Compiler::load_as_text(std::span<const std::byte> ptx, const Error& why,
                                              const Loader& loader, const ChargeVariables& charge) {
  const bool is_too_much = why.code == ErrorCode::kLimit || ptx.size() > kMostForDriver;
  if (is_about_the_device(why) || is_too_much) return std::unexpected(why);
  auto module = load_on_device(ptx, loader, charge);
  if (module) {
    const LogLevel level = text_told_.exchange(true) ? LogLevel::kDebug : LogLevel::kInfo;
    log(level, "the driver compiles what ptxas does not: {}", why.message);
  }
  return module;
}

/// What only the device can read it may take: 0. A simulated device reads it in this process, so
/// there is nothing to win by another one.
Result<std::uint64_t> Compiler::read_variables(std::string_view text, const Loader& loader) {
  const auto turn = begin_turn(loader, text.size());
  if (!turn) return std::unexpected(turn.error());
  const bool is_read_here = device_.info().is_simulated != 0;
  const auto reader =
      TextReader::open(is_read_here ? ReaderSettings{} : readers_, text, loader.is_over);
  if (!reader) return std::unexpected(reader.error());
  const auto bytes = (*reader)->variable_bytes(loader.is_over);
  if (!bytes && bytes.error().code == ErrorCode::kInvalidPtx) return 0;
  return bytes;
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
Compiler::Answer Compiler::obtain(const Request& request, std::string_view ptx, uid_t uid) {
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
  Answer answer = or_out_of_memory([&] { return find_or_compile(request, ptx, uid); });
  promise.set_value(answer);
  const MutexLock lock(mutex_);
  under_way_.erase(request);
  return answer;
}

Compiler::Answer Compiler::find_or_compile(const Request& request, std::string_view ptx,
                                           uid_t uid) {
  const auto& [key, may_be_cached] = request;
  if (may_be_cached) {
    if (auto found = cache_->find(key)) {
      return Code{std::make_shared<const std::vector<std::byte>>(std::move(*found)), true};
    }
  }
  // To its end: other sessions may wait for it, too.
  const auto turn = turns_.begin({.uid = uid}, std::max<std::uint64_t>(ptx.size(), kLeastCompiled));
  if (!turn) return std::unexpected(turn.error());
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
