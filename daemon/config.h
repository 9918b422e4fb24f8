// Config: what an administrator can choose about slated, with its defaults; read from a TOML file.
// Command line options (options.h) are laid over it. packaging/slated.toml documents every key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "daemon/form_choice.h"
#include "daemon/session_settings.h"
#include "scheduler/settings.h"

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

/// What the configuration says of all programs of one name, whoever runs them.
struct ProgramSettings {
  std::string name;
  SessionSettings settings;
};

struct Config {
  std::string device = "auto";
  std::string runtime_dir;  // empty: ipc::runtime_directory() decides
  LogLevel log_level = LogLevel::kInfo;
  MemoryLimit memory_limit;  // of each session
  std::uint32_t max_sessions = 256;
  double kill_grace_seconds = 60;  // how long work of a client that left may go on
  bool kill_stuck_engine =
      false;                  // after that: replace the engine, at the cost of its other sessions
  std::string form = "auto";  // in which kernels run: auto, native, worker, slice
  bool spare_engine = false;  // keep a second engine ready to take over
  std::string cache_dir;      // of compiled code; empty: cache::default_directory() decides
  std::uint64_t cache_size = 1 << 30;  // bytes; 0: no cache
  std::string ptxas;                   // the assembler that fills it; empty: looked for
  std::string policy = "adaptive";     // one of scheduler::policy_names()
  scheduler::Settings scheduler;       // of the policies
  double max_weight = 4;  // the most that a user may give a session; not a limit for slated's own
  std::vector<ProgramSettings> programs;
  std::string state_dir;  // of profiles and settings that last; empty: default_state_directory()
                          // decides; "none": nothing lasts
  std::uint32_t trace_events = 65536;  // the most that are kept; 0: no trace

  /// What sessions of this program begin with.
  SessionSettings settings_of(std::string_view program) const;
};

/// "123456", "512M", "2G", "0". kInvalidValue for anything else.
Result<std::uint64_t> parse_size(std::string_view text);

/// kInvalidValue with the names that there are, unless `name` is one of scheduler::policy_names().
Result<void> check_policy(std::string_view name);

/// Reads `path` over the defaults. kInvalidValue names file, line and key; kIo when it cannot be
/// read.
Result<Config> load_config(const std::string& path);
/// The same from text; `name` stands for the file in messages.
Result<Config> parse_config(std::string_view text, const std::string& name);

}  // namespace slate::daemon
