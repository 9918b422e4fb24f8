// ConvertSpec: one cvt as values, for the lane-by-lane conversion that knows every pair of types
// and every register width (alu_convert_any.cc). Frequent pairs have loops of their own in
// alu_convert.cc. Any thread.
#pragma once

#include "device/sim/alu_narrow.h"

namespace slate::sim::SLATE_ALU_ISA {

struct ConvertSpec {
  ptx::Type d, s;
  u8 d_bytes, s_bytes;  // bytes a lane of the registers: at least the types'
  Round mode;           // rounding of the result, if it needs any
  bool integral;        // whether it is rounded to an integer first (.rni and so on)
  bool ftz, sat;
};

/// Converts the active lanes.
void convert_any(const AluOperands& o, Mask active, const ConvertSpec& spec);

/// Adds every cvt with the slow loop; alu_convert.cc then replaces the pairs that it has loops for.
void fill_convert_any(AluTable& t);

/// The suffix of the name for other register widths: "w4:8" for a 4-byte destination and an 8-byte
/// source; null if both are as the types say.
template <class D, class S, int kDBytes, int kSBytes>
constexpr const char* width_suffix() {
  constexpr const char* kNames[3][3] = {
      {"w2:2", "w2:4", "w2:8"}, {"w4:2", "w4:4", "w4:8"}, {"w8:2", "w8:4", "w8:8"}};
  constexpr auto index = [](int bytes) { return bytes == 2 ? 0 : bytes == 4 ? 1 : 2; };
  const bool native = kDBytes == sizeof(Storage<D>) && kSBytes == sizeof(Storage<S>);
  return native ? nullptr : kNames[index(kDBytes)][index(kSBytes)];
}

/// What a NaN becomes as an integer of `bits` bits: 0; from f64 or to 64 bits only the highest bit
/// is set.
constexpr u64 nan_as_integer(int bits, bool from_f64) {
  return from_f64 || bits == 64 ? u64{1} << (bits - 1) : 0;
}

template <class D, class S>
constexpr AluOp convert_op(AluFn fn) {
  return describe<D, S>(fn);
}

}  // namespace slate::sim::SLATE_ALU_ISA
