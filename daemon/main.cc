// slated. Three kinds of process of one binary: the supervisor (no CUDA; reception, registry,
// control) starts the engine (device, sessions) and replaces it when it dies. The engine starts
// readers of programs' code. This file only chooses which of them to be, and wires it.
#include <optional>
#include <utility>

#include "base/log.h"
#include "daemon/engine/engine.h"
#include "daemon/options.h"
#include "daemon/reader/reader_main.h"
#include "daemon/supervisor/supervisor.h"

int main(int argc, char** argv) {
  using namespace slate;
  if (argc == 2 && argv[1] == daemon::kEngineArgument) return daemon::run_engine();
  if (argc == 2 && argv[1] == daemon::kReaderArgument) return daemon::run_reader();
  const auto config = daemon::parse_options(argc, argv);
  if (!config) return config.error();
  set_up_log("slated", config->log_level);
  return daemon::run_supervisor(*config, {argv, argv + argc},
                                [&]() -> std::optional<daemon::Config> {
                                  auto again = daemon::parse_options(argc, argv);
                                  if (!again) return std::nullopt;
                                  return std::move(*again);
                                });
}
