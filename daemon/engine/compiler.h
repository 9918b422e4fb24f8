// Compiler: from PTX to a loaded module, through the compile cache. One compiler serves all
// sessions of an engine. Code that one session compiled is loaded by the others, and by later
// engines. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "daemon/engine/load_turns.h"
#include "daemon/reader/text_reader.h"
#include "device/device.h"
#include "injector/cache/cache.h"

namespace slate::daemon {

/// Whether the device refused code for a reason that other code would meet, too.
bool is_about_the_device(const Error& error);

class Compiler {
 public:
  /// `device` outlives it. PTX goes to the device as it is without a cache, and on a device that
  /// does not compile (sim; cuda without a ptxas). `readers`: how texts are read.
  Compiler(device::Device& device, std::unique_ptr<cache::CompileCache> cache,
           ReaderSettings readers = {});
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  /// A module, and its machine code where it is known here.
  struct Loaded {
    device::Module module{};
    std::shared_ptr<const std::vector<std::byte>> code;
  };
  /// Charges the memory of a module's variables, before it is loaded. May be called twice.
  using ChargeVariables = std::function<Result<void>(std::uint64_t bytes)>;
  /// Loads machine code that was made of the text.
  using LoadCode = std::function<Result<device::Module>(std::span<const std::byte> code)>;
  /// As device::Device::load_module(kPtx). The device also gets a text of up to 4 MiB that the
  /// compiler refuses, but not one that took it too long. `load_code` charges what it loads. Null:
  /// the code is charged and loaded as it is.
  /// One text that two threads ask for at once is compiled once. Requires: the thread has no turn.
  Result<Loaded> load(
      std::span<const std::byte> ptx, const Loader& loader = {},
      const ChargeVariables& charge = [](std::uint64_t) { return Result<void>(); },
      const LoadCode& load_code = nullptr);
  /// A turn for parsing and rewriting `bytes` of text, with which a compilation begins. kIo as
  /// LoadTurns::begin().
  Result<LoadTurns::Turn> begin_turn(const Loader& loader, std::uint64_t bytes) {
    return turns_.begin(loader, bytes);
  }
  /// A reader of the text. Errors as TextReader::open(). Requires: the thread has a turn for it.
  Result<std::unique_ptr<TextReader>> open_reader(std::string_view text, const Loader& loader) {
    return TextReader::open(readers_, text, loader.is_over);
  }

  /// Whether there is a compiler. The functions below require it, unless they say otherwise.
  bool compiles() const;
  /// As Device::compile(), past the cache.
  Result<std::vector<std::byte>> compile(std::string_view ptx, std::chrono::milliseconds most_cpu) {
    return device_.compile(ptx, most_cpu);
  }
  /// As Device::link().
  Result<std::vector<std::byte>> link(std::span<const std::string> texts,
                                      std::chrono::milliseconds most_cpu) {
    return device_.link(texts, most_cpu);
  }
  /// The beginning of a cache key: what depends on this slate and its compiler.
  cache::KeyBuilder key(std::string_view what) const;
  /// Nothing also where there is no compiler.
  std::optional<std::vector<std::byte>> find(const cache::Key& key);
  void store(const cache::Key& key, std::span<const std::byte> value);

  /// Nothing where there is no cache.
  std::optional<cache::Statistics> cache_statistics() const;

 private:
  struct Code {
    std::shared_ptr<const std::vector<std::byte>> bytes;
    bool from_cache = false;
  };
  using Answer = Result<Code>;
  /// The code's key, and whether the cache may be asked for it.
  using Request = std::pair<cache::Key, bool>;

  Result<device::Module> load_on_device(std::span<const std::byte> ptx, const Loader& loader,
                                        const ChargeVariables& charge);
  Result<device::Module> load_as_text(std::span<const std::byte> ptx, const Error& why,
                                      const Loader& loader, const ChargeVariables& charge);
  Result<device::Module> load_plain(std::span<const std::byte> code, const ChargeVariables& charge);
  Result<std::uint64_t> read_variables(std::string_view text, const Loader& loader);
  cache::Key key_of(std::string_view ptx) const;
  Answer obtain(const Request& request, std::string_view ptx, uid_t uid);
  Answer find_or_compile(const Request& request, std::string_view ptx, uid_t uid);

  device::Device& device_;
  const std::string identity_;
  const std::unique_ptr<cache::CompileCache> cache_;
  const ReaderSettings readers_;
  std::atomic<bool> store_failed_{false};
  std::atomic<bool> text_told_{false};  // whether the log says that PTX goes to the device as it is
  std::atomic<bool> code_refused_{false};  // whether the device is too old for new code
  LoadTurns turns_;
  Mutex mutex_;
  std::map<Request, std::shared_future<Answer>> under_way_ SLATE_GUARDED_BY(mutex_);
};

/// The cache for the machine code of `device`. Null:
/// - for 0 bytes,
/// - for a device that does not compile (cuda: the log says why),
/// - with a warning, where the directory cannot be used.
std::unique_ptr<cache::CompileCache> open_cache(const device::Device& device,
                                                const std::filesystem::path& directory,
                                                std::uint64_t most_bytes);

}  // namespace slate::daemon
