// Control flow beyond the plain branch: jump tables, calls, returns, exits.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "device/sim/decode.h"
#include "device/sim/warp.h"

namespace slate::sim {
namespace {

constexpr std::uint32_t kMaxDepth = 4096;
constexpr std::uint64_t kMaxWarpFrames = 16u << 20;  // as CUDA: 512 KiB for each thread
constexpr std::uint32_t kMaxLocal = 512u << 10;

/// Lanes of `exec` whose value equals that of the first one.
template <typename T>
Mask like_first(const T* values, Mask exec) {
  const T first = values[std::countr_zero(exec)];
  Mask same = 0;
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (values[lane] == first) same |= 1u << lane;
  }
  return same;
}

}  // namespace

void Warp::let_pass(Split& split, Mask exec) {
  const Mask others = split.mask & ~exec;
  split.mask = exec;
  if (others != 0) add_split(split.pc + 1, others, split.frame);
}

Warp::Flow Warp::branch_index(const Op& op, Split& split, Mask exec) {
  let_pass(split, exec);
  const auto* const index = lanes<std::uint32_t>(op.r[0], *split.frame);
  Mask rest = exec;
  while (rest != 0) {
    const Mask same = like_first(index, rest);
    const std::uint32_t value = index[std::countr_zero(rest)];
    rest &= ~same;
    if (value >= op.imm) {
      fault(ErrorCode::kIllegalInstruction, same, split.pc,
            fmt::format("brx.idx with index {} of {}", value, op.imm));
      return Flow::kReschedule;
    }
    const std::uint32_t target = block_->code->branch_tables[op.target + value];
    if (rest != 0) {
      add_split(target, same, split.frame);
    } else {
      split.mask = same;
      split.pc = target;
    }
  }
  return Flow::kReschedule;
}

Frame* Warp::child_frame(Frame& parent, const FunctionCode& function) {
  for (const auto& child : parent.children) {
    if (child->function == &function) return child.get();
  }
  const std::uint32_t local = parent.local_base + parent.function->local_bytes;
  if (parent.depth + 1 > kMaxDepth || frame_bytes_ + function.frame_bytes > kMaxWarpFrames ||
      local + function.local_bytes > kMaxLocal) {
    return nullptr;
  }
  auto frame = std::make_unique<Frame>();
  frame->function = &function;
  frame->parent = &parent;
  frame->depth = parent.depth + 1;
  frame->local_base = local;
  frame->storage =
      unwritten(function.frame_bytes / sizeof(ConstantLine), block_->launch->leftovers);
  frame->registers = frame->storage[0].bytes;
  frame_bytes_ += function.frame_bytes;
  local_bytes_ = std::max(local_bytes_, local + function.local_bytes);
  parent.children.push_back(std::move(frame));
  return parent.children.back().get();
}

void Warp::copy_argument(const Argument& from, const Frame& from_frame, const Argument& to,
                         const Frame& to_frame, Mask exec) {
  if (from.is_register && to.is_register && from.width == 0) {
    Mask& d = predicate(to.ref, to_frame);
    d = (d & ~exec) | (predicate(from.ref, from_frame) & exec);
    return;
  }
  const auto size = [](const Argument& argument) {
    return argument.is_register ? std::uint32_t{argument.width} : argument.bytes;
  };
  const auto place = [this](const Argument& argument, const Frame& frame, std::uint32_t offset,
                            int lane) {
    if (argument.is_register) return at(argument.ref, frame) + argument.width * lane + offset;
    return frame.registers + argument.offset + piece_offset(offset, lane);
  };
  const std::uint32_t bytes = std::min(size(from), size(to));
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    for (std::uint32_t offset = 0; offset < bytes; offset += kPieceBytes) {
      std::memcpy(place(to, to_frame, offset, lane), place(from, from_frame, offset, lane),
                  std::min(kPieceBytes, bytes - offset));
    }
  }
}

Warp::Flow Warp::call(const Op& op, Split& split, Mask exec) {
  const CallSite& site = block_->code->calls[op.target];
  if (site.system != SystemCall::kNone) {
    return system_call(site, split, exec) ? Flow::kNext : Flow::kReschedule;
  }
  const std::vector<FunctionCode>& functions = block_->code->functions;
  if (site.function >= 0) return enter(site, functions[site.function], split, exec);
  const auto* const address = lanes<std::uint64_t>(site.address, *split.frame);
  const Mask same = like_first(address, exec);
  const std::uint64_t value = address[std::countr_zero(exec)];
  const auto found =
      std::ranges::find(functions.begin() + 1, functions.end(), value, &FunctionCode::address);
  if (found == functions.end()) {
    fault(ErrorCode::kIllegalInstruction, same, split.pc,
          fmt::format("call of {:#x}: not a function", value));
    return Flow::kReschedule;
  }
  // Lanes that call something else come back to this instruction on their own.
  if (exec != same) {
    add_split(split.pc, exec & ~same, split.frame);
    split.mask &= ~(exec & ~same);
  }
  return enter(site, *found, split, same);
}

Warp::Flow Warp::enter(const CallSite& site, const FunctionCode& function, Split& split,
                       Mask exec) {
  if (site.arguments.size() != function.parameters.size() ||
      site.returns.size() > function.returns.size()) {
    fault(ErrorCode::kIllegalInstruction, exec, split.pc,
          fmt::format("call of {} with other parameters than its own", function.name));
    return Flow::kReschedule;
  }
  Frame* const frame = child_frame(*split.frame, function);
  if (!frame) {
    fault(ErrorCode::kLaunchFailed, exec, split.pc,
          fmt::format("call of {}: the stack is full", function.name));
    return Flow::kReschedule;
  }
  for (std::size_t i = 0; i < site.arguments.size(); ++i) {
    copy_argument(site.arguments[i], *split.frame, function.parameters[i], *frame, exec);
  }
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    frame->return_pc[std::countr_zero(rest)] = split.pc + 1;
  }
  let_pass(split, exec);
  split.frame = frame;
  split.pc = function.first;
  return Flow::kReschedule;
}

Warp::Flow Warp::return_from(Split& split, Mask exec) {
  Frame* const frame = split.frame;
  if (frame->parent == nullptr) return leave(split, exec);
  let_pass(split, exec);
  Mask rest = exec;
  while (rest != 0) {
    const Mask same = like_first(frame->return_pc.data(), rest);
    const std::uint32_t to = frame->return_pc[std::countr_zero(rest)];
    const CallSite& site = block_->code->calls[ops_[to - 1].target];
    for (std::size_t i = 0; i < site.returns.size(); ++i) {
      copy_argument(frame->function->returns[i], *frame, site.returns[i], *frame->parent, same);
    }
    rest &= ~same;
    if (rest != 0) {
      add_split(to, same, frame->parent);
    } else {
      split.mask = same;
      split.pc = to;
      split.frame = frame->parent;
    }
  }
  return Flow::kReschedule;
}

Warp::Flow Warp::leave(Split& split, Mask exec) {
  split.mask &= ~exec;
  split.pc += 1;
  retire(exec);
  return Flow::kReschedule;
}

}  // namespace slate::sim
