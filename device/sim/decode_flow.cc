// Instructions that decide who runs next or let lanes speak to one another: branches, calls,
// barriers, shuffles, votes. And the table of all instructions that are not arithmetic.
#include <algorithm>
#include <array>

#include "device/sim/decode.h"

namespace slate::sim {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

SystemCall system_call(std::string_view name) {
  if (name == "vprintf") return SystemCall::kPrintf;
  if (name == "__assertfail") return SystemCall::kAssertFail;
  return SystemCall::kNone;
}

/// The operands that a system call reads must have the sizes that its code expects.
bool fits_system_call(const CallSite& site) {
  const auto size = [](const Argument& argument) {
    return argument.is_register ? argument.width : argument.bytes;
  };
  const auto sizes_are = [&](std::initializer_list<std::uint32_t> sizes) {
    return std::ranges::equal(site.arguments, sizes, {}, size);
  };
  switch (site.system) {
    case SystemCall::kPrintf:
      return sizes_are({8, 8});
    case SystemCall::kAssertFail:
      return sizes_are({8, 8, 4, 8, 8});
    case SystemCall::kNone:
      return true;
  }
  return false;
}

}  // namespace

void FunctionDecoder::decode_bra(const Instruction& instruction) {
  const Operand* target = operand(instruction, 0);
  if (!target || target->reference != ptx::Reference::kLabel) return unsupported();
  emit(Kind::kBranch);
  branch_fixups_.emplace_back(static_cast<std::uint32_t>(context_.code.ops.size() - 1),
                              target->index);
}

void FunctionDecoder::decode_brx(const Instruction& instruction) {
  const Operand* index = operand(instruction, 0);
  const Operand* table = operand(instruction, 1);
  if (!index || !table || table->reference != ptx::Reference::kLabel) return unsupported();
  const Ref ref = fit_source(source(*index, Type::kU32), 4);
  std::vector<std::uint32_t>& tables = context_.code.branch_tables;
  const auto first = static_cast<std::uint32_t>(tables.size());
  for (const Operand& target : function_.labels[table->index].targets) {
    if (target.reference != ptx::Reference::kLabel) return unsupported();
    table_fixups_.emplace_back(static_cast<std::uint32_t>(tables.size()), target.index);
    tables.push_back(0);
  }
  if (bad_) return;
  Op& op = emit(Kind::kBranchIndex);
  op.r[0] = ref;
  op.uses = bit(0);
  op.target = first;
  op.imm = static_cast<std::int64_t>(tables.size() - first);
}

Argument FunctionDecoder::argument(const Operand& operand, const ptx::Variable* formal,
                                   bool written) {
  Argument result;
  const ptx::Variable* variable = variable_of(operand);
  if (variable && variable->space == ptx::Space::kParam &&
      operand.reference != ptx::Reference::kGlobal) {
    if (function_.is_entry && operand.reference != ptx::Reference::kLocal) bad_ = true;
    result.offset =
        places_[operand.reference == ptx::Reference::kLocal ? operand.index
                                                            : key_of(function_, operand)];
    result.bytes = static_cast<std::uint32_t>(variable->bytes);
    return result;
  }
  const Type type = formal ? formal->type : Type::kB32;
  result.is_register = true;
  result.ref = written ? destination(operand, storage_width(type)) : source(operand, type);
  if (result.ref == kNoRef) {
    bad_ = true;
    return result;
  }
  result.width = static_cast<std::uint8_t>(width_of(result.ref));
  return result;
}

bool FunctionDecoder::call_target(CallSite& site, const Operand& target) {
  if (target.reference == ptx::Reference::kFunction) {
    // Not by the text, which may be an alias.
    const std::string_view name = context_.module.functions[target.index].name;
    const auto found = context_.function_indices.find(name);
    if (found != context_.function_indices.end()) {
      site.function = found->second;
    } else {
      site.system = system_call(name);
    }
    return site.function >= 0 || site.system != SystemCall::kNone;
  }
  site.address = register_of(target);
  return site.address != kNoRef && width_of(site.address) == 8;
}

