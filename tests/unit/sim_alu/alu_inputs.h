// Inputs for the tests of sim's arithmetic: lane storage, and values of any PTX type that mix edge
// cases with random ones, the same in every run.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "device/sim/alu_index.h"

namespace slate::sim {

/// One register: room for 32 lanes of any type, or a Mask.
struct alignas(kRegisterAlign) TestRegister {
  std::uint8_t bytes[kWarpSize * 16] = {};

  template <class T>
  T* lanes() {
    return reinterpret_cast<T*>(bytes);
  }
  bool operator==(const TestRegister& other) const {
    return std::memcmp(bytes, other.bytes, sizeof(bytes)) == 0;
  }
};

/// Bytes that one lane of `type` takes; 0 for predicates.
int lane_bytes_of(ptx::Type type);

std::uint64_t get_lane(const TestRegister& r, int bytes, int lane);
void set_lane(TestRegister& r, int bytes, int lane, std::uint64_t value);

class AluInputs {
 public:
  explicit AluInputs(std::uint64_t seed) : random_(seed) {}
  /// Bits of a value of `type`, sometimes an edge case, sometimes small, sometimes any bits.
  std::uint64_t value(ptx::Type type);
  /// 32 such values in registers of `bytes` a lane; random bits above the type's own.
  TestRegister lanes(ptx::Type type, int bytes);
  std::uint64_t bits() { return random_(); }

 private:
  std::mt19937_64 random_;
};

/// Runs op once over fresh copies of the sources. `d` is in and out.
struct AluCall {
  TestRegister d, d2;
  TestRegister s[5];
  Mask carry = 0;
  void run(const AluOp& op, Mask active);
};

}  // namespace slate::sim
