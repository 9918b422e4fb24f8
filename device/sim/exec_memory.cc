// Loads, stores and atomics: from PTX addresses to host addresses, checked for every lane, with the
// usual cases (all lanes in one chunk, consecutive elements) checked and moved at once.
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <limits>

#include "device/sim/decode.h"
#include "device/sim/warp.h"

namespace slate::sim {
namespace {

constexpr std::uint32_t kSpinWeight = 64;  // of a load or atomic that may wait for another thread
constexpr std::uint32_t kPageBytes = 128;  // of local memory, per thread
constexpr std::uint64_t kWindowMask = ~(kWindowBytes - 1);

std::string_view space_name(Space space) {
  switch (space) {
    case Space::kGlobal:
      return "not mapped";
    case Space::kShared:
      return "outside the block's shared memory";
    case Space::kLocal:
      return "outside the thread's local memory";
    case Space::kConst:
      return "outside the module's constants";
    case Space::kGeneric:
      return "not mapped";
    case Space::kEntryParam:
    case Space::kFrameParam:
      return "outside the parameters";
  }
  return "";
}

bool in_globals(const device::AddressRange& globals, const std::uint64_t (&address)[kWarpSize],
                std::uint32_t bytes) {
  if (globals.bytes < bytes) return false;
  const std::uint64_t last = globals.bytes - bytes;
  bool inside = true;
  for (const std::uint64_t each : address) inside &= each - globals.base <= last;
  return inside;
}

}  // namespace

bool Warp::bad_access(const Split& split, Mask exec, std::uint64_t address, std::uint32_t bytes,
                      const char* why, ErrorCode code) {
  fault(code, exec, split.pc,
        fmt::format("{} of {} bytes at {:#x}: {}", block_->code->opcode_text(split.pc), bytes,
                    address, why));
  return false;
}

std::uint64_t Warp::local_address(std::uint64_t offset, std::uint32_t bytes, int lane) {
  if (offset >= local_bytes_ || bytes > local_bytes_ - offset) return 0;
  const std::size_t page = offset / kPageBytes;
  if (page >= local_pages_.size()) local_pages_.resize(page + 1);
  if (!local_pages_[page]) {
    local_pages_[page] =
        unwritten(kPageBytes * kWarpSize / sizeof(ConstantLine), block_->launch->leftovers);
  }
  return reinterpret_cast<std::uint64_t>(local_pages_[page][0].bytes) +
         piece_offset(offset % kPageBytes, lane);
}

std::uint64_t Warp::host_address(Space space, std::uint64_t address, std::uint32_t bytes,
                                 Access access, int lane) {
  const KernelLaunch& launch = *block_->launch;
  // ptxas takes no more of such an address.
  if (space == Space::kLocal) address &= std::numeric_limits<std::uint32_t>::max();
  if (space == Space::kGeneric) {
    if ((address & kWindowMask) == kSharedWindow) {
      space = Space::kShared;
      address -= kSharedWindow;
    } else if ((address & kWindowMask) == kLocalWindow) {
      space = Space::kLocal;
      address -= kLocalWindow;
    }
  }
  switch (space) {
    case Space::kShared: {
      if (address >= block_->shared_bytes || bytes > block_->shared_bytes - address) return 0;
      return reinterpret_cast<std::uint64_t>(block_->shared.get()) + address;
    }
    case Space::kLocal:
      return local_address(address, bytes, lane);
    case Space::kConst:
      return launch.memory.constants.contains(address, bytes) ? address : 0;
    case Space::kEntryParam: {
      const std::uint64_t size = launch.parameters.size();
      if (address >= size || bytes > size - address) return 0;
      return reinterpret_cast<std::uint64_t>(launch.parameters.data()) + address;
    }
    case Space::kGlobal:
    case Space::kGeneric:
      break;
    case Space::kFrameParam:
      return 0;  // resolved by translate()
  }
  if (launch.memory.allows(address, bytes)) return address;
  // Whoever has the address of a constant may write there, for the kernels that come next.
  if (launch.memory.constants.contains(address, bytes)) return address;
  if (access == Access::kWrite) return 0;
  // cvta.param: the parameters have a generic address too.
  const auto first = reinterpret_cast<std::uint64_t>(launch.parameters.data());
  return device::AddressRange{first, launch.parameters.size()}.contains(address, bytes) ? address
                                                                                        : 0;
}

bool Warp::resolve(const Op& op, const Split& split, Mask exec, std::uint32_t bytes, Access access,
                   std::uint64_t (&address)[kWarpSize]) {
  const Frame& frame = *split.frame;
  auto space = static_cast<Space>(op.kind == Kind::kMbarrier ? op.b : op.a);
  const auto offset = static_cast<std::uint64_t>(op.imm);
  if (!(op.flags & kAddressed)) {
    const std::uint64_t base = op.flags & kFrameRelative ? offset + frame.local_base : offset;
    for (std::uint64_t& each : address) each = base;
  } else {
    if (op.e == 8) {
      const auto* const base = lanes<std::uint64_t>(op.r[4], frame);
      for (int lane = 0; lane < kWarpSize; ++lane) address[lane] = base[lane] + offset;
    } else {
      const auto* const base = lanes<std::uint32_t>(op.r[4], frame);
      for (int lane = 0; lane < kWarpSize; ++lane) {
        address[lane] = static_cast<std::uint32_t>(base[lane] + offset);
      }
    }
    if (exec != kAllLanes) {
      const std::uint64_t first = address[std::countr_zero(exec)];
      for (int lane = 0; lane < kWarpSize; ++lane) {
        address[lane] = exec >> lane & 1 ? address[lane] : first;
      }
    }
  }
  return translate(op, split, space, exec, bytes, access, address);
}

bool Warp::translate(const Op& op, const Split& split, Space space, Mask exec, std::uint32_t bytes,
                     Access access, std::uint64_t (&address)[kWarpSize]) {
  std::uint64_t ones = 0;
  std::uint64_t differing = 0;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    ones |= address[lane];
    differing |= address[lane] ^ address[0];
  }
  if (ones & (bytes - 1)) {
    for (Mask rest = exec; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      if (address[lane] & (bytes - 1)) {
        return bad_access(split, 1u << lane, address[lane], bytes, "misaligned",
                          ErrorCode::kMisalignedAddress);
      }
    }
  }
  const MemoryView& memory = block_->launch->memory;
  const bool plain = space == Space::kGlobal || (space == Space::kGeneric && ones < kSharedWindow);
  const std::uint64_t offset = address[0] - memory.space_base;
  if (plain && differing < kChunkBytes && memory.space_base % kChunkBytes == 0 &&
      offset < memory.space_bytes &&
      memory.owners[offset >> kChunkShift].load(std::memory_order_relaxed) == memory.tag) {
    return true;  // all lanes in one chunk
  }
  if (plain && in_globals(memory.globals, address, bytes)) return true;
  if (space == Space::kShared && ones + bytes <= block_->shared_bytes) {
    const auto base = reinterpret_cast<std::uint64_t>(block_->shared.get());
    for (std::uint64_t& each : address) each += base;
    return true;
  }
  if (space == Space::kFrameParam) {
    const auto base = reinterpret_cast<std::uint64_t>(split.frame->registers + op.target);
    for (int lane = 0; lane < kWarpSize; ++lane)
      address[lane] = base + piece_offset(address[lane], lane);
    return true;
  }
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t host = host_address(space, address[lane], bytes, access, lane);
    if (host == 0) {
      return bad_access(split, 1u << lane, address[lane], bytes, space_name(space).data(),
                        ErrorCode::kIllegalAddress);
    }
    address[lane] = host;
  }
  const std::uint64_t first = address[std::countr_zero(exec)];
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if (!(exec >> lane & 1)) address[lane] = first;
  }
  return true;
}

