// Asks a real GPU: every shape and type of mma and wmma runs there and on sim with the same
// registers or tiles. Integers, f64, and sums that are exact in any order must have the same bits;
// other sums must be near, and how many are equal is printed. Label gpu; skipped without one.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <span>

#include "tests/unit/sim_alu/gpu_driver.h"
#include "tests/unit/sim_core/harness.h"
#include "tests/unit/sim_core/matrix_cases.h"

namespace slate::sim::test {
namespace {

constexpr std::size_t kInputBytes = 4 * kTileBytes;
constexpr std::size_t kOutputBytes = kTileBytes;
constexpr int kRuns = 20;

bool is_narrow_float(const std::string& type) {
  return type == "f16" || type == "bf16" || type == "tf32" || is_fp8(type);
}

class MatrixGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!driver_.open()) GTEST_SKIP() << "no GPU";
    ASSERT_EQ(driver_.allocate(&in_, kInputBytes), 0);
    ASSERT_EQ(driver_.allocate(&out_, kOutputBytes), 0);
  }

  std::span<std::uint8_t> input() { return {machine_.memory.at<std::uint8_t>(0), kInputBytes}; }

  /// Runs `text` on both with the same input and output; `gpu_` and sim_output() are the results.
  void run(const std::string& text) {
    void* module = nullptr;
    void* function = nullptr;
    ASSERT_EQ(driver_.load(&module, text.c_str()), 0) << text;
    ASSERT_EQ(driver_.function(&function, module, "k"), 0);
    std::memset(machine_.memory.at<std::uint8_t>(1u << 20), 0, kOutputBytes);
    gpu_.assign(kOutputBytes, 0);
    driver_.to_device(in_, input().data(), kInputBytes);
    driver_.to_device(out_, gpu_.data(), kOutputBytes);
    void* arguments[] = {&in_, &out_};
    ASSERT_EQ(driver_.launch(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr), 0);
    ASSERT_EQ(driver_.to_host(gpu_.data(), out_, kOutputBytes), 0) << text;
    driver_.unload(module);
    const Outcome outcome = machine_.run(text);
    ASSERT_TRUE(outcome.ok()) << outcome.message();
  }
  std::span<const std::uint8_t> sim_output() {
    return {machine_.memory.at<std::uint8_t>(1u << 20), kOutputBytes};
  }
  void expect_same(const MatrixCase& test) {
    EXPECT_TRUE(std::equal(gpu_.begin(), gpu_.end(), sim_output().begin())) << test.name();
  }

  /// Every register of a fragment, or byte of a tile, with elements that add(type) gives.
  template <typename Element>
  void fill(std::size_t begin, std::size_t end, const std::string& type, const Element& element) {
    const unsigned bits = bits_of_type(type);
    const std::size_t step = register_bytes(type);
    for (std::size_t at = begin; at < end; at += step) {
      std::uint64_t word = 0;
      for (unsigned i = 0; i < 8 * step; i += bits) word |= element(type) << i;
      std::memcpy(input().data() + at, &word, step);
    }
  }
  /// A, B and C, `part` bytes each.
  template <typename Element>
  void fill_all(const MatrixCase& test, std::size_t part, const Element& element) {
    fill(0, part, test.a, element);
    fill(part, 2 * part, test.b, element);
    fill(2 * part, 3 * part, test.c, element);
  }

  std::uint64_t small_element(const std::string& type) {
    if (type == "s32") return std::uniform_int_distribution<std::uint32_t>()(generator_);
    return encode_element(type, random_element(type, generator_));
  }
  /// A number of less than 8 with all its bits.
  std::uint64_t any_element(const std::string& type) {
    const double x = std::uniform_real_distribution<double>(-1, 1)(generator_) *
                     std::exp2(std::uniform_int_distribution<int>(-6, 3)(generator_));
    __extension__ using Half = _Float16;
    if (type == "f16") return std::bit_cast<std::uint16_t>(static_cast<Half>(x));
    if (is_fp8(type)) {  // codes below that of 8
      const auto magnitude = std::uniform_int_distribution<std::uint32_t>(0, 0x47)(generator_);
      return magnitude | (generator_() & 0x80);
    }
    if (type == "f64") return std::bit_cast<std::uint64_t>(x);
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
    return type == "bf16" ? bits >> 16 : bits;
  }

  Driver driver_;
  Machine machine_;
  std::mt19937 generator_{20261124};
  std::uint64_t in_ = 0, out_ = 0;
  std::vector<std::uint8_t> gpu_;
};

TEST_F(MatrixGpuTest, SumsThatAreExactHaveTheBitsThatTheGpuGives) {
  const auto element = [&](const std::string& type) { return small_element(type); };
  for (const MatrixCase& test : mma_cases()) {
    fill_all(test, kFragmentBytes, element);
    run(mma_kernel(test));
    expect_same(test);
  }
  for (const MatrixCase& test : wmma_cases()) {
    fill_all(test, kTileBytes, element);
    run(wmma_kernel(test));
    expect_same(test);
  }
}

TEST_F(MatrixGpuTest, DoublesHaveTheBitsThatTheGpuGives) {
  for (const MatrixCase& test : mma_cases()) {
    if (test.a != "f64") continue;
    for (int i = 0; i < kRuns; ++i) {
      fill_all(test, kFragmentBytes, [&](const std::string& type) { return any_element(type); });
      run(mma_kernel(test));
      expect_same(test);
    }
  }
}

TEST_F(MatrixGpuTest, OtherSumsAreNear) {
  for (const MatrixCase& test : mma_cases()) {
    if (!is_narrow_float(test.a)) continue;
    int equal = 0, all = 0;
    const std::size_t step = bits_of_type(test.d) / 8;
    for (int i = 0; i < kRuns; ++i) {
      fill_all(test, kFragmentBytes, [&](const std::string& type) { return any_element(type); });
      run(mma_kernel(test));
      for (std::size_t at = 0; at < kOutputBytes; at += step) {
        std::uint64_t ours = 0, theirs = 0;
        std::memcpy(&ours, sim_output().data() + at, step);
        std::memcpy(&theirs, gpu_.data() + at, step);
        if (ours == 0 && theirs == 0) continue;  // between the registers, for the most part
        ++all;
        equal += ours == theirs;
        // Seventeen terms of less than 64, or 33 with fp8, each cut at its part of that.
        const double bound = test.d == "f16" || is_fp8(test.a) ? 1 : 0x1p-12;
        ASSERT_NEAR(decode_element(test.d, ours), decode_element(test.d, theirs), bound)
            << test.name();
      }
    }
    std::printf("%s: %d of %d have the same bits\n", test.name().c_str(), equal, all);
  }
}

}  // namespace
}  // namespace slate::sim::test
