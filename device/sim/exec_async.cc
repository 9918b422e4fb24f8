// Asynchronous copies, which are done at once, and mbarriers.
#include <bit>
#include <cstring>

#include "device/sim/warp.h"

namespace slate::sim {
namespace {

/// An mbarrier's 64 bits. Ours to choose: programs treat them as opaque.
struct MbarrierState {
  std::uint32_t pending = 0;   // arrivals that this phase still waits for
  std::uint32_t expected = 0;  // arrivals of the next phase
  std::int32_t bytes = 0;      // announced and not yet copied
  bool phase = false;

  static MbarrierState from(std::uint64_t word) {
    MbarrierState state;
    state.pending = word & 0xfffff;
    state.expected = word >> 20 & 0xfffff;
    state.bytes = static_cast<std::int32_t>(word >> 40 & 0x7fffff) - 0x400000;
    state.phase = word >> 63;
    return state;
  }
  std::uint64_t word() const {
    return (pending & 0xfffffu) | std::uint64_t{expected & 0xfffffu} << 20 |
           (static_cast<std::uint64_t>(bytes + 0x400000) & 0x7fffff) << 40 |
           std::uint64_t{phase} << 63;
  }
  void arrive(std::uint32_t count) { pending = count < pending ? pending - count : 0; }
  void finish_phase() {
    if (pending != 0 || bytes != 0) return;
    phase = !phase;
    pending = expected;
  }
};

}  // namespace

bool Warp::copy_async(const Op& op, const Split& split, Mask exec) {
  const Frame& frame = *split.frame;
  ++stores_;
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t to = lanes<std::uint64_t>(op.r[0], frame)[lane];
    const std::uint64_t from = lanes<std::uint64_t>(op.r[1], frame)[lane];
    std::uint32_t size = std::min<std::uint32_t>(lanes<std::uint32_t>(op.r[2], frame)[lane], op.a);
    if (op.c && (predicate(op.r[3], frame) >> lane & 1)) size = 0;
    if ((to | from) & (op.a - 1u)) {
      return bad_access(split, 1u << lane, from, op.a, "misaligned", ErrorCode::kMisalignedAddress);
    }
    const std::uint64_t target = host_address(Space::kShared, to, op.a, Access::kWrite, lane);
    const std::uint64_t source =
        size ? host_address(Space::kGlobal, from, op.a, Access::kRead, lane) : 1;
    if (target == 0 || source == 0) {
      return bad_access(split, 1u << lane, target ? from : to, op.a, "not mapped",
                        ErrorCode::kIllegalAddress);
    }
    std::memset(reinterpret_cast<void*>(target), 0, op.a);
    if (size) std::memcpy(reinterpret_cast<void*>(target), reinterpret_cast<void*>(source), size);
  }
  return true;
}

bool Warp::copy_bulk(const Op& op, const Split& split, Mask exec) {
  const Frame& frame = *split.frame;
  ++stores_;
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::uint64_t to = lanes<std::uint64_t>(op.r[0], frame)[lane];
    std::uint64_t from = lanes<std::uint64_t>(op.r[1], frame)[lane];
    const std::uint32_t size = lanes<std::uint32_t>(op.r[2], frame)[lane];
    if ((to | from | size) & 15) {
      return bad_access(split, 1u << lane, from, size, "misaligned", ErrorCode::kMisalignedAddress);
    }
    for (std::uint32_t done = 0; done < size; done += 16, to += 16, from += 16) {
      const std::uint64_t target =
          host_address(static_cast<Space>(op.a), to, 16, Access::kWrite, lane);
      const std::uint64_t source =
          host_address(static_cast<Space>(op.b), from, 16, Access::kRead, lane);
      if (target == 0 || source == 0) {
        return bad_access(split, 1u << lane, target ? from : to, 16, "not mapped",
                          ErrorCode::kIllegalAddress);
      }
      std::memcpy(reinterpret_cast<void*>(target), reinterpret_cast<void*>(source), 16);
    }
    if (!op.c) continue;
    const std::uint64_t word = lanes<std::uint64_t>(op.r[3], frame)[lane];
    const std::uint64_t at_word = host_address(Space::kShared, word, 8, Access::kWrite, lane);
    if (at_word == 0 || word % 8 != 0) {
      return bad_access(split, 1u << lane, word, 8, "not an mbarrier", ErrorCode::kIllegalAddress);
    }
    auto* const bits = reinterpret_cast<std::uint64_t*>(at_word);
    MbarrierState state = MbarrierState::from(*bits);
    state.bytes -= static_cast<std::int32_t>(size);
    state.finish_phase();
    *bits = state.word();
  }
  return true;
}

