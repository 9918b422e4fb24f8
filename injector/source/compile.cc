// compile(): scan, select, print, hand to NVRTC, repair and try again.
#include <algorithm>
#include <filesystem>
#include <string>

#include "injector/source/headers.h"
#include "injector/source/launches.h"
#include "injector/source/messages.h"
#include "injector/source/names.h"
#include "injector/source/nvrtc.h"
#include "injector/source/printer.h"
#include "injector/source/repair.h"
#include "injector/source/selection.h"
#include "injector/source/source.h"
#include "injector/source/unit.h"

namespace slate::source {
namespace {

constexpr int kMostRounds = 16;
constexpr std::size_t kMostSource = std::size_t{1} << 30;

bool is_toolkit(const std::string& directory) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::path(directory) / "cuda_runtime.h", error);
}

/// The user's own include directories, those among the options too.
std::vector<std::string> user_directories(const SourceOptions& options) {
  std::vector<std::string> directories = options.include_directories;
  for (std::size_t at = 0; at < options.options.size(); ++at) {
    const std::string& option = options.options[at];
    if (option == "-I" && at + 1 < options.options.size()) {
      directories.push_back(options.options[at + 1]);
    } else if (option.starts_with("-I")) {
      directories.push_back(option.substr(2));
    } else if (option.starts_with("--include-path=")) {
      directories.push_back(option.substr(15));
    }
  }
  std::erase_if(directories, is_toolkit);
  return directories;
}

/// The names of macros that the options define.
std::vector<std::string> defined_macros(const SourceOptions& options) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < options.options.size(); ++at) {
    std::string_view option = options.options[at];
    if ((option == "-D" || option == "--define-macro") && at + 1 < options.options.size()) {
      option = options.options[++at];
    } else if (option.starts_with("-D")) {
      option.remove_prefix(2);
    } else if (option.starts_with("--define-macro=")) {
      option.remove_prefix(15);
    } else {
      continue;
    }
    names.emplace_back(option.substr(0, option.find_first_of("=(")));
  }
  return names;
}

std::vector<std::string> compiler_options(const SourceOptions& options, const Nvrtc& nvrtc) {
  std::vector<std::string> result{
      "--gpu-architecture=compute_" + std::to_string(options.architecture),
      "-default-device",
      "--device-int128",
      "-DSLATE_SOURCE=1",
  };
  result.insert(result.end(), options.options.begin(), options.options.end());
  for (const auto& directory : user_directories(options)) result.push_back("-I" + directory);
  for (const auto& directory : nvrtc.includes()) result.push_back("-I" + directory);
  return result;
}

Result<void> check(std::string_view text) {
  if (text.size() >= kMostSource) return fail(ErrorCode::kInvalidValue, "a source file over 1 GiB");
  if (text.find('\0') != std::string_view::npos) {
    return fail(ErrorCode::kInvalidPtx, "a NUL byte in the source");
  }
  return {};
}

/// One compilation with all that is tried on the way.
class Attempt {
 public:
  Attempt(const Nvrtc& nvrtc, const SourceOptions& options, std::string_view text)
      : nvrtc_(nvrtc),
        options_(options),
        unit_(user_directories(options), defined_macros(options)),
        arguments_(compiler_options(options, nvrtc)) {
    unit_.read(text, options.name, options.directory);
  }

  Result<CompiledSource> run() {
    Selection selection(unit_);
    for (const auto& instance : options_.instances) selection.use_also(instance);
    found_ = launched_instances(unit_, selection);
    for (const auto& instance : found_) selection.use_also(instance);
    std::vector<Message> errors;
    for (int round = 0; round < kMostRounds; ++round) {
      selection.decide();
      auto output = compile_once(selection);
      if (!output) return std::unexpected(output.error());
      if (output->ok) return finish(std::move(*output));
      errors = errors_in(output->log);
      if (errors.empty()) return fail(ErrorCode::kInvalidPtx, output->log);
      const auto before = found_;
      const bool changed =
          drop_invalid(found_, errors) || fetch_missing(unit_, selection, errors) ||
          drop_blamed(found_, errors, true) || drop_broken(unit_, selection, errors) ||
          drop_blamed(found_, errors, false);
      note_dropped(before);
      if (!changed) break;
    }
    return fail(ErrorCode::kInvalidPtx, explained(selection, errors));
  }

