#include "daemon/dispatch/form_text.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "daemon/dispatch/float_code.h"
#include "daemon/dispatch/form_fields.h"
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
  injector::InjectOptions options{
      .profile = request.profile, .settle_sums = request.assembled, .most_registers = {}};
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
  using Kind = injector::ReachedMemory::Kind;
  const bool needs_words = memory.kind == Kind::kParameters || memory.kind == Kind::kTexture;
  return memory.kind <= Kind::kUnknown && is_name(memory.variable) &&
         !(needs_words && memory.words.empty());
}

bool is_sound(const FormText& text, const FormRequest& request) {
  const injector::KernelForms& forms = text.forms;
  const injector::EntryAnalysis& analysis = forms.analysis;
  const auto is_number = [](double value) { return std::isfinite(value) && value >= 0; };
  return forms.name == request.kernel && has_any(forms) == !text.ptx.empty() &&
         is_name(forms.worker) && is_name(forms.compact_worker) && is_name(forms.slice) &&
         is_name(forms.profile) && std::ranges::all_of(text.variables, is_name) &&
         text.ptx.find('\0') == std::string::npos && is_reason(analysis.worker.why_not) &&
         is_reason(analysis.slice.why_not) && is_reason(analysis.profile.why_not) &&
         is_reason(analysis.uncounted) && is_reason(analysis.may_fuse) &&
         std::ranges::all_of(analysis.reach.memory,
                             [](const auto& memory) { return is_sound(memory); }) &&
         std::ranges::all_of(forms.work, [&](const injector::Work& work) {
           return is_number(work.flops) && is_number(work.bytes) && is_number(work.instructions);
         });
}

}  // namespace

template <typename Archive>
void fields(Archive& archive, FormText& text) {
  archive(text.ptx, text.forms, text.variables);
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

Result<FormText> write_forms_of(const ptx::Module& kernel, const FormRequest& request) {
  auto injected = injector::inject(kernel, options_for(request));
  if (!injected) return std::unexpected(injected.error());
  if (injected->kernels.size() != 1)
    return fail(ErrorCode::kInternal, "more than the kernel was extracted");
  FormText result{.ptx = {}, .forms = std::move(injected->kernels.front()), .variables = {}};
  result.forms.analysis.name = {};
  result.forms.analysis.undefined.reset();
  if (!has_any(result.forms)) return result;
  Parsed parsed = parse_own(std::move(injected->ptx));
  if (!parsed) return std::unexpected(parsed.error());
  if (!request.has_native || !needs_own_entry(result.forms, request.native_sm)) {
    const ptx::Function* const own = (*parsed)->find_entry(result.forms.name);
    auto forms_only = ptx::apply_edits(**parsed, {ptx::remove(own->span)});
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
