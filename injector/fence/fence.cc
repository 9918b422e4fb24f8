#include "injector/fence/fence.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "injector/analysis/components.h"
#include "injector/fence/barriers.h"
#include "injector/fence/check_text.h"
#include "injector/fence/clearing.h"
#include "injector/fence/ending.h"
#include "injector/fence/fence_table.h"
#include "injector/fence/own_constants.h"
#include "injector/fence/shuffles.h"
#include "injector/fence/whole_warps.h"
#include "injector/forms/ptx_template.h"
#include "injector/ptx/printer.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Reference;

constexpr std::uint32_t kOldestSm = 70;
constexpr std::uint64_t kMostConstantBytes = 64 << 10;
/// Sites of a function that each have an ending of their own. It takes the assembler as long as two
/// checks. Bounded copies, which most launches run, have it always.
constexpr std::size_t kMostEndings = 8;

bool is_own_shared(const ptx::Variable& variable) {
  return variable.space == ptx::Space::kShared && variable.name.starts_with(kReservedPrefix) &&
         variable.name != kCopies;
}

std::size_t local_variables(const ptx::Function& function) {
  return static_cast<std::size_t>(
      std::ranges::count(function.variables, ptx::Space::kLocal, &ptx::Variable::space));
}

class Fencer {
 public:
  Fencer(const ptx::Module& module, const FenceOptions& options)
      : module_(module),
        options_(options),
        plan_options_{.names = options.names, .tabled = options.tabled, .launch = options.launch},
        called_(module.functions.size(), false),
        own_(module.functions.size()) {}

  Result<void> judge() {
    if (module_.address_size != 64) return refuse("has 32-bit addresses");
    if (module_.sm < kOldestSm) return refuse("is written for a target before sm_70");
    const bool has_names = module_.text.find(kReservedPrefix) != std::string::npos;
    if (options_.names == OwnNames::kRefused && has_names)
      return refuse(fmt::format("has names that begin with {}", kReservedPrefix));
    if (const std::string pragma = odd_pragma(); !pragma.empty())
      return refuse(fmt::format("has the pragma {}", pragma));
    if (constant_bytes() > kMostConstantBytes) return refuse("leaves no room among the constants");
    find_calls();
    for (const ptx::Function& function : module_.functions) {
      plan_options_.is_bounded = is_bounded(function);
      plans_.push_back(function.has_body
                           ? std::make_unique<Plan>(make_plan(module_, function, plan_options_))
                           : nullptr);
      Clearing& clearing = clearings_.emplace_back();
      if (!function.has_body) continue;
      clearing = clearing_for(function, *plans_.back());
      if (plans_.back()->why_not.empty()) plans_.back()->why_not = clearing.why_not;
      if (plans_.back()->why_not.empty()) plans_.back()->why_not = hidden_name(function);
    }
    for (std::uint32_t i = 0; i < module_.functions.size(); ++i) {
      const ptx::Function& function = module_.functions[i];
      if (function.is_entry && function.has_body) judge(i);
    }
    return {};
  }

  std::vector<FenceVerdict> take_verdicts() { return std::move(verdicts_); }

  Result<FencedModule> write() {
    for (std::uint32_t i = 0; i < module_.functions.size(); ++i) {
      const ptx::Function& function = module_.functions[i];
      result_.functions.emplace_back(function.name);
      if (!function.has_body) continue;
      if (is_bounded(function) && !is_legal(function.name)) {
        edits_.push_back(ptx::remove(function.span));
      } else if (function.is_entry && !is_legal(function.name)) {
        edits_.push_back(ptx::replace(function.body, "{\n\tret;\n}"));
      } else if (function.is_entry || called_[i]) {
        write(i);
      }
    }
    declare();
    auto text = ptx::apply_edits(module_, std::move(edits_));
    if (!text) return std::unexpected(text.error());
    while (text->ends_with('\0')) text->pop_back();
    result_.ptx = std::move(*text);
    result_.entries = std::move(verdicts_);
    return std::move(result_);
  }

