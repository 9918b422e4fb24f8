// Matrix instructions: every element of a fragment is where the PTX manual puts it, and products
// are what the host computes.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/unit/sim_core/harness.h"
#include "tests/unit/sim_core/matrix_cases.h"

namespace slate::sim::test {
namespace {

struct Place {
  unsigned row, column;
};

/// Rows and columns of the manual's figures, for element `i` of a lane. `per`: elements of a
/// register.
Place place_in_a(unsigned lane, unsigned i, unsigned per, unsigned rows) {
  const unsigned group = lane >> 2, in_group = lane % 4;
  if (rows == 8) return {group, in_group * per + i};
  return {i / per % 2 == 0 ? group : group + 8, in_group * per + i % per + i / (2 * per) * 4 * per};
}
Place place_in_b(unsigned lane, unsigned i, unsigned per) {
  return {lane % 4 * per + i % per + i / per * 4 * per, lane >> 2};
}
Place place_in_c(unsigned lane, unsigned i) {
  return {(lane >> 2) + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)};
}

/// Those of m8n8k4 with f16, of the quad pair of the lane.
Place quad_place_in_a(unsigned lane, unsigned i, bool by_column) {
  if (by_column) return {lane < 16 ? i : i + 4, lane % 4};
  return {lane < 16 ? lane % 4 : lane % 4 + 4, i};
}
Place quad_place_in_b(unsigned lane, unsigned i, bool by_column) {
  if (by_column) return {i, lane < 16 ? lane % 4 : lane % 4 + 4};
  return {lane % 4, lane < 16 ? i : i + 4};
}
Place quad_place_in_c(unsigned lane, unsigned i, bool is_f16) {
  if (is_f16) return {lane < 16 ? lane % 4 : lane % 4 + 4, i};
  const unsigned x = (lane & 1) + (i & 2);
  return {lane < 16 ? x : x + 4, (i & 4) + (lane & 2) + (i & 1)};
}

using Matrix = std::vector<int>;

/// A * B + C in numbers; bits are counted.
int product(const MatrixCase& test, const Matrix& a, const Matrix& b, int c, unsigned row,
            unsigned column) {
  int sum = c;
  for (unsigned k = 0; k < test.k; ++k) {
    const int x = a[row * test.k + k], y = b[k * test.n + column];
    sum += test.extra == ".xor.popc" ? x ^ y : x * y;
  }
  return sum;
}

class MmaTest : public testing::TestWithParam<MatrixCase> {
 protected:
  /// Writes element `i` of a fragment: lanes of 8 bytes, several elements to a register.
  void put(unsigned fragment, const std::string& type, unsigned lane, unsigned i, int value) {
    const unsigned bits = bits_of_type(type);
    const unsigned per = 8 * register_bytes(type) / bits;
    auto* const slot =
        machine_.memory.at<std::uint64_t>(fragment * kFragmentBytes) + i / per * 32 + lane;
    *slot |= encode_element(type, value) << (i % per * bits);
  }
  double get(const std::string& type, unsigned lane, unsigned i) {
    const unsigned bits = bits_of_type(type);
    const unsigned per = 8 * register_bytes(type) / bits;
    const std::uint64_t slot =
        machine_.memory.at<std::uint64_t>(1u << 20)[i / per * 32 + lane] >> (i % per * bits);
    return decode_element(type, bits == 64 ? slot : slot & ((std::uint64_t{1} << bits) - 1));
  }
  Machine machine_;
  std::mt19937 generator_{7};
};

TEST_P(MmaTest, ElementsAreWhereTheManualPutsThem) {
  const MatrixCase& test = GetParam();
  const unsigned products = test.products();
  const bool quads = products == 4;
  const unsigned lanes = 32 / products;
  const unsigned per = 8 * register_bytes(test.a) / bits_of_type(test.a);
  std::vector<Matrix> a(products), b(products), c(products);
  for (unsigned p = 0; p < products; ++p) {
    for (unsigned i = 0; i < test.m * test.k; ++i)
      a[p].push_back(random_element(test.a, generator_));
    for (unsigned i = 0; i < test.k * test.n; ++i)
      b[p].push_back(random_element(test.b, generator_));
    for (unsigned i = 0; i < test.m * test.n; ++i)
      c[p].push_back(random_element(test.c, generator_));
  }
  const auto in_c = [&](unsigned lane, unsigned i, const std::string& type) {
    return quads ? quad_place_in_c(lane, i, type == "f16") : place_in_c(lane, i);
  };
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned p = quads ? lane / 4 % 4 : 0;
    for (unsigned i = 0; i < test.m * test.k / lanes; ++i) {
      const Place at = quads ? quad_place_in_a(lane, i, test.layout.starts_with("col"))
                             : place_in_a(lane, i, per, test.m);
      put(0, test.a, lane, i, a[p][at.row * test.k + at.column]);
    }
    for (unsigned i = 0; i < test.k * test.n / lanes; ++i) {
      const Place at =
          quads ? quad_place_in_b(lane, i, test.layout.ends_with("col")) : place_in_b(lane, i, per);
      put(1, test.b, lane, i, b[p][at.row * test.n + at.column]);
    }
    for (unsigned i = 0; i < test.m * test.n / lanes; ++i) {
      const Place at = in_c(lane, i, test.c);
      put(2, test.c, lane, i, c[p][at.row * test.n + at.column]);
    }
  }
  const Outcome outcome = machine_.run(mma_kernel(test));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned p = quads ? lane / 4 % 4 : 0;
    for (unsigned i = 0; i < test.m * test.n / lanes; ++i) {
      const Place at = in_c(lane, i, test.d);
      ASSERT_EQ(get(test.d, lane, i),
                product(test, a[p], b[p], c[p][at.row * test.n + at.column], at.row, at.column))
          << "lane " << lane << ", element " << i;
    }
  }
}

