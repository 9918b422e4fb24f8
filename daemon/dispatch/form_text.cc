#include "daemon/dispatch/form_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "daemon/dispatch/float_code.h"
#include "daemon/dispatch/form_fields.h"
#include "injector/fence/fence.h"
#include "injector/forms/extract.h"
#include "injector/forms/placed_variables.h"
#include "injector/ptx/printer.h"

namespace slate::daemon {
namespace {

using Parsed = Result<std::unique_ptr<const ptx::Module>>;

Parsed parse_own(std::string text) {
  const auto limits = ptx::ParseLimits::for_text(text.size());
  return ptx::parse(std::move(text), limits);
}

injector::InjectOptions options_for(const FormRequest& request) {
  // What the program's machine code has decided is not left to the assembler again.
  const bool forms = request.fence != Fencing::kKernel;
  injector::InjectOptions options{.worker = forms,
                                  .slice = forms,
                                  .profile = forms && request.profile,
                                  .settle_sums = request.assembled,
                                  .most_registers = {}};
  if (request.most_registers != 0)
    options.most_registers[request.kernel] = {.most = request.most_registers, .lean = request.lean};
  return options;
}

/// A name of PTX, as long as there may be.
bool is_name(const std::string& name) {
  constexpr std::size_t kMostNameBytes = 64 << 10;
  return name.size() <= kMostNameBytes && std::ranges::all_of(name, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                  c == '_' || c == '$' || c == '%';
         });
}

/// A reason, for the log and for people.
bool is_reason(const std::string& text) {
  constexpr std::size_t kMostReasonBytes = 64 << 10;
  return text.size() <= kMostReasonBytes &&
         std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < ' '; });
}

bool is_sound(const injector::ReachedMemory& memory) {
  using Reached = injector::ReachedMemory::Kind;
  const bool needs_words = memory.kind == Reached::kParameters || memory.kind == Reached::kTexture;
  return memory.kind <= Reached::kUnknown && is_name(memory.variable) &&
         !(needs_words && memory.words.empty());
}

bool is_sound(const injector::PassedLimits& passed) {
  constexpr std::size_t kMostBytes = injector::PassedLimits::kMostBytes;
  return passed.at <= kMostBytes && passed.limits.size() <= kMostBytes / sizeof(std::uint32_t) &&
         std::ranges::all_of(passed.limits, [&](const injector::PassedLimit& limit) {
           return limit.least_of.size() <= passed.limits.size();
         });
}

bool is_sound(const FormText& text, const FormRequest& request) {
  const injector::KernelForms& forms = text.forms;
  const injector::EntryAnalysis& analysis = forms.analysis;
  constexpr std::size_t kMostBounds = 64 << 10;
  const auto is_number = [](double value) { return std::isfinite(value) && value >= 0; };
  const bool has_text =
      request.fence == Fencing::kKernel ? text.why_unfenced.empty() : has_any(forms);
  return forms.name == request.kernel && has_text == !text.ptx.empty() &&
         is_reason(text.why_unfenced) && std::ranges::all_of(text.functions, is_name) &&
         text.unfenced.find('\0') == std::string::npos && is_name(forms.worker) &&
         is_name(forms.compact_worker) && is_name(forms.slice) && is_name(forms.profile) &&
         std::ranges::all_of(text.variables, is_name) && text.ptx.find('\0') == std::string::npos &&
         is_reason(analysis.worker.why_not) && is_reason(analysis.slice.why_not) &&
         is_reason(analysis.profile.why_not) && is_reason(analysis.uncounted) &&
         is_reason(analysis.may_fuse) &&
         std::ranges::all_of(analysis.reach.memory,
                             [](const auto& memory) { return is_sound(memory); }) &&
         text.bounds.steps.size() <= kMostBounds && text.bounds.claims.size() <= kMostBounds &&
         is_sound(text.bounds.passed) &&
         std::ranges::all_of(text.bounds.constants,
                             [&](std::uint32_t row) { return row < text.variables.size(); }) &&
         std::ranges::all_of(forms.work, [&](const injector::Work& work) {
           return is_number(work.flops) && is_number(work.bytes) && is_number(work.instructions);
         });
}

}  // namespace

template <typename Archive>
void fields(Archive& archive, FormText& text) {
  archive(text.ptx, text.forms, text.variables, text.why_unfenced, text.functions, text.bounds,
          text.unfenced);
}

bool has_any(const injector::KernelForms& forms) {
  return !forms.worker.empty() || !forms.slice.empty() || !forms.profile.empty();
}

Result<std::unique_ptr<const ptx::Module>> extract(const ptx::Module& module,
                                                   const std::string& kernel) {
  auto extracted = injector::extract_kernel(module, kernel);
  if (!extracted) return std::unexpected(extracted.error());
  return parse_own(std::move(*extracted));
}

