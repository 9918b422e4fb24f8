#include "tests/unit/sim_core/matrix_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace slate::sim::test {
namespace {

__extension__ using HalfFloat = _Float16;

struct Shape3 {
  unsigned m, n, k;
};

void add_each(std::vector<MatrixCase>& cases, std::initializer_list<Shape3> shapes,
              MatrixCase like) {
  for (const Shape3 shape : shapes) {
    like.m = shape.m;
    like.n = shape.n;
    like.k = shape.k;
    cases.push_back(like);
  }
}

std::string list(char letter, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i) text += fmt::format("{}%{}{}", i ? ", " : "", letter, i);
  return text + "}";
}

std::string declare(char letter, const std::string& type, unsigned count) {
  const std::string its = type == "f64" || type == "f32" ? type : "b32";
  return fmt::format(".reg .{} %{}<{}>;\n", its, letter, count);
}

/// Registers of a fragment of wmma: those of A and B of f16 hold every element twice.
unsigned wmma_registers(const std::string& type, unsigned elements, bool accumulates) {
  return type == "f16" && !accumulates ? 8 : fragment_registers(type, elements);
}

constexpr const char* kHead =
    ".version 9.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n"
    ".reg .b32 %t;\n.reg .b64 %in, %out, %o;\n";

}  // namespace

std::string MatrixCase::name() const {
  if (!is_wmma) {
    return fmt::format("mma.sync.aligned.{}.{}{}.{}.{}.{}.{}{}", shape(), layout,
                       extra == ".satfinite" ? extra : "", d, a, b, c,
                       extra == ".satfinite" ? "" : extra);
  }
  const bool counts = a == "b1";
  const std::string types =
      a == "f16" ? fmt::format("{}.{}", d, c) : fmt::format("{}.{}.{}.{}", d, a, b, c);
  return fmt::format("wmma.mma{}.sync.aligned.{}.{}.{}{}", counts ? extra : "", layout, shape(),
                     types, counts ? "" : extra);
}

std::vector<MatrixCase> mma_cases() {
  std::vector<MatrixCase> cases;
  for (const char* const sum : {"f16", "f32"}) {
    add_each(cases, {{16, 8, 8}, {16, 8, 16}}, {.a = "f16", .b = "f16", .c = sum, .d = sum});
    for (const char* const layout : {"row.row", "row.col", "col.row", "col.col"}) {
      add_each(cases, {{8, 8, 4}}, {.a = "f16", .b = "f16", .c = sum, .d = sum, .layout = layout});
    }
  }
  add_each(cases, {{8, 8, 4}}, {.a = "f16", .b = "f16", .c = "f16", .d = "f32"});
  add_each(cases, {{16, 8, 8}, {16, 8, 16}}, {.a = "bf16", .b = "bf16", .c = "f32", .d = "f32"});
  add_each(cases, {{16, 8, 4}, {16, 8, 8}}, {.a = "tf32", .b = "tf32", .c = "f32", .d = "f32"});
  for (const char* const a : {"e4m3", "e5m2"}) {
    for (const char* const b : {"e4m3", "e5m2"}) {
      for (const char* const sum : {"f16", "f32"}) {
        add_each(cases, {{16, 8, 16}, {16, 8, 32}}, {.a = a, .b = b, .c = sum, .d = sum});
      }
    }
  }
  add_each(cases, {{8, 8, 4}, {16, 8, 4}, {16, 8, 8}, {16, 8, 16}},
           {.a = "f64", .b = "f64", .c = "f64", .d = "f64"});
  for (const char* const a : {"s", "u"}) {
    for (const char* const b : {"s", "u"}) {
      for (const char* const extra : {"", ".satfinite"}) {
        const std::string eight = "8", four = "4";
        add_each(cases, {{8, 8, 16}, {16, 8, 16}, {16, 8, 32}},
                 {.a = a + eight, .b = b + eight, .c = "s32", .d = "s32", .extra = extra});
        add_each(cases, {{8, 8, 32}, {16, 8, 32}, {16, 8, 64}},
                 {.a = a + four, .b = b + four, .c = "s32", .d = "s32", .extra = extra});
      }
    }
  }
  for (const char* const extra : {".xor.popc", ".and.popc"}) {
    add_each(cases, {{8, 8, 128}, {16, 8, 128}, {16, 8, 256}},
             {.a = "b1", .b = "b1", .c = "s32", .d = "s32", .extra = extra});
  }
  return cases;
}

