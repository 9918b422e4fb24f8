// slatectl: the command line beside a running slated. `status` asks it, `run` starts a program
// under it.
#include <iostream>
#include <string>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnull-dereference"
#include <CLI/CLI.hpp>
#pragma GCC diagnostic pop

#include "tools/run_command.h"
#include "tools/status_command.h"

int main(int argc, char** argv) {
  CLI::App app{"slatectl: looks at slated, and starts programs under it"};
  app.set_version_flag("--version", "slatectl " SLATE_VERSION);
  app.require_subcommand(1);
  std::string runtime_dir;
  bool as_json = false;
  std::vector<std::string> command;

  CLI::App* const status = app.add_subcommand("status", "show sessions, memory and launches");
  status->add_flag("--json", as_json, "as JSON (docs/status.md)");
  status->add_option("--runtime-dir", runtime_dir, "where the daemon is");

  CLI::App* const run =
      app.add_subcommand("run", "run a program under slate: run [options] -- PROGRAM ARGS");
  run->add_option("--runtime-dir", runtime_dir, "where the daemon is");
  run->add_option("command", command, "the program and its arguments")->required();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, std::cout, std::cerr) == 0 ? 0 : 2;
  }
  if (status->parsed()) return slate::tools::status_command(runtime_dir, as_json);
  return slate::tools::run_command(runtime_dir, command);
}