Result<FormText> write_forms(const ptx::Module& module, const FormRequest& request) {
  const Parsed kernel = extract(module, request.kernel);
  if (!kernel) return std::unexpected(kernel.error());
  return write_forms_of(**kernel, request);
}

namespace {

/// What lies outside of a text whose variables were put into a table.
std::vector<injector::TabledVariable> rows_of(const ptx::Module& module,
                                              const std::vector<std::string>& names) {
  std::vector<injector::TabledVariable> rows;
  for (const std::string& name : names) {
    const ptx::Variable& variable = *module.find_variable(name);
    rows.push_back({.bytes = variable.bytes,
                    .align = variable.align,
                    .is_constant = variable.space == ptx::Space::kConst});
  }
  return rows;
}

/// The text of the kernel alone, as its forms were made of it.
Result<std::string> unfenced_text(const ptx::Module& kernel, const FormRequest& request) {
  auto settled = injector::inject(
      kernel,
      {.worker = false, .slice = false, .settle_sums = request.assembled, .most_registers = {}});
  if (!settled) return std::unexpected(settled.error());
  const Parsed parsed = parse_own(std::move(settled->ptx));
  if (!parsed) return std::unexpected(parsed.error());
  std::vector<std::string> names;
  return injector::tabulate_variables(**parsed, names);
}

/// Forgets the forms that cannot be fenced.
void drop_unfenced(const std::vector<injector::FenceVerdict>& verdicts,
                   injector::KernelForms& forms) {
  injector::EntryAnalysis& analysis = forms.analysis;
  for (const auto& [name, verdict] :
       {std::pair(&forms.worker, &analysis.worker),
        std::pair(&forms.compact_worker, static_cast<injector::Verdict*>(nullptr)),
        std::pair(&forms.slice, &analysis.slice), std::pair(&forms.profile, &analysis.profile)}) {
    const auto found = std::ranges::find(verdicts, *name, &injector::FenceVerdict::name);
    if (name->empty() || (found != verdicts.end() && found->legal())) continue;
    name->clear();
    if (verdict != nullptr) verdict->why_not = "cannot be fenced: " + found->why_not;
  }
  if (forms.worker.empty()) forms.compact_worker.clear();
}

/// The module without the kernel itself: its forms stay.
Result<std::string> without_kernel(const ptx::Module& module, const std::string& kernel) {
  return ptx::apply_edits(module, {ptx::remove(module.find_entry(kernel)->span)});
}

/// With a limit for the kernel itself.
Result<std::string> limited(const ptx::Module& module, const FormRequest& request) {
  if (request.native_registers == 0) return module.text;
  const ptx::Function& kernel = *module.find_entry(request.kernel);
  const std::string limit = fmt::format(".maxnreg {}", request.native_registers);
  const auto* const present = kernel.directive("maxnreg");
  return ptx::apply_edits(module,
                          {present != nullptr ? ptx::replace(present->span, limit)
                                              : ptx::insert_at(kernel.body.begin, limit + "\n")});
}

/// The kernel itself as it is to be fenced: with its limit, and its bounded copy.
Result<std::string> with_copy(const ptx::Module& module, const FormRequest& request) {
  auto text = limited(module, request);
  if (!text) return text;
  const Parsed parsed = parse_own(std::move(*text));
  if (!parsed) return std::unexpected(parsed.error());
  return injector::with_bounded_copy(**parsed, request.kernel);
}

/// Puts the fence around `text`, the module of a kernel or of its forms without its variables.
Result<void> fence_text(std::string text, std::vector<injector::TabledVariable> tabled,
                        const FormRequest& request, FormText& result) {
  const Parsed parsed = parse_own(std::move(text));
  if (!parsed) return std::unexpected(parsed.error());
  const FirstLaunch& first = request.launch;
  injector::LaunchValues launch{.parameters = first.parameters,
                                .shared_bytes = first.shared_bytes,
                                .low = first.low,
                                .bytes = first.bytes};
  std::ranges::copy(first.grid, launch.grid);
  std::ranges::copy(first.block, launch.block);
  auto fenced = injector::fence(**parsed, {.names = injector::OwnNames::kExpected,
                                           .reserved_shared = request.reserved_shared,
                                           .tabled = std::move(tabled),
                                           .launch = first.is_known ? &launch : nullptr});
  if (!fenced) return std::unexpected(fenced.error());
  result.functions = std::move(fenced->functions);
  if (request.fence == Fencing::kForms) {
    drop_unfenced(fenced->entries, result.forms);
    if (has_any(result.forms)) result.ptx = std::move(fenced->ptx);
    return {};
  }
  const auto kernel =
      std::ranges::find(fenced->entries, request.kernel, &injector::FenceVerdict::name);
  if (kernel == fenced->entries.end()) return fail(ErrorCode::kNotSupported, "it has no body");
  if (!kernel->legal()) return fail(ErrorCode::kNotSupported, kernel->why_not);
  result.ptx = std::move(fenced->ptx);
  const auto copy = std::ranges::find(fenced->entries, request.kernel + injector::kBoundedSuffix,
                                      &injector::FenceVerdict::name);
  if (copy != fenced->entries.end() && copy->legal()) result.bounds = std::move(copy->bounds);
  return {};
}

/// The text of what `injected` has behind the fence. kNotSupported: it cannot be fenced.
Result<void> write_fenced(const ptx::Module& kernel, const ptx::Module& injected,
                          const FormRequest& request, FormText& result) {
  if (kernel.text.contains(injector::kReservedPrefix)) {
    return fail(ErrorCode::kNotSupported,
                fmt::format("has names that begin with {}", injector::kReservedPrefix));
  }
  auto wanted = request.fence == Fencing::kForms ? without_kernel(injected, request.kernel)
                                                 : with_copy(injected, request);
  if (!wanted) return std::unexpected(wanted.error());
  const Parsed parsed = parse_own(std::move(*wanted));
  if (!parsed) return std::unexpected(parsed.error());
  auto text = injector::tabulate_variables(**parsed, result.variables);
  if (!text) return std::unexpected(text.error());
  if (request.has_native && needs_own_entry(result.forms, request.native_sm)) {
    auto unfenced = unfenced_text(kernel, request);
    if (!unfenced) return std::unexpected(unfenced.error());
    result.unfenced = std::move(*unfenced);
  }
  return fence_text(std::move(*text), rows_of(**parsed, result.variables), request, result);
}

/// As write_fenced(), with the reason in the result where it cannot be fenced.
Result<void> try_fence(const ptx::Module& kernel, const ptx::Module& injected,
                       const FormRequest& request, FormText& result) {
  auto done = write_fenced(kernel, injected, request, result);
  if (done || done.error().code != ErrorCode::kNotSupported) return done;
  result.why_unfenced = "cannot be fenced: " + done.error().message;
  injector::KernelForms& forms = result.forms;
  for (std::string* const name :
       {&forms.worker, &forms.compact_worker, &forms.slice, &forms.profile})
    name->clear();
  for (injector::Verdict* const verdict :
       {&forms.analysis.worker, &forms.analysis.slice, &forms.analysis.profile}) {
    if (verdict->legal()) verdict->why_not = result.why_unfenced;
  }
  return {};
}

}  // namespace

