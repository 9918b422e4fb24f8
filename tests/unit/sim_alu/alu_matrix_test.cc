// Products of matrices: the code for any x86-64 and that for AVX2 give the same bits. What they
// give is tested with the instructions (sim_core/matrix_test.cc).
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "device/sim/alu_index.h"
#include "device/sim/matrix.h"

namespace slate::sim {
namespace {

using enum MatrixType;

/// Eight registers of each fragment, with room for lanes of 8 bytes.
struct Registers {
  alignas(kRegisterAlign) std::uint64_t lanes[kMatrixRegisters][kWarpSize];
};

class AluMatrixTest : public testing::TestWithParam<MatrixProduct> {};

TEST_P(AluMatrixTest, BothInstructionSetsGiveTheSameBits) {
  if (!alu_isa_supported(AluIsa::kV3)) GTEST_SKIP() << "no AVX2";
  constexpr int kRuns = 200;
  std::mt19937_64 generator(3);
  for (int run = 0; run < kRuns; ++run) {
    Registers a, b, c, d[2] = {};
    for (Registers* registers : {&a, &b, &c}) {
      for (auto& lanes : registers->lanes) {
        for (std::uint64_t& word : lanes) word = generator();
      }
    }
    const auto active = run % 2 == 0 ? kAllLanes : static_cast<Mask>(generator());
    constexpr std::array<MatrixFn, 2> kMultiply = {&isa_base::multiply_matrices,
                                                   &isa_v3::multiply_matrices};
    for (std::size_t k = 0; k < 2; ++k) {
      MatrixOperands operands;
      for (int r = 0; r < kMatrixRegisters; ++r) {
        operands.d[r] = d[k].lanes[r];
        operands.a[r] = a.lanes[r];
        operands.b[r] = b.lanes[r];
        operands.c[r] = c.lanes[r];
      }
      kMultiply[k](GetParam(), operands, active);
    }
    ASSERT_EQ(std::memcmp(&d[0], &d[1], sizeof(Registers)), 0) << "run " << run;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Products, AluMatrixTest,
    testing::Values(
        MatrixProduct{.shape = {16, 16, 16}, .a = kF16, .b = kF16, .c = kF32, .d = kF32},
        MatrixProduct{.shape = {8, 32, 16}, .a = kF16, .b = kF16, .c = kF16, .d = kF16},
        MatrixProduct{.shape = {32, 8, 16}, .a = kBf16, .b = kBf16, .c = kF32, .d = kF32},
        MatrixProduct{.shape = {16, 16, 8}, .a = kTf32, .b = kTf32, .c = kF32, .d = kF32},
        MatrixProduct{.shape = {16, 8, 32}, .a = kE4m3, .b = kE5m2, .c = kF32, .d = kF32},
        MatrixProduct{.shape = {8, 8, 4},
                      .a = kF16,
                      .b = kF16,
                      .c = kF32,
                      .d = kF16,
                      .quad_pairs = true,
                      .b_by_column = true},
        MatrixProduct{.shape = {16, 8, 16}, .a = kF64, .b = kF64, .c = kF64, .d = kF64},
        MatrixProduct{
            .shape = {16, 8, 32}, .a = kS8, .b = kU8, .c = kS32, .d = kS32, .saturates = true},
        MatrixProduct{.shape = {16, 8, 64}, .a = kU4, .b = kS4, .c = kS32, .d = kS32},
        MatrixProduct{.shape = {16, 8, 256}, .a = kB1, .b = kB1, .c = kS32, .d = kS32}));

}  // namespace
}  // namespace slate::sim
