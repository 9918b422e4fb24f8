// Barriers of the block, and instructions that look across the lanes of a warp.
#include <bit>
#include <cmath>

#include "device/sim/occupancy.h"
#include "device/sim/warp.h"

namespace slate::sim {

Warp::Flow Warp::barrier(const Op& op, Split& split, Mask exec) {
  const auto* const ids = lanes<std::uint32_t>(op.r[1], *split.frame);
  const auto* const counts = op.c ? lanes<std::uint32_t>(op.r[2], *split.frame) : nullptr;
  const int first = std::countr_zero(exec);
  const std::uint32_t id = ids[first];
  const std::uint32_t count = counts ? counts[first] : 0;
  Mask same = 0;
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (ids[lane] == id && (!counts || counts[lane] == count)) same |= 1u << lane;
  }
  const auto what = static_cast<BarrierOp>(op.a);
  const bool is_odd =
      counts && (count == 0 || count % kWarpSize != 0 || count > kMaxThreadsPerBlock);
  if ((id >= kClusterBarrier && !op.b) || is_odd || (what == BarrierOp::kArrive && !counts)) {
    fault(ErrorCode::kIllegalInstruction, same, split.pc,
          "barrier number or thread count out of range");
    return Flow::kReschedule;
  }
  if (same != exec) add_split(split.pc, exec & ~same, split.frame);
  split.mask &= ~(exec & ~same);
  let_pass(split, same);
  ++stores_;
  Barrier& barrier = block_->barriers[id];
  if (!barrier.pending) {
    barrier.pending = true;
    barrier.expected = count;
    barrier.trues = 0;
    barrier.all = true;
    barrier.arrived.assign(block_->warps.size(), 0);
  }
  barrier.arrived[index_] |= same;
  if (what != BarrierOp::kSync && what != BarrierOp::kArrive) {
    const Mask trues = predicate(op.r[3], *split.frame) & same;
    barrier.trues += static_cast<unsigned>(std::popcount(trues));
    barrier.all &= trues == same;
  }
  if (what == BarrierOp::kArrive) {
    split.pc += 1;
  } else {
    split.wait = Wait::kBarrier;
    split.barrier = static_cast<std::uint8_t>(id);
  }
  block_->check_barrier(id);
  return Flow::kReschedule;
}

/// A warp has arrived when all its threads that have not exited have; one that has exited
/// altogether counts only for what it did before. Without a thread count, the barrier is for
/// whoever is left.
void BlockState::check_barrier(std::uint32_t id) {
  Barrier& barrier = barriers[id];
  if (!barrier.pending) return;
  std::uint32_t arrived = 0;
  bool all = true;
  for (std::size_t i = 0; i < warps.size(); ++i) {
    const bool complete = (warps[i].live() & ~barrier.arrived[i]) == 0;
    all &= complete;
    if (complete && barrier.arrived[i] != 0) arrived += kWarpSize;
  }
  if (barrier.expected == 0 ? !all : arrived < barrier.expected) return;
  barrier.pending = false;
  for (Warp& warp : warps) warp.release_barrier(id, barrier.trues);
}

void BlockState::threads_exited() {
  for (std::uint32_t id = 0; id < kBarriers; ++id) check_barrier(id);
}

Mask Warp::satisfied(const std::uint32_t* members, Mask exec, Mask present) const {
  Mask ready = 0;
  for (Mask rest = exec; rest != 0;) {
    const std::uint32_t wanted = members[std::countr_zero(rest)];
    Mask same = 0;
    for (Mask each = rest; each != 0; each &= each - 1) {
      const int lane = std::countr_zero(each);
      if (members[lane] == wanted) same |= 1u << lane;
    }
    if ((wanted & live_ & ~present) == 0) ready |= same;
    rest &= ~same;
  }
  return ready;
}

Warp::Flow Warp::gather(const Op& op, Ref members, Split& split, Mask& exec) {
  if (op.flags & kOldWarpOp) return Flow::kNext;
  if (exec == live_) return Flow::kNext;
  // Lanes that wait at this very place join in.
  for (std::uint32_t i = 0; i < count_; ++i) {
    Split& other = splits_[i];
    if (&other == &split || other.mask == 0 || other.wait != Wait::kLanes) continue;
    if (other.pc != split.pc || other.frame != split.frame) continue;
    exec |= other.mask;
    split.mask |= other.mask;
    other.mask = 0;
  }
  const Mask ready = satisfied(lanes<std::uint32_t>(members, *split.frame), exec, exec);
  if (ready == exec) return Flow::kNext;
  const Mask waiting = exec & ~ready;
  if (ready != 0) {
    add_split(split.pc, waiting, split.frame).wait = Wait::kLanes;
    split.mask &= ~waiting;
    exec = ready;
    return Flow::kNext;
  }
  let_pass(split, waiting);
  split.wait = Wait::kLanes;
  return Flow::kReschedule;
}