 private:
  /// Why not, if a name that checks may use can mean something else in the function: a declaration
  /// in it hides one outside, or one of several with memory.
  std::string hidden_name(const ptx::Function& function) const {
    std::set<std::string_view> outer;
    for (const ptx::Variable& variable : module_.variables) outer.insert(variable.name);
    for (const ptx::Variable& variable : function.parameters) outer.insert(variable.name);
    for (const ptx::Variable& variable : function.returns) outer.insert(variable.name);
    std::map<std::string_view, bool> inner;  // names, and whether they have memory
    for (const ptx::Variable& variable : function.variables) {
      const bool has_memory =
          variable.space != ptx::Space::kReg && variable.space != ptx::Space::kParam;
      const auto [known, is_new] = inner.try_emplace(variable.name, has_memory);
      const bool is_hidden =
          outer.contains(variable.name) || (!is_new && has_memory) || (!is_new && known->second);
      if (is_hidden) return fmt::format("declares the name {} twice", variable.name);
    }
    return {};
  }

  Result<void> refuse(std::string why) const {
    return fail(ErrorCode::kNotSupported, fmt::format("cannot be fenced: {}", why));
  }

  /// With ours; as if none needed padding but for its alignment.
  std::uint64_t constant_bytes() const {
    std::uint64_t bytes = sizeof(FenceConstants) + 16;
    for (const ptx::Variable& variable : module_.variables) {
      if (variable.space == ptx::Space::kConst) bytes += variable.bytes + variable.align - 1;
    }
    return bytes;
  }

  /// A pragma that may change where the assembler keeps registers.
  std::string odd_pragma() const {
    constexpr std::string_view kPragma = ".pragma";
    const std::string_view text = module_.text;
    for (std::size_t at = 0; (at = text.find(kPragma, at)) != text.npos; at += kPragma.size()) {
      const std::size_t first = text.find('"', at);
      const std::size_t last = first == text.npos ? text.npos : text.find('"', first + 1);
      if (last == text.npos) return "without a text";
      const std::string_view name = text.substr(first + 1, last - first - 1);
      if (name != "nounroll" && !name.starts_with("used_bytes_mask")) return std::string(name);
    }
    return {};
  }

  bool is_bounded(const ptx::Function& function) const {
    return own_names() && function.is_entry && function.name.ends_with(kBoundedSuffix);
  }

  bool is_legal(std::string_view name) const {
    const auto found = std::ranges::find(verdicts_, name, &FenceVerdict::name);
    return found != verdicts_.end() && found->legal();
  }

