#include "tools/inject_options.h"

#include <algorithm>
#include <map>
#include <ostream>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnull-dereference"
#include <CLI/CLI.hpp>
#pragma GCC diagnostic pop

namespace slate::tools {
namespace {

constexpr const char* kAbout =
    "slate-inject: adds slate's forms to the kernels of a file, or says which they can take.\n"
    "FILE: PTX, a fat binary, an object, library or executable that nvcc made, or a .cu source";
constexpr const char* kFooter =
    "worker, slice, profile, all: prints the module of one FILE with the forms behind it. Of\n"
    "a FILE with several PTX images, --image N chooses one; without it they are written to OUT.0, "
    "OUT.1 ...\n"
    "Exit status: 0, 1 if some file could not be done, 64 for a wrong command line.";

const std::map<std::string, InjectTask> kTasks{{"worker", InjectTask::kWorker},
                                               {"slice", InjectTask::kSlice},
                                               {"profile", InjectTask::kProfile},
                                               {"all", InjectTask::kAll},
                                               {"analyse", InjectTask::kAnalyse}};

void declare(CLI::App& app, InjectRequest& request, std::string& task) {
  app.footer(kFooter);
  app.set_version_flag("--version", "slate-inject " SLATE_VERSION);
  app.add_option("FILE", request.files, "what to read")->required();
  app.add_option("--form", task,
                 "worker, slice, profile, all (as is), or analyse: only say what is legal")
      ->check(CLI::IsMember(kTasks));
  app.add_option("-o,--output", request.output, "where to write; standard output if not given");
  app.add_option("--kernel", request.kernels,
                 "only this kernel, by its name in the PTX or in the source; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--image", request.image, "only the Nth PTX image of a file, from 0");
  app.add_option("--max-registers", request.max_registers, "registers a worker form may use")
      ->check(CLI::Range(24, 255));
  app.add_flag("--builtins", request.builtins,
               "with slate's printf, assert, malloc and free linked in, as libslate does");
  app.add_flag("--fence", request.fence,
               "with a check in front of every access to memory, in all forms");
  app.add_option("--reserved-shared", request.reserved_shared,
                 "of the fence: bytes of shared memory in front of a block's own, 1024 on sm_90")
      ->check(CLI::Range(0, 65536));
  app.add_option("--arch", request.architecture, "of .cu sources: 90 for compute_90")
      ->check(CLI::Range(50, 999))
      ->capture_default_str();
  app.add_option("-I", request.include_directories, "of .cu sources: where headers are")
      ->allow_extra_args(false);
  app.add_option("-D", request.macros, "of .cu sources: a macro, NAME or NAME=VALUE")
      ->allow_extra_args(false);
  app.add_flag("--json", request.json, "analyse: as JSON");
  app.add_flag("--summary", request.summary, "analyse: only the counts over all files");
  app.add_flag("--mangled", request.mangled, "analyse: names as in the PTX");
}

/// What is wrong with options that are right each for itself; empty if nothing.
std::string contradiction(const InjectRequest& request) {
  if (request.task == InjectTask::kAnalyse) {
    if (request.builtins) return "--builtins is for a form, not for analyse";
    if (request.fence) return "--fence is for a form; analyse says what it would do anyway";
    return request.max_registers != 0 ? "--max-registers is for a form, not for analyse" : "";
  }
  if (request.json || request.summary || request.mangled) {
    return "--json, --summary and --mangled are for --form analyse";
  }
  if (request.task != InjectTask::kWorker && request.task != InjectTask::kAll &&
      request.max_registers != 0) {
    return "--max-registers is for the worker form";
  }
  return request.files.size() > 1 ? "one FILE at a time, unless with --form analyse" : "";
}

}  // namespace

std::expected<InjectRequest, int> parse_inject_options(const std::vector<std::string>& arguments,
                                                       std::ostream& out, std::ostream& err) {
  CLI::App app{kAbout, "slate-inject"};
  InjectRequest request;
  std::string task = "all";
  declare(app, request, task);
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    return std::unexpected(app.exit(error, out, err) == 0 ? 0 : kUsage);
  }
  request.task = kTasks.at(task);
  if (const std::string wrong = contradiction(request); !wrong.empty()) {
    err << "slate-inject: " << wrong << '\n';
    return std::unexpected(kUsage);
  }
  return request;
}

}  // namespace slate::tools
