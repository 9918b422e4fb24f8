#include "tests/unit/forms/kernel_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "tools/code_file.h"

namespace slate::test {
namespace {

std::vector<std::uint32_t> words(std::size_t count, std::uint32_t below = 0) {
  std::mt19937_64 random(count);
  std::vector<std::uint32_t> values(count);
  for (std::uint32_t& value : values) {
    value = static_cast<std::uint32_t>(random());
    if (below != 0) value %= below;
  }
  return values;
}

std::vector<float> floats(std::size_t count, float low, float high) {
  std::mt19937_64 random(count + 1);
  std::vector<float> values(count);
  for (float& value : values) {
    value = low + (high - low) * static_cast<float>(random() >> 40) * 0x1p-24f;
  }
  return values;
}

Argument in(std::size_t count, float low = -1, float high = 1) {
  return Argument::buffer(floats(count, low, high));
}
Argument out(std::size_t count) {
  return Argument::buffer(std::vector<float>(count, -1.0f));
}
template <typename T>
Argument value(T v) {
  return Argument::value(v);
}

/// Where the tests' files are: as built, or elsewhere when the tests have been moved.
std::string folder(const char* variable, const char* built) {
  const char* moved = std::getenv(variable);
  return std::string(moved != nullptr ? moved : built) + "/";
}

/// The golden kernels all take (const unsigned* in, unsigned* out, unsigned count), one of them
/// `in` as a texture.
TestKernel golden_kernel(const std::string& name, device::Dim3 grid, device::Dim3 block,
                         std::uint32_t shared = 0) {
  const auto count = static_cast<std::uint32_t>(grid.count() * block.count() - block.count() / 3);
  TestKernel kernel;
  kernel.file = name;
  kernel.kernel = {
      .name = name,
      .entry = name,
      .grid = grid,
      .block = block,
      .shared_bytes = shared,
      .arguments = {Argument::buffer(words(count)),
                    Argument::buffer(std::vector<std::uint32_t>(count, 0xdead)), value(count)}};
  if (name == "texture") {
    kernel.kernel.arguments[0] = as_texture(std::move(kernel.kernel.arguments[0]));
  }
  return kernel;
}

TestKernel program(const std::string& program, const std::string& entry, device::Dim3 grid,
                   device::Dim3 block, std::vector<Argument> arguments, std::uint32_t shared = 0) {
  TestKernel kernel;
  kernel.file = program;
  kernel.is_program = true;
  kernel.kernel = {.name = program + "." + entry.substr(0, 12),
                   .entry = entry,
                   .grid = grid,
                   .block = block,
                   .shared_bytes = shared,
                   .arguments = std::move(arguments)};
  return kernel;
}

}  // namespace

std::vector<TestKernel> golden_kernels() {
  std::vector<TestKernel> all = {
      golden_kernel("map", {150, 1, 1}, {64, 1, 1}),
      golden_kernel("barrier_loop", {60, 1, 1}, {128, 1, 1}),
      golden_kernel("early_return_barrier", {80, 1, 1}, {96, 1, 1}),
      golden_kernel("early_return_loop", {60, 1, 1}, {128, 1, 1}),
      golden_kernel("early_return_reduce", {60, 1, 1}, {112, 1, 1}),
      golden_kernel("early_return_drain", {60, 1, 1}, {96, 1, 1}),
      golden_kernel("early_return_shuffle", {60, 1, 1}, {80, 1, 1}),
      golden_kernel("tile", {7, 9, 2}, {16, 4, 1}),
      golden_kernel("barrier_or", {70, 1, 1}, {70, 1, 1}),
      golden_kernel("inline_ptx", {9, 11, 1}, {64, 1, 1}),
      golden_kernel("recursion", {13, 5, 1}, {40, 1, 1}),
      golden_kernel("grid3d", {5, 6, 7}, {4, 3, 5}),
      golden_kernel("registers", {40, 1, 1}, {1024, 1, 1}),
      golden_kernel("dynamic_shared", {90, 1, 1}, {100, 1, 1}, 400),
      golden_kernel("constants", {70, 1, 1}, {64, 1, 1}),
      golden_kernel("look_back", {160, 1, 1}, {64, 1, 1}),
      golden_kernel("last_block", {90, 1, 1}, {32, 1, 1}),
      golden_kernel("warp_sum", {60, 1, 1}, {256, 1, 1}),
      golden_kernel("async_copy", {60, 1, 1}, {256, 1, 1}),
      golden_kernel("named_barrier", {80, 1, 1}, {128, 1, 1}),
      golden_kernel("huge", {60, 11, 1}, {32, 1, 1}),
      golden_kernel("print", {48, 1, 1}, {33, 1, 1}),
      golden_kernel("texture", {150, 1, 1}, {64, 1, 1}),
  };
  for (TestKernel& kernel : all) {
    if (kernel.file == "constants") kernel.kernel.entry = "_Z9constantsILj2EEvPKjPjj";
    if (kernel.file == "early_return_shuffle") kernel.has_worker = false;
  }
  return all;
}

TestKernel widened(const TestKernel& kernel, std::uint32_t scale) {
  if (kernel.is_program) return kernel;
  device::Dim3 grid = kernel.kernel.grid;
  // look_back has room for 4096 blocks.
  grid.x *= kernel.file == "look_back" ? std::min(scale, 25u) : scale;
  TestKernel wide =
      golden_kernel(kernel.file, grid, kernel.kernel.block, kernel.kernel.shared_bytes);
  wide.kernel.entry = kernel.kernel.entry;
  wide.has_worker = kernel.has_worker;
  wide.one_wave = kernel.one_wave;
  return wide;
}

std::vector<TestKernel> program_kernels() {
  struct Market {
    float riskless, volatility;
  };
  const std::uint32_t n = 96;  // rows of matrices
  const std::array<float, 5> weights = {0.40f, 0.06f, 0.025f, 0.01f, 0.005f};
  std::vector<unsigned char> lifetimes(9001);
  for (std::size_t i = 0; i < lifetimes.size(); ++i)
    lifetimes[i] = static_cast<unsigned char>(i * 7 % 19);
  return {
      program("black_scholes", "_Z13black_scholesPKfS0_S0_PfS1_6Marketj", {80, 1, 1}, {128, 1, 1},
              {in(10000, 5, 30), in(10000, 1, 100), in(10000, 0.25f, 10), out(10000), out(10000),
               value(Market{0.02f, 0.3f}), value(10000u)}),
      program("gaussian", "_Z19compute_multipliersPKfPfjj", {40, 1, 1}, {64, 1, 1},
              {in(n * n, 1, 2), out(n), value(n), value(3u)}),
      program("gaussian", "_Z11update_rowsPfS_PKfjj", {24, 24, 1}, {4, 4, 1},
              {in(n * n, 1, 2), in(n, 1, 3), in(n, 0, 1), value(n), value(2u)}),
      program("sgemm", "_Z5sgemmILj32EEvPKfS1_Pfj", {3, 3, 1}, {32, 32, 1},
              {in(n * n), in(n * n), out(n * n), value(n)}),
      program("quasi_random", "_Z8generatePfj", {50, 1, 1}, {32, 4, 1},
              {out(40000), value(10000u)}),
      program("quasi_random", "_Z9to_normalPKfPfm", {60, 1, 1}, {64, 1, 1},
              {in(20000, 0.001f, 0.999f), out(20000), value(std::uint64_t{20000})}),
      program("transpose", "_Z9transposePKfPfj", {8, 8, 1}, {32, 8, 1},
              {in(250 * 250), out(250 * 250), value(250u)}),
      program("vector_add", "_Z10vector_addPKfS0_Pfj", {100, 1, 1}, {128, 1, 1},
              {in(12700), in(12700), out(12700), value(12700u)}),
      program("reduction", "_Z6reducePKfPfm", {60, 1, 1}, {128, 1, 1},
              {in(30000, 0, 1), out(60), value(std::uint64_t{30000})}, 512),
      program("histogram", "_Z9histogramPKjPjm", {40, 1, 1}, {256, 1, 1},
              {Argument::buffer(words(20000)), Argument::buffer(std::vector<std::uint32_t>(256, 0)),
               value(std::uint64_t{79999})}),
      program("stencil3d", "_Z9stencil3dPKfPf7Weightsi", {2, 8, 1}, {32, 8, 1},
              {in(40 * 40 * 40), out(40 * 40 * 40), value(weights), value(40)}),
      program("scan", "_Z11scan_blocksPKjPjS1_j", {30, 1, 1}, {256, 1, 1},
              {Argument::buffer(words(15000)), Argument::buffer(words(15001)),
               Argument::buffer(words(30)), value(15000u)}),
      program("scan", "_Z11add_offsetsPjPKjj", {30, 1, 1}, {256, 1, 1},
              {Argument::buffer(words(15000)), Argument::buffer(words(31)), value(15000u)}),
      program("early_return", "_Z12early_returnPKjPKhPjj", {36, 1, 1}, {256, 1, 1},
              {Argument::buffer(words(9001)), Argument::buffer(lifetimes),
               Argument::buffer(words(9002)), value(9001u)}),
      program("fma_loop", "_Z8fma_loopPfj", {48, 1, 1}, {64, 1, 1}, {out(3000), value(3000u)}),
      program("stream_read", "_Z11stream_readPK5uint4Pjm", {60, 1, 1}, {64, 1, 1},
              {Argument::buffer(words(40000)), Argument::buffer(words(60 * 64)),
               value(std::uint64_t{10000})}),
  };
}

std::string ptx_of(const TestKernel& kernel) {
  if (!kernel.is_program) {
    return read_text(folder("SLATE_TEST_KERNELS", SLATE_GOLDEN_KERNELS) + kernel.file + ".ptx");
  }
  const auto images =
      tools::ptx_in_file(folder("SLATE_TEST_PROGRAMS", SLATE_PROGRAMS) + kernel.file);
  EXPECT_TRUE(images) << images.error().message;
  return images ? images->front().text : std::string();
}

}  // namespace slate::test
