// Compiler: from PTX to a loaded module, by way of the compile cache. One for all sessions of an
// engine: what one of them had compiled, the others and later engines load. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "daemon/engine/load_turns.h"
#include "device/device.h"
#include "injector/cache/cache.h"

namespace slate::daemon {

class Compiler {
 public:
  /// `device` outlives it. Without a cache, and on a device that does not compile (sim; cuda
  /// without a ptxas), PTX goes to the device as it is.
  Compiler(device::Device& device, std::unique_ptr<cache::CompileCache> cache);
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  /// A module, and its machine code where that is known here.
  struct Loaded {
    device::Module module{};
    std::shared_ptr<const std::vector<std::byte>> code;
  };
  /// As device::Device::load_module(kPtx), which also has the last word: it gets what the compiler
  /// refuses. The same text asked for by two at once is compiled once. Requires: the thread has no
  /// turn.
  Result<Loaded> load(std::span<const std::byte> ptx);
  /// For parsing and rewriting text of that size, which is the beginning of a compilation.
  LoadTurns::Turn begin_turn(std::uint64_t bytes) { return turns_.begin(bytes); }

  /// Whether there is a compiler to make code with. What follows requires it.
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
  /// The beginning of a key for the cache: what depends on this slate and its compiler.
  cache::KeyBuilder key(std::string_view what) const;
  /// Nothing where there is no compiler, too.
  std::optional<std::vector<std::byte>> find(const cache::Key& key);
  void store(const cache::Key& key, std::span<const std::byte> value);

  /// None where nothing is cached.
  std::optional<cache::Statistics> cache_statistics() const;

 private:
  struct Code {
    std::shared_ptr<const std::vector<std::byte>> bytes;
    bool from_cache = false;
  };
  using Answer = Result<Code>;
  /// Whose code, and whether the cache may be asked for it.
  using Request = std::pair<cache::Key, bool>;

  Result<device::Module> load_on_device(std::span<const std::byte> ptx);
  Result<device::Module> load_as_text(std::span<const std::byte> ptx, const Error& why);
  cache::Key key_of(std::string_view ptx) const;
  Answer obtain(const Request& request, std::string_view ptx);
  Answer find_or_compile(const Request& request, std::string_view ptx);

  device::Device& device_;
  const std::string identity_;
  const std::unique_ptr<cache::CompileCache> cache_;
  std::atomic<bool> store_failed_{false};
  std::atomic<bool> text_told_{false};     // that some PTX goes to the device as it is
  std::atomic<bool> code_refused_{false};  // freshly compiled: the device is too old for it
  LoadTurns turns_;
  std::mutex mutex_;  // guards under_way_
  std::map<Request, std::shared_future<Answer>> under_way_;
};

/// The cache for the machine code of `device`, or none: for 0 bytes, for a device that
/// does not compile (cuda: the log says why), and, with a warning, where the directory cannot be
/// used.
std::unique_ptr<cache::CompileCache> open_cache(const device::Device& device,
                                                const std::filesystem::path& directory,
                                                std::uint64_t most_bytes);

}  // namespace slate::daemon