  /// With the entry itself first.
  std::vector<std::uint32_t> reached_from(std::uint32_t entry) const {
    std::vector<std::uint32_t> reached{entry};
    std::vector<bool> seen(module_.functions.size(), false);
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const std::uint32_t callee : calls_[reached[i]]) {
        if (!seen[callee]) reached.push_back(callee);
        seen[callee] = true;
      }
    }
    return reached;
  }

  /// The functions with bodies that each calls by name, and which may call themselves.
  void find_calls() {
    Effort effort = Effort::for_text(module_.text.size());
    const auto facts = collect_facts(module_, effort);
    for (const FunctionFacts& each : facts) {
      std::vector<std::uint32_t>& calls = calls_.emplace_back();
      for (const std::uint32_t callee : each.callees) {
        const ptx::Function* whole = module_.find_function(module_.functions[callee].name);
        if (whole != nullptr && whole->has_body)
          calls.push_back(static_cast<std::uint32_t>(whole - module_.functions.data()));
      }
    }
    recurses_.assign(calls_.size(), false);
    for (const std::vector<std::uint32_t>& circle : strong_components(calls_)) {
      for (const std::uint32_t each : circle) {
        const bool calls_itself = std::ranges::find(calls_[each], each) != calls_[each].end();
        recurses_[each] = circle.size() > 1 || calls_itself;
      }
    }
  }

  void judge(std::uint32_t entry) {
    const ptx::Function& function = module_.functions[entry];
    FenceVerdict verdict{.name = std::string(function.name),
                         .why_not = {},
                         .counts = {},
                         .bounds = plans_[entry]->bounds};
    const std::vector<std::uint32_t> reached = reached_from(entry);
    verdict.why_not = reason(function, reached);
    for (const std::uint32_t each : reached) {
      const std::string& why = plans_[each]->why_not;
      if (verdict.why_not.empty() && !why.empty()) {
        verdict.why_not =
            each == entry ? why : fmt::format("calls {}: {}", module_.functions[each].name, why);
      }
      verdict.counts += plans_[each]->counts;
    }
    if (verdict.legal() && is_bounded(function)) {
      if (verdict.bounds.claims.empty()) verdict.why_not = "has no access that its launch bounds";
      own_[entry] = own_constants_of(entry);
      verdict.bounds.constants = own_[entry].rows;
    }
    if (verdict.legal()) {
      for (const std::uint32_t each : reached) called_[each] = called_[each] || each != entry;
    }
    verdicts_.push_back(std::move(verdict));
  }

  /// None if there is no room for them.
  OwnConstants own_constants_of(std::uint32_t entry) const {
    OwnConstants own =
        find_own_constants(module_.functions[entry], *plans_[entry], options_.tabled);
    std::uint64_t bytes = constant_bytes();
    for (const std::uint32_t row : own.rows)
      bytes += options_.tabled[row].bytes + options_.tabled[row].align - 1;
    return own.empty() || bytes > kMostConstantBytes ? OwnConstants{} : own;
  }

  /// Why the entry cannot be fenced together with what it calls; empty: it can.
  std::string reason(const ptx::Function& function,
                     const std::vector<std::uint32_t>& reached) const {
    for (const auto& directive : function.directives) {
      const bool is_single = std::ranges::all_of(directive.values, [](auto n) { return n <= 1; });
      if (directive.name == "explicitcluster" ||
          (directive.name == "reqnctapercluster" && !is_single)) {
        return "is launched in clusters";
      }
    }
    if (reached.size() == 1) return {};
    std::uint64_t shared = kBlockFactsBytes;
    for (const ptx::Variable& variable : function.variables) {
      if (variable.space == ptx::Space::kShared) shared += variable.bytes;
    }
    if (shared > kMostStaticSharedBytes)
      return "leaves no room in shared memory, and calls functions";
    const bool is_drained = ending_kind(function, false, own_names()) == EndingKind::kDrained;
    if (is_drained) return "calls functions, and its threads are counted at barriers";
    if (takes_parameter_address(function))
      return "takes the address of a parameter, and calls functions";
    if (local_variables(function) > 1) return "has several local variables, and calls functions";
    for (std::size_t i = 1; i < reached.size(); ++i) {
      if (recurses_[reached[i]] && !options_.recursion) {
        return fmt::format("calls {}, which may call itself: its stack has no bound",
                           module_.functions[reached[i]].name);
      }
      const ptx::Function& callee = module_.functions[reached[i]];
      if (local_variables(callee) > 0 && !calls_[reached[i]].empty())
        return fmt::format("calls {}, which has local variables and calls functions", callee.name);
    }
    return {};
  }

  bool own_names() const { return options_.names == OwnNames::kExpected; }

  /// Whether functions learn from the block which form runs them.
  bool has_facts() const { return std::ranges::find(called_, true) != called_.end(); }

  bool calls(std::uint32_t function) const { return reached_from(function).size() > 1; }

  Surroundings surroundings_of(std::uint32_t index) const {
    const ptx::Function& function = module_.functions[index];
    Surroundings around{
        .own = {}, .reserved_shared = options_.reserved_shared, .tabled = options_.tabled};
    const auto look_at = [&](const ptx::Variable& variable) {
      if (variable.space != ptx::Space::kShared) return;
      if (own_names() && is_own_shared(variable)) {
        around.own.push_back({std::string(variable.name), variable.bytes});
      } else if (variable.bytes == 0) {
        around.has_dynamic = true;
      } else {
        around.has_static = true;
      }
    };
    for (const ptx::Variable& variable : function.variables) look_at(variable);
    const std::vector<bool> named = named_by(function);
    for (std::size_t i = 0; i < named.size(); ++i) {
      const ptx::Variable& variable = module_.variables[i];
      if (named[i] || (own_names() && is_own_shared(variable))) look_at(variable);
    }
    around.knows_words = !function.is_entry;
    around.reads_parameters = function.is_entry && takes_parameter_address(function);
    if (!function.is_entry || calls(index))
      around.own.push_back({std::string(kBlockFacts), kBlockFactsBytes});
    return around;
  }

  /// By index into Module::variables: whether the function names it.
  std::vector<bool> named_by(const ptx::Function& function) const {
    std::vector<bool> named(module_.variables.size(), false);
    for (const Instruction& instruction : function.instructions) {
      for_each_operand(instruction.operands, [&](const Operand& operand) {
        if (operand.reference == Reference::kGlobal) named[operand.index] = true;
      });
    }
    return named;
  }

  /// Lets the function read its own constants.
  void write(const ptx::Function& function, const OwnConstants& own) {
    const auto row_of = [&](std::uint32_t at) {
      return static_cast<std::uint32_t>(*table_row(function.instructions[at], options_.tabled));
    };
    for (const std::uint32_t at : own.addresses) {
      const Instruction& load = function.instructions[at];
      edits_.push_back(ptx::replace(load.span, fmt::format("mov.b64 {}, {};", load.operands[0].text,
                                                           own_constant(row_of(at)))));
    }
    constexpr std::string_view kGlobal = ".global.nc";
    for (const std::uint32_t at : own.reads) {
      const ptx::Span span = function.instructions[at].opcode_span;
      std::string opcode = module_.text.substr(span.begin, span.end - span.begin);
      opcode.replace(opcode.find(kGlobal), kGlobal.size(), ".const");
      edits_.push_back(ptx::replace(span, std::move(opcode)));
    }
    for (const std::uint32_t row : own.rows) {
      const TabledVariable& variable = options_.tabled[row];
      own_declarations_ += fmt::format(".visible .const .align {} .b8 {}[{}];\n", variable.align,
                                       own_constant(row), variable.bytes);
    }
  }

  void write(std::uint32_t index) {
    const ptx::Function& function = module_.functions[index];
    const Plan& plan = *plans_[index];
    write(function, own_[index]);
    const bool publishes = function.is_entry && calls(index);
    const bool clears_shared = function.is_entry && reads_shared(index);
    Meetings meetings(function, plan.endings());
    ShuffleEdits shuffles = make_shuffles_safe(module_, function, plan, meetings);
    const std::vector<WarpLook> looks = find_warp_looks(function, plan, meetings);
    const bool needs_whole_warps =
        shuffles.needs_whole_warps || std::ranges::any_of(looks, &WarpLook::is_by_block);
    const bool is_plain = !plan.may_end && !publishes && !has_hints(plan) &&
                          !has_barriers(function) && !clears_shared && clearings_[index].empty() &&
                          shuffles.edits.empty();
    if (is_plain || function.instructions.empty()) return;
    Surroundings around = surroundings_of(index);
    if (around.has_own_shared()) around.shared = shared_bases(function, plan);
    const Ending ending = ending_of(index);
    std::string registers =
        expand(kCheckRegisters) + ending_registers(ending.kind) + shuffles.registers;
    for (const HoistedChecks& checks : plan.hoisted)
      registers += fmt::format("\t.reg .pred {};\n", CheckText::hoisted_register(checks.loop));
    if (needs_whole_warps) registers += whole_warps_register();
    if (!plan.waits.empty()) registers += filled("\t.reg .b32 {};\n", expand(kTurnRegister));
    const auto declare_all = [&registers](std::size_t count, const auto& name_of) {
      for (std::uint32_t i = 0; i < count; ++i)
        registers += fmt::format("\t.reg .b32 {};\n", name_of(i));
    };
    declare_all(plan.limits.size(), limit_register);
    declare_all(plan.copies.size(), copy_register);
    declare_all(around.shared.size(), shared_register);
    insert(function.body.begin + 1, std::move(registers));
    std::string prologue = total_shared_text(options_.reserved_shared);
    if (!plan.waits.empty()) prologue += filled("\tmov.u32 {}, 0;\n", expand(kTurnRegister));
    if (clears_shared && plan.clearing.is_whole) {
      const bool has_some = around.has_static || around.has_dynamic;
      prologue += clear_shared_text(options_.reserved_shared, !has_some);
    } else if (clears_shared) {
      prologue += clear_shared_text(plan.clearing, options_.reserved_shared);
    }
    if (needs_whole_warps) prologue += find_whole_warps();
    prologue += clearings_[index].beginning + CheckText::look_at_parameters(plan);
    for (std::size_t i = 0; i < around.shared.size(); ++i)
      prologue += shared_address_text(around.shared[i], i);
    if (is_worker(function)) {
      prologue += expand(
          "\tmov.u32 ~fc, 0;\n\tst.shared.u32 [__slate_s+20], ~fc;\n"
          "\tst.shared.u32 [__slate_s+24], ~fc;\n");
    }
    insert(entry_of(function), "\n" + prologue + "\t");
    std::ranges::copy(clearings_[index].edits, std::back_inserter(edits_));
    std::ranges::move(shuffles.edits, std::back_inserter(edits_));
    if (publishes) insert(behind_locals(function), "\n" + publish(function) + "\t");
    const bool passes = !plan.bounds.passed.limits.empty();
    if (passes) add_limits_parameter(function, plan.limits.size());
    for (std::uint32_t i = 0; i < plan.limits.size(); ++i)
      insert(function.instructions[plan.limits[i].at].span.begin,
             passes ? CheckText::passed_limit(i) : CheckText::limit(plan.limits[i], i));
    write_checks(function, plan, looks, around, ending);
    if (!is_worker(function)) {
      for (ptx::Edit& edit : make_barriers_safe(module_, function, meetings))
        edits_.push_back(std::move(edit));
    }
    if (!ending.is_in_place) {
      insert(function.body.end - 1,
             "\tret;\n" + ending_text(ending.kind, function, index, !plan.sites.empty()));
    }
  }

  /// Requires: the function has parameters.
  void add_limits_parameter(const ptx::Function& function, std::size_t limits) {
    insert(function.parameters.back().span.end,
           fmt::format(",\n\t.param .align 4 .b8 {}[{}]", kPassedLimits,
                       sizeof(std::uint32_t) * limits));
  }

  Ending ending_of(std::uint32_t index) const {
    const ptx::Function& function = module_.functions[index];
    const EndingKind kind = ending_kind(function, !function.is_entry, own_names());
    const bool are_few = plans_[index]->sites.size() <= kMostEndings || is_bounded(function);
    return {.kind = kind, .number = index, .is_in_place = may_end_in_place(kind) && are_few};
  }

  /// The shared variables that checks compare with, and that can be named at the beginning.
  std::vector<std::string_view> shared_bases(const ptx::Function& function,
                                             const Plan& plan) const {
    std::vector<std::string_view> names;
    const auto look_at = [&](const Member& member) {
      if (member.variable == nullptr || !member.variable->parts.empty()) return;
      const ptx::Variable& variable = *variable_named(module_, function, *member.variable);
      const bool can_name = member.variable->reference == Reference::kGlobal ||
                            variable.span.end <= entry_of(function);
      if (variable.space != ptx::Space::kShared || variable.bytes == 0 || !can_name) return;
      if (std::ranges::find(names, variable.name) == names.end()) names.push_back(variable.name);
    };
    for (const Site& site : plan.sites) std::ranges::for_each(site.members, look_at);
    for (const HoistedChecks& checks : plan.hoisted) std::ranges::for_each(checks.members, look_at);
    return names;
  }

  /// The entry, or a function that it may call.
  bool reads_shared(std::uint32_t entry) const {
    return std::ranges::any_of(reached_from(entry),
                               [&](std::uint32_t each) { return may_read_shared(*plans_[each]); });
  }

  static bool has_barriers(const ptx::Function& function) {
    return std::ranges::any_of(function.instructions, is_block_barrier);
  }

  static bool has_hints(const Plan& plan) {
    return std::ranges::any_of(plan.effects, &InstructionEffect::is_hint);
  }

  void write_checks(const ptx::Function& function, const Plan& plan,
                    const std::vector<WarpLook>& looks, const Surroundings& around,
                    const Ending& ending) {
    CheckText text(module_, function, around, ending, table_);
    for (const Wait& wait : plan.waits)
      insert(function.instructions[wait.at].span.begin, text.look(wait));
    auto site = plan.sites.begin();
    auto look = looks.begin();
    for (std::uint32_t i = 0; i < function.instructions.size(); ++i) {
      const Instruction& instruction = function.instructions[i];
      const InstructionEffect& effect = plan.effects[i];
      const std::uint32_t begin = instruction.span.begin;
      for (; site != plan.sites.end() && site->at == i; ++site) {
        move(function, plan, *site);
        insert(begin, text.site(*site) + moved_loads(function, *site));
      }
      if (look != looks.end() && look->at == i) insert(begin, text.warp(*look++));
      if (effect.is_hint && !effect.accesses.empty()) {
        std::string label;
        insert(begin, text.hint(instruction, effect.accesses.front(), label));
        insert(instruction.span.end, "\n" + label + ":");
      }
      if (effect.is_dropped)
        edits_.push_back(ptx::replace(instruction.span, expand("mov.b32 ~fd, 0;")));
      if (plan.handles[i]) insert(begin, text.handle(instruction, *effect.handle));
      if (effect.traps_outside) replace_mode(instruction);
      if (effect.barrier != nullptr || effect.barrier_threads != nullptr)
        insert(begin, text.barrier(instruction, effect));
      if (effect.jumps_by_index) insert(begin, text.jump(instruction));
      if (effect.end != Violation::kNone)
        edits_.push_back(ptx::replace(instruction.span, text.end(instruction, effect.end)));
    }
    copy_indices(function, plan);
    // Behind what stands there already, such as the label that skips a hint.
    for (const HoistedChecks& checks : plan.hoisted) {
      const ptx::Span span = function.instructions[checks.at].span;
      insert(checks.is_behind ? span.end : span.begin, text.hoisted(checks));
    }
  }

  void move(const ptx::Function& function, const Plan& plan, const Site& site) {
    std::string text;
    for (const std::uint32_t index : site.moved) {
      const ptx::Span span = function.instructions[index].span;
      text.append(module_.text, span.begin, span.end - span.begin).append("\n\t");
      text += copy_behind(plan, index);
      edits_.push_back(ptx::remove(span));
    }
    insert(function.instructions[site.at].span.begin, std::move(text));
  }

  std::string moved_loads(const ptx::Function& function, const Site& site) {
    std::string text;
    for (const std::uint32_t index : site.loads) {
      const ptx::Span span = function.instructions[index].span;
      text.append(module_.text, span.begin, span.end - span.begin).append("\n\t");
      edits_.push_back(ptx::remove(span));
    }
    return text;
  }

  /// Behind the instructions that read them, if these stay where they are.
  void copy_indices(const ptx::Function& function, const Plan& plan) {
    std::vector<bool> is_moved(function.instructions.size(), false);
    for (const Site& site : plan.sites) {
      for (const std::uint32_t index : site.moved) is_moved[index] = true;
    }
    for (const IndexCopy& copy : plan.copies) {
      if (is_moved[copy.reader]) continue;
      const std::uint32_t end = function.instructions[copy.reader].span.end;
      insert(end, "\n\t" + copy_behind(plan, copy.reader));
    }
  }

  /// Of the index that the instruction reads, if there is one.
  static std::string copy_behind(const Plan& plan, std::uint32_t reader) {
    const auto copy = std::ranges::find(plan.copies, reader, &IndexCopy::reader);
    if (copy == plan.copies.end()) return {};
    const auto number = static_cast<std::uint32_t>(copy - plan.copies.begin());
    return fmt::format("{} {}, {};\n\t", copy->is_wide ? "cvt.u32.u64" : "mov.b32",
                       copy_register(number), register_text(*copy->index));
  }

  /// Coordinates beyond a surface read zeros and write nothing, instead of raising a fault.
  void replace_mode(const Instruction& instruction) {
    const auto mode = std::ranges::find(instruction.modifiers, "trap");
    if (mode == instruction.modifiers.end()) return;
    const auto at = static_cast<std::uint32_t>(mode->data() - module_.text.data());
    edits_.push_back(ptx::replace({at, at + 4}, "zero"));
  }

  /// The first instruction of the kernel's own: our code may stand before its declarations.
  static std::uint32_t behind_locals(const ptx::Function& function) {
    std::uint32_t declared = 0;
    for (const ptx::Variable& variable : function.variables) {
      if (variable.space == ptx::Space::kLocal) declared = std::max(declared, variable.span.end);
    }
    const auto found = std::ranges::find_if(
        function.instructions,
        [&](const Instruction& instruction) { return instruction.span.begin >= declared; });
    return found == function.instructions.end() ? function.body.end - 1 : found->span.begin;
  }

  /// What functions must know of the block, written by every thread, which alone needs to see it.
  std::string publish(const ptx::Function& function) const {
    std::string code;
    const bool works = own_names() && is_worker(function);
    code += works ? filled("\tmov.b64 ~fa, {};\n\tcvta.param.u64 ~fa, ~fa;\n", kParameterName)
                  : filled("\tmov.u64 ~fa, 0;\n");
    code += filled("\tst.shared.u64 [{}], ~fa;\n", kBlockFacts);
    code += filled("\tmov.u32 ~fc, {};\n\tst.shared.u32 [{}+8], ~fc;\n", works ? "__slate_s" : "-1",
                   kBlockFacts);
    const auto local =
        std::ranges::find(function.variables, ptx::Space::kLocal, &ptx::Variable::space);
    const bool has_local = local != function.variables.end();
    code += filled("\tmov.u64 ~fa, {};\n\tst.shared.u64 [{}+16], ~fa;\n",
                   has_local ? local->name : std::string_view("0"), kBlockFacts);
    return code + filled("\tmov.u64 ~fa, {};\n\tst.shared.u64 [{}+24], ~fa;\n",
                         has_local ? local->bytes : 0, kBlockFacts);
  }

  void insert(std::uint32_t at, std::string text) {
    edits_.push_back(ptx::insert_at(at, std::move(text)));
  }

  /// In front of everything that may use them.
  void declare() {
    std::uint32_t first = static_cast<std::uint32_t>(module_.text.size());
    for (const ptx::Variable& variable : module_.variables)
      first = std::min(first, variable.span.begin);
    for (const ptx::Function& function : module_.functions) {
      if (!function.is_prototype) first = std::min(first, function.span.begin);
    }
    std::string moved;
    for (const ptx::Variable& variable : module_.variables) {
      if (!own_names() || !is_own_shared(variable)) continue;
      const ptx::Span span = variable.span;
      moved.append(module_.text, span.begin, span.end - span.begin).append("\n");
      edits_.push_back(ptx::remove(span));
    }
    std::string text = moved + fmt::format(".visible .const .align 16 .b64 {}[{}];\n",
                                           kFenceConstants, sizeof(FenceConstants) / 8);
    text += own_declarations_;
    if (!table_.empty()) {
      text += fmt::format(".global .align 16 .b32 {}[{}] = {{{}}};\n", kAccessTable,
                          4 * table_.size(), fmt::join(table_, ",\n"));
    }
    if (has_facts()) {
      text += fmt::format(".shared .align 16 .b8 {}[{}];\n", kBlockFacts, kBlockFactsBytes);
    }
    edits_.push_back(ptx::insert_at(first, std::move(text)));
  }

  const ptx::Module& module_;
  const FenceOptions& options_;
  PlanOptions plan_options_;
  // By index into Module::functions.
  std::vector<std::vector<std::uint32_t>> calls_;
  std::vector<bool> recurses_;
  std::vector<std::unique_ptr<Plan>> plans_;  // by index into Module::functions
  std::vector<Clearing> clearings_;           // likewise
  std::vector<bool> called_;                  // by index: whether a fenced entry may call it
  std::vector<OwnConstants> own_;             // likewise, of bounded copies
  std::vector<FenceVerdict> verdicts_;
  std::vector<ptx::Edit> edits_;
  std::string own_declarations_;
  std::vector<std::string> table_;  // rows of kAccessTable
  FencedModule result_;
};

}  // namespace

Result<FencedModule> fence(const ptx::Module& module, const FenceOptions& options) {
  Fencer fencer(module, options);
  if (const auto done = fencer.judge(); !done) return std::unexpected(done.error());
  return fencer.write();
}

Result<std::string> with_bounded_copy(const ptx::Module& module, std::string_view entry) {
  const ptx::Function& function = *module.find_entry(entry);
  std::string copy =
      module.text.substr(function.span.begin, function.span.end - function.span.begin);
  const auto name = static_cast<std::size_t>(function.name.data() - module.text.data());
  copy.insert(name + function.name.size() - function.span.begin, kBoundedSuffix);
  return ptx::apply_edits(module, {ptx::insert_at(function.span.end, "\n" + std::move(copy))});
}

Result<std::vector<FenceVerdict>> judge_fence(const ptx::Module& module,
                                              const FenceOptions& options) {
  Fencer fencer(module, options);
  if (const auto done = fencer.judge(); !done) return std::unexpected(done.error());
  return fencer.take_verdicts();
}

}  // namespace slate::injector