void FunctionDecoder::decode_call(const Instruction& instruction) {
  const std::vector<Operand>& operands = instruction.operands;
  const auto target = std::ranges::find(operands, Operand::Kind::kSymbol, &Operand::kind);
  CallSite site;
  if (target == operands.end() || !call_target(site, *target)) return unsupported();
  const ptx::Function* formal = nullptr;
  if (target->reference == ptx::Reference::kFunction) {
    formal = &context_.module.functions[target->index];
  } else if (target + 1 != operands.end() && operands.back().reference == ptx::Reference::kLabel) {
    const ptx::Label& label = function_.labels[operands.back().index];
    if (label.prototype) formal = &context_.module.functions[*label.prototype];
  }
  for (auto list = operands.begin(); list != operands.end(); ++list) {
    if (list->kind != Operand::Kind::kList) continue;
    const bool written = list < target;
    for (std::size_t i = 0; i < list->parts.size(); ++i) {
      const std::vector<ptx::Variable>* formals = nullptr;
      if (formal) formals = written ? &formal->returns : &formal->parameters;
      const ptx::Variable* variable = formals && i < formals->size() ? &(*formals)[i] : nullptr;
      auto& into = written ? site.returns : site.arguments;
      into.push_back(argument(list->parts[i], variable, written));
    }
  }
  if (!bad_ && site.function >= 0 && formal) {
    // Sizes are compared when the call happens; the counts can be now.
    if (site.arguments.size() != formal->parameters.size() ||
        site.returns.size() > formal->returns.size()) {
      unsupported();
    }
  }
  if (bad_ || !fits_system_call(site)) return unsupported();
  Op& op = emit(Kind::kCall);
  op.target = static_cast<std::uint32_t>(context_.code.calls.size());
  context_.code.calls.push_back(std::move(site));
}

void FunctionDecoder::decode_end(const Instruction& instruction) {
  if (instruction.opcode == "ret") {
    emit(Kind::kReturn);
  } else if (instruction.opcode == "exit") {
    emit(Kind::kExit);
  } else {
    emit(Kind::kTrap);
  }
}

void FunctionDecoder::decode_nop(const Instruction&) {
  emit(Kind::kNop);
}

void FunctionDecoder::decode_fence(const Instruction&) {
  emit(Kind::kFence);
}

void FunctionDecoder::decode_barrier(const Instruction& instruction) {
  const std::vector<Operand>& operands = instruction.operands;
  if (instruction.has("warp")) {
    const Operand* members = operand(instruction, 0);
    if (!members) return;
    const Ref mask = fit_source(source(*members, Type::kB32), 4);
    if (bad_) return;
    Op& op = emit(Kind::kWarpBarrier);
    op.r[0] = mask;
    op.uses = bit(0);
    return;
  }
  if (instruction.has("cluster")) {
    // A cluster is one block: its barrier is one more barrier of the block, and only waiting
    // counts.
    if (!instruction.has("wait")) return decode_nop(instruction);
    const Ref id = context_.constant(kClusterBarrier, 4);
    Op& op = emit(Kind::kBarrier);
    op.r[1] = id;
    op.a = static_cast<std::uint8_t>(BarrierOp::kSync);
    op.b = 1;
    return;
  }
  Op barrier;
  BarrierOp what = BarrierOp::kSync;
  std::size_t first = 0;
  std::size_t last = operands.size();
  if (instruction.has("arrive")) what = BarrierOp::kArrive;
  if (instruction.has("red")) {
    what = instruction.has("popc")  ? BarrierOp::kPopc
           : instruction.has("and") ? BarrierOp::kAnd
                                    : BarrierOp::kOr;
    if (operands.size() < 3) return unsupported();
    first = 1;
    last = operands.size() - 1;
    barrier.r[0] = destination(operands[0], what == BarrierOp::kPopc ? 4 : 0);
    barrier.r[3] = source(operands[last], Type::kPred);
    require_predicate(barrier.r[3]);
    barrier.defs = bit(0);
    barrier.uses = bit(3);
  } else if (what == BarrierOp::kSync && !instruction.has("sync")) {
    return unsupported();
  }
  if (last == first || last - first > 2) return unsupported();
  barrier.r[1] = fit_source(source(operands[first], Type::kU32), 4);
  barrier.uses |= bit(1);
  if (last - first == 2) {
    barrier.r[2] = fit_source(source(operands[first + 1], Type::kU32), 4);
    barrier.uses |= bit(2);
    barrier.c = 1;
  }
  if (bad_) return;
  barrier.a = static_cast<std::uint8_t>(what);
  emit_as(Kind::kBarrier, barrier);
}

