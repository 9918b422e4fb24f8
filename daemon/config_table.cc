#include "daemon/config_table.h"

#include <charconv>

#include "daemon/key_values.h"
#include "scheduler/policies.h"

namespace slate::daemon {
namespace {

using scheduler::Settings;

/// An element of an array, as the last part of a member's path.
struct At {
  std::size_t index;
};

auto& member_of(auto& object) {
  return object;
}
template <typename First, typename... Rest>
auto& member_of(auto& object, First first, Rest... rest) {
  if constexpr (std::same_as<First, At>) {
    return member_of(object[first.index], rest...);
  } else {
    return member_of(object.*first, rest...);
  }
}

template <typename T>
std::vector<std::string_view> choices_of() {
  std::vector<std::string_view> names;
  for (const auto& row : kNamesOf<T>) names.push_back(row.first);
  return names;
}

std::vector<std::string_view> policies() {
  const auto names = scheduler::policy_names();
  return {names.begin(), names.end()};
}

/// A row of the table, for the member of an `Owner` that `Path` leads to.
template <typename Owner, auto... Path>
Key<Owner> row(std::string_view table, std::string_view name, double least, double most,
               std::string_view help) {
  using T = std::remove_cvref_t<decltype(member_of(std::declval<Owner&>(), Path...))>;
  Key<Owner> key{.table = table, .name = name, .help = help, .least = least, .most = most};
  key.type = key_type_of<T>();
  key.set = [](Owner& owner, const Key<Owner>& self, const KeyValue& value) {
    return ValueOf<T>::read(self, value, member_of(owner, Path...));
  };
  key.text = [](const Owner& owner) { return ValueOf<T>::write(member_of(owner, Path...)); };
  if constexpr (std::is_enum_v<T>) key.choices = choices_of<T>;
  return key;
}

template <auto Member>
Key<Config> top(std::string_view name, std::string_view help) {
  return row<Config, Member>("", name, 0, 0, help);
}
template <auto Member>
Key<Config> top(std::string_view name, double least, double most, std::string_view help) {
  return row<Config, Member>("", name, least, most, help);
}
template <auto Member>
Key<Config> knob(std::string_view name, double least, double most, std::string_view help) {
  return row<Config, &Config::scheduler, Member>("scheduler", name, least, most, help);
}
template <auto Member>
Key<Config> flag(std::string_view name, std::string_view help) {
  return row<Config, &Config::scheduler, Member>("scheduler", name, 0, 0, help);
}
template <auto Member>
Key<Config> table_i(std::string_view name, std::string_view help) {
  return row<Config, &Config::scheduler, Member>("scheduler.table", name, 0, 1, help);
}
template <std::size_t Row>
Key<Config> beside(std::string_view name, std::string_view help) {
  return row<Config, &Config::scheduler, &Settings::table, At{Row}>("scheduler.table.beside", name,
                                                                    0, 0, help);
}
Key<Config> with_choices(Key<Config> key, std::vector<std::string_view> (*choices)()) {
  key.choices = choices;
  return key;
}

constexpr double kHourMs = 3'600'000;
constexpr double kMany = 1'000'000;

static_assert(sizeof(Settings) == 336,
              "a new knob of Settings needs a row below, and its new size here");

const Key<Config> kKeys[] = {
    top<&Config::device>(
        "device",
        "The device: auto, cuda, cuda:N, sim, or sim:KEY=VALUE with further settings after commas. "
        "\"auto\" is the first GPU, or the simulator where there is none."),
    top<&Config::runtime_dir>(
        "runtime_dir",
        "The folder where clients find the daemon. Empty: $SLATE_RUNTIME_DIR, else /run/slate "
        "where a daemon is there already, else $XDG_RUNTIME_DIR/slate, else /tmp/slate-<uid>. A "
        "system service should say \"/run/slate\"."),
    top<&Config::serve_everybody>(
        "serve_everybody",
        "Whether programs of all users are served. Otherwise only those of slated's own user and "
        "root's are. A slated that runs as root, or that systemd gave its socket, serves all."),
    top<&Config::log_level>(
        "log_level",
        "The least urgent lines that the log has. Normal running says nothing above info."),
    top<&Config::audit>(
        "audit",
        "Whether the log says of each session when it begins and ends, with its user, process and "
        "program. Refusals are always there. A user has 60 lines a minute; those beyond are "
        "counted."),
    top<&Config::private_status>(
        "private_status",
        "Whether slatectl shows to each user only the sessions that are his. Profiles of kernels "
        "and the last fault, which name others' kernels, are then the administrators'."),
    top<&Config::memory_limit>(
        "memory_limit",
        "The most device memory of one session: bytes, or a number with K, M, G, T or %. The units "
        "are powers of 1024; \"25%\" is a share of the device's memory. Arrays and the modules' "
        "variables count, too."),
    top<&Config::memory_reserve_percent>(
        "memory_reserve_percent", 0, 50,
        "The part of the device's memory that is left for users who come later, where several are "
        "served. What a user takes of it leaves at least as much as he then has, so that any "
        "number of users find some. Root may have all of it."),
    top<&Config::device_memory>(
        "device_memory",
        "Slate's part of the device's memory: bytes, or a number with K, M, G, T or %."),
    top<&Config::swap>(
        "swap",
        "The most host memory for contents that are not on the device: bytes, or a number with K, "
        "M, G or T. Sessions may then have more memory together than the device has. What a "
        "session has keeps its addresses, and is back on the device when a command needs it. Some "
        "of this memory is room to move in: as much as the largest session may have on the "
        "device. \"0\": all memory is on the device."),
    top<&Config::swap_pinned>(
        "swap_pinned",
        "The most of \"swap\" that is pinned, as quick moves need. The rest is in swap_directory."),
    top<&Config::swap_ready>(
        "swap_ready",
        "How much of \"swap\" is taken when the first session begins, and kept: bytes, or a number "
        "with K, M, G or T. Without it host memory comes when it is needed first, at a few GiB a "
        "second, and goes once there is no session."),
    top<&Config::swap_directory>("swap_directory",
                                 "The folder of what is beyond swap_pinned, in files without "
                                 "names. Empty: pageable memory."),
    top<&Config::swap_overhead_percent>(
        "swap_overhead_percent", 0.1, 50,
        "The most part of the time that sessions lose by changing places, where not all of their "
        "memory fits on the device. A smaller one makes for longer turns. A session that pauses "
        "makes room sooner."),
    top<&Config::memory_wait_seconds>(
        "memory_wait_seconds", 0, 86400,
        "Seconds that a request for device memory waits for memory that other sessions have. Then "
        "it fails, as it does at once with 0. What is above the session's own limit never waits. "
        "Programs that each hold memory and want more wait in vain for each other until then."),
    top<&Config::max_sessions>(
        "max_sessions", 1, 65536,
        "The most sessions at a time. Further programs get cudaErrorInitializationError and the "
        "reason. Root's programs are never kept out."),
    top<&Config::max_sessions_per_user>("max_sessions_per_user", 1, 65536,
                                        "The most sessions of one user at a time."),
    top<&Config::kill_grace_seconds>(
        "kill_grace_seconds", 0, 86400,
        "Seconds that kernels of a program that has gone may run on. Then the session is reported "
        "as stuck. The simulator ends such kernels at once; a GPU cannot."),
    top<&Config::kill_stuck_engine>(
        "kill_stuck_engine",
        "Whether the engine is replaced for a stuck session. That ends every other session, too. "
        "Otherwise the session stays \"draining\", with its memory in use, until its kernels end."),
    top<&Config::max_blocking_ms>(
        "max_blocking_ms", 0, kHourMs,
        "Milliseconds for which a session's work may keep launches of other users waiting, where "
        "nobody can take it off the device. Then the session is ended, and its program is told "
        "why. A user is never ended for his own programs. 0: no bound. By user, group or program: "
        "below."),
    top<&Config::blocked_engine>(
        "blocked_engine",
        "What happens if the work of such a session goes on after its end, as kernels on a GPU do. "
        "\"replace\": the engine is replaced, which ends every other session, too. \"keep\": "
        "the others wait for the kernel's end."),
    top<&Config::engine_timeout_seconds>("engine_timeout_seconds", 0, 86400,
                                         "Seconds that an engine may take to say that it lives. "
                                         "One that hangs is ended, with a core "
                                         "dump where the system keeps those, and replaced. 0: it "
                                         "is never asked, as for a debugger."),
    top<&Config::bar_after>(
        "bar_after", 0, 1000,
        "Incidents within 10 minutes after which a user's programs are refused for a while. An "
        "incident is a session that was ended because of max_blocking_ms, or the likely cause of "
        "an engine's end. 0: nobody is refused. Root and slated's own user never are."),
    top<&Config::bar_seconds>("bar_seconds", 1, 1e6, "Seconds for which they are refused."),
    top<&Config::spare_engine>(
        "spare_engine",
        "Whether a second engine is kept ready. After a fault the sessions and the next program "
        "then do not wait for a new engine. The price is the memory of one more CUDA context. "
        "\"auto\": on a GPU, if a fifth of its memory is free when the engine starts, and until a "
        "program needs the memory. \"always\", \"never\". For a minute after an engine was lost "
        "there are two of them, on a GPU with that room."),
    top<&Config::cache_dir>(
        "cache_dir",
        "The folder where compiled code is kept between runs. The simulator has none. Empty: "
        "$SLATE_CACHE_DIR, else /var/cache/slate for root, else $XDG_CACHE_HOME/slate, else "
        "~/.cache/slate. The folder must be slated's alone: one of another user, or one that "
        "others may write to, is not used."),
    top<&Config::cache_size>(
        "cache_size",
        "The most disk space of compiled code: bytes, or a number with K, M, G or T. What was not "
        "used for longest goes first. What ptxas does not compile the driver compiles. The driver "
        "keeps that code in \"driver\" below cache_dir, up to as much again, 4G at most. It does "
        "not do so where slated is started with $CUDA_CACHE_PATH or $CUDA_CACHE_DISABLE. 0 keeps "
        "nothing and gives PTX to the driver, which has a cache of its own: ~/.nv, or "
        "$CUDA_CACHE_PATH."),
    top<&Config::image_store>(
        "image_store",
        "The most memory for large images of code that stay for later programs of their user: "
        "bytes, or a number with K, M, G or T. Such programs do not send them again. What was not "
        "used for longest goes first. Images that programs are using do not depend on it."),
    top<&Config::ptxas>(
        "ptxas",
        "The assembler of the CUDA Toolkit, whose code the cache keeps. Empty: the first of "
        "$CUDA_HOME/bin, $PATH and /usr/local/cuda/bin that has one. The driver compiles what the "
        "assembler refuses. The driver compiles everything where there is no assembler, or one of "
        "a newer major version of CUDA than the driver's."),
    top<&Config::form>(
        "form",
        "The form in which kernels run, where they can take it. \"auto\": as compiled, but as "
        "workers where that is known to be quicker. \"native\": as compiled; nothing is rewritten. "
        "\"worker\" and \"slice\" force those forms, for tests; the log says which kernels cannot "
        "take them, and why."),
    top<&Config::dispatch>(
        "dispatch",
        "What starts the workers of launches that can be resized. \"host\": slated. \"device\": a "
        "dispatch kernel on the GPU, as in the Slate paper, which starts them again by itself. "
        "That needs nvlink and libcudadevrt.a of the CUDA Toolkit, and a launch takes longer; the "
        "simulator cannot do it."),
    top<&Config::sharing>(
        "sharing",
        "Which sessions share an engine, and with it an address space of the device. \"fenced\": "
        "those of all users, behind the fence; code without a fence moves to an engine of its "
        "user's own (`unfenced`). \"user\": those of one user. \"trusted\": those of all users, "
        "without a fence. Engines take turns on the device by its time slices. By user or group: "
        "below; a group may be \"trusted\" among its members. \"default\" is \"fenced\"."),
    top<&Config::fence>(
        "fence",
        "When kernels run behind the fence, which checks their accesses to memory. \"auto\": once "
        "sessions of several users have come to the engine. \"always\", \"never\". A kernel's "
        "first launch behind the fence waits for the assembler."),
    top<&Config::unfenced>(
        "unfenced",
        "What happens to kernels that have to be fenced and cannot be. \"move\": a session that "
        "loads "
        "code without PTX moves to an engine of its user's own; what cannot move, and other "
        "kernels "
        "without a fence, run all the same. \"run\": they run without a fence. \"refuse\": their "
        "launches fail."),
    with_choices(
        top<&Config::policy>(
            "policy",
            "The scheduling policy. \"adaptive\" measures how the programs that are there run best "
            "together, and remembers it. \"table\" goes by the intensities of kernels (Table I of "
            "the Slate paper, below). \"timeslice\" gives turns. \"fifo\" starts everything when "
            "it comes, as the hardware would."),
        policies),
    top<&Config::max_weight>(
        "max_weight", kLeastWeight, kMostWeight,
        "The most that users may give a session as weight (SLATE_WEIGHT, slatectl set). Root, and "
        "the user whom slated runs as, may give up to 100."),
    top<&Config::state_dir>(
        "state_dir",
        "The folder of the profiles of kernels and the settings of `slatectl set --program`; "
        "\"none\" keeps nothing. It is one SQLite file. Empty: $SLATE_STATE_DIR, else "
        "/var/lib/slate for root, else $XDG_STATE_HOME/slate, else ~/.local/state/slate. The "
        "folder must be slated's alone."),
    top<&Config::trace_events>(
        "trace_events", 0, 1 << 24,
        "The number of events that slatectl trace can have, the newest ones. Each takes about 90 "
        "bytes of memory. 0: no trace."),

    knob<&Settings::ahead>(
        "ahead_ms", 0, kHourMs,
        "Work of a session that is started and not ended, while other sessions are active. Such "
        "work delays the next session; too little of it leaves gaps."),
    knob<&Settings::ahead_launches>(
        "ahead_launches", 1, kMany,
        "The least number of such launches, for kernels shorter than that."),
    knob<&Settings::ahead_alone>("ahead_alone_ms", 0, kHourMs,
                                 "The same as ahead_ms, of a session that is alone."),
    knob<&Settings::ahead_alone_launches>(
        "ahead_alone_launches", 1, kMany,
        "The same as ahead_launches, of a session that is alone."),
    knob<&Settings::unknown_kernel>("unknown_kernel_ms", 0, kHourMs,
                                    "The time that a kernel counts as that was never measured."),
    knob<&Settings::linger>(
        "linger_ms", 0, kHourMs,
        "The time that an idle session counts as active. Programs pause between two launches."),
    knob<&Settings::priority_hold>(
        "priority_hold_ms", 0, kHourMs,
        "The time that an idle session keeps those of lower priority away. Otherwise they would "
        "get in between two of its launches."),
    knob<&Settings::ageing>(
        "ageing_ms", 0, kHourMs,
        "The wait after which a session is let through whatever its priority. 0: never."),
    knob<&Settings::long_kernel>(
        "long_kernel_ms", 0, kHourMs,
        "The length from which on kernels run as workers, which can be resized."),
    knob<&Settings::worker_floor>(
        "worker_floor", 0, 1,
        "The part of its native speed below which a long kernel does not run as workers."),
    knob<&Settings::unknown_worker_waves>(
        "unknown_worker_waves", 1, kMany,
        "The waves of a grid from which on a kernel that was never measured starts as workers. It "
        "may be a long one."),
    knob<&Settings::native_first>(
        "native_first", 0, kMany,
        "Native launches of a kernel before the worker form is tried alone."),
    knob<&Settings::form_tries>("form_tries", 1, kMany,
                                "Launches that decide between the two forms."),
    knob<&Settings::native_try>(
        "native_try_ms", 0, kHourMs,
        "The length from which on a kernel is not tried natively. Nobody could stop it."),
    knob<&Settings::task_tries>(
        "task_tries", 1, kMany,
        "Launches that decide between two sizes of workers' tasks. Half and twice the best size "
        "are tried until neither is quicker."),
    knob<&Settings::slice>("slice_ms", 0.01, kHourMs,
                           "The length of a slice of a long kernel that cannot be workers."),
    knob<&Settings::slice_waves>("slice_waves", 1, kMany,
                                 "The waves of such a slice before the kernel's speed is known."),
    knob<&Settings::quantum>(
        "quantum_ms", 0.01, kHourMs,
        "The length of a turn of timeslice and table, times the session's weight."),
    knob<&Settings::adaptive_quantum>(
        "adaptive_quantum_ms", 0.01, kHourMs,
        "The length of a turn of adaptive, where turns are the best that there is."),
    knob<&Settings::long_quantum>(
        "long_quantum_ms", 0.01, kHourMs,
        "The same, of long resizable work. Taking that off the device costs something."),
    knob<&Settings::overdue>("overdue_ms", 0, kHourMs,
                             "The time for which a launch that cannot be resized has its turn, "
                             "where it leaves SMs free. "
                             "Then the next session begins beside it."),
    knob<&Settings::group>("group", 1, 8,
                           "adaptive: the sessions that share the device at a time."),
    knob<&Settings::rotation>(
        "rotation_ms", 0.01, kHourMs,
        "adaptive: the time that a group stays while other sessions wait to get in."),
    knob<&Settings::floor>(
        "floor", 0, 1,
        "adaptive: the least part of its fair share that a session gets, for the good of all."),
    knob<&Settings::least_gain>(
        "least_gain", 0, 1,
        "adaptive: the least gain that is worth an arrangement. It is the gain over turns, and "
        "over all sessions together."),
    knob<&Settings::cut>(
        "cut", 1, 100,
        "adaptive: candidates that look this many times worse than the best are measured no "
        "further."),
    knob<&Settings::drift>("drift", 0, 100,
                           "adaptive: a settled choice that is off by this part is searched anew."),
    knob<&Settings::search_loss>(
        "search_loss", 0.0001, 1,
        "adaptive: the part of its time that a search may cost. The next candidate waits until it "
        "can be afforded; the best so far stays meanwhile. More finds gains sooner, less slows "
        "first meetings down less."),
    knob<&Settings::measure>("measure_ms", 0.01, kHourMs,
                             "adaptive: the time that each candidate is measured together."),
    knob<&Settings::measure_alone>("measure_alone_ms", 0, kHourMs,
                                   "adaptive: the time that each candidate is measured alone."),
    knob<&Settings::search_ahead>("search_ahead_ms", 0, kHourMs,
                                  "adaptive: the same as ahead_ms, during a search."),
    knob<&Settings::search_again>("search_again_ms", 0, kHourMs,
                                  "adaptive: the least time between two searches of one group."),
    flag<&Settings::intensities>(
        "intensities",
        "Whether one launch of each kernel is counted: what it computes, and the bytes that it "
        "asks for. That costs this one launch some time. It makes the making of every kernel's "
        "forms about a quarter longer. `table` needs it; `adaptive` is quicker with it."),
    flag<&Settings::forms_at_once>(
        "forms_at_once",
        "Whether a kernel's first launch waits for its forms. The assembler takes milliseconds to "
        "seconds. Otherwise forms are made behind the launches of a kernel that has run long "
        "enough to matter."),
    knob<&Settings::peak_gflops>(
        "peak_gflops", 0, 1e9,
        "The most single precision GFLOP/s of the device. 0: what the device says of itself."),
    knob<&Settings::peak_gbytes>(
        "peak_gbytes", 0, 1e9,
        "The most GB/s of the device's memory. 0: what the device says of itself."),

    table_i<&Settings::medium_compute>(
        "medium_compute",
        "The part of the peak GFLOP/s from which on a kernel's compute intensity is medium."),
    table_i<&Settings::high_compute>("high_compute", "The same, for high compute intensity."),
    table_i<&Settings::medium_memory>(
        "medium_memory",
        "The part of the peak GB/s from which on a kernel's memory intensity is medium."),
    table_i<&Settings::high_memory>("high_memory", "The same, for high memory intensity."),
    table_i<&Settings::near_full>(
        "near_full",
        "The part of its speed that is enough for the memory-bound kernel of two. It gets fewer "
        "SMs than saturate the memory where it has that speed with them."),
    table_i<&Settings::saturation>(
        "saturation",
        "The part of the SMs that saturates the memory: 48 of 132 on an H200. The memory-bound "
        "kernel of two gets these."),

    beside<0>("low_compute", "Beside a kernel of low compute and low memory intensity."),
    beside<1>("medium_compute", "Beside a kernel of medium compute and low memory intensity."),
    beside<2>("high_compute", "Beside a kernel of high compute and low memory intensity."),
    beside<3>("medium_memory", "Beside a kernel of medium memory intensity."),
    beside<4>("high_memory", "Beside a kernel of high memory intensity."),
};

const Key<ProgramSettings> kProgramKeys[] = {
    row<ProgramSettings, &ProgramSettings::name>("program", "name", 0, 0,
                                                 "The name of the executable, without its folder."),
    row<ProgramSettings, &ProgramSettings::user>(
        "program", "user", 0, 0,
        "Whose programs, by name or number. Empty: everybody's. Anybody can give a program any "
        "name, so such a table lowers weight and priority only."),
    row<ProgramSettings, &ProgramSettings::settings, &SessionSettings::weight>(
        "program", "weight", kLeastWeight, kMostWeight,
        "The program's share beside its user's other programs. The user may choose a weight up to "
        "the larger of this one and max_weight."),
    row<ProgramSettings, &ProgramSettings::settings, &SessionSettings::priority>(
        "program", "priority", kLeastPriority, kMostPriority,
        "The program's priority; higher goes first. Users may lower it."),
    row<ProgramSettings, &ProgramSettings::max_blocking_ms>(
        "program", "max_blocking_ms", kAsOthers, kHourMs,
        "The same as max_blocking_ms above, for this program. A table without a user only lowers "
        "it. -1: as for its user."),
};

const Key<UserSettings> kUserKeys[] = {
    row<UserSettings, &UserSettings::name>("user", "name", 0, 0, "The name, or the number."),
    row<UserSettings, &UserSettings::weight>(
        "user", "weight", kLeastWeight, kMostWeight,
        "The user's share of the device beside other users, however many programs each has."),
    row<UserSettings, &UserSettings::max_sessions>(
        "user", "max_sessions", 0, 65536,
        "The most sessions of the user at a time; 0: max_sessions_per_user."),
    row<UserSettings, &UserSettings::memory>(
        "user", "memory", 0, 0,
        "The most device memory of all the user's sessions together, as in memory_limit."),
    row<UserSettings, &UserSettings::max_blocking_ms>(
        "user", "max_blocking_ms", kAsOthers, kHourMs,
        "The same as max_blocking_ms above, for the user's programs. -1: as for everybody."),
    row<UserSettings, &UserSettings::sharing>(
        "user", "sharing", 0, 0,
        "The same as sharing above, for the user's sessions. A user that is \"trusted\" has an "
        "engine of his own. The members of a group that is \"trusted\" share one without a fence. "
        "\"default\": as for everybody."),
};

const TableHelp kTables[] = {
    {"scheduler", "The knobs of the policies. A name that ends in _ms is a time in milliseconds."},
    {"scheduler.table", "The thresholds of the policy table, as parts of the device's peaks."},
    {"scheduler.table.beside",
     "Whether a newcomer may run beside the running kernel: a row for each class of the running "
     "kernel. Its five columns are the newcomer's class, in the order of the rows."},
    {"program", "What sessions of a program begin with: one [[program]] table each."},
    {"user", "What one user may have: one [[user]] table each."},
    {"group",
     "What each member of a group may have, unless there is a [[user]] table for him: one "
     "[[group]] "
     "table each. The first one that fits counts. The keys are those of [[user]]."},
};

KeyValue number_value(std::string_view text) {
  std::int64_t whole = 0;
  double real = 0;
  const char* const end = text.data() + text.size();
  if (const auto read = std::from_chars(text.data(), end, whole);
      read.ec == std::errc{} && read.ptr == end)
    return whole;
  if (const auto read = std::from_chars(text.data(), end, real);
      read.ec == std::errc{} && read.ptr == end)
    return real;
  return {};
}

}  // namespace

std::span<const Key<Config>> config_keys() {
  return kKeys;
}
std::span<const Key<ProgramSettings>> program_keys() {
  return kProgramKeys;
}
std::span<const Key<UserSettings>> user_keys() {
  return kUserKeys;
}
std::span<const TableHelp> config_tables() {
  return kTables;
}

const Key<Config>* find_config_key(std::string_view table, std::string_view name) {
  const auto* const found = std::ranges::find_if(
      kKeys, [&](const Key<Config>& key) { return key.table == table && key.name == name; });
  return found == std::end(kKeys) ? nullptr : found;
}

template <typename Owner>
std::string Key<Owner>::path() const {
  return table.empty() ? std::string(name) : fmt::format("{}.{}", table, name);
}

template <typename Owner>
std::string Key<Owner>::bounds() const {
  if (choices != nullptr) return fmt::format("{}", fmt::join(choices(), ", "));
  if (type == KeyType::kWhole || type == KeyType::kReal)
    return fmt::format("{} to {}", least, most);
  return {};
}

template struct Key<Config>;
template struct Key<ProgramSettings>;
template struct Key<UserSettings>;

KeyValue value_of(KeyType type, std::string_view text) {
  switch (type) {
    case KeyType::kFlag:
      if (text == "true" || text == "false") return text == "true";
      return {};
    case KeyType::kWhole:
    case KeyType::kReal:
      return number_value(text);
    case KeyType::kNames: {
      std::vector<std::string> names(1);
      for (const char c : text) {
        if (c == ',') {
          names.emplace_back();
        } else {
          names.back() += c;
        }
      }
      return names;
    }
    case KeyType::kText:
      break;
  }
  return std::string(text);
}

Result<void> check_config(const Config& config) {
  const Settings& settings = config.scheduler;
  if (settings.medium_compute > settings.high_compute)
    return bad("scheduler.table.medium_compute: above high_compute");
  if (settings.medium_memory > settings.high_memory)
    return bad("scheduler.table.medium_memory: above high_memory");
  return {};
}

}  // namespace slate::daemon
