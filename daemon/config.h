// Config: what an administrator can choose about slated, with its defaults; read from a TOML file.
// Command line options (options.h) are laid over it. packaging/slated.toml documents every key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/result.h"

namespace slate::daemon {

/// A number of bytes, or a share of the device's memory.
struct MemoryLimit {
  bool is_percent = true;
  std::uint64_t value = 100;

  /// Bytes on a device of `total` bytes; never more than that.
  std::uint64_t bytes_of(std::uint64_t total) const;
};

/// "123456", "512M", "2G", "25%". kInvalidValue for anything else, for 0 and for more than 100 %.
Result<MemoryLimit> parse_memory_limit(std::string_view text);

struct Config {
  std::string device = "auto";
  std::string runtime_dir;  // empty: ipc::runtime_directory() decides
  LogLevel log_level = LogLevel::kInfo;
  MemoryLimit memory_limit;  // of each session
  std::uint32_t max_sessions = 256;
  double kill_grace_seconds = 60;  // how long work of a client that left may go on
  bool kill_stuck_engine =
      false;                  // after that: replace the engine, at the cost of its other sessions
  bool spare_engine = false;  // keep a second engine ready to take over
};

/// Reads `path` over the defaults. kInvalidValue names file, line and key; kIo when it cannot be
/// read.
Result<Config> load_config(const std::string& path);
/// The same from text; `name` stands for the file in messages.
Result<Config> parse_config(std::string_view text, const std::string& name);

}  // namespace slate::daemon