 private:
  Result<NvrtcOutput> compile_once(const Selection& selection) {
    std::vector<std::string> expressions = options_.instances;
    expressions.insert(expressions.end(), found_.begin(), found_.end());
    return nvrtc_.compile(print(unit_, selection, nvrtc_.includes()), options_.name, arguments_,
                          expressions);
  }

  void note_dropped(const std::vector<std::string>& before) {
    for (const auto& instance : before) {
      if (std::find(found_.begin(), found_.end(), instance) != found_.end()) continue;
      notes_ += options_.name + ": warning: " + instance + " does not compile, and is left out\n";
    }
  }

  /// The errors, and behind a name that is missing because its declaration did not compile, why.
  static std::string explained(const Selection& selection, const std::vector<Message>& errors) {
    std::vector<std::string> lines;
    const auto add = [&](const std::string& line) {
      if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
    };
    for (const auto& error : errors) {
      add(error.whole);
      const auto* list = selection.declaring(quoted_name(error.text));
      if (list == nullptr) continue;
      for (const int index : *list) {
        if (selection.banned(index)) add(selection.why_banned(index));
      }
    }
    std::string text;
    for (const auto& line : lines) text += (text.empty() ? "" : "\n") + line;
    return text;
  }

  Result<CompiledSource> finish(NvrtcOutput output) {
    CompiledSource result;
    result.log = notes_ + warnings_in(output.log, nvrtc_.includes());
    result.ptx = std::move(output.ptx);
    result.kernels = std::move(output.lowered);
    for (auto& [name, lowered] : result.kernels) name = std::string(trimmed(name));
    for (auto& entry : entries_in(result.ptx)) {
      const bool known = std::any_of(result.kernels.begin(), result.kernels.end(),
                                     [&](const auto& pair) { return pair.second == entry; });
      if (known) continue;
      std::string name = written_name(entry);
      result.kernels.emplace_back(std::move(name), std::move(entry));
    }
    return result;
  }

  const Nvrtc& nvrtc_;
  const SourceOptions& options_;
  Unit unit_;
  std::vector<std::string> arguments_;
  std::vector<std::string> found_;  // instances, by reading
  std::string notes_;
};

}  // namespace

Result<CompiledSource> compile(std::string_view text, const SourceOptions& options) {
  if (auto fine = check(text); !fine) return std::unexpected(fine.error());
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc) return std::unexpected(nvrtc.error());
  return Attempt(*nvrtc, options, text).run();
}

Result<std::string> strip_host_code(std::string_view text, const SourceOptions& options) {
  if (auto fine = check(text); !fine) return std::unexpected(fine.error());
  std::vector<std::string> toolkit;
  if (const auto nvrtc = Nvrtc::open()) toolkit = nvrtc->includes();
  Unit unit(user_directories(options), defined_macros(options));
  unit.read(text, options.name, options.directory);
  Selection selection(unit);
  for (const auto& instance : options.instances) selection.use_also(instance);
  for (const auto& instance : launched_instances(unit, selection)) selection.use_also(instance);
  selection.decide();
  return print(unit, selection, toolkit);
}

Result<std::string> compiler_identity(const SourceOptions& options) {
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc) return std::unexpected(nvrtc.error());
  const auto [major, minor] = nvrtc->version();
  std::string identity = "nvrtc " + std::to_string(major) + "." + std::to_string(minor);
  const auto add = [&](std::string_view what) {
    identity += "\n" + std::to_string(what.size()) + ":";
    identity += what;
  };
  for (const auto& option : compiler_options(options, *nvrtc)) add(option);
  for (const auto& directory : options.include_directories) add("directory " + directory);
  for (const auto& instance : options.instances) add("instance " + instance);
  return identity;
}

}  // namespace slate::source
