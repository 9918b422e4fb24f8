#include "tests/unit/forms/kernel_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "tests/unit/forms/case_arguments.h"
#include "tools/code_file.h"

namespace slate::test {
namespace {

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

}  // namespace

std::vector<TestKernel> golden_kernels() {
  std::vector<TestKernel> all = {
      golden_kernel("map", {150, 1, 1}, {64, 1, 1}),
      golden_kernel("barrier_loop", {60, 1, 1}, {128, 1, 1}),
      golden_kernel("early_return_barrier", {80, 1, 1}, {96, 1, 1}),
      golden_kernel("early_return_loop", {60, 1, 1}, {128, 1, 1}),
      golden_kernel("early_return_branch", {50, 1, 1}, {128, 1, 1}),
      golden_kernel("early_return_reduce", {60, 1, 1}, {112, 1, 1}),
      golden_kernel("early_return_drain", {60, 1, 1}, {96, 1, 1}),
      golden_kernel("early_return_shuffle", {60, 1, 1}, {80, 1, 1}),
      golden_kernel("early_return_lock", {60, 1, 1}, {128, 1, 1}),
      golden_kernel("early_return_rounds", {60, 1, 1}, {128, 1, 1}),
      golden_kernel("early_return_scope", {60, 1, 1}, {96, 1, 1}),
      golden_kernel("early_return_table", {60, 1, 1}, {96, 1, 1}),
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
      golden_kernel("heap", {10, 1, 1}, {33, 1, 1}),
      golden_kernel("texture", {150, 1, 1}, {64, 1, 1}),
      golden_kernel("odd_text", {60, 1, 1}, {96, 1, 1}),
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
