#include "tools/inject_command.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <ostream>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "base/kernel_name.h"
#include "injector/fence/fence.h"
#include "injector/forms/inject.h"
#include "injector/link/builtins.h"
#include "injector/ptx/printer.h"
#include "injector/source/source.h"
#include "tools/code_file.h"
#include "tools/inject_report.h"
#include "tools/whole_file.h"

namespace slate::tools {
namespace {

namespace fs = std::filesystem;
using injector::InjectedModule;

class Injection {
 public:
  Injection(const InjectRequest& request, std::ostream& out, std::ostream& err)
      : request_(request),
        out_(out),
        err_(err),
        not_found_(request.kernels.begin(), request.kernels.end()) {}

  int analyse() {
    std::vector<FileReport> reports;
    for (const std::string& file : request_.files) {
      reports.push_back(analyse_file(file));
      for (const std::string& error : reports.back().errors) complain(file, error);
    }
    complain_about_names();
    std::string text;
    if (request_.json) {
      text = report_json(reports, request_.summary);
    } else {
      if (!request_.summary) {
        for (const FileReport& report : reports) text += report_rows(report, request_.mangled);
      }
      text += report_summary(reports);
    }
    emit(request_.output, text);
    return status_;
  }

  int inject() {
    const std::string& file = request_.files.front();
    const auto images = images_of(file);
    if (!images) {
      complain(file, images.error().message);
      return status_;
    }
    if (images->size() > 1 && request_.output.empty()) {
      err_ << fmt::format(
          "slate-inject: {} holds {} PTX images: choose one with --image N, or name files OUT.0, "
          "OUT.1 ... with -o OUT\n",
          file, images->size());
      return kUsage;
    }
    std::vector<std::pair<std::string, std::string>> results;  // where to, text
    for (const auto& [number, image] : *images) {
      const bool numbered = images->size() > 1;
      auto text = inject_image(image.text);
      if (!text) {
        complain(file, numbered ? fmt::format("image {}: {}", number, text.error().message)
                                : text.error().message);
        continue;
      }
      results.emplace_back(
          numbered ? fmt::format("{}.{}", request_.output, number) : request_.output,
          std::move(*text));
    }
    if (complain_about_names()) return status_;
    for (const auto& [path, text] : results) emit(path, text);
    return status_;
  }

 private:
  using NumberedImage = std::pair<std::size_t, PtxImage>;

  void complain(std::string_view file, std::string_view message) {
    // Most messages begin with the file's name already.
    err_ << "slate-inject: ";
    if (!message.starts_with(file)) err_ << file << ": ";
    err_ << message << '\n';
    status_ = 1;
  }

  bool complain_about_names() {
    for (const std::string& name : not_found_) {
      err_ << fmt::format("slate-inject: no kernel is called {}\n", name);
      status_ = 1;
    }
    return !not_found_.empty();
  }

  void emit(const std::string& path, const std::string& text) {
    if (path.empty()) {
      out_ << text << std::flush;
      if (!out_) complain("standard output", "cannot be written");
      return;
    }
    if (const auto written = write_whole(path, text); !written) {
      complain(path, written.error().message);
    }
  }

  Result<std::vector<PtxImage>> compile(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    if (in) text << in.rdbuf();
    if (!in || !text) return fail_errno(file);
    source::SourceOptions options;
    options.name = file;
    options.directory = fs::path(file).parent_path().string();
    options.include_directories = request_.include_directories;
    options.architecture = request_.architecture;
    for (const std::string& macro : request_.macros) options.options.push_back("-D" + macro);
    auto compiled = source::compile(text.str(), options);
    if (!compiled) return std::unexpected(compiled.error());
    if (!compiled->log.empty()) err_ << compiled->log << '\n';
    return std::vector<PtxImage>{{request_.architecture, std::move(compiled->ptx)}};
  }

  /// With their numbers, those that were asked for; never none.
  Result<std::vector<NumberedImage>> images_of(const std::string& file) {
    std::error_code error;
    // Reading one gives no text and no reason.
    if (fs::is_directory(file, error)) return fail(ErrorCode::kIo, file + ": is a directory");
    auto images = fs::path(file).extension() == ".cu" ? compile(file) : ptx_in_file(file);
    if (!images) return std::unexpected(images.error());
    std::vector<NumberedImage> chosen;
    for (std::size_t i = 0; i < images->size(); ++i) {
      if (!request_.image || *request_.image == i) chosen.emplace_back(i, std::move((*images)[i]));
    }
    if (!chosen.empty()) return chosen;
    return fail(ErrorCode::kNoKernelImage, fmt::format("no image {}, there are {}, from 0",
                                                       request_.image.value_or(0), images->size()));
  }

  bool wanted(const std::string& name, const std::string& demangled) {
    if (request_.kernels.empty()) return true;
    bool found = false;
    for (const std::string& kernel : request_.kernels) {
      if (!selects(kernel, name, demangled)) continue;
      not_found_.erase(kernel);
      found = true;
    }
    return found;
  }

  FileReport analyse_file(const std::string& file) {
    FileReport report{.file = file, .images = {}, .errors = {}};
    const auto images = images_of(file);
    if (!images) {
      report.errors.push_back(images.error().message);
      return report;
    }
    for (const auto& [number, image] : *images) {
      const auto module = ptx::parse(image.text);
      if (!module) {
        report.errors.push_back(images->size() > 1
                                    ? fmt::format("image {}: {}", number, module.error().message)
                                    : module.error().message);
        continue;
      }
      auto image_report = analyse_image(number, **module);
      if (image_report) {
        report.images.push_back(std::move(*image_report));
      } else {
        report.errors.push_back(image_report.error().message);
      }
    }
    return report;
  }