std::string name_of(const testing::TestParamInfo<MatrixCase>& info) {
  std::string name = info.param.name();
  for (char& c : name) c = c == '.' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, MmaTest, testing::ValuesIn(mma_cases()), name_of);

class WmmaTest : public testing::TestWithParam<MatrixCase> {
 protected:
  /// Element `at` of a tile in memory; what is smaller than a byte shares one.
  void put(unsigned tile, const std::string& type, unsigned at, int value) {
    const unsigned bits = bits_of_type(type);
    auto* const bytes = machine_.memory.at<std::uint8_t>(tile * kTileBytes);
    const std::uint64_t code = encode_element(type, value);
    if (bits < 8) {
      bytes[at * bits / 8] |= static_cast<std::uint8_t>(code << (at * bits % 8));
    } else {
      std::memcpy(bytes + at * bits / 8, &code, bits / 8);
    }
  }
  double get(const std::string& type, unsigned at) {
    std::uint64_t code = 0;
    const unsigned bytes = bits_of_type(type) / 8;
    std::memcpy(&code, machine_.memory.at<std::uint8_t>(1u << 20) + at * bytes, bytes);
    return decode_element(type, code);
  }
  Machine machine_;
  std::mt19937 generator_{8};
};

TEST_P(WmmaTest, TilesInMemoryAreMultiplied) {
  const MatrixCase& test = GetParam();
  const unsigned stride = stride_of(test);
  const bool a_by_column = test.layout.starts_with("col");
  const bool b_by_column = test.layout.ends_with("col");
  Matrix a, b, c;
  for (unsigned i = 0; i < test.m * test.k; ++i) {
    const unsigned row = i / test.k, column = i % test.k;
    a.push_back(random_element(test.a, generator_));
    put(0, test.a, a_by_column ? column * stride + row : row * stride + column, a.back());
  }
  for (unsigned i = 0; i < test.k * test.n; ++i) {
    const unsigned row = i / test.n, column = i % test.n;
    b.push_back(random_element(test.b, generator_));
    put(1, test.b, b_by_column ? column * stride + row : row * stride + column, b.back());
  }
  for (unsigned i = 0; i < test.m * test.n; ++i) {
    c.push_back(random_element(test.c, generator_));
    put(2, test.c, i / test.n * stride + i % test.n, c.back());
  }
  const Outcome outcome = machine_.run(wmma_kernel(test));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (unsigned row = 0; row < test.m; ++row) {
    for (unsigned column = 0; column < test.n; ++column) {
      const unsigned at = row * test.n + column;
      ASSERT_EQ(get(test.d, row * stride + column), product(test, a, b, c[at], row, column))
          << "row " << row << ", column " << column;
    }
    EXPECT_EQ(get(test.d, row * stride + test.n), 0) << "behind row " << row;
  }
}