bool Warp::mbarrier(const Op& op, const Split& split, Mask exec) {
  const Frame& frame = *split.frame;
  const auto what = static_cast<MbarrierOp>(op.a);
  if (what == MbarrierOp::kPendingCount) {
    for (Mask rest = exec; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const std::uint64_t state = lanes<std::uint64_t>(op.r[1], frame)[lane];
      lanes<std::uint32_t>(op.r[0], frame)[lane] = MbarrierState::from(state).pending;
    }
    return true;
  }
  std::uint64_t address[kWarpSize];
  if (!resolve(op, split, exec, 8, Access::kWrite, address)) return false;
  const bool waits = what == MbarrierOp::kTest || what == MbarrierOp::kTestParity ||
                     what == MbarrierOp::kTry || what == MbarrierOp::kTryParity;
  if (waits) {
    spun(256);
  } else {
    ++stores_;
  }
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    mbarrier_lane(op, frame, *reinterpret_cast<std::uint64_t*>(address[lane]), lane);
  }
  return true;
}

void Warp::mbarrier_lane(const Op& op, const Frame& frame, std::uint64_t& word, int lane) {
  MbarrierState state = MbarrierState::from(word);
  const auto what = static_cast<MbarrierOp>(op.a);
  const auto value = [&] { return lanes<std::uint32_t>(op.r[1], frame)[lane]; };
  const auto answer = [&](bool done) {
    Mask& d = predicate(op.r[0], frame);
    d = (d & ~(1u << lane)) | std::uint32_t{done} << lane;
  };
  const auto give_state = [&] {
    if (op.flags & kHasSecond) lanes<std::uint64_t>(op.r[0], frame)[lane] = word;
  };
  switch (what) {
    case MbarrierOp::kInit:
      state = {value(), value(), 0, false};
      word = state.word();
      return;
    case MbarrierOp::kInvalidate:
      word = 0;
      return;
    case MbarrierOp::kArrive:
      give_state();
      state.arrive(value());
      break;
    case MbarrierOp::kArriveDrop:
      give_state();
      state.expected -= std::min(state.expected, value());
      state.arrive(value());
      break;
    case MbarrierOp::kArriveExpectTx:
      give_state();
      state.bytes += static_cast<std::int32_t>(value());
      state.arrive(1);
      break;
    case MbarrierOp::kExpectTx:
      state.bytes += static_cast<std::int32_t>(value());
      break;
    case MbarrierOp::kCompleteTx:
      state.bytes -= static_cast<std::int32_t>(value());
      break;
    case MbarrierOp::kTest:
    case MbarrierOp::kTry:
      answer(MbarrierState::from(lanes<std::uint64_t>(op.r[1], frame)[lane]).phase != state.phase);
      return;
    case MbarrierOp::kTestParity:
    case MbarrierOp::kTryParity:
      answer((value() & 1) != std::uint32_t{state.phase});
      return;
    case MbarrierOp::kCopyArriveNoInc:
      state.arrive(1);
      break;
    case MbarrierOp::kCopyArrive:
      return;  // one more to wait for, and it is done
    case MbarrierOp::kPendingCount:
      return;
  }
  state.finish_phase();
  word = state.word();
}

}  // namespace slate::sim
