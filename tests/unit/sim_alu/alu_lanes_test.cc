// What holds for every entry of the arithmetic table: masks, aliasing, and that both instruction
// sets agree.
#include <gtest/gtest.h>

#include "tests/unit/sim_alu/alu_check.h"

namespace slate::sim {
namespace {

int width(const std::string& name, ptx::Type type, bool destination) {
  const std::size_t suffix = name.find(".w");
  const bool wide = suffix != std::string::npos && name.find(':') != std::string::npos;
  return wide ? name[suffix + (destination ? 2 : 4)] - '0' : lane_bytes_of(type);
}

AluCall random_call(const std::string& name, const AluOp& op, AluInputs& inputs) {
  AluCall call;
  for (int k = 0; k < op.sources; ++k)
    call.s[k] = inputs.lanes(op.s[k], width(name, op.s[k], false));
  if (name.starts_with("lop3")) {
    for (int i = 0; i < kWarpSize; ++i) set_lane(call.s[3], 4, i, get_lane(call.s[3], 4, 0) & 0xff);
  }
  for (std::uint64_t* word = call.d.lanes<std::uint64_t>();
       word < call.d.lanes<std::uint64_t>() + 64; ++word) {
    *word = inputs.bits();
  }
  *call.d2.lanes<Mask>() = static_cast<Mask>(inputs.bits());
  call.carry = static_cast<Mask>(inputs.bits());
  return call;
}

TEST(AluLanesTest, BothInstructionSetsGiveTheSameBits) {
  if (!alu_isa_supported(AluIsa::kV3)) GTEST_SKIP() << "one instruction set only";
  const auto& base = AluTable::of(AluIsa::kBase).entries();
  const auto& v3 = AluTable::of(AluIsa::kV3).entries();
  ASSERT_EQ(base.size(), v3.size());
  for (const auto& [name, op] : base) {
    AluInputs inputs(7);
    const AluOp& other = v3.at(name);
    for (int n = 0; n < 8; ++n) {
      AluCall a = random_call(name, op, inputs);
      AluCall b = a;
      const Mask active = n == 0 ? kAllLanes : static_cast<Mask>(inputs.bits());
      a.run(op, active);
      b.run(other, active);
      ASSERT_EQ(a.d, b.d) << name;
      ASSERT_EQ(a.d2, b.d2) << name;
      ASSERT_EQ(a.carry, b.carry) << name;
    }
  }
}

/// `before` with the active lanes from `full`.
TestRegister blend(TestRegister before, const TestRegister& full, int bytes, Mask active) {
  if (bytes == 0) {
    Mask wanted;
    std::memcpy(&wanted, full.bytes, sizeof(wanted));
    Mask* mask = before.lanes<Mask>();
    *mask = (*mask & ~active) | (wanted & active);
    return before;
  }
  for (int i = 0; i < kWarpSize; ++i) {
    if ((active >> i & 1) != 0)
      std::memcpy(before.bytes + i * bytes, full.bytes + i * bytes,
                  static_cast<std::size_t>(bytes));
  }
  return before;
}

TEST(AluLanesTest, InactiveLanesAreUntouched) {
  for (const AluTable* table : alu_tables()) {
    for (const auto& [name, op] : table->entries()) {
      AluInputs inputs(8);
      for (const Mask active :
           {Mask{0}, Mask{1}, Mask{0x80000000}, static_cast<Mask>(inputs.bits())}) {
        const AluCall before = random_call(name, op, inputs);
        AluCall full = before;
        AluCall partial = before;
        full.run(op, kAllLanes);
        partial.run(op, active);
        EXPECT_EQ(partial.d, blend(before.d, full.d, width(name, op.d, true), active)) << name;
        EXPECT_EQ(partial.d2, blend(before.d2, full.d2, 0, active)) << name;
        EXPECT_EQ(partial.carry, (before.carry & ~active) | (full.carry & active)) << name;
      }
    }
  }
}

TEST(AluLanesTest, ASourceMayBeTheDestination) {
  for (const AluTable* table : alu_tables()) {
    for (const auto& [name, op] : table->entries()) {
      AluInputs inputs(9);
      for (int k = 0; k < op.sources; ++k) {
        if (width(name, op.s[k], false) != width(name, op.d, true)) continue;
        AluCall apart = random_call(name, op, inputs);
        apart.d = apart.s[k];
        AluCall aliased = apart;
        const Mask active = static_cast<Mask>(inputs.bits());
        apart.run(op, active);
        AluOperands o;
        o.d = aliased.d.bytes;
        o.d2 = aliased.d2.bytes;
        for (int s = 0; s < op.sources; ++s) o.s[s] = s == k ? aliased.d.bytes : aliased.s[s].bytes;
        o.carry = &aliased.carry;
        op.fn(o, active);
        ASSERT_EQ(apart.d, aliased.d) << name << " source " << k;
        ASSERT_EQ(apart.d2, aliased.d2) << name << " source " << k;
      }
    }
  }
}

}  // namespace
}  // namespace slate::sim
