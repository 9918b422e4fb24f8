// Choosing and running the splits of a warp: the interpreter's loop.
#include "device/sim/warp.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace slate::sim {
namespace {

/// A split that could run waits at most for this many instructions of its siblings (loads and
/// atomics that look like a spin count for many), then has kFavour instructions for itself.
constexpr std::uint32_t kPatience = 16384;
constexpr std::uint32_t kFavour = 2048;
constexpr std::uint32_t kSleepWeight = kPatience / 8;
constexpr std::uint32_t kSpinOps = 4;  // in one turn without a store
constexpr std::uint32_t kNoPc = 0xffffffffu;

template <typename T>
void move_lanes(void* to, const void* from, Mask exec) {
  if (exec == kAllLanes) {
    std::memmove(to, from, sizeof(T) * kWarpSize);
    return;
  }
  auto* const d = static_cast<T*>(to);
  const auto* const s = static_cast<const T*>(from);
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    d[lane] = s[lane];
  }
}

struct Bytes16 {
  std::uint64_t words[2];
};

}  // namespace

Warp::Warp(BlockState& block, std::uint32_t index, Mask lanes)
    : block_(&block),
      ops_(block.code->ops.data()),
      index_(index),
      live_(lanes),
      constants_(
          const_cast<std::byte*>(reinterpret_cast<const std::byte*>(block.code->constants.data()))),
      block_area_(reinterpret_cast<std::byte*>(&block.area)),
      area_(std::make_unique<WarpArea>()) {
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const device::Dim3 thread = block.thread_of(index, lane);
    area_->tid[0][lane] = thread.x;
    area_->tid[1][lane] = thread.y;
    area_->tid[2][lane] = thread.z;
    area_->warp_id[lane] = index;
  }
  const FunctionCode& entry = block.code->functions[0];
  frame_ = std::make_unique<Frame>();
  frame_->function = &entry;
  frame_->storage = unwritten(entry.frame_bytes / sizeof(ConstantLine), block.launch->leftovers);
  frame_->registers = frame_->storage[0].bytes;
  frame_bytes_ = entry.frame_bytes;
  local_bytes_ = entry.local_bytes;
  add_split(entry.first, lanes, frame_.get());
}

Split& Warp::add_split(std::uint32_t pc, Mask mask, Frame* frame) {
  Split& split = splits_[count_++];
  split = Split{pc, mask, frame, Wait::kNone, 0, tick_};
  return split;
}

void Warp::merge_splits() {
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (splits_[i].mask == 0) continue;
    bool merged = false;
    for (std::uint32_t j = 0; j < kept && !merged; ++j) {
      Split& other = splits_[j];
      if (other.pc != splits_[i].pc || other.frame != splits_[i].frame) continue;
      if (other.wait != Wait::kNone || splits_[i].wait != Wait::kNone) continue;
      other.mask |= splits_[i].mask;
      other.last_run = std::min(other.last_run, splits_[i].last_run);
      merged = true;
    }
    if (!merged) splits_[kept++] = splits_[i];
  }
  count_ = kept;
}

Split* Warp::select() {
  merge_splits();
  if (count_ == 1) return splits_[0].wait == Wait::kNone ? &splits_[0] : nullptr;
  Split* best = nullptr;
  Split* oldest = nullptr;
  Split* favoured = nullptr;
  for (std::uint32_t i = 0; i < count_; ++i) {
    Split& split = splits_[i];
    if (split.wait != Wait::kNone) continue;
    if (!oldest || split.last_run < oldest->last_run) oldest = &split;
    if (split.mask & favoured_) favoured = &split;
    const bool better =
        !best || split.frame->depth > best->frame->depth ||
        (split.frame->depth == best->frame->depth && ops_[split.pc].rank < ops_[best->pc].rank);
    if (better) best = &split;
  }
  if (favour_left_ > 0 && favoured) return favoured;
  favour_left_ = 0;
  if (!best || oldest == best) return best;
  if (impatience_ < kPatience) return best;
  impatience_ = 0;
  favoured_ = oldest->mask;
  favour_left_ = kFavour;
  return oldest;
}

