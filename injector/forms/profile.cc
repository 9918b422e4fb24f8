#include "injector/forms/profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "injector/analysis/control_flow.h"
#include "injector/forms/block_index.h"
#include "injector/forms/function_copy.h"
#include "injector/forms/launch_parameters.h"
#include "injector/forms/ptx_template.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;

constexpr std::string_view kWord = "__slate_counters";  // the block's counters; 0: none
constexpr std::string_view kProfiledSuffix = "__slate_profiled";
static_assert(sizeof(ProfileParameters) <= kProfileParameterBytes);

constexpr std::string_view kRegisters = R"(
	.reg .pred ~sampled, ~counts, ~not;
	.reg .b64 ~base, ~w;
)";

// Is this block one that counts, and which set of counters does it have?
constexpr std::string_view kChoose = R"(	.reg .b32 ~u, ~q;
	mov.u32 ~u, %ctaid.z;
	mov.u32 ~q, %nctaid.y;
	mul.lo.u32 ~u, ~u, ~q;
	mov.u32 ~q, %ctaid.y;
	add.u32 ~u, ~u, ~q;
	mov.u32 ~q, %nctaid.x;
	mul.lo.u32 ~u, ~u, ~q;
	mov.u32 ~q, %ctaid.x;
	add.u32 ~u, ~u, ~q;
	mul.lo.u32 ~u, ~u, <SCATTER>;
	ld.param.u32 ~q, [<sample>];
	setp.le.u32 ~sampled, ~u, ~q;
	ld.param.u64 ~base, [<counters>];
	and.b32 ~u, ~u, <LAST_COPY>;
)";

constexpr std::string_view kPublish = R"(	mov.u32 ~u, %tid.x;
	mov.u32 ~q, %tid.y;
	or.b32 ~u, ~u, ~q;
	mov.u32 ~q, %tid.z;
	or.b32 ~u, ~u, ~q;
	setp.eq.u32 ~counts, ~u, 0;
	selp.b64 ~w, ~base, 0, ~sampled;
)";

/// One place where something is added to a counter, before an instruction.
struct Site {
  std::uint32_t instruction = 0;
  std::uint32_t counter = 0;
  const Operand* guard = nullptr;    // only if this predicate holds
  const Operand* address = nullptr;  // only if this is an address of global memory
  const Operand* amount = nullptr;   // so many, instead of 1
};

/// What is counted where in one function.
class Plan {
 public:
  /// Counters from `first` on. `starts_once`: the first block may be what counter 0 counts.
  Plan(const ptx::Function& function, std::uint32_t first, bool starts_once)
      : function_(function), first_(first) {
    const ControlFlow flow(function);
    const bool comes_back = std::ranges::any_of(flow.blocks(), [](const auto& block) {
      return std::ranges::find(block.successors, 0u) != block.successors.end();
    });
    for (std::uint32_t b = 0; b < flow.blocks().size() && work_.size() <= kMostCounters; ++b) {
      const ControlFlow::Block& block = flow.blocks()[b];
      Work work;
      holding_.clear();
      for (std::uint32_t i = block.first; i < block.end; ++i) work += add(i);
      if (b == 0 && starts_once && !comes_back) {
        start_ = work;
      } else {
        sites_.push_back({.instruction = block.first, .counter = take(work)});
      }
    }
  }

  const std::vector<Site>& sites() const { return sites_; }
  /// From the first counter on. More than kMostCounters: too many, and there are others.
  const std::vector<Work>& work() const { return work_; }
  /// Of each thread, once.
  const Work& start() const { return start_; }

 private:
  std::uint32_t take(const Work& work) {
    work_.push_back(work);
    return first_ + static_cast<std::uint32_t>(work_.size()) - 1;
  }