INSTANTIATE_TEST_SUITE_P(All, WmmaTest, testing::ValuesIn(wmma_cases()), name_of);

/// A product of m16n8k16 with f16 whose row 0 and column 0 are given, all else zero; D[0][0].
float first_of_product(const std::vector<float>& a, const std::vector<float>& b, float c) {
  Machine machine;
  const MatrixCase test{.a = "f16", .b = "f16", .c = "f32", .d = "f32", .m = 16, .n = 8, .k = 16};
  __extension__ using Half = _Float16;
  const auto put = [&](unsigned fragment, unsigned lane, unsigned r, unsigned half, float x) {
    machine.memory.at<std::uint64_t>(fragment * kFragmentBytes)[r * 32 + lane] |=
        std::uint64_t{std::bit_cast<std::uint16_t>(static_cast<Half>(x))} << (16 * half);
  };
  for (unsigned k = 0; k < a.size(); ++k) {
    put(0, k % 8 / 2, k / 8 * 2, k % 2, a[k]);
    put(1, k % 8 / 2, k / 8, k % 2, b[k]);
  }
  *machine.memory.at<float>(2 * kFragmentBytes) = c;
  const Outcome outcome = machine.run(mma_kernel(test));
  EXPECT_TRUE(outcome.ok()) << outcome.message();
  return *machine.memory.at<float>(1u << 20);
}

TEST(MatrixNumbersTest, SumsAreTruncated) {
  EXPECT_EQ(first_of_product({1}, {1}, 0x1p-23f), 1 + 0x1p-23f);
  EXPECT_EQ(first_of_product({1}, {1}, 0x1.8p-24f), 1.0f) << "not the nearest";
  EXPECT_EQ(first_of_product({-1}, {1}, -0x1.8p-24f), -1.0f);
}

TEST(MatrixNumbersTest, WhatIsFarBelowTheLargestTermIsCutOff) {
  const float two_bits_more = 0x1p-25f;
  EXPECT_EQ(first_of_product({1, -1}, {1, 1}, two_bits_more), two_bits_more);
  EXPECT_EQ(first_of_product({1, -1}, {1, 1}, 0x1p-26f), 0.0f) << "IEEE gives 2^-26";
}

TEST(MatrixNumbersTest, ProductsAreExactAndDenormalsCount) {
  const float x = 0x1.ffcp0f;  // all eleven bits of an f16
  EXPECT_EQ(first_of_product({x}, {x}, 0), x * x);
  EXPECT_EQ(first_of_product({0x1p-24f}, {0x1p-24f}, 0), 0x1p-48f);
  EXPECT_EQ(first_of_product({0x1p-24f}, {1024}, 0x1p-14f), 0x1p-13f);
}

TEST(MatrixNumbersTest, InfinitiesAndNaNFollowTheirRules) {
  const float infinity = HUGE_VALF;
  EXPECT_EQ(first_of_product({infinity, 1}, {2, 3}, 1), infinity);
  EXPECT_EQ(first_of_product({1}, {1}, -infinity), -infinity);
  for (const float x :
       {first_of_product({infinity}, {0}, 0), first_of_product({infinity}, {1}, -infinity),
        first_of_product({NAN}, {1}, 0)}) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(x), 0x7fffffffu);
  }
  EXPECT_EQ(first_of_product({60000}, {60000}, 0x1.fffffep127f), 0x1.fffffep127f) << "truncated";
  EXPECT_EQ(first_of_product({0}, {1}, 0x1.fffffep127f), 0x1.fffffep127f);
}

