#include "injector/forms/inject.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "injector/forms/block_index.h"
#include "injector/forms/late_exits.h"
#include "injector/forms/profile.h"
#include "injector/forms/settled_sums.h"
#include "injector/forms/shared_copies.h"
#include "injector/forms/slice.h"
#include "injector/forms/worker.h"

namespace slate::injector {

std::string_view form_name(Form form) {
  switch (form) {
    case Form::kNative:
      return "native";
    case Form::kWorker:
      return "worker";
    case Form::kSlice:
      return "slice";
    case Form::kProfile:
      return "profile";
  }
  return "unknown";
}

namespace {

constexpr std::string_view kCompactSuffix = "__slate_compact";

std::string form_entry(const KernelForms& forms, Form form) {
  return fmt::format("{}{}{}", forms.name, kReservedPrefix, form_name(form));
}

Result<void> add_profile(const ptx::Module& module, EntryAnalysis& entry,
                         const CountedFunctions& functions, KernelForms& forms,
                         std::string& added) {
  if (!entry.profile.legal()) return {};
  std::string name = form_entry(forms, Form::kProfile);
  auto form = profile_form(module, entry, functions, name);
  if (!form) return std::unexpected(form.error());
  if (!*form) {
    entry.profile.why_not = fmt::format("it would take more than {} counters", kMostCounters);
    return {};
  }
  if (entry.calls && functions.text.empty() && entry.uncounted.empty()) {
    entry.uncounted = "the functions that it calls are not counted";
  }
  forms.profile = std::move(name);
  forms.work = std::move((*form)->work);
  added.append("\n").append((*form)->text).append("\n");
  return {};
}

class Injector {
 public:
  Injector(const ptx::Module& module, const InjectOptions& options)
      : module_(module), options_(options) {}

  Result<InjectedModule> run() {
    analysis_ = analyse(module_);
    copied_ = functions_to_copy(module_, analysis_);
    if (options_.profile) {
      auto counted = count_functions(module_, analysis_);
      if (!counted) return std::unexpected(counted.error());
      counted_ = std::move(*counted);
    }
    if (options_.worker) {
      auto late = make_exits_late(module_, analysis_);
      if (!late) return std::unexpected(late.error());
      late_ = std::move(*late);
    }
    for (EntryAnalysis& entry : analysis_.entries) {
      if (const auto done = add_forms(entry); !done) return std::unexpected(done.error());
    }
    return finish();
  }

 private:
  Result<void> add_forms(EntryAnalysis& entry) {
    KernelForms forms;
    forms.name = entry.name;
    forms.sm = module_.sm;
    if (options_.worker && entry.worker.legal()) {
      if (const auto done = add_workers(entry, forms); !done) return done;
    }
    if (options_.slice && entry.slice.legal()) {
      forms.slice = form_entry(forms, Form::kSlice);
      if (const auto done = add(slice_form(module_, entry, copied_, forms.slice)); !done)
        return done;
    }
    if (options_.profile) {
      const auto done = add_profile(module_, entry, counted_, forms, added_);
      if (!done) return done;
    }
    needs_functions_ |= entry.functions_read_block_index && !(forms.worker + forms.slice).empty();
    forms.analysis = std::move(entry);
    result_.kernels.push_back(std::move(forms));
    return {};
  }

  Result<void> add_workers(const EntryAnalysis& entry, KernelForms& forms) {
    const ptx::Module& source = entry.late_exits ? *late_ : module_;
    const auto registers = options_.most_registers.find(entry.name);
    WorkerOptions worker;
    if (registers != options_.most_registers.end()) {
      worker.most_registers = registers->second.most;
      worker.lean = registers->second.lean;
    }
    std::optional<SharedCopies> copies;
    if (!worker.lean) copies = SharedCopies::plan(source, entry);
    if (copies) worker.copies = &*copies;
    forms.worker = form_entry(forms, Form::kWorker);
    const auto done = add(worker_form(source, entry, copied_, forms.worker, worker));
    if (!done || !copies || !copies->may_cost_blocks()) return done;
    worker.copies = nullptr;
    forms.compact_worker = forms.name + std::string(kCompactSuffix);
    return add(worker_form(source, entry, copied_, forms.compact_worker, worker));
  }

  Result<void> add(const Result<std::string>& form) {
    if (!form) return std::unexpected(form.error());
    added_.append("\n").append(*form).append("\n");
    return {};
  }

  Result<InjectedModule> finish() {
    result_.ptx = module_.text;
    while (result_.ptx.ends_with('\0')) result_.ptx.pop_back();
    if (needs_functions_) {
      const auto functions = copy_functions(module_, copied_);
      if (!functions) return std::unexpected(functions.error());
      result_.ptx += *functions;
    }
    result_.ptx += counted_.text;
    result_.ptx += added_;
    return std::move(result_);
  }

  const ptx::Module& module_;
  const InjectOptions& options_;
  ModuleAnalysis analysis_;
  std::unique_ptr<const ptx::Module> late_;  // the module with late exits, if any are
  std::vector<bool> copied_;
  CountedFunctions counted_;
  InjectedModule result_;
  std::string added_;
  bool needs_functions_ = false;
};

/// By index into Module::functions: kernels of which an assembler may choose the bits, and what
/// kernels may call.
std::vector<bool> functions_to_settle(const ptx::Module& module, const ModuleAnalysis& analysis) {
  std::vector<bool> which(module.functions.size(), false);
  bool any = false;
  for (const EntryAnalysis& entry : analysis.entries) {
    which[entry.function] = !entry.may_fuse.empty();
    any |= which[entry.function];
  }
  for (std::size_t i = 0; any && i < which.size(); ++i) {
    const ptx::Function& function = module.functions[i];
    if (!function.is_entry && function.has_body) which[i] = true;
  }
  return which;
}

/// Notes on the kernels of a settled module what their own text says.
void note_sums(const ptx::Module& module, const ModuleAnalysis& before,
               const std::vector<bool>& open, std::vector<KernelForms>& kernels) {
  bool called_open = false;  // in a function, whoever calls it
  for (std::size_t i = 0; i < open.size(); ++i) {
    called_open |= open[i] && !module.functions[i].is_entry;
  }
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const EntryAnalysis& entry = before.entries[i];
    kernels[i].analysis.name = entry.name;
    kernels[i].analysis.may_fuse = entry.may_fuse;
    kernels[i].sums_open =
        !entry.may_fuse.empty() && (open[entry.function] || (entry.calls && called_open));
  }
}

}  // namespace

Result<ModuleAnalysis> judge(const ptx::Module& module) {
  ModuleAnalysis analysis = analyse(module);
  const auto late = make_exits_late(module, analysis);
  if (!late) return std::unexpected(late.error());
  return analysis;
}

Result<InjectedModule> inject(const ptx::Module& module, const InjectOptions& options) {
  if (!options.settle_sums) return Injector(module, options).run();
  const ModuleAnalysis before = analyse(module);
  const std::vector<bool> unsettled = functions_to_settle(module, before);
  if (std::ranges::find(unsettled, true) == unsettled.end()) return Injector(module, options).run();
  const auto settled = settle_sums(module, unsettled);
  if (!settled) return std::unexpected(settled.error());
  const auto parsed = ptx::parse(settled->ptx, ptx::ParseLimits::for_text(settled->ptx.size()));
  if (!parsed) return std::unexpected(parsed.error());
  auto injected = Injector(**parsed, options).run();
  if (!injected) return injected;
  note_sums(module, before, settled->open, injected->kernels);
  return injected;
}

}  // namespace slate::injector