std::vector<MatrixCase> wmma_cases() {
  std::vector<MatrixCase> cases;
  for (const char* const layout : {"row.row", "row.col", "col.row", "col.col"}) {
    const std::initializer_list<Shape3> kShapes = {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}};
    const auto add = [&](std::initializer_list<Shape3> shapes, const char* type, const char* c,
                         const char* d, const char* extra = "") {
      add_each(cases, shapes,
               {.a = type,
                .b = type,
                .c = c,
                .d = d,
                .layout = layout,
                .extra = extra,
                .is_wmma = true});
    };
    add(kShapes, "f16", "f16", "f16");
    add(kShapes, "f16", "f32", "f32");
    add(kShapes, "f16", "f32", "f16");
    add(kShapes, "f16", "f16", "f32");
    add(kShapes, "bf16", "f32", "f32");
    add(kShapes, "s8", "s32", "s32");
    add(kShapes, "u8", "s32", "s32", ".satfinite");
    add({{16, 16, 8}}, "tf32", "f32", "f32");
    add({{8, 8, 4}}, "f64", "f64", "f64");
    if (std::string(layout) != "row.col") continue;
    add({{8, 8, 32}}, "s4", "s32", "s32");
    add({{8, 8, 32}}, "u4", "s32", "s32");
    add({{8, 8, 128}}, "b1", "s32", "s32", ".xor.popc");
    add({{8, 8, 128}}, "b1", "s32", "s32", ".and.popc");
  }
  return cases;
}

unsigned bits_of_type(const std::string& type) {
  if (type == "tf32") return 32;
  if (is_fp8(type)) return 8;
  return static_cast<unsigned>(std::stoul(type.substr(type.find_first_of("0123456789"))));
}

unsigned register_bytes(const std::string& type) {
  return type == "f64" ? 8 : 4;
}

unsigned fragment_registers(const std::string& type, unsigned elements) {
  return elements * bits_of_type(type) / (32 * 8 * register_bytes(type));
}

bool is_fp8(const std::string& type) {
  return type == "e4m3" || type == "e5m2";
}

std::uint64_t encode_element(const std::string& type, int value) {
  if (is_fp8(type)) {
    std::uint64_t code = 0;
    while (decode_element(type, code) != value) ++code;
    return code;
  }
  if (type == "f16") return std::bit_cast<std::uint16_t>(static_cast<HalfFloat>(value));
  const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (type == "bf16") return single >> 16;
  if (type == "tf32" || type == "f32") return single;
  if (type == "f64") return std::bit_cast<std::uint64_t>(static_cast<double>(value));
  return static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << bits_of_type(type)) - 1);
}

double decode_element(const std::string& type, std::uint64_t bits) {
  if (is_fp8(type)) {
    const int mantissa_bits = type == "e4m3" ? 3 : 2, least = type == "e4m3" ? -6 : -14;
    const auto field = static_cast<int>(bits & 0x7f) >> mantissa_bits;
    const auto mantissa = static_cast<int>(bits & ((1u << mantissa_bits) - 1));
    const int whole = field != 0 ? mantissa + (1 << mantissa_bits) : mantissa;
    const double x = std::ldexp(whole, least + std::max(field - 1, 0) - mantissa_bits);
    return bits & 0x80 ? -x : x;
  }
  if (type == "f16")
    return static_cast<double>(std::bit_cast<HalfFloat>(static_cast<std::uint16_t>(bits)));
  if (type == "bf16") return std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16));
  if (type == "tf32" || type == "f32")
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  if (type == "f64") return std::bit_cast<double>(bits);
  if (type == "s32") return static_cast<std::int32_t>(bits);
  return static_cast<double>(bits);
}

