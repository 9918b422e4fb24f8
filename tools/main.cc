// slatectl: the command line beside a running slated. Each subcommand is declared with what it
// does; they are in the files named after them.
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnull-dereference"
#include <CLI/CLI.hpp>
#pragma GCC diagnostic pop

#include "tools/profile_command.h"
#include "tools/run_command.h"
#include "tools/session_command.h"
#include "tools/set_command.h"
#include "tools/status_command.h"
#include "tools/trace_command.h"

namespace slate::tools {
namespace {

/// What the command line said, and what to do about it.
struct Command {
  std::string runtime_dir;
  bool as_json = false;
  bool all = false;
  double seconds = 0;
  std::string file, kernel;
  std::string front = "auto";
  std::vector<std::string> program;
  SetRequest set;
  std::string session;
  ProfileChange change;
  GroupChange group;
  std::function<int()> act;

  CLI::App* add(CLI::App& app, const char* name, const char* description,
                std::function<int()> action) {
    CLI::App* const made = app.add_subcommand(name, description);
    made->add_option("--runtime-dir", runtime_dir, "where the daemon is");
    // CLI11 calls the innermost subcommand's first.
    made->callback([this, action = std::move(action)] {
      if (!act) act = action;
    });
    return made;
  }
};

void add_status_and_run(CLI::App& app, Command& command) {
  CLI::App* const status = command.add(app, "status", "show sessions, memory and launches", [&] {
    return status_command(command.runtime_dir, command.as_json);
  });
  status->add_flag("--json", command.as_json, "as JSON (docs/status.md)");
  CLI::App* const run =
      command.add(app, "run", "run a program under slate: run [options] -- PROGRAM ARGS",
                  [&] { return run_command(command.runtime_dir, command.front, command.program); });
  const auto add_front = [&command](CLI::App& to) {
    to.add_option("--front", command.front,
                  "the library that stands in: driver (libcuda), cudart, or auto")
        ->check(CLI::IsMember({"auto", "driver", "cudart"}));
  };
  add_front(*run);
  CLI::App* const env =
      command.add(app, "env", "print what a shell evaluates to run all under slate",
                  [&] { return env_command(command.runtime_dir, command.front); });
  add_front(*env);
  run->add_option("command", command.program, "the program and its arguments")->required();
}

void add_set(CLI::App& app, Command& command) {
  CLI::App* const set = command.add(app, "set", "change a session's share of the device",
                                    [&] { return set_command(command.runtime_dir, command.set); });
  set->add_option("session", command.set.target, "number of a session, pid, or name of a program");
  set->add_option("--weight", command.set.weight, "its share beside others, 0.01 to 100");
  set->add_option("--priority", command.set.priority, "-10 to 10, higher goes first");
  set->add_option("--program", command.set.program, "keep it for this program, now and later");
  set->add_option("--uid", command.set.uid, "of this user's program, not the caller's");
  set->add_flag("--forget", command.set.forget, "keep it no longer");
}

void add_session_commands(CLI::App& app, Command& command) {
  const auto add = [&](const char* name, const char* description, ipc::ControlVerb verb) {
    return command.add(app, name, description, [&command, verb] {
      return session_command(command.runtime_dir, verb, command.session);
    });
  };
  for (CLI::App* const each :
       {add("end", "end a session of yours, with all that it runs", ipc::ControlVerb::kEndSession),
        add("suspend", "take a session of yours off the device, with its memory",
            ipc::ControlVerb::kSuspend),
        add("resume", "let a suspended session go on", ipc::ControlVerb::kResume)}) {
    each->add_option("session", command.session, "number of a session, pid, or name of a program")
        ->required();
  }
  add("renew", "replace the engines by new ones, with the configuration; sessions go on",
      ipc::ControlVerb::kRenew);
  add("upgrade", "have the installed slated take over from the running one; sessions go on",
      ipc::ControlVerb::kUpgrade);
}

void add_profile(CLI::App& app, Command& command) {
  const auto show = [&] {
    return profile_show_command(command.runtime_dir, command.kernel, command.as_json);
  };
  CLI::App* const profile =
      command.add(app, "profile", "show what slate has learnt of kernels", show);
  profile->add_flag("--json", command.as_json, "as JSON (docs/slatectl.md)");
  profile->require_subcommand(0, 1);
  CLI::App* const one = command.add(*profile, "show", "all that is known of a kernel", show);
  one->add_flag("--json", command.as_json, "as JSON");
  one->add_option("kernel", command.kernel, "its name, mangled or not")->required();
  CLI::App* const set = command.add(*profile, "set", "replace what was measured", [&] {
    return profile_set_command(command.runtime_dir, command.change);
  });
  set->add_option("kernel", command.change.kernel, "its name, mangled or not")->required();
  set->add_option("--compute", command.change.compute,
                  "part of the device's compute peak, 0 to 1; -1: as measured");
  set->add_option("--memory", command.change.memory,
                  "part of its memory's peak, 0 to 1; -1: as measured");
  set->add_option("--form", command.change.form, "native, worker, or auto: as measured")
      ->check(CLI::IsMember({"native", "worker", "auto"}));
  CLI::App* const group = command.add(*profile, "group", "say how kernels share the device", [&] {
    return profile_group_command(command.runtime_dir, command.group);
  });
  group->add_option("kernels", command.group.kernels, "names, or # and the number of a row")
      ->required()
      ->expected(2, 8);
  group->add_flag("--alone", command.group.alone, "one at a time");
  group->add_flag("--together", command.group.together, "each on the whole device");
  group->add_option("--sms", command.group.sms, "SMs for each, as 48,84")->delimiter(',');
  group->add_option("--forms", command.group.forms, "native or worker for each, as native,worker")
      ->delimiter(',')
      ->check(CLI::IsMember({"native", "worker"}));
  group->add_flag("--auto", command.group.automatic, "as measured, beginning anew");
  CLI::App* const forget = command.add(*profile, "forget", "measure anew", [&] {
    return profile_forget_command(command.runtime_dir, command.kernel, command.all);
  });
  forget->add_option("kernel", command.kernel, "its name, mangled or not");
  forget->add_flag("--all", command.all, "every kernel");
}

void add_trace(CLI::App& app, Command& command) {
  CLI::App* const trace = command.add(
      app, "trace", "write what the scheduler did, for Perfetto or chrome://tracing",
      [&] { return trace_command(command.runtime_dir, command.file, command.seconds); });
  trace->add_option("--out", command.file, "the file; - for the standard output")->required();
  trace->add_option("--last", command.seconds, "only so many seconds")->check(CLI::Range(0.0, 1e6));
}

int run_main(int argc, char** argv) {
  CLI::App app{"slatectl: looks at slated, steers it, and starts programs under it"};
  app.set_version_flag("--version", "slatectl " SLATE_VERSION);
  app.require_subcommand(1);
  Command command;
  add_status_and_run(app, command);
  add_set(app, command);
  add_session_commands(app, command);
  add_profile(app, command);
  add_trace(app, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, std::cout, std::cerr) == 0 ? 0 : 2;
  }
  return command.act();
}

}  // namespace
}  // namespace slate::tools

int main(int argc, char** argv) {
  const int status = slate::tools::run_main(argc, argv);
  // Subcommands only hand their text over: whether it got anywhere is known now.
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  std::fputs("slatectl: the standard output cannot be written\n", stderr);
  return status == 0 ? 1 : status;
}