  /// What every thread that comes here does; the rest gets counters of its own.
  Work add(std::uint32_t index) {
    const Instruction& instruction = function_.instructions[index];
    const InstructionWork found = work_of(function_, instruction);
    const Operand* guard = instruction.guard ? &*instruction.guard : nullptr;
    Work always{.flops = 0, .bytes = 0, .instructions = found.work.instructions};
    Work guarded;
    (guard != nullptr ? guarded : always).flops = found.work.flops;
    if (found.amount != nullptr) {
      sites_.push_back({.instruction = index,
                        .counter = take({.flops = 0, .bytes = 1, .instructions = 0}),
                        .guard = guard,
                        .amount = found.amount});
    } else if (found.address != nullptr && found.space == AccessSpace::kGeneric) {
      sites_.push_back({.instruction = index,
                        .counter = take({.flops = 0, .bytes = found.work.bytes, .instructions = 0}),
                        .guard = guard,
                        .address = found.address});
    } else {
      (guard != nullptr ? guarded : always).bytes = found.work.bytes;
    }
    if (guarded.flops > 0 || guarded.bytes > 0) add_guarded(index, *guard, guarded);
    forget_changed(instruction);
    return always;
  }

  /// Instructions under one predicate share a counter as long as it stays what it is.
  void add_guarded(std::uint32_t index, const Operand& guard, const Work& work) {
    for (const Site& site : holding_) {
      if (!is_same_name(*site.guard, guard) || site.guard->negated != guard.negated) continue;
      work_[site.counter - first_] += work;
      return;
    }
    sites_.push_back({.instruction = index, .counter = take(work), .guard = &guard});
    holding_.push_back(sites_.back());
  }

  /// In an inner scope the same text may name another register.
  static bool is_same_name(const Operand& a, const Operand& b) {
    return a.text == b.text && a.reference == b.reference && a.index == b.index;
  }

  void forget_changed(const Instruction& instruction) {
    if (holding_.empty()) return;
    for_each_operand(instruction.operands, [&](const Operand& operand) {
      std::erase_if(holding_, [&](const Site& site) { return is_same_name(*site.guard, operand); });
    });
  }

  const ptx::Function& function_;
  const std::uint32_t first_;
  std::vector<Site> sites_;
  std::vector<Work> work_;
  std::vector<Site> holding_;
  Work start_;
};

/// The kernel's own names go in as they are; expand() is for ours.
std::string count_text(const Site& site) {
  std::string code;
  std::string condition = expand("~sampled");
  const auto restrict_to = [&](std::string_view predicate) {
    code += fmt::format("{}{}, {};\n", expand("\tand.pred ~counts, "), predicate, condition);
    condition = expand("~counts");
  };
  if (site.address != nullptr) {
    code += fmt::format("{}{};\n", expand("\tisspacep.global ~counts, "), site.address->text);
    restrict_to(expand("~counts"));
  }
  if (site.guard != nullptr && site.guard->negated) {
    code += fmt::format("{}{};\n", expand("\tnot.pred ~not, "), site.guard->text);
    restrict_to(expand("~not"));
  } else if (site.guard != nullptr) {
    restrict_to(site.guard->text);
  }
  std::string amount = "1";
  if (site.amount != nullptr) {
    code += fmt::format("{}{};\n", expand("\tcvt.u64.u32 ~w, "), site.amount->text);
    amount = expand("~w");
  }
  return code + fmt::format("\t@{} red.global.add.u64 [{}+{}], {};\n", condition, expand("~base"),
                            site.counter * sizeof(std::uint64_t), amount);
}

void write_sites(const ptx::Function& function, const Plan& plan, FunctionCopy& copy) {
  for (const Site& site : plan.sites()) {
    copy.insert(function.instructions[site.instruction].span.begin, "\n" + count_text(site) + "\t");
  }
}

std::vector<bool> reached_functions(const ptx::Module& module, const ModuleAnalysis& analysis) {
  std::vector<bool> reached(module.functions.size(), false);
  std::vector<std::uint32_t> waiting;
  for (const EntryAnalysis& entry : analysis.entries) {
    if (entry.profile.legal()) waiting.push_back(entry.function);
  }
  while (!waiting.empty()) {
    const std::uint32_t caller = waiting.back();
    waiting.pop_back();
    for (const std::uint32_t callee : analysis.functions[caller].callees) {
      const ptx::Function& function = module.functions[callee];
      if (reached[callee] || function.is_entry || !function.has_body) continue;
      reached[callee] = true;
      waiting.push_back(callee);
    }
  }
  return reached;
}