int random_element(const std::string& type, std::mt19937& generator) {
  const auto between = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(generator);
  };
  if (type == "s8") return between(-128, 127);
  if (type == "u8") return between(0, 255);
  if (type == "s4") return between(-8, 7);
  if (type == "u4") return between(0, 15);
  if (type == "b1") return between(0, 1);
  return between(-8, 8);
}

std::string mma_kernel(const MatrixCase& test) {
  const unsigned products = test.products();
  const unsigned a = fragment_registers(test.a, test.m * test.k * products);
  const unsigned b = fragment_registers(test.b, test.k * test.n * products);
  const unsigned c = fragment_registers(test.c, test.m * test.n * products);
  const unsigned d = fragment_registers(test.d, test.m * test.n * products);
  std::string text = kHead;
  text += declare('a', test.a, a) + declare('b', test.b, b) + declare('c', test.c, c) +
          declare('d', test.d, d);
  text +=
      "mov.u32 %t, %tid.x;\nmul.wide.u32 %o, %t, 8;\nld.param.u64 %in, [a];\n"
      "ld.param.u64 %out, [b];\nadd.u64 %in, %in, %o;\nadd.u64 %out, %out, %o;\n";
  const auto load = [&](char letter, const std::string& type, unsigned count, unsigned at) {
    for (unsigned i = 0; i < count; ++i) {
      text += fmt::format("ld.global.b{} %{}{}, [%in+{}];\n", 8 * register_bytes(type), letter, i,
                          at * kFragmentBytes + i * 256);
    }
  };
  load('a', test.a, a, 0);
  load('b', test.b, b, 1);
  load('c', test.c, c, 2);
  text += fmt::format("{} {}, {}, {}, {};\n", test.name(), list('d', d), list('a', a), list('b', b),
                      list('c', c));
  for (unsigned i = 0; i < d; ++i) {
    text += fmt::format("st.global.b{} [%out+{}], %d{};\n", 8 * register_bytes(test.d), i * 256, i);
  }
  return text + "ret;\n}\n";
}

unsigned stride_of(const MatrixCase& test) {
  return test.a == "b1" ? 256 : bits_of_type(test.a) == 4 ? 64 : 48;
}

std::string wmma_kernel(const MatrixCase& test) {
  const unsigned stride = stride_of(test);
  const unsigned a = wmma_registers(test.a, test.m * test.k, false);
  const unsigned b = wmma_registers(test.b, test.k * test.n, false);
  const unsigned c = wmma_registers(test.c, test.m * test.n, true);
  const unsigned d = wmma_registers(test.d, test.m * test.n, true);
  std::string text = kHead;
  text += declare('a', test.a, a) + declare('b', test.b, b) + declare('c', test.c, c) +
          declare('d', test.d, d);
  text += "ld.param.u64 %in, [a];\nld.param.u64 %out, [b];\n";
  const auto load = [&](char letter, const std::string& layout, const std::string& type,
                        unsigned count, unsigned at) {
    text += fmt::format("wmma.load.{}.sync.aligned.{}.{}.global.{} {}, [%in+{}], {};\n", letter,
                        layout, test.shape(), type, list(letter, count), at * kTileBytes, stride);
  };
  load('a', test.layout.substr(0, 3), test.a, a, 0);
  load('b', test.layout.substr(4, 3), test.b, b, 1);
  load('c', "row", test.c, c, 2);
  text += fmt::format("{} {}, {}, {}, {};\n", test.name(), list('d', d), list('a', a), list('b', b),
                      list('c', c));
  text += fmt::format("wmma.store.d.sync.aligned.row.{}.global.{} [%out], {}, {};\n", test.shape(),
                      test.d, list('d', d), stride);
  return text + "ret;\n}\n";
}

}  // namespace slate::sim::test