  Result<ImageReport> analyse_image(std::size_t number, const ptx::Module& module) {
    ImageReport report{.image = number, .target = std::string(module.target), .kernels = {}};
    auto analysis = injector::judge(module);
    if (!analysis) return std::unexpected(analysis.error());
    const auto fences = injector::judge_fence(module, {});
    for (injector::EntryAnalysis& entry : analysis->entries) {
      KernelReport kernel{
          .name = std::string(entry.name), .demangled = {}, .analysis = {}, .fence = {}};
      kernel.demangled = demangle(kernel.name);
      if (!wanted(kernel.name, kernel.demangled)) continue;
      kernel.fence = fence_of(fences, kernel.name);
      entry.name = {};
      kernel.analysis = std::move(entry);
      report.kernels.push_back(std::move(kernel));
    }
    return report;
  }

  static injector::FenceVerdict fence_of(const Result<std::vector<injector::FenceVerdict>>& fences,
                                         const std::string& name) {
    if (!fences) {
      std::string why = fences.error().message;
      if (const auto at = why.find(": "); at != std::string::npos) why.erase(0, at + 2);
      return {.name = name, .why_not = std::move(why), .counts = {}};
    }
    const auto found = std::ranges::find(*fences, name, &injector::FenceVerdict::name);
    if (found == fences->end()) return {.name = name, .why_not = "has no body", .counts = {}};
    return *found;
  }

  Result<std::string> inject_image(const std::string& text) {
    const auto linked = request_.builtins ? ptx::with_builtins(text) : std::nullopt;
    const auto module = ptx::parse(linked ? linked->text : text);
    if (!module) return std::unexpected(module.error());
    injector::InjectOptions options;
    const bool all = request_.task == InjectTask::kAll;
    options.worker = all || request_.task == InjectTask::kWorker;
    options.slice = all || request_.task == InjectTask::kSlice;
    options.profile = all || request_.task == InjectTask::kProfile;
    if (request_.max_registers != 0) {
      for (const ptx::Function& function : (*module)->functions) {
        if (function.is_entry)
          options.most_registers[std::string(function.name)] = {.most = request_.max_registers};
      }
    }
    auto injected = injector::inject(**module, options);
    if (!injected) return std::unexpected(injected.error());
    std::vector<std::string> unwanted;
    for (const injector::KernelForms& kernel : injected->kernels) {
      if (wanted(kernel.name, demangle(kernel.name))) {
        say_what_is_missing(kernel, options);
      } else {
        unwanted.insert(unwanted.end(),
                        {kernel.worker, kernel.compact_worker, kernel.slice, kernel.profile});
      }
    }
    auto forms = without(std::move(injected->ptx), unwanted);
    if (!forms || !request_.fence) return forms;
    return fenced(**module, std::move(*forms));
  }

  /// The forms of `original` behind a fence.
  Result<std::string> fenced(const ptx::Module& original, std::string forms) {
    if (original.text.contains(injector::kReservedPrefix)) {
      return fail(
          ErrorCode::kNotSupported,
          fmt::format("cannot be fenced: has names that begin with {}", injector::kReservedPrefix));
    }
    const auto module = ptx::parse(std::move(forms));
    if (!module) return std::unexpected(module.error());
    auto fenced = injector::fence(**module, {.names = injector::OwnNames::kExpected,
                                             .reserved_shared = request_.reserved_shared});
    if (!fenced) return std::unexpected(fenced.error());
    for (const injector::FenceVerdict& entry : fenced->entries) {
      if (entry.legal()) continue;
      err_ << fmt::format("slate-inject: {} gets no fence, and an empty body: {}\n",
                          demangle(entry.name), entry.why_not);
    }
    return std::move(fenced->ptx);
  }

  void say_what_is_missing(const injector::KernelForms& kernel,
                           const injector::InjectOptions& options) {
    const auto say = [&](std::string_view form, const injector::Verdict& verdict) {
      if (verdict.legal()) return;
      err_ << fmt::format("slate-inject: {} gets no {} form: {}\n", demangle(kernel.name), form,
                          verdict.why_not);
    };
    if (options.worker) say("worker", kernel.analysis.worker);
    if (options.slice) say("slice", kernel.analysis.slice);
    if (!options.profile) return;
    say("profile", kernel.analysis.profile);
    if (!kernel.profile.empty() && !kernel.analysis.uncounted.empty()) {
      err_ << fmt::format("slate-inject: {}: {}\n", demangle(kernel.name),
                          kernel.analysis.uncounted);
    }
  }

  /// The forms come for all kernels; those of the ones that were not asked for are taken out again.
  static Result<std::string> without(std::string ptx, const std::vector<std::string>& unwanted) {
    if (unwanted.empty()) return ptx;
    const auto module = ptx::parse(std::move(ptx));
    if (!module) return std::unexpected(module.error());
    std::vector<ptx::Edit> edits;
    for (const std::string& name : unwanted) {
      if (name.empty()) continue;  // a form that was not made
      if (const ptx::Function* form = (*module)->find_entry(name)) {
        edits.push_back(ptx::remove(form->span));
      }
    }
    return ptx::apply_edits(**module, std::move(edits));
  }

  const InjectRequest& request_;
  std::ostream& out_;
  std::ostream& err_;
  std::set<std::string> not_found_;
  int status_ = 0;
};

}  // namespace

int run_inject(const InjectRequest& request, std::ostream& out, std::ostream& err) {
  Injection injection(request, out, err);
  return request.task == InjectTask::kAnalyse ? injection.analyse() : injection.inject();
}

}  // namespace slate::tools