Warp::Flow Warp::warp_barrier(const Op& op, Split& split, Mask exec) {
  if (exec == live_) return Flow::kNext;
  // Unlike the others it may be met at different places, __syncwarp() in both arms of a condition,
  // but only with the same members.
  Mask present = exec;
  std::uint32_t members[kWarpSize];
  const auto note = [&](const Op& barrier, const Frame& frame, Mask who) {
    const auto* const named = lanes<std::uint32_t>(barrier.r[0], frame);
    for (Mask rest = who; rest != 0; rest &= rest - 1) {
      members[std::countr_zero(rest)] = named[std::countr_zero(rest)];
    }
  };
  note(op, *split.frame, exec);
  const auto waits_here = [&](const Split& other) {
    return &other != &split && other.mask != 0 && other.wait == Wait::kLanes &&
           ops_[other.pc].kind == Kind::kWarpBarrier;
  };
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (!waits_here(splits_[i])) continue;
    note(ops_[splits_[i].pc], *splits_[i].frame, splits_[i].mask);
    present |= splits_[i].mask;
  }
  const auto released_of = [&](Mask who) {
    Mask released = 0;
    for (Mask rest = who; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      Mask same = 0;
      for (Mask each = present; each != 0; each &= each - 1) {
        const int other = std::countr_zero(each);
        if (members[other] == members[lane]) same |= 1u << other;
      }
      if ((members[lane] & live_ & ~same) == 0) released |= 1u << lane;
    }
    return released;
  };
  const Mask ready = released_of(exec);
  const std::uint32_t others = count_;
  for (std::uint32_t i = 0; i < others; ++i) {
    Split& other = splits_[i];
    if (!waits_here(other)) continue;
    const Mask released = released_of(other.mask);
    if (released == 0) continue;
    if (released == other.mask) {
      other.pc += 1;
      other.wait = Wait::kNone;
      continue;
    }
    add_split(other.pc + 1, released, other.frame);
    other.mask &= ~released;
  }
  const Mask waiting = exec & ~ready;
  if (waiting == 0) {
    split.pc += 1;
  } else if (split.mask == waiting) {
    split.wait = Wait::kLanes;
  } else {
    add_split(split.pc, waiting, split.frame).wait = Wait::kLanes;
    split.mask &= ~waiting;
    split.pc += 1;
  }
  return Flow::kReschedule;
}

void Warp::shuffle(const Op& op, const Frame& frame, Mask exec) {
  auto* const d = lanes<std::uint32_t>(op.r[0], frame);
  const auto* const a = lanes<std::uint32_t>(op.r[2], frame);
  const auto* const b = lanes<std::uint32_t>(op.r[3], frame);
  const auto* const c = lanes<std::uint32_t>(op.r[4], frame);
  std::uint32_t result[kWarpSize];
  Mask in_range = 0;
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const int distance = static_cast<int>(b[lane] & 31);
    const int clamp = static_cast<int>(c[lane] & 31);
    const int segment = static_cast<int>(c[lane] >> 8 & 31);
    const int highest = (lane & segment) | (clamp & ~segment);
    const int lowest = lane & segment;
    int from = lane;
    bool inside = false;
    switch (static_cast<ShuffleMode>(op.a)) {
      case ShuffleMode::kUp:
        from = lane - distance;
        inside = from >= highest;
        break;
      case ShuffleMode::kDown:
        from = lane + distance;
        inside = from <= highest;
        break;
      case ShuffleMode::kButterfly:
        from = lane ^ distance;
        inside = from <= highest;
        break;
      case ShuffleMode::kIndex:
        from = lowest | (distance & ~segment);
        inside = from <= highest;
        break;
    }
    if (!inside) from = lane;
    if (inside) in_range |= 1u << lane;
    result[lane] = a[from];
  }
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    d[lane] = result[lane];
  }
  if (op.flags & kHasSecond) {
    Mask& p = predicate(op.r[1], frame);
    p = (p & ~exec) | in_range;
  }
}