void FunctionDecoder::emit_as(Kind kind, Op op) {
  const Op guarded = emit(kind);
  op.kind = kind;
  op.line = guarded.line;
  op.guard = guarded.guard;
  op.flags |= guarded.flags;
  context_.code.ops.back() = op;
}

void FunctionDecoder::set_word_and_predicate(Op& op, const Operand& operand) {
  const bool pair = operand.kind == Operand::Kind::kPair;
  op.r[0] = destination(pair ? operand.parts[0] : operand, 4);
  op.defs = bit(0);
  if (pair) {
    op.r[1] = destination(operand.parts[1], 0);
    op.defs |= bit(1);
    op.flags |= kHasSecond;
  }
}

void FunctionDecoder::decode_shfl(const Instruction& instruction) {
  const std::vector<Operand>& operands = instruction.operands;
  const bool sync = instruction.has("sync");
  if (operands.size() < (sync ? 5u : 4u)) return unsupported();
  Op op;
  set_word_and_predicate(op, operands[0]);
  for (unsigned i = 1; i < (sync ? 5u : 4u); ++i) {
    op.r[1 + i] = fit_source(source(operands[i], Type::kB32), 4);
    op.uses |= bit(1 + i);
  }
  if (!sync) op.flags |= kOldWarpOp;
  op.a = static_cast<std::uint8_t>(instruction.has("up")     ? ShuffleMode::kUp
                                   : instruction.has("down") ? ShuffleMode::kDown
                                   : instruction.has("bfly") ? ShuffleMode::kButterfly
                                                             : ShuffleMode::kIndex);
  if (!bad_) emit_as(Kind::kShuffle, op);
}

void FunctionDecoder::decode_vote(const Instruction& instruction) {
  const std::vector<Operand>& operands = instruction.operands;
  const bool sync = instruction.has("sync");
  if (operands.size() < (sync ? 3u : 2u)) return unsupported();
  const VoteMode mode = instruction.has("ballot") ? VoteMode::kBallot
                        : instruction.has("all")  ? VoteMode::kAll
                        : instruction.has("any")  ? VoteMode::kAny
                                                  : VoteMode::kUniform;
  Op op;
  op.r[0] = destination(operands[0], mode == VoteMode::kBallot ? 4 : 0);
  op.r[1] = source(operands[1], Type::kPred);
  require_predicate(op.r[1]);
  op.defs = bit(0);
  op.uses = bit(1);
  if (sync) {
    op.r[2] = fit_source(source(operands[2], Type::kB32), 4);
    op.uses |= bit(2);
  } else {
    op.flags |= kOldWarpOp;
  }
  op.a = static_cast<std::uint8_t>(mode);
  if (!bad_) emit_as(Kind::kVote, op);
}

void FunctionDecoder::decode_match(const Instruction& instruction) {
  const std::vector<Operand>& operands = instruction.operands;
  if (operands.size() != 3) return unsupported();
  const std::uint32_t width = storage_width(instruction.type());
  if (width != 4 && width != 8) return unsupported();
  Op op;
  set_word_and_predicate(op, operands[0]);
  op.r[2] = fit_source(source(operands[1], instruction.type()), width);
  op.r[3] = fit_source(source(operands[2], Type::kB32), 4);
  op.uses = bit(2) | bit(3);
  op.a = static_cast<std::uint8_t>(width);
  op.b = instruction.has("all");
  if (!bad_) emit_as(Kind::kMatch, op);
}

