// Config: what an administrator can choose about slated, with its defaults. It is read from a TOML
// file. The command line (options.h) is laid over it, and the engine gets it as the same text.
// config_table.cc has a row for each key; a new key is a member here and a row there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "daemon/blocked_engine.h"
#include "daemon/fence_choice.h"
#include "daemon/form_choice.h"
#include "daemon/session_settings.h"
#include "daemon/sharing_choice.h"
#include "daemon/spare_choice.h"
#include "scheduler/settings.h"

namespace slate::daemon {

/// A number of bytes, or a share of the device's memory.
struct MemoryLimit {
  bool is_percent = true;
  std::uint64_t value = 100;

  /// Bytes on a device of `total` bytes; at most `total`.
  std::uint64_t bytes_of(std::uint64_t total) const;
};

/// "123456", "512M", "2G", "25%". kInvalidValue for anything else, for 0 and for more than 100 %.
Result<MemoryLimit> parse_memory_limit(std::string_view text);

/// A number of bytes.
struct ByteSize {
  std::uint64_t bytes = 0;
};

/// "123456", "512M", "2G", "0". kInvalidValue for anything else.
Result<ByteSize> parse_size(std::string_view text);

/// Value of max_blocking_ms in a table that says nothing of it.
inline constexpr double kAsOthers = -1;

/// What the configuration says of all programs of one name.
struct ProgramSettings {
  std::string name;
  std::string user;  // whose programs, by name or number; empty: everybody's
  SessionSettings settings;
  double max_blocking_ms = kAsOthers;  // see Config; kAsOthers: as for its user
};

/// What the configuration says of a user, or of the members of a group.
struct UserSettings {
  std::string name;                    // or number
  double weight = 1;                   // share of the device, relative to other users'
  std::uint32_t max_sessions = 0;      // 0: max_sessions_per_user
  MemoryLimit memory;                  // of all the user's sessions together
  double max_blocking_ms = kAsOthers;  // see Config; kAsOthers: as for everybody
  SharingChoice sharing = SharingChoice::kDefault;
};

struct Config {
  std::string device = "auto";
  std::string runtime_dir;  // empty: ipc::runtime_directory() decides
  LogLevel log_level = LogLevel::kInfo;
  bool audit = false;                 // whether the log has a line for each session's begin and end
  bool private_status = false;        // whether users see only what is their own in the status
  MemoryLimit memory_limit;           // of each session
  double memory_reserve_percent = 6;  // of the device\'s memory: for users who come later
  MemoryLimit device_memory;          // slate's part of the device's memory
  ByteSize swap{0};                   // host memory for what is not on the device; 0: none
  ByteSize swap_pinned{std::uint64_t{1} << 40};  // the most of it that is pinned
  ByteSize swap_ready{0};            // the part of it that is taken before it is needed, and kept
  std::string swap_directory;        // folder for what is not pinned; empty: pageable memory
  double swap_overhead_percent = 5;  // most part of the time that exchanges may take
  double memory_wait_seconds = 0;    // time that requests wait for memory which others have
  bool serve_everybody = false;  // whether users other than its own may come; root's always does
  std::uint32_t max_sessions = 4096;
  std::uint32_t max_sessions_per_user = 256;
  double kill_grace_seconds = 60;  // time that a gone client's work may go on
  bool kill_stuck_engine = false;  // whether the engine of stuck work is replaced
  /// The longest time that a session's work may keep other users' launches waiting; 0: no bound.
  double max_blocking_ms = 10'000;
  BlockedEngine blocked_engine = BlockedEngine::kReplace;
  double engine_timeout_seconds = 10;  // time after which a silent engine counts as hung; 0: never
  std::uint32_t bar_after = 3;         // incidents after which a user is barred; 0: never
  double bar_seconds = 600;            // how long
  SpareChoice spare_engine = SpareChoice::kAuto;  // whether a second engine is kept ready
  FormChoice form = FormChoice::kAuto;
  DispatchChoice dispatch = DispatchChoice::kHost;
  SharingChoice sharing = SharingChoice::kFenced;
  FenceChoice fence = FenceChoice::kAuto;
  UnfencedChoice unfenced = UnfencedChoice::kMove;
  std::string cache_dir;            // folder of compiled code; empty: cache::default_directory()
  ByteSize cache_size{1 << 30};     // size of the cache on disk; 0: no cache
  ByteSize image_store{256 << 20};  // memory for code images that sessions share
  std::string ptxas;                // assembler that fills the cache; empty: looked for
  std::string policy = "adaptive";  // one of scheduler::policy_names()
  scheduler::Settings scheduler;    // settings of the policies
  double max_weight = 4;            // the most that a user may choose; slated's own may be higher
  std::string state_dir;  // folder of profiles and lasting settings; see state_directory()
  std::uint32_t trace_events = 65536;  // events that the trace keeps; 0: no trace
  std::vector<ProgramSettings> programs;
  std::vector<UserSettings> users, groups;

  /// Bytes that sessions may have together on a device of `total` bytes, and on the host.
  std::uint64_t memory_of_sessions(std::uint64_t total) const {
    return device_memory.bytes_of(total) + swap.bytes;
  }
};

/// Reads `path` over the defaults. kInvalidValue names file, line and key. kIo when the file cannot
/// be read.
Result<Config> load_config(const std::string& path);
/// As load_config(), from text; `name` stands for the file in messages.
Result<Config> parse_config(std::string_view text, const std::string& name);

/// All keys as text for parse_config(), without [[program]] tables: the text that an engine gets.
std::string config_text(const Config& config);
/// The defaults as text, with each key's help and bounds: the file that is installed.
std::string documented_config();

}  // namespace slate::daemon
