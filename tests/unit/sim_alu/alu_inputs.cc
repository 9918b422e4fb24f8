// Inputs for the tests of sim's arithmetic; see alu_inputs.h.
#include "tests/unit/sim_alu/alu_inputs.h"

#include <span>

namespace slate::sim {
namespace {

using enum ptx::Type;

constexpr std::uint64_t kEdgesF32[] = {
    0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345,
    0x7fffffff, 0x7f81f345, 0x00800001, 0x3f7ffffe, 0x7f812345, 0x00000001, 0x80000001, 0x007fffff,
    0x807fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, 0x3f000000, 0x3fc00000, 0x40200000,
    0xbf000000, 0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001, 0x4f7fffff, 0x4f800000, 0x5effffff,
    0x5f000000, 0x5f800000, 0xdf000000, 0x33800000, 0x7e800000, 0x7e800001, 0x477fe000, 0x477ff000,
    0x43800000, 0x33000000, 0x3f7fffff, 0x7f7f8000, 0x42ff0000, 0x43000000, 0x437f0000, 0x46fffe00,
    0x47000000, 0x477fff00, 0x38800000, 0x387fffff};
constexpr std::uint64_t kEdgesF64[] = {
    0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000,
    0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8000012345678,
    0x7ff0000012345678, 0x0000000000000001, 0xfffabcdef1234567, 0x7ff4cdef12345678,
    0x800fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff, 0xffefffffffffffff,
    0x3fe0000000000000, 0x3ff8000000000000, 0x4004000000000000, 0x41dfffffffc00000,
    0x41e0000000000000, 0xc1e0000000000000, 0xc1e0000000200000, 0x41efffffffe00000,
    0x43dfffffffffffff, 0x43e0000000000000, 0xc3e0000000000000, 0x43efffffffffffff,
    0x43f0000000000000, 0x36a0000000000000, 0x380fffffffffffff, 0x47efffffe0000000,
    0x47effffff0000000, 0x3ff0000010000000};
constexpr std::uint64_t kEdgesHalf[] = {
    0x0000, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7d00, 0x0001, 0x8001, 0x03ff,
    0x83ff, 0x0400, 0x7bff, 0xfbff, 0x3800, 0x3e00, 0x3f80, 0x7f80, 0xff80, 0x7fc0, 0x7fff, 0x7f7f};
constexpr std::uint64_t kEdgesInteger[] = {0,
                                           1,
                                           2,
                                           3,
                                           7,
                                           8,
                                           15,
                                           16,
                                           31,
                                           32,
                                           33,
                                           63,
                                           64,
                                           65,
                                           127,
                                           128,
                                           255,
                                           256,
                                           0x7fff,
                                           0x8000,
                                           0xffff,
                                           0x10000,
                                           0x7fffffff,
                                           0x80000000,
                                           0x80000001,
                                           0xfffffffe,
                                           0xffffffff,
                                           0x100000000,
                                           0x7fffffffffffffff,
                                           0x8000000000000000,
                                           0x8000000000000001,
                                           0xfffffffffffffffe,
                                           0xffffffffffffffff,
                                           0xffffffffffffff80};

bool is_half(ptx::Type type) {
  return type == kF16 || type == kBf16;
}
bool is_pair(ptx::Type type) {
  return type == kF16x2 || type == kBf16x2;
}

std::span<const std::uint64_t> edges(ptx::Type type) {
  if (type == kF32) return kEdgesF32;
  if (type == kF64) return kEdgesF64;
  if (is_half(type)) return kEdgesHalf;
  return kEdgesInteger;
}

}  // namespace

int lane_bytes_of(ptx::Type type) {
  switch (type) {
    case kPred:
    case kNone:
      return 0;
    case kB8:
    case kU8:
    case kS8:
    case kB16:
    case kU16:
    case kS16:
    case kF16:
    case kBf16:
      return 2;
    case kB64:
    case kU64:
    case kS64:
    case kF64:
      return 8;
    case kB128:
      return 16;
    default:
      return 4;
  }
}

std::uint64_t get_lane(const TestRegister& r, int bytes, int lane) {
  std::uint64_t value = 0;
  std::memcpy(&value, r.bytes + lane * bytes, static_cast<std::size_t>(bytes < 8 ? bytes : 8));
  return value;
}
void set_lane(TestRegister& r, int bytes, int lane, std::uint64_t value) {
  std::memcpy(r.bytes + lane * bytes, &value, static_cast<std::size_t>(bytes < 8 ? bytes : 8));
}

std::uint64_t AluInputs::value(ptx::Type type) {
  if (is_pair(type)) {
    const ptx::Type half = type == kF16x2 ? kF16 : kBf16;
    return value(half) | value(half) << 16;
  }
  const auto list = edges(type);
  const std::uint64_t raw = random_();
  switch (random_() % 8) {
    case 0:
    case 1:
      return list[raw % list.size()];
    case 2:
    case 3: {
      // Numbers of ordinary size, so that sums round and cancel, and small integers.
      if (type == kF32) return (raw & 0x807fffff) | (0x70 + (raw >> 32) % 0x20) << 23;
      if (type == kF64) return (raw & 0x800fffffffffffff) | (0x3e0 + (random_() % 0x40)) << 52;
      if (is_half(type)) return raw & 0xffff;
      return raw % 70;
    }
    case 4: {
      if (type == kF32) {  // whole and half numbers
        const float x = static_cast<float>(static_cast<std::int32_t>(raw % 2001) - 1000) * 0.5f;
        std::uint32_t b;
        std::memcpy(&b, &x, 4);
        return b;
      }
      if (type == kF64) {
        const double x = static_cast<double>(static_cast<std::int64_t>(raw) >> (raw % 60)) * 0.5;
        std::uint64_t b;
        std::memcpy(&b, &x, 8);
        return b;
      }
      return is_half(type) ? raw & 0xffff : std::uint64_t{0} - raw % 70;
    }
    case 5:
      return is_half(type) || type == kF32 || type == kF64 ? raw : raw >> (random_() % 64);
    default:
      return raw;
  }
}

TestRegister AluInputs::lanes(ptx::Type type, int bytes) {
  TestRegister r;
  if (type == kPred) {
    *r.lanes<Mask>() = static_cast<Mask>(random_());
    return r;
  }
  for (int i = 0; i < kWarpSize; ++i) set_lane(r, bytes, i, value(type));
  return r;
}

void AluCall::run(const AluOp& op, Mask active) {
  AluOperands o;
  o.d = d.bytes;
  o.d2 = d2.bytes;
  for (int k = 0; k < op.sources; ++k) o.s[k] = s[k].bytes;
  o.carry = &carry;
  op.fn(o, active);
}

}  // namespace slate::sim
