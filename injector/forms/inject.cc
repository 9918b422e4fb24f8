#include "injector/forms/inject.h"

#include <fmt/format.h>

#include "injector/forms/block_index.h"
#include "injector/forms/profile.h"
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

}  // namespace

Result<InjectedModule> inject(const ptx::Module& module, const InjectOptions& options) {
  ModuleAnalysis analysis = analyse(module);
  const std::vector<bool> copied = functions_to_copy(module, analysis);
  auto counted = options.profile ? count_functions(module, analysis)
                                 : Result<CountedFunctions>(CountedFunctions{});
  if (!counted) return std::unexpected(counted.error());
  InjectedModule result;
  std::string added;
  bool needs_functions = false;
  for (EntryAnalysis& entry : analysis.entries) {
    KernelForms forms;
    forms.name = entry.name;
    if (options.worker && entry.worker.legal()) {
      forms.worker = form_entry(forms, Form::kWorker);
      const auto registers = options.most_registers.find(entry.name);
      const EntryOptions entry_options{
          .most_registers = registers == options.most_registers.end() ? 0 : registers->second};
      const auto text = worker_form(module, entry, copied, forms.worker, entry_options);
      if (!text) return std::unexpected(text.error());
      added.append("\n").append(*text).append("\n");
    }
    if (options.slice && entry.slice.legal()) {
      forms.slice = form_entry(forms, Form::kSlice);
      const auto text = slice_form(module, entry, copied, forms.slice);
      if (!text) return std::unexpected(text.error());
      added.append("\n").append(*text).append("\n");
    }
    if (options.profile) {
      const auto done = add_profile(module, entry, *counted, forms, added);
      if (!done) return std::unexpected(done.error());
    }
    needs_functions |= entry.functions_read_block_index && !(forms.worker + forms.slice).empty();
    forms.analysis = std::move(entry);
    result.kernels.push_back(std::move(forms));
  }
  result.ptx = module.text;
  while (result.ptx.ends_with('\0')) result.ptx.pop_back();
  if (needs_functions) {
    const auto functions = copy_functions(module, copied);
    if (!functions) return std::unexpected(functions.error());
    result.ptx += *functions;
  }
  result.ptx += counted->text;
  result.ptx += added;
  return result;
}

}  // namespace slate::injector