TEST(MatrixNumbersTest, SaturationEndsAtTheLargestNumber) {
  for (const char* const extra : {"", ".satfinite"}) {
    const MatrixCase test{
        .a = "u8", .b = "u8", .c = "s32", .d = "s32", .m = 8, .n = 8, .k = 16, .extra = extra};
    Machine machine;
    for (unsigned lane = 0; lane < 32; ++lane) {
      machine.memory.at<std::uint64_t>(0)[lane] = 0x01010101;
      machine.memory.at<std::uint64_t>(kFragmentBytes)[lane] = 0x01010101;
      machine.memory.at<std::uint64_t>(2 * kFragmentBytes)[lane] = 0x7ffffff8;
    }
    ASSERT_TRUE(machine.run(mma_kernel(test)).ok());
    EXPECT_EQ(*machine.memory.at<std::uint32_t>(1u << 20), *extra ? 0x7fffffffu : 0x80000008u);
  }
}

TEST(MatrixNumbersTest, SumsOfFp8KeepThirteenBits) {
  const MatrixCase test{.a = "e4m3", .b = "e4m3", .c = "f32", .d = "f32", .m = 16, .n = 8, .k = 32};
  Machine machine;
  *machine.memory.at<std::uint64_t>(0) = encode_element("e4m3", 1);
  *machine.memory.at<std::uint64_t>(kFragmentBytes) = encode_element("e4m3", 1);
  *machine.memory.at<float>(2 * kFragmentBytes) = 0x1p-13f + 0x1p-14f;
  const Outcome outcome = machine.run(mma_kernel(test));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(*machine.memory.at<float>(1u << 20), 1 + 0x1p-13f);
}

TEST(MatrixTest, WhatTheManualDoesNotListIsNotKnown) {
  const char* const kUnknown[] = {
      "mma.sync.aligned.m16n8k8.col.row.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3}, "
      "{%f1,%f2,%f3,%f4};",
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1}, {%r3}, "
      "{%f1,%f2,%f3,%f4};",
      "mma.sync.aligned.m16n8k4.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1}, {%r3}, "
      "{%f1,%f2,%f3,%f4};",
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.bf16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3}, "
      "{%f1,%f2,%f3,%f4};",
      "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, "
      "{%r3,%r4}, {%f1,%f2,%f3,%f4}, %r5, 0;",
      "wmma.load.a.sync.aligned.row.m16n16k8.f16 {%r1,%r2,%r3,%r4}, [%rd1], 8;",
      "wmma.load.a.sync.aligned.col.m8n8k32.s4 {%r1}, [%rd1], 32;",
      "ldmatrix.sync.aligned.m8n16.x1.shared.b8 {%r1}, [%r2];"};
  for (const char* const text : kUnknown) {
    Machine machine;
    const Outcome outcome = machine.run(entry(text));
    ASSERT_FALSE(outcome.ok()) << text;
    EXPECT_EQ(outcome.error->code, ErrorCode::kIllegalInstruction) << outcome.message();
  }
}

// Sixteen rows of eight numbers of 16 bits in shared memory, each 256 * row + column, 32 bytes
// apart.
constexpr const char* kRows = R"(
    mov.u32 %r2, rows;
    and.b32 %r3, %r1, 15; shr.u32 %r4, %r1, 4; mul.lo.u32 %r5, %r3, 32; add.u32 %r5, %r5, %r2;
    shl.b32 %r6, %r4, 3; add.u32 %r6, %r6, %r5;
    shl.b32 %r7, %r3, 8; shl.b32 %r8, %r4, 2; or.b32 %r7, %r7, %r8;
    cvt.u16.u32 %rs1, %r7; add.u16 %rs2, %rs1, 1; add.u16 %rs3, %rs1, 2; add.u16 %rs4, %rs1, 3;
    st.shared.v4.u16 [%r6], {%rs1, %rs2, %rs3, %rs4};
    bar.warp.sync 0xffffffff;)";
constexpr const char* kRowsSpace = ".shared .align 16 .b8 rows[512];";