bool Warp::ready() const {
  return std::any_of(splits_.begin(), splits_.begin() + count_, [](const Split& split) {
    return split.mask != 0 && split.wait == Wait::kNone;
  });
}

Warp::Turn Warp::run(std::uint32_t& quantum) {
  sync_ops_ = stores_ = 0;
  yield_ = false;
  while (quantum > 0 && !yield_) {
    Split* const split = select();
    if (!split) {
      if (count_ == 0) return Turn::kFinished;
      // Having run up to here is progress; being blocked already is none.
      return stores_ > 0 || sync_ops_ > 0 ? Turn::kRan : Turn::kBlocked;
    }
    const std::uint32_t before = quantum;
    run_split(*split, quantum);
    if (block_->fault) return Turn::kFaulted;
    const std::uint32_t used = before - quantum;
    favour_left_ -= std::min(favour_left_, used);
    if (count_ > 1) {
      impatience_ += used;
    } else {
      impatience_ = 0;
    }
    if (used > 0 && !ready()) ++stores_;
  }
  return yield_ || (sync_ops_ >= kSpinOps && stores_ == 0) ? Turn::kSpun : Turn::kRan;
}

/// The next place in text order where another split of this frame waits to be met.
std::uint32_t Warp::meeting_pc(const Split& split) const {
  std::uint32_t pc = kNoPc;
  for (std::uint32_t i = 0; i < count_; ++i) {
    const Split& other = splits_[i];
    if (&other == &split || other.frame != split.frame || other.pc <= split.pc) continue;
    pc = std::min(pc, other.pc);
  }
  return pc;
}

void Warp::run_split(Split& split, std::uint32_t& budget) {
  std::uint32_t pc = split.pc;
  const Mask mask = split.mask;
  const Frame& frame = *split.frame;
  const bool alone = count_ == 1;
  const std::uint32_t meeting = alone ? kNoPc : meeting_pc(split);
  const std::uint32_t first_pc = pc;
  const std::uint32_t start = budget;
  split.last_run = ++tick_;
  const auto account = [&] {
    thread_instructions_ +=
        std::uint64_t{start - budget} * static_cast<unsigned>(std::popcount(mask));
  };
  while (budget > 0) {
    const Op& op = ops_[pc];
    if (!alone && ((op.flags & kLeader) || pc == meeting) && (pc != first_pc || budget != start))
      break;
    --budget;
    Mask exec = mask;
    if (op.guard != kNoRef) {
      const Mask guard = predicate(op.guard, frame);
      exec &= op.flags & kGuardNegated ? ~guard : guard;
    }
    switch (op.kind) {
      case Kind::kAlu: {
        if (exec != 0) {
          AluOperands operands;
          operands.d = at(op.r[0], frame);
          operands.d2 = op.flags & kHasSecond ? at(op.r[1], frame) : nullptr;
          operands.s[0] = at(op.r[2], frame);
          operands.s[1] = at(op.r[3], frame);
          operands.s[2] = at(op.r[4], frame);
          operands.s[3] = at(op.r[5], frame);
          operands.s[4] = at(op.r[1], frame);
          operands.carry = &carry_;
          op.alu(operands, exec);
        }
        ++pc;
        break;
      }
      case Kind::kMov2:
        move_lanes<std::uint16_t>(at(op.r[0], frame), at(op.r[1], frame), exec);
        ++pc;
        break;
      case Kind::kMov4:
        move_lanes<std::uint32_t>(at(op.r[0], frame), at(op.r[1], frame), exec);
        ++pc;
        break;
      case Kind::kMov8:
        move_lanes<std::uint64_t>(at(op.r[0], frame), at(op.r[1], frame), exec);
        ++pc;
        break;
      case Kind::kMov16:
        move_lanes<Bytes16>(at(op.r[0], frame), at(op.r[1], frame), exec);
        ++pc;
        break;
      case Kind::kMovPredicate: {
        Mask& d = predicate(op.r[0], frame);
        d = (d & ~exec) | (predicate(op.r[1], frame) & exec);
        ++pc;
        break;
      }
      case Kind::kNotPredicate: {
        // Lanes that are elsewhere may hold another predicate in this place.
        Mask& d = predicate(op.r[0], frame);
        d = (d & ~mask) | (~predicate(op.r[1], frame) & mask);
        ++budget;
        ++pc;
        break;
      }
      case Kind::kBranch:
        if (exec == mask) {
          pc = op.target;
        } else if (exec == 0) {
          ++pc;
        } else {
          account();
          split.pc = pc + 1;
          split.mask = mask & ~exec;
          add_split(op.target, exec, split.frame);
          return;
        }
        break;
      default:
        if (exec == 0) {
          ++pc;
          break;
        }
        split.pc = pc;
        if (execute(op, split, exec) == Flow::kNext) {
          ++pc;
          break;
        }
        account();
        return;
    }
  }
  account();
  split.pc = pc;
}

