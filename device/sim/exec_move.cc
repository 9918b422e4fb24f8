// Moves that change the shape of a value, addresses of variables, and clocks.
#include <bit>
#include <cstring>

#include "base/clock.h"
#include "device/sim/warp.h"

namespace slate::sim {
namespace {

template <typename Visit>
void each_lane(Mask exec, Visit visit) {
  for (Mask rest = exec; rest != 0; rest &= rest - 1) visit(std::countr_zero(rest));
}

/// The first `bytes` bytes of lane `lane` as a number; `width` is the register's.
std::uint64_t read_lane(const std::byte* lanes, std::uint32_t width, std::uint32_t bytes,
                        int lane) {
  std::uint64_t value = 0;
  std::memcpy(&value, lanes + std::size_t{width} * static_cast<unsigned>(lane),
              bytes < 8 ? bytes : 8);
  return value;
}

}  // namespace

void Warp::extend(const Op& op, const Frame& frame, Mask exec) {
  std::byte* const d = at(op.r[0], frame);
  const std::byte* const s = at(op.r[1], frame);
  each_lane(exec, [&](int lane) {
    const std::uint64_t value = read_lane(s, op.b, op.b, lane);
    std::byte* const to = d + std::size_t{op.a} * static_cast<unsigned>(lane);
    std::memset(to, 0, op.a);
    std::memcpy(to, &value, op.a < 8 ? op.a : 8);
  });
}

void Warp::pack(const Op& op, const Frame& frame, Mask exec) {
  std::byte* const d = at(op.r[0], frame);
  const std::uint32_t part = op.a / op.b;
  const std::byte* parts[4] = {};
  for (unsigned i = 0; i < op.b; ++i) parts[i] = at(op.r[1 + i], frame);
  each_lane(exec, [&](int lane) {
    std::byte value[16];
    for (unsigned i = 0; i < op.b; ++i) {
      std::memcpy(value + i * part, parts[i] + std::size_t{op.c} * static_cast<unsigned>(lane),
                  part);
    }
    std::memcpy(d + std::size_t{op.a} * static_cast<unsigned>(lane), value, op.a);
  });
}

void Warp::unpack(const Op& op, const Frame& frame, Mask exec) {
  const std::byte* const s = at(op.r[5], frame);
  const std::uint32_t part = op.a / op.b;
  std::byte* parts[4] = {};
  for (unsigned i = 0; i < op.b; ++i) parts[i] = at(op.r[i], frame);
  each_lane(exec, [&](int lane) {
    std::byte value[16];
    std::memcpy(value, s + std::size_t{op.a} * static_cast<unsigned>(lane), op.a);
    for (unsigned i = 0; i < op.b; ++i) {
      std::uint64_t element = 0;
      std::memcpy(&element, value + i * part, part);
      std::memcpy(parts[i] + std::size_t{op.c} * static_cast<unsigned>(lane), &element, op.c);
    }
  });
}

void Warp::make_address(const Op& op, const Frame& frame, Mask exec) {
  auto* const d = lanes<std::uint64_t>(op.r[0], frame);
  auto value = static_cast<std::uint64_t>(op.imm);
  if (op.kind == Kind::kLocalAddress) {
    value += frame.local_base;
  } else {
    value += reinterpret_cast<std::uint64_t>(block_->launch->parameters.data());
  }
  each_lane(exec, [&](int lane) { d[lane] = value; });
}

void Warp::convert_address(const Op& op, const Frame& frame, Mask exec) {
  std::byte* const d = at(op.r[0], frame);
  const std::byte* const s = at(op.r[1], frame);
  each_lane(exec, [&](int lane) {
    const std::uint64_t value = read_lane(s, op.b, op.b, lane) + static_cast<std::uint64_t>(op.imm);
    std::memcpy(d + std::size_t{op.a} * static_cast<unsigned>(lane), &value, op.a);
  });
}

void Warp::is_space(const Op& op, const Frame& frame, Mask exec) {
  const std::byte* const s = at(op.r[1], frame);
  const KernelLaunch& launch = *block_->launch;
  const auto first = reinterpret_cast<std::uint64_t>(launch.parameters.data());
  const device::AddressRange parameters{first, launch.parameters.size()};
  Mask result = 0;
  each_lane(exec, [&](int lane) {
    const std::uint64_t address = read_lane(s, op.b, op.b, lane);
    const bool shared = (address & ~(kWindowBytes - 1)) == kSharedWindow;
    const bool local = (address & ~(kWindowBytes - 1)) == kLocalWindow;
    const bool constant = launch.memory.constants.contains(address, 1);
    const bool parameter = parameters.contains(address, 1);
    bool is = false;
    switch (static_cast<Space>(op.a)) {
      case Space::kShared:
        is = shared;
        break;
      case Space::kLocal:
        is = local;
        break;
      case Space::kConst:
        is = constant;
        break;
      case Space::kEntryParam:
        is = parameter;
        break;
      default:
        is = !shared && !local && !constant;  // the parameters lie inside the global space
        break;
    }
    if (is) result |= 1u << lane;
  });
  Mask& d = predicate(op.r[0], frame);
  d = (d & ~exec) | result;
}

void Warp::read_clock(const Op& op, const Frame& frame, Mask exec) {
  // Real time at one tick a nanosecond: kernels that wait for a number of ticks end, however slow
  // sim is.
  const auto now = static_cast<std::uint64_t>(now_ns());
  sync_ops_ += 1;
  each_lane(exec, [&](int lane) {
    switch (static_cast<Clock>(op.a)) {
      case Clock::kFull:
        lanes<std::uint64_t>(op.r[0], frame)[lane] = now;
        break;
      case Clock::kLow:
        lanes<std::uint32_t>(op.r[0], frame)[lane] = static_cast<std::uint32_t>(now);
        break;
      case Clock::kHigh:
        lanes<std::uint32_t>(op.r[0], frame)[lane] = static_cast<std::uint32_t>(now >> 32);
        break;
    }
  });
}

}  // namespace slate::sim