/// Everything before the sites, in an entry.
std::string prologue(std::uint32_t counters, bool calls) {
  std::string code(kRegisters);
  code += kChoose;
  code += fmt::format("\tmad.wide.u32 ~base, ~u, {}, ~base;\n", counters * sizeof(std::uint64_t));
  if (calls) {
    code += kPublish;
    code += fmt::format("\t@~counts st.shared.u64 [{}], ~w;\n\tbar.sync 0;\n", kWord);
  }
  code += "\t@~sampled red.global.add.u64 [~base], 1;\n";
  return expand(code);
}

}  // namespace

Result<CountedFunctions> count_functions(const ptx::Module& module,
                                         const ModuleAnalysis& analysis) {
  CountedFunctions result{
      .copied = reached_functions(module, analysis), .text = {}, .work = {Work{}}};
  if (std::ranges::find(result.copied, true) == result.copied.end()) return result;
  std::string declarations;
  std::string bodies;
  for (std::size_t i = 0; i < result.copied.size(); ++i) {
    if (!result.copied[i]) continue;
    const ptx::Function& function = module.functions[i];
    const Plan plan(function, static_cast<std::uint32_t>(result.work.size()), false);
    result.work.insert(result.work.end(), plan.work().begin(), plan.work().end());
    if (result.work.size() > kMostCounters / 2) {
      result.copied.assign(result.copied.size(), false);
      result.work.resize(1);
      return result;
    }
    FunctionCopy copy(module, function, fmt::format("{}{}", function.name, kProfiledSuffix));
    redirect_calls(module, function, result.copied, copy, kProfiledSuffix);
    copy.prepend(expand(std::string(kRegisters) + fmt::format("\tld.shared.u64 ~base, [{}];\n"
                                                              "\tsetp.ne.u64 ~sampled, ~base, 0;\n",
                                                              kWord)));
    write_sites(function, plan, copy);
    // Ahead of all bodies, as functions may call one another in circles.
    const auto declaration = copy.declaration();
    if (!declaration) return std::unexpected(declaration.error());
    declarations += *declaration;
    auto text = std::move(copy).text();
    if (!text) return std::unexpected(text.error());
    bodies += "\n" + *text + "\n";
  }
  result.text = fmt::format("\n.shared .align 8 .b8 {}[8];\n{}{}", kWord, declarations, bodies);
  return result;
}

Result<std::optional<ProfileForm>> profile_form(const ptx::Module& module,
                                                const EntryAnalysis& entry,
                                                const CountedFunctions& functions,
                                                std::string_view name) {
  const ptx::Function& function = module.functions[entry.function];
  const Plan plan(function, static_cast<std::uint32_t>(functions.work.size()), true);
  ProfileForm form{.text = {}, .work = functions.work};
  form.work.front() += plan.start();
  form.work.insert(form.work.end(), plan.work().begin(), plan.work().end());
  if (form.work.size() > kMostCounters) return std::nullopt;
  FunctionCopy copy(module, function, name);
  copy.add_parameter(
      fmt::format(".param .align 8 .b8 {}[{}]", kParameterName, sizeof(ProfileParameters)));
  const bool calls = entry.calls && !functions.text.empty();
  copy.prepend(prologue(static_cast<std::uint32_t>(form.work.size()), calls));
  redirect_calls(module, function, functions.copied, copy, kProfiledSuffix);
  write_sites(function, plan, copy);
  auto text = std::move(copy).text();
  if (!text) return std::unexpected(text.error());
  form.text = std::move(*text);
  return form;
}

std::uint64_t counter_bytes(std::span<const Work> work) {
  return std::uint64_t{kProfileCopies} * work.size() * sizeof(std::uint64_t);
}

std::optional<Work> launch_work(std::span<const Work> work, std::span<const std::uint64_t> counters,
                                double threads) {
  Work sum;
  double counted = 0;
  for (std::size_t i = 0; i < counters.size(); ++i) {
    const auto count = static_cast<double>(counters[i]);
    if (i % work.size() == 0) counted += count;
    sum += work[i % work.size()] * count;
  }
  if (counted == 0) return std::nullopt;
  return sum * (threads / counted);
}

}  // namespace slate::injector