Warp::Flow Warp::execute(const Op& op, Split& split, Mask exec) {
  const Frame& frame = *split.frame;
  const Mask mask_before = split.mask;
  const std::uint32_t splits_before = count_;
  const auto flow = [](bool fine) { return fine ? Flow::kNext : Flow::kReschedule; };
  switch (op.kind) {
    case Kind::kAluPair:
      alu_pair(op, frame, exec);
      return Flow::kNext;
    case Kind::kLoad:
      return flow(load(op, split, exec));
    case Kind::kStore:
      return flow(store(op, split, exec));
    case Kind::kAtom:
      return flow(atomic(op, split, exec));
    case Kind::kExtend:
      extend(op, frame, exec);
      return Flow::kNext;
    case Kind::kPack:
      pack(op, frame, exec);
      return Flow::kNext;
    case Kind::kUnpack:
      unpack(op, frame, exec);
      return Flow::kNext;
    case Kind::kLocalAddress:
    case Kind::kParamAddress:
      make_address(op, frame, exec);
      return Flow::kNext;
    case Kind::kConvertAddress:
      convert_address(op, frame, exec);
      return Flow::kNext;
    case Kind::kIsSpace:
      is_space(op, frame, exec);
      return Flow::kNext;
    case Kind::kClock:
      read_clock(op, frame, exec);
      return Flow::kNext;
    case Kind::kBranchIndex:
      return branch_index(op, split, exec);
    case Kind::kCall:
      return call(op, split, exec);
    case Kind::kReturn:
      return return_from(split, exec);
    case Kind::kExit:
      return leave(split, exec);
    case Kind::kBarrier:
      return barrier(op, split, exec);
    case Kind::kWarpBarrier:
      return warp_barrier(op, split, exec);
    case Kind::kShuffle:
      if (gather(op, op.r[5], split, exec) != Flow::kNext) return Flow::kReschedule;
      shuffle(op, frame, exec);
      break;
    case Kind::kVote:
      if (gather(op, op.r[2], split, exec) != Flow::kNext) return Flow::kReschedule;
      vote(op, frame, exec);
      break;
    case Kind::kMatch:
      if (gather(op, op.r[3], split, exec) != Flow::kNext) return Flow::kReschedule;
      match(op, frame, exec);
      break;
    case Kind::kReduce:
      if (gather(op, op.r[2], split, exec) != Flow::kNext) return Flow::kReschedule;
      reduce(op, frame, exec);
      break;
    case Kind::kElect:
      if (gather(op, op.r[2], split, exec) != Flow::kNext) return Flow::kReschedule;
      elect(op, frame, exec);
      break;
    case Kind::kMatrix:
      if (gather(op, op.r[5], split, exec) != Flow::kNext) return Flow::kReschedule;
      if (!matrix(op, split, exec)) return Flow::kReschedule;
      break;
    case Kind::kActiveMask: {
      auto* const d = lanes<std::uint32_t>(op.r[0], frame);
      for (Mask rest = exec; rest != 0; rest &= rest - 1) d[std::countr_zero(rest)] = exec;
      return Flow::kNext;
    }
    case Kind::kCopyAsync:
      return flow(copy_async(op, split, exec));
    case Kind::kCopyBulk:
      return flow(copy_bulk(op, split, exec));
    case Kind::kMbarrier:
      return flow(mbarrier(op, split, exec));
    case Kind::kTexture:
      return flow(sample_texture(op, split, exec));
    case Kind::kTextureQuery:
      return flow(query_texture(op, split, exec));
    case Kind::kSurfaceLoad:
    case Kind::kSurfaceStore:
      return flow(access_surface(op, split, exec));
    case Kind::kFence: {
      // A locked operation orders memory like a fence does, and thread sanitizers understand it.
      int here = 0;
      __atomic_fetch_add(&here, 1, __ATOMIC_SEQ_CST);
      return Flow::kNext;
    }
    case Kind::kNanosleep:
      spun(kSleepWeight);
      yield_ = true;
      split.pc += 1;
      return Flow::kReschedule;
    case Kind::kNop:
      return Flow::kNext;
    case Kind::kTrap:
      fault(ErrorCode::kLaunchFailed, exec, split.pc, "trap");
      return Flow::kReschedule;
    default:
      fault(ErrorCode::kIllegalInstruction, exec, split.pc,
            fmt::format("{} is not known to sim", block_->code->opcode_text(split.pc)));
      return Flow::kReschedule;
  }
  // Warp-wide operations may have taken waiting lanes into the split, or left some behind.
  if (split.mask == mask_before && count_ == splits_before) return Flow::kNext;
  split.pc += 1;
  return Flow::kReschedule;
}

