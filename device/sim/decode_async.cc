// Asynchronous copies and mbarriers. A copy is done when it is issued, so that waiting for it is
// nothing; mbarriers keep real counts, as programs build their own protocols on them.
#include "device/sim/decode.h"

namespace slate::sim {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

Space bulk_space(std::string_view modifier) {
  return modifier.starts_with("shared") ? Space::kShared : Space::kGlobal;
}

}  // namespace

void FunctionDecoder::decode_cp(const Instruction& instruction) {
  if (!instruction.has("async") || instruction.has("reduce") || instruction.has("tensor")) {
    return unsupported();
  }
  if (instruction.has("commit_group") || instruction.has("wait_group") ||
      instruction.has("wait_all") || instruction.has("prefetch")) {
    return decode_nop(instruction);
  }
  if (instruction.has("mbarrier") || instruction.has("arrive")) {
    const Operand* address = operand(instruction, 0);
    if (!address) return;
    Op op;
    set_mbarrier(op, *address, space_of(instruction),
                 instruction.has("noinc") ? MbarrierOp::kCopyArriveNoInc : MbarrierOp::kCopyArrive);
    if (!bad_) emit_as(Kind::kMbarrier, op);
    return;
  }
  if (instruction.has("bulk")) return decode_cp_bulk(instruction);
  const Operand* to = operand(instruction, 0);
  const Operand* from = operand(instruction, 1);
  const Operand* bytes = operand(instruction, 2);
  if (!to || !from || !bytes || bytes->kind != Operand::Kind::kInteger) return unsupported();
  const std::int64_t size = bytes->integer;
  if (size != 4 && size != 8 && size != 16) return unsupported();
  Op op;
  op.r[0] = address_value(*to);
  op.r[1] = address_value(*from);
  op.r[2] = context_.constant(static_cast<std::uint64_t>(size), 4);
  op.uses = bit(0) | bit(1) | bit(2);
  // The source size, or a predicate that says "fill with zeros"; a 64-bit operand here is a cache
  // policy.
  if (instruction.operands.size() > 3) {
    const Operand& extra = instruction.operands[3];
    const Ref ref = source(extra, Type::kU32);
    if (bad_) return;
    if (is_predicate(ref)) {
      op.r[3] = ref;
      op.uses |= bit(3);
      op.c = 1;
    } else if (width_of(ref) == 4) {
      op.r[2] = ref;
    }
  }
  op.a = static_cast<std::uint8_t>(size);
  if (!bad_) emit_as(Kind::kCopyAsync, op);
}

void FunctionDecoder::decode_cp_bulk(const Instruction& instruction) {
  // cp.async.bulk.DESTINATION.SOURCE...  [to], [from], bytes {, [mbarrier]}
  if (instruction.modifiers.size() < 4 || instruction.has("multicast::cluster") ||
      instruction.has("cp_mask")) {
    return unsupported();
  }
  const bool signals = instruction.has("mbarrier::complete_tx::bytes");
  const Operand* to = operand(instruction, 0);
  const Operand* from = operand(instruction, 1);
  const Operand* bytes = operand(instruction, 2);
  const Operand* barrier = signals ? operand(instruction, 3) : nullptr;
  if (!to || !from || !bytes || (signals && !barrier)) return unsupported();
  Op op;
  op.r[0] = address_value(*to);
  op.r[1] = address_value(*from);
  op.r[2] = fit_source(source(*bytes, Type::kU32), 4);
  op.uses = bit(0) | bit(1) | bit(2);
  if (barrier) {
    op.r[3] = address_value(*barrier);
    op.uses |= bit(3);
    op.c = 1;
  }
  op.a = static_cast<std::uint8_t>(bulk_space(instruction.modifiers[2]));
  op.b = static_cast<std::uint8_t>(bulk_space(instruction.modifiers[3]));
  if (!bad_) emit_as(Kind::kCopyBulk, op);
}

void FunctionDecoder::decode_mbarrier(const Instruction& instruction) {
  if (instruction.modifiers.empty()) return unsupported();
  const std::string_view name = instruction.modifiers[0];
  const bool parity = instruction.has("parity");
  const bool expects = instruction.has("expect_tx");
  Op op;
  MbarrierOp what;
  std::size_t at = 0;  // operands consumed
  std::uint32_t destination_width = 8;
  Type value_type = Type::kNone;
  if (name == "init") {
    what = MbarrierOp::kInit;
    value_type = Type::kU32;
  } else if (name == "inval") {
    what = MbarrierOp::kInvalidate;
  } else if (name == "arrive" || name == "arrive_drop") {
    if (expects && name == "arrive_drop") return unsupported();
    what = expects            ? MbarrierOp::kArriveExpectTx
           : name == "arrive" ? MbarrierOp::kArrive
                              : MbarrierOp::kArriveDrop;
    value_type = Type::kU32;
    at = 1;
  } else if (name == "expect_tx" || name == "complete_tx") {
    what = name == "expect_tx" ? MbarrierOp::kExpectTx : MbarrierOp::kCompleteTx;
    value_type = Type::kU32;
  } else if (name == "test_wait" || name == "try_wait") {
    what = name == "test_wait" ? (parity ? MbarrierOp::kTestParity : MbarrierOp::kTest)
                               : (parity ? MbarrierOp::kTryParity : MbarrierOp::kTry);
    value_type = parity ? Type::kU32 : Type::kB64;
    destination_width = 0;
    at = 1;
  } else if (name == "pending_count") {
    const Operand* d = operand(instruction, 0);
    const Operand* s = operand(instruction, 1);
    if (!d || !s) return;
    op.r[0] = destination(*d, 4);
    op.r[1] = fit_source(source(*s, Type::kB64), 8);
    op.a = static_cast<std::uint8_t>(MbarrierOp::kPendingCount);
    op.defs = bit(0);
    op.uses = bit(1);
    if (!bad_) emit_as(Kind::kMbarrier, op);
    return;
  } else {
    return unsupported();
  }
  // The state that arrive returns may be left out.
  if (at == 1 && !instruction.operands.empty() &&
      instruction.operands[0].kind == Operand::Kind::kAddress) {
    at = 0;
  }
  if (at == 1) {
    const Operand* d = operand(instruction, 0);
    if (!d) return;
    op.r[0] = destination(*d, destination_width);
    op.defs = bit(0);
    op.flags |= kHasSecond;
  }
  const Operand* address = operand(instruction, at);
  if (!address) return;
  set_mbarrier(op, *address, space_of(instruction), what);
  if (value_type != Type::kNone) {
    op.r[1] = instruction.operands.size() > at + 1
                  ? fit_source(source(instruction.operands[at + 1], value_type),
                               storage_width(value_type))
                  : context_.constant(1, 4);
    op.uses |= bit(1);
  }
  if (!bad_) emit_as(Kind::kMbarrier, op);
}

void FunctionDecoder::set_mbarrier(Op& op, const Operand& address, Space space, MbarrierOp what) {
  set_address(op, address, space == Space::kShared ? space : Space::kGeneric, 8);
  op.b = op.a;  // the space; a holds what to do
  op.a = static_cast<std::uint8_t>(what);
}

}  // namespace slate::sim
