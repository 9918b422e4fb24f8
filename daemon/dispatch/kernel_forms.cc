#include "daemon/dispatch/kernel_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <optional>

#include "daemon/dispatch/cubin.h"
#include "daemon/dispatch/device_dispatch.h"
#include "daemon/dispatch/float_code.h"
#include "injector/forms/placed_variables.h"

namespace slate::daemon {
namespace {

/// With so many, an SM's registers suffice for all the threads that it can hold.
constexpr std::uint32_t kFreeRegisters = 32;
constexpr std::uint32_t kRegisterUnit = 8;  // hardware gives them out in eights
constexpr int kMostAttempts = 2;            // with a limit, and lean with a limit

using Clock = std::chrono::steady_clock;

/// The most that any of these kernels needs; empty names are none.
std::optional<CodeNeeds> most_needs(std::span<const std::byte> code,
                                    std::initializer_list<std::string_view> kernels) {
  CodeNeeds most;
  for (const std::string_view kernel : kernels) {
    if (kernel.empty()) continue;
    const auto needs = needs_of(code, kernel);
    if (!needs) return std::nullopt;
    most.registers = std::max(most.registers, needs->registers);
    most.stack_bytes = std::max(most.stack_bytes, needs->stack_bytes);
  }
  return most;
}

std::uint32_t rounded(std::uint32_t registers) {
  return (registers + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
}

/// The largest block of threads with so many registers each.
std::uint32_t most_threads(std::uint32_t registers) {
  constexpr std::uint32_t kRegistersOfBlock = 65536, kMostThreads = 1024, kWarpThreads = 32;
  const std::uint32_t fitting = kRegistersOfBlock / std::max(rounded(registers), kRegisterUnit);
  return std::min(kMostThreads, fitting / kWarpThreads * kWarpThreads);
}

/// A tighter limit for the worker form, if it needs one.
std::optional<injector::RegisterLimit> tighten(const injector::KernelForms& forms,
                                               const CodeNeeds& native,
                                               std::span<const std::byte> code,
                                               const std::optional<injector::RegisterLimit>& now) {
  if (forms.worker.empty()) return std::nullopt;
  const auto worker = most_needs(code, {forms.worker, forms.compact_worker});
  if (!worker) return std::nullopt;
  if (!now) {
    const std::uint32_t most = std::max(kFreeRegisters, rounded(native.registers));
    if (worker->registers <= most) return std::nullopt;
    return injector::RegisterLimit{.most = most, .lean = false};
  }
  if (now->lean || worker->stack_bytes <= native.stack_bytes) return std::nullopt;
  return injector::RegisterLimit{.most = now->most, .lean = true};
}

/// Reasons in the kernel or its text, which will be the same next time.
bool is_about_code(ErrorCode code) {
  return code == ErrorCode::kInvalidPtx || code == ErrorCode::kNotSupported ||
         code == ErrorCode::kInternal || code == ErrorCode::kSymbolNotFound ||
         code == ErrorCode::kInvalidValue || code == ErrorCode::kLimit;
}

std::string reason_of(const injector::KernelForms& forms) {
  return forms.analysis.worker.why_not.empty() ? forms.analysis.slice.why_not
                                               : forms.analysis.worker.why_not;
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class Maker {
 public:
  Maker(const FormWriter& write, const FormOrder& order, const FormCompiler& compile)
      : write_(write), order_(order), compile_(compile) {}

  Result<void> run() {
    FormRequest request{.kernel = order_.kernel,
                        .profile = order_.profile,
                        .assembled = compile_ != nullptr,
                        .has_native = !order_.native.empty(),
                        .native_sm = architecture_of(order_.native),
                        .fence = order_.fence,
                        .reserved_shared = order_.reserved_shared,
                        .launch = order_.launch};
    if (const auto done = attempt(request); !done) return done;
    return fit(request);
  }

  MadeForms& made() { return made_; }

 private:
  /// Makes the forms; keeps what was there if that fails.
  Result<void> attempt(const FormRequest& request) {
    auto text = write_(request);
    if (!text) return std::unexpected(text.error());
    if (text->ptx.empty()) {
      made_.why_none =
          order_.fence == Fencing::kKernel ? std::move(text->why_unfenced) : reason_of(text->forms);
      made_.forms = std::move(text->forms);
      return {};
    }
    auto code = code_of(*text);
    if (!code) return std::unexpected(code.error());
    made_.kind = compile_ ? device::ImageKind::kCubin : device::ImageKind::kPtx;
    std::string why_none;
    if (compile_ && !order_.native.empty()) {
      const auto compared = compare(*text, *code);
      if (!compared) return std::unexpected(compared.error());
      why_none = *compared;
    }
    if (order_.fence != Fencing::kKernel && !has_any(text->forms))
      why_none = reason_of(text->forms);
    made_.why_none = std::move(why_none);
    made_.code = std::move(*code);
    made_.forms = std::move(text->forms);
    made_.variables = std::move(text->variables);
    made_.functions = std::move(text->functions);
    made_.bounds = std::move(text->bounds);
    return {};
  }

  /// Leaves the forms that compute the bits of the program's own machine code. Returns why even the
  /// fenced kernel itself does not.
  Result<std::string> compare(FormText& text, std::span<const std::byte> code) const {
    std::vector<std::byte> own;
    if (!text.unfenced.empty()) {
      auto compiled = compile_(text.unfenced);
      if (!compiled) return std::unexpected(compiled.error());
      own = std::move(*compiled);
    }
    const std::span<const std::byte> settled =
        order_.fence != Fencing::kNone ? std::span<const std::byte>(own) : code;
    drop_other_bits(text.forms, settled, code);
    const std::string copy = order_.kernel + injector::kBoundedSuffix;
    if (!text.bounds.claims.empty() &&
        !why_bits_may_differ(text.forms, copy, order_.native, settled, code).empty()) {
      text.bounds = {};
    }
    return order_.fence == Fencing::kKernel
               ? why_bits_may_differ(text.forms, order_.kernel, order_.native, settled, code)
               : std::string();
  }

  /// With dispatch kernels where they are wanted and can be had: the host can start workers, too.
  Result<std::vector<std::byte>> code_of(const FormText& text) const {
    if (!compile_) return bytes_of(text.ptx);
    if (order_.link && !text.forms.worker.empty()) {
      std::vector<std::string> texts = {text.ptx, dispatch_text(text.forms.worker)};
      if (!text.forms.compact_worker.empty())
        texts.push_back(dispatch_text(text.forms.compact_worker));
      auto linked = order_.link(texts);
      if (linked || !is_about_code(linked.error().code)) return linked;
    }
    return compile_(text.ptx);
  }

  void drop_other_bits(injector::KernelForms& forms, std::span<const std::byte> own,
                       std::span<const std::byte> code) const {
    injector::EntryAnalysis& analysis = forms.analysis;
    for (const auto& [name, verdict] :
         {std::pair(&forms.worker, &analysis.worker),
          std::pair(&forms.compact_worker, &analysis.worker),
          std::pair(&forms.slice, &analysis.slice), std::pair(&forms.profile, &analysis.profile)}) {
      if (name->empty()) continue;
      std::string why = why_bits_may_differ(forms, *name, order_.native, own, code);
      if (why.empty()) continue;
      name->clear();
      verdict->why_not = std::move(why);
    }
    if (forms.worker.empty()) forms.compact_worker.clear();
  }

  /// Code that cannot do with so few registers stays as it is: then fewer workers fit.
  Result<void> fit(FormRequest request) {
    const auto native = needs_of(order_.native, order_.kernel);
    if (!compile_ || !native) return {};
    std::optional<injector::RegisterLimit> limit;
    for (int i = 0; i < kMostAttempts && made_.why_none.empty(); ++i) {
      const bool own = limits_own(*native, request);
      const auto tighter = tighten(made_.forms, *native, made_.code, limit);
      if (!own && !tighter) break;
      if (tighter) {
        limit = tighter;
        request.most_registers = limit->most;
        request.lean = limit->lean;
      }
      if (const auto done = attempt(request); !done) break;
    }
    return {};
  }

  /// Whether the fenced kernel itself is to be made again with a limit: it has to run in every
  /// block that it can run in without a fence. A limit for the sake of speed gained nothing
  /// (stencil3d, 40 registers in place of 46, on an H200).
  bool limits_own(const CodeNeeds& native, FormRequest& request) const {
    if (order_.fence != Fencing::kKernel || request.native_registers != 0) return false;
    const std::string copy =
        made_.bounds.claims.empty() ? "" : order_.kernel + injector::kBoundedSuffix;
    const auto needs = most_needs(made_.code, {order_.kernel, copy});
    if (!needs || most_threads(needs->registers) >= most_threads(native.registers)) return false;
    std::uint32_t most = rounded(native.registers);
    while (most_threads(most + kRegisterUnit) >= most_threads(native.registers))
      most += kRegisterUnit;
    request.native_registers = most;
    return true;
  }

  const FormWriter& write_;
  const FormOrder& order_;
  const FormCompiler& compile_;
  MadeForms made_;
};

}  // namespace

MadeForms without_forms(const std::string& kernel, const std::string& why) {
  MadeForms made;
  made.forms.name = kernel;
  injector::EntryAnalysis& analysis = made.forms.analysis;
  analysis.worker.why_not = analysis.slice.why_not = analysis.profile.why_not = why;
  made.why_none = why;
  return made;
}

Result<MadeForms> make_forms(const FormWriter& write, const FormOrder& order,
                             const FormCompiler& compile) {
  const auto begin = Clock::now();
  Maker maker(write, order, compile);
  const auto done = maker.run();
  if (!done && !is_about_code(done.error().code)) return std::unexpected(done.error());
  MadeForms made =
      done ? std::move(maker.made()) : without_forms(order.kernel, done.error().message);
  if (!made.why_none.empty()) made.code.clear();
  made.cost_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  return made;
}

std::string describe(const MadeForms& made) {
  if (!made.why_none.empty()) return "none: " + made.why_none;
  std::string names;
  for (const auto& [form, name] :
       {std::pair("worker", &made.forms.worker), std::pair("slice", &made.forms.slice),
        std::pair("profile", &made.forms.profile)}) {
    if (!name->empty()) names += fmt::format("{}{}", names.empty() ? "" : ", ", form);
  }
  return fmt::format("{}, made in {:.0f} ms, {} bytes of code", names, made.cost_ms,
                     made.code.size());
}

Result<std::vector<std::byte>> code_with_addresses(const MadeForms& made,
                                                   std::span<const device::Address> addresses) {
  std::vector<std::byte> code = made.code;
  if (made.variables.empty()) return code;
  const auto bytes = std::as_bytes(addresses);
  if (made.kind == device::ImageKind::kCubin) {
    const auto table = contents_of(code, injector::kVariableTable);
    if (table.size() != bytes.size())
      return fail(ErrorCode::kInternal, "the forms' code has no table for its variables");
    std::ranges::copy(bytes, table.begin());
    return code;
  }
  const std::string_view text(reinterpret_cast<const char*>(code.data()), code.size());
  const std::string declared = fmt::format("{}[{}]", injector::kVariableTable, addresses.size());
  const std::size_t at = text.find(declared);
  if (at == text.npos)
    return fail(ErrorCode::kInternal, "the forms' text has no table for its variables");
  std::string filled(text);
  filled.insert(at + declared.size(), fmt::format(" = {{{:#x}}}", fmt::join(addresses, ", ")));
  return bytes_of(filled);
}

}  // namespace slate::daemon