Result<FormText> write_forms_of(const ptx::Module& kernel, const FormRequest& request) {
  auto injected = injector::inject(kernel, options_for(request));
  if (!injected) return std::unexpected(injected.error());
  if (injected->kernels.size() != 1)
    return fail(ErrorCode::kInternal, "more than the kernel was extracted");
  FormText result;
  result.forms = std::move(injected->kernels.front());
  result.forms.analysis.name = {};
  result.forms.analysis.undefined.reset();
  if (request.fence != Fencing::kKernel && !has_any(result.forms)) return result;
  Parsed parsed = parse_own(std::move(injected->ptx));
  if (!parsed) return std::unexpected(parsed.error());
  if (request.fence != Fencing::kNone) {
    if (const auto done = try_fence(kernel, **parsed, request, result); !done)
      return std::unexpected(done.error());
    return result;
  }
  if (!request.has_native || !needs_own_entry(result.forms, request.native_sm)) {
    auto forms_only = without_kernel(**parsed, result.forms.name);
    if (!forms_only) return std::unexpected(forms_only.error());
    parsed = parse_own(std::move(*forms_only));
    if (!parsed) return std::unexpected(parsed.error());
  }
  auto text = injector::tabulate_variables(**parsed, result.variables);
  if (!text) return std::unexpected(text.error());
  result.ptx = std::move(*text);
  return result;
}

std::vector<std::byte> pack(const FormText& text) {
  FieldWriter writer;
  writer(text);
  return writer.take();
}

Result<FormText> unpack_form_text(std::span<const std::byte> bytes, const FormRequest& request) {
  FormText text;
  FieldReader reader(bytes);
  reader(text);
  if (const auto done = reader.finish(); !done) return std::unexpected(done.error());
  if (!is_sound(text, request))
    return fail(ErrorCode::kInvalidValue, "forms that are not those of " + request.kernel);
  return text;
}

}  // namespace slate::daemon