void FunctionDecoder::decode_redux(const Instruction& instruction) {
  const std::vector<Operand>& operands = instruction.operands;
  if (operands.size() != 3) return unsupported();
  const Type type = instruction.type();
  const bool is_signed = type == Type::kS32;
  const bool is_float = type == Type::kF32;
  ReduceOp what;
  if (instruction.has("min")) {
    what = is_float ? ReduceOp::kMinF : is_signed ? ReduceOp::kMinS : ReduceOp::kMinU;
  } else if (instruction.has("max")) {
    what = is_float ? ReduceOp::kMaxF : is_signed ? ReduceOp::kMaxS : ReduceOp::kMaxU;
  } else if (is_float) {
    return unsupported();
  } else {
    what = instruction.has("add")   ? ReduceOp::kAdd
           : instruction.has("and") ? ReduceOp::kAnd
           : instruction.has("or")  ? ReduceOp::kOr
                                    : ReduceOp::kXor;
  }
  Op op;
  op.r[0] = destination(operands[0], 4);
  op.r[1] = fit_source(source(operands[1], type), 4);
  op.r[2] = fit_source(source(operands[2], Type::kB32), 4);
  op.defs = bit(0);
  op.uses = bit(1) | bit(2);
  op.a = static_cast<std::uint8_t>(what);
  op.b = instruction.has("abs");
  op.c = instruction.has("NaN");
  if ((op.b || op.c) && !is_float) return unsupported();
  if (!bad_) emit_as(Kind::kReduce, op);
}

void FunctionDecoder::decode_elect(const Instruction& instruction) {
  const std::vector<Operand>& operands = instruction.operands;
  if (operands.size() != 2 || operands[0].kind != Operand::Kind::kPair) return unsupported();
  Op op;
  op.r[0] = destination(operands[0].parts[0], 4);
  op.r[1] = destination(operands[0].parts[1], 0);
  op.r[2] = fit_source(source(operands[1], Type::kB32), 4);
  op.defs = bit(0) | bit(1);
  op.uses = bit(2);
  if (!bad_) emit_as(Kind::kElect, op);
}

void FunctionDecoder::decode_activemask(const Instruction& instruction) {
  const Operand* d = operand(instruction, 0);
  if (!d) return;
  Op op;
  op.r[0] = destination(*d, 4);
  op.defs = bit(0);
  if (!bad_) emit_as(Kind::kActiveMask, op);
}

void FunctionDecoder::decode_nanosleep(const Instruction&) {
  emit(Kind::kNanosleep);
}

const std::unordered_map<std::string_view, FunctionDecoder::Handler>& FunctionDecoder::handlers() {
  using D = FunctionDecoder;
  static const std::unordered_map<std::string_view, Handler> table = {
      {"mov", &D::decode_mov},
      {"cvta", &D::decode_cvta},
      {"isspacep", &D::decode_isspacep},
      {"mapa", &D::decode_mapa},
      {"getctarank", &D::decode_mapa},
      {"ld", &D::decode_load},
      {"ldu", &D::decode_load},
      {"st", &D::decode_store},
      {"atom", &D::decode_atom},
      {"red", &D::decode_atom},
      {"cp", &D::decode_cp},
      {"mbarrier", &D::decode_mbarrier},
      {"tex", &D::decode_tex},
      {"tld4", &D::decode_tex},
      {"txq", &D::decode_txq},
      {"suq", &D::decode_txq},
      {"suld", &D::decode_surface},
      {"sust", &D::decode_surface},
      {"wmma", &D::decode_wmma},
      {"mma", &D::decode_mma},
      {"ldmatrix", &D::decode_matrix_rows},
      {"stmatrix", &D::decode_matrix_rows},
      {"movmatrix", &D::decode_movmatrix},
      {"createpolicy", &D::decode_createpolicy},
      {"bra", &D::decode_bra},
      {"brx", &D::decode_brx},
      {"call", &D::decode_call},
      {"ret", &D::decode_end},
      {"exit", &D::decode_end},
      {"trap", &D::decode_end},
      {"brkpt", &D::decode_nop},
      {"bar", &D::decode_barrier},
      {"barrier", &D::decode_barrier},
      {"membar", &D::decode_fence},
      {"fence", &D::decode_fence},
      {"shfl", &D::decode_shfl},
      {"vote", &D::decode_vote},
      {"match", &D::decode_match},
      {"redux", &D::decode_redux},
      {"elect", &D::decode_elect},
      {"activemask", &D::decode_activemask},
      {"nanosleep", &D::decode_nanosleep},
      {"prefetch", &D::decode_nop},
      {"prefetchu", &D::decode_nop},
      {"discard", &D::decode_nop},
      {"applypriority", &D::decode_nop},
      {"griddepcontrol", &D::decode_nop},
      {"pmevent", &D::decode_nop},
      {"setmaxnreg", &D::decode_nop},
  };
  return table;
}

}  // namespace slate::sim