TEST(MatrixRowsTest, EveryLaneGetsTwoNeighboursOfItsRow) {
  Machine machine;
  // The second matrix begins at the row of lane 8's address: row 8.
  const std::string body = std::string(kRows) + R"(
    ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r10, %r11}, [%r5];
    cvt.u64.u32 %rd6, %r5; cvta.shared.u64 %rd6, %rd6;
    ldmatrix.sync.aligned.m8n8.x1.trans.b16 {%r12}, [%rd6];
    movmatrix.sync.aligned.m8n8.trans.b16 %r13, %r12;
    mul.wide.u32 %rd7, %r1, 16; add.u64 %rd7, %rd7, %rd1;
    st.global.v4.u32 [%rd7], {%r10, %r11, %r12, %r13};)";
  const Outcome outcome = machine.run(entry(body, kRowsSpace));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t row = lane / 4, column = lane % 4 * 2;
    const auto number = [](std::uint32_t r, std::uint32_t c) { return 256 * r + c; };
    const std::uint32_t plain = number(row, column) | number(row, column + 1) << 16;
    const std::uint32_t* const out = machine.words() + 4 * lane;
    EXPECT_EQ(out[0], plain) << lane;
    EXPECT_EQ(out[1], plain + 0x08000800u) << lane;
    EXPECT_EQ(out[2], number(column, row) | number(column + 1, row) << 16) << lane;
    EXPECT_EQ(out[3], plain) << lane;
  }
}

TEST(MatrixRowsTest, WhatIsStoredCanBeLoaded) {
  for (const char* const trans : {"", ".trans"}) {
    Machine machine;
    const std::string body =
        std::string(kRows) +
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 "
        "{%r10, %r11}, [%r5];\nstmatrix.sync.aligned.m8n8.x2" +
        trans +
        ".shared.b16 [%r5], {%r11, %r10};\nbar.warp.sync 0xffffffff;\n"
        "ldmatrix.sync.aligned.m8n8.x2" +
        trans +
        ".shared.b16 {%r12, %r13}, [%r5];\n"
        "sub.u32 %r12, %r12, %r11; sub.u32 %r13, %r13, %r10;\n"
        "st.global.u32 [%rd4], %r12; st.global.u32 [%rd5], %r13;\n"
        "ld.shared.u16 %rs5, [rows+66]; cvt.u32.u16 %r14, %rs5; st.global.u32 [%rd1+512], %r14;";
    const Outcome outcome = machine.run(entry(body, kRowsSpace));
    ASSERT_TRUE(outcome.ok()) << outcome.message();
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      EXPECT_EQ(machine.words()[lane], 0u);
      EXPECT_EQ(machine.words_b()[lane], 0u);
    }
    // Row 2, column 1 of the first matrix holds that of the second, which began at row 8.
    EXPECT_EQ(machine.words()[128], *trans ? 256u * 9 + 2 : 256u * 10 + 1);
  }
}

TEST(MatrixRowsTest, RowsMustBeAlignedAndInSharedMemory) {
  const std::pair<const char*, ErrorCode> kBad[] = {
      {"add.u32 %r5, %r5, 8; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r5];",
       ErrorCode::kMisalignedAddress},
      {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r5+4096];", ErrorCode::kIllegalAddress},
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 "
       "{%r10,%r11,%r12,%r13,%r14,%r15,%r16,%r17},"
       "[rows], 32;",
       ErrorCode::kIllegalAddress}};
  for (const auto& [text, code] : kBad) {
    Machine machine;
    const Outcome outcome = machine.run(entry(std::string(kRows) + text, kRowsSpace));
    ASSERT_FALSE(outcome.ok()) << text;
    EXPECT_EQ(outcome.error->code, code) << outcome.message();
  }
}

TEST(MatrixTest, DivergedLanesMeetForAProduct) {
  const MatrixCase test{.a = "u8", .b = "u8", .c = "s32", .d = "s32", .m = 8, .n = 8, .k = 16};
  std::string text = mma_kernel(test);
  const std::size_t product = text.find("mma.sync");
  text.insert(product,
              "{ .reg .pred %q; .reg .b32 %v; and.b32 %v, %t, 1; setp.eq.u32 %q, %v, 0;\n"
              "@%q bra MEET;\nld.global.b32 %v, [%in]; MEET: }\n");
  Machine machine;
  for (unsigned lane = 0; lane < 32; ++lane) {
    machine.memory.at<std::uint64_t>(0)[lane] = 0x01010101;
    machine.memory.at<std::uint64_t>(kFragmentBytes)[lane] = 0x02020202;
  }
  const Outcome outcome = machine.run(text);
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (unsigned i = 0; i < 64; ++i)
    EXPECT_EQ(machine.memory.at<std::uint64_t>(1u << 20)[i], 32u) << i;
}

}  // namespace
}  // namespace slate::sim::test