void Warp::alu_pair(const Op& op, const Frame& frame, Mask exec) {
  AluOperands operands;
  operands.d = at(op.r[0], frame);
  operands.d2 = at(op.r[1], frame);
  for (int i = 0; i < 3; ++i) operands.s[i] = at(op.r[2 + i], frame);
  operands.s[3] = at(op.target, frame);
  operands.s[4] = at(op.r[5], frame);
  operands.carry = &carry_;
  op.alu(operands, exec);
}

void Warp::retire(Mask lanes) {
  live_ &= ~lanes;
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (splits_[i].wait == Wait::kLanes) splits_[i].wait = Wait::kNone;  // look again
  }
  ++stores_;
  block_->threads_exited();
}

void Warp::release_barrier(std::uint32_t id, std::uint32_t value) {
  for (std::uint32_t i = 0; i < count_; ++i) {
    Split& split = splits_[i];
    if (split.mask == 0 || split.wait != Wait::kBarrier || split.barrier != id) continue;
    const Op& op = ops_[split.pc];
    const auto what = static_cast<BarrierOp>(op.a);
    if (what == BarrierOp::kPopc) {
      auto* const d = lanes<std::uint32_t>(op.r[0], *split.frame);
      for (Mask rest = split.mask; rest != 0; rest &= rest - 1) d[std::countr_zero(rest)] = value;
    } else if (what == BarrierOp::kAnd || what == BarrierOp::kOr) {
      Mask& d = predicate(op.r[0], *split.frame);
      const Barrier& barrier = block_->barriers[id];
      const bool result = what == BarrierOp::kAnd ? barrier.all : barrier.trues > 0;
      d = result ? d | split.mask : d & ~split.mask;
    }
    split.wait = Wait::kNone;
    split.pc += 1;
  }
}

std::pair<int, std::uint32_t> Warp::first_waiting(Wait& wait, std::uint32_t& barrier) const {
  for (std::uint32_t i = 0; i < count_; ++i) {
    const Split& split = splits_[i];
    if (split.mask == 0) continue;
    wait = split.wait;
    barrier = split.barrier;
    return {std::countr_zero(split.mask), split.pc};
  }
  return {0, 0};
}

void Warp::fault(ErrorCode code, Mask who, std::uint32_t pc, const std::string& text) {
  if (block_->fault) return;
  const device::Dim3 thread = block_->thread_of(index_, who ? std::countr_zero(who) : 0);
  const device::Dim3 block = block_->index;
  block_->fault =
      Error{code, fmt::format("kernel {}, block ({},{},{}), thread ({},{},{}), line {}: {}",
                              block_->code->functions[0].name, block.x, block.y, block.z, thread.x,
                              thread.y, thread.z, ops_[pc].line, text)};
}

}  // namespace slate::sim
