#include "daemon/options.h"

#include <fmt/format.h>

#include <cstdio>
#include <iostream>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnull-dereference"
#include <CLI/CLI.hpp>
#pragma GCC diagnostic pop

#include "daemon/scheduler_config.h"

namespace slate::daemon {
namespace {

/// What was given on the command line, before it is laid over the file.
struct Given {
  std::optional<std::string> device, runtime_dir, log_level, config_file, cache_dir, cache_size,
      ptxas, form, policy, state_dir, scheduler;
  std::optional<std::uint32_t> trace_events;
  std::optional<double> kill_grace;
  bool kill_stuck_engine = false;
};

Result<Config> combine(const Given& given) {
  Config config;
  if (given.config_file) {
    auto loaded = load_config(*given.config_file);
    if (!loaded) return loaded;
    config = std::move(*loaded);
  }
  if (given.device) config.device = *given.device;
  if (given.runtime_dir) config.runtime_dir = *given.runtime_dir;
  if (given.kill_grace) config.kill_grace_seconds = *given.kill_grace;
  if (given.kill_stuck_engine) config.kill_stuck_engine = true;
  if (given.cache_dir) config.cache_dir = *given.cache_dir;
  if (given.ptxas) config.ptxas = *given.ptxas;
  if (given.state_dir) config.state_dir = *given.state_dir;
  if (given.trace_events) config.trace_events = *given.trace_events;
  if (given.cache_size) {
    const auto size = parse_size(*given.cache_size);
    if (!size) return std::unexpected(size.error());
    config.cache_size = *size;
  }
  if (given.form) {
    if (!parse_form_choice(*given.form)) {
      return fail(ErrorCode::kInvalidValue, "--form: expected auto, native, worker or slice");
    }
    config.form = *given.form;
  }
  if (given.policy) {
    if (const auto known = check_policy(*given.policy); !known)
      return std::unexpected(known.error());
    config.policy = *given.policy;
  }
  if (given.scheduler) {
    const auto parsed = parse_config(*given.scheduler, "--scheduler");
    if (!parsed) return std::unexpected(parsed.error());
    config.scheduler = parsed->scheduler;
  }
  if (given.log_level) {
    const auto level = parse_log_level(*given.log_level);
    if (!level) return std::unexpected(level.error());
    config.log_level = *level;
  }
  return config;
}

std::string_view log_level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return "trace";
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
    case LogLevel::kOff:
      return "off";
  }
  return "info";
}

}  // namespace

std::expected<Options, int> parse_options(int argc, const char* const* argv) {
  CLI::App app{
      "slated: shares one GPU between CUDA programs. Runs in the foreground until SIGTERM."};
  Given given;
  Options options;
  app.set_version_flag("--version", "slated " SLATE_VERSION);
  app.add_option("--device", given.device, "auto, cuda, cuda:N, sim or sim:KEY=VALUE,...");
  app.add_option("--runtime-dir", given.runtime_dir, "where clients find the daemon");
  app.add_option("--config", given.config_file, "TOML file; options given here beat it");
  app.add_option("--log-level", given.log_level, "trace, debug, info, warning, error or off");
  app.add_option("--kill-grace-seconds", given.kill_grace,
                 "seconds that work of a dead client may go on")
      ->check(CLI::Range(0.0, 86400.0));
  app.add_flag("--kill-stuck-engine", given.kill_stuck_engine, "replace the engine after that");
  app.add_option("--cache-dir", given.cache_dir, "where compiled code is kept between runs");
  app.add_option("--cache-size", given.cache_size, "the most of it: 512M, 1G; 0 keeps nothing");
  app.add_option("--ptxas", given.ptxas, "the assembler to compile with; empty: looked for");
  app.add_option("--form", given.form, "form of kernels: auto, native, worker or slice");
  app.add_option("--policy", given.policy, "who runs where: adaptive, table, timeslice or fifo");
  app.add_option("--state-dir", given.state_dir,
                 "where profiles and settings are kept; none: nowhere");
  app.add_option("--trace-events", given.trace_events, "how many events slatectl trace can have")
      ->check(CLI::Range(0u, 1u << 24));
  app.add_option("--scheduler", given.scheduler)->group("");  // TOML text, for the engine
  app.add_flag("--engine", options.is_engine)->group("");
  app.add_option("--control-fd", options.control_fd)->group("");
  app.add_option("--parent", options.parent_pid)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return std::unexpected(app.exit(error, std::cout, std::cerr) == 0 ? 0 : 2);
  }
  auto config = combine(given);
  if (!config) {
    fmt::print(stderr, "slated: {}\n", config.error().message);
    return std::unexpected(2);
  }
  options.config = std::move(*config);
  return options;
}

std::vector<std::string> engine_arguments(const Config& config, int control_fd, int parent_pid) {
  std::vector<std::string> arguments = {"--engine",
                                        "--control-fd",
                                        std::to_string(control_fd),
                                        "--parent",
                                        std::to_string(parent_pid),
                                        "--device",
                                        config.device,
                                        "--log-level",
                                        std::string(log_level_name(config.log_level)),
                                        "--kill-grace-seconds",
                                        fmt::format("{}", config.kill_grace_seconds),
                                        "--form",
                                        config.form,
                                        "--cache-size",
                                        std::to_string(config.cache_size),
                                        "--policy",
                                        config.policy,
                                        "--scheduler",
                                        scheduler_text(config.scheduler),
                                        "--trace-events",
                                        std::to_string(config.trace_events)};
  if (!config.state_dir.empty()) {
    arguments.emplace_back("--state-dir");
    arguments.push_back(config.state_dir);
  }
  if (!config.cache_dir.empty()) {
    arguments.emplace_back("--cache-dir");
    arguments.push_back(config.cache_dir);
  }
  if (!config.ptxas.empty()) {
    arguments.emplace_back("--ptxas");
    arguments.push_back(config.ptxas);
  }
  if (config.kill_stuck_engine) arguments.emplace_back("--kill-stuck-engine");
  return arguments;
}

}  // namespace slate::daemon