void Warp::vote(const Op& op, const Frame& frame, Mask exec) {
  const Mask votes = predicate(op.r[1], frame) & exec;
  const bool old = op.flags & kOldWarpOp;
  const std::uint32_t* const members = old ? nullptr : lanes<std::uint32_t>(op.r[2], frame);
  const auto mode = static_cast<VoteMode>(op.a);
  Mask trues = 0;
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const Mask group = old ? exec : members[lane] & exec;
    const Mask yes = votes & group;
    if (mode == VoteMode::kBallot) {
      lanes<std::uint32_t>(op.r[0], frame)[lane] = yes;
      continue;
    }
    const bool result = mode == VoteMode::kAll   ? yes == group
                        : mode == VoteMode::kAny ? yes != 0
                                                 : yes == group || yes == 0;
    if (result) trues |= 1u << lane;
  }
  if (mode == VoteMode::kBallot) return;
  Mask& d = predicate(op.r[0], frame);
  d = (d & ~exec) | trues;
}

void Warp::match(const Op& op, const Frame& frame, Mask exec) {
  const auto* const members = lanes<std::uint32_t>(op.r[3], frame);
  const auto value = [&](int lane) {
    return op.a == 8 ? lanes<std::uint64_t>(op.r[2], frame)[lane]
                     : std::uint64_t{lanes<std::uint32_t>(op.r[2], frame)[lane]};
  };
  std::uint32_t result[kWarpSize];
  Mask all_equal = 0;
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const Mask group = members[lane] & exec;
    Mask equal = 0;
    for (Mask each = group; each != 0; each &= each - 1) {
      const int other = std::countr_zero(each);
      if (value(other) == value(lane)) equal |= 1u << other;
    }
    if (equal == group) all_equal |= 1u << lane;
    result[lane] = op.b && equal != group ? 0 : equal;
  }
  auto* const d = lanes<std::uint32_t>(op.r[0], frame);
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    d[lane] = result[lane];
  }
  if (op.flags & kHasSecond) {
    Mask& p = predicate(op.r[1], frame);
    p = (p & ~exec) | all_equal;
  }
}

namespace {

std::uint32_t reduce_two(ReduceOp what, std::uint32_t x, std::uint32_t y, bool nan) {
  const auto sx = static_cast<std::int32_t>(x);
  const auto sy = static_cast<std::int32_t>(y);
  switch (what) {
    case ReduceOp::kAdd:
      return x + y;
    case ReduceOp::kAnd:
      return x & y;
    case ReduceOp::kOr:
      return x | y;
    case ReduceOp::kXor:
      return x ^ y;
    case ReduceOp::kMinU:
      return x < y ? x : y;
    case ReduceOp::kMaxU:
      return x > y ? x : y;
    case ReduceOp::kMinS:
      return sx < sy ? x : y;
    case ReduceOp::kMaxS:
      return sx > sy ? x : y;
    case ReduceOp::kMinF:
    case ReduceOp::kMaxF:
      break;
  }
  const float fx = std::bit_cast<float>(x);
  const float fy = std::bit_cast<float>(y);
  if ((nan && (std::isnan(fx) || std::isnan(fy))) || (std::isnan(fx) && std::isnan(fy))) {
    return 0x7fffffff;
  }
  const float result = what == ReduceOp::kMinF ? std::fmin(fx, fy) : std::fmax(fx, fy);
  return std::bit_cast<std::uint32_t>(result);
}

}  // namespace

void Warp::reduce(const Op& op, const Frame& frame, Mask exec) {
  const auto* const a = lanes<std::uint32_t>(op.r[1], frame);
  const auto* const members = lanes<std::uint32_t>(op.r[2], frame);
  const auto what = static_cast<ReduceOp>(op.a);
  const std::uint32_t keep = op.b ? 0x7fffffffu : ~0u;  // .abs
  std::uint32_t result[kWarpSize];
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const Mask group = members[lane] & exec;
    Mask each = group ? group : 1u << lane;
    std::uint32_t value = a[std::countr_zero(each)] & keep;
    for (each &= each - 1; each != 0; each &= each - 1) {
      value = reduce_two(what, value, a[std::countr_zero(each)] & keep, op.c);
    }
    result[lane] = value;
  }
  auto* const d = lanes<std::uint32_t>(op.r[0], frame);
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    d[lane] = result[lane];
  }
}

void Warp::elect(const Op& op, const Frame& frame, Mask exec) {
  auto* const d = lanes<std::uint32_t>(op.r[0], frame);
  const auto* const members = lanes<std::uint32_t>(op.r[2], frame);
  Mask& p = predicate(op.r[1], frame);
  Mask elected = 0;
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const Mask group = members[lane] & exec;
    const int leader = std::countr_zero(group ? group : exec);
    if (leader == lane) elected |= 1u << lane;
    d[lane] = static_cast<std::uint32_t>(leader);
  }
  p = (p & ~exec) | elected;
}

}  // namespace slate::sim