namespace {

/// True if the lanes' elements follow one another.
bool consecutive(const std::uint64_t (&address)[kWarpSize], std::uint32_t bytes) {
  std::uint64_t gaps = 0;
  for (std::uint64_t lane = 0; lane < kWarpSize; ++lane) {
    gaps |= address[lane] ^ (address[0] + lane * bytes);
  }
  return gaps == 0;
}

bool moves_at_once(const Op& op, Mask exec, const std::uint64_t (&address)[kWarpSize]) {
  return exec == kAllLanes && op.c == 1 && !(op.flags & (kStrong | kConverts)) &&
         consecutive(address, op.b);
}

}  // namespace

void Warp::move_components(const Op& op, const Frame& frame, std::uint64_t (&address)[kWarpSize],
                           Mask exec) {
  for (unsigned i = 0; i < op.c; ++i) {
    op.transfer(at(op.r[i], frame), address, exec);
    if (i + 1u == op.c) break;
    for (std::uint64_t& each : address) each += op.b;
  }
}

bool Warp::load(const Op& op, const Split& split, Mask exec) {
  alignas(64) std::uint64_t address[kWarpSize];
  if (!resolve(op, split, exec, std::uint32_t{op.b} * op.c, Access::kRead, address)) return false;
  if (op.flags & kStrong) spun(kSpinWeight);
  const Frame& frame = *split.frame;
  if (moves_at_once(op, exec, address)) {
    std::memcpy(at(op.r[0], frame), reinterpret_cast<const void*>(address[0]),
                std::size_t{op.b} * kWarpSize);
    return true;
  }
  move_components(op, frame, address, exec);
  return true;
}

bool Warp::store(const Op& op, const Split& split, Mask exec) {
  alignas(64) std::uint64_t address[kWarpSize];
  if (!resolve(op, split, exec, std::uint32_t{op.b} * op.c, Access::kWrite, address)) return false;
  ++stores_;
  const Frame& frame = *split.frame;
  if (moves_at_once(op, exec, address)) {
    std::memcpy(reinterpret_cast<void*>(address[0]), at(op.r[0], frame),
                std::size_t{op.b} * kWarpSize);
    return true;
  }
  move_components(op, frame, address, exec);
  return true;
}

bool Warp::atomic(const Op& op, const Split& split, Mask exec) {
  alignas(64) std::uint64_t address[kWarpSize];
  if (!resolve(op, split, exec, op.b, Access::kWrite, address)) return false;
  const Frame& frame = *split.frame;
  std::byte* const d = op.flags & kHasSecond ? at(op.r[0], frame) : nullptr;
  const std::byte* const b = at(op.r[1], frame);
  const std::byte* const c = at(op.r[2], frame);
  if (d) {
    spun(kSpinWeight);
  } else {
    ++stores_;
  }
  static const AtomFn kSharedSum = find_atom("add", ptx::Type::kF32, true);
  const AtomFn in_shared = op.flags & kFloatSum ? kSharedSum : nullptr;
  const auto shared = reinterpret_cast<std::uint64_t>(block_->shared.get());
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::size_t place = std::size_t{op.b} * static_cast<unsigned>(lane);
    const bool there = in_shared != nullptr && address[lane] - shared < block_->shared_bytes;
    const AtomFn change = there ? in_shared : op.atom;
    change(reinterpret_cast<void*>(address[lane]), b + place, c + place, d ? d + place : nullptr);
  }
  return true;
}

}  // namespace slate::sim
