// The kernels of the programs in kernels/, with shapes and arguments like the programs' own.
#include <array>
#include <cstdint>
#include <numeric>

#include "tests/unit/forms/case_arguments.h"
#include "tests/unit/forms/kernel_cases.h"

namespace slate::test {
namespace {

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

/// The same kernel with these contents of a variable in constant memory.
template <typename T>
TestKernel with_constant(TestKernel kernel, const std::string& name, const std::vector<T>& values) {
  kernel.kernel.constants[name] = Argument::buffer(values).bytes;
  return kernel;
}

std::vector<TestKernel> basic_kernels() {
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
              {in(256 * 256), out(256 * 256), value(256u)}),
      program("transpose", "_Z16transpose_raggedPKfPfj", {8, 8, 1}, {32, 8, 1},
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

std::vector<TestKernel> grid_kernels() {
  const std::array<float, 5> chip = {0.01f, 0.125f, 0.0625f, 0.002f, 25.0f};
  return {
      program("hotspot", "_Z7hotspotPKfS0_Pf4Chipi", {3, 3, 1}, {32, 32, 1},
              {in(60 * 60, 30, 90), in(60 * 60, 0, 5), out(60 * 60), value(chip), value(60)}),
      with_constant(program("convolution", "_Z13convolve_rowsPKfPfi", {2, 19, 1}, {32, 8, 1},
                            {in(150 * 150), out(150 * 150), value(150)}),
                    "weights", floats(17, -1, 1)),
      with_constant(program("convolution", "_Z16convolve_columnsPKfPfi", {5, 5, 1}, {32, 8, 1},
                            {in(150 * 150), out(150 * 150), value(150)}),
                    "weights", floats(17, -1, 1)),
      program("finite_differences", "_Z18finite_differencesPKfPfS0_10Derivativei", {2, 5, 1},
              {32, 8, 1},
              {in(40 * 40 * 40), in(40 * 40 * 40 - 1), in(40 * 40 * 40 - 2, 0.01f, 0.06f),
               value(std::array{-2.8f, 1.6f, -0.2f, 0.025f, -0.0018f}), value(40)}),
      program("image_denoising", "_Z15image_denoisingyP6uchar4i", {4, 4, 1}, {4, 4, 1},
              {as_image(Argument::buffer(words(16 * 16)), 16), zeros(15 * 15), value(15)}),
  };
}

TestKernel tensor_kernel() {
  const std::uint32_t n = 256;
  constexpr std::uint16_t kHalves[] = {0x0000, 0x3000, 0x3c00, 0xb800};  // 0, 1/8, 1, -1/2
  std::vector<std::uint16_t> left(n * n), right(n * n);
  const auto random = words(n * n);
  for (std::size_t i = 0; i < random.size(); ++i) {
    left[i] = kHalves[random[i] >> 8 & 3];
    right[i] = kHalves[random[i] >> 16 & 3];
  }
  return program("tensor_gemm", "_Z11tensor_gemmPK6__halfS1_Pfj", {2, 2, 1}, {256, 1, 1},
                 {Argument::buffer(left), Argument::buffer(right), out(n * n), value(n)});
}

std::vector<TestKernel> matrix_kernels() {
  const std::uint32_t n = 160;
  std::vector<std::uint32_t> starts(316, 0);  // of rows of 0 to 74 entries
  for (std::uint32_t row = 0; row + 1 < starts.size(); ++row) {
    starts[row + 1] = starts[row] + row * 29 % 75;
  }
  return {
      program("lud", "_Z12lud_diagonalPfjj", {1, 1, 1}, {32, 32, 1},
              {in(n * n, 1, 2), value(n), value(32u)}),
      program("lud", "_Z13lud_perimeterPfjj", {4, 1, 1}, {32, 2, 1},
              {in(n * n, 1, 2), value(n), value(0u)}),
      program("lud", "_Z12lud_internalPfjj", {4, 4, 1}, {32, 32, 1},
              {in(n * n, 1, 2), value(n), value(0u)}),
      program("sparse_matvec", "_Z13sparse_matvecPKjS0_PKfS2_Pfj", {40, 1, 1}, {256, 1, 1},
              {Argument::buffer(starts), Argument::buffer(words(starts.back(), 315)),
               in(starts.back()), in(315), out(315), value(315u)}),
      tensor_kernel(),
  };
}

/// Where every block's first key of every digit goes: what the program's scan makes of the counts.
std::vector<std::uint32_t> digit_offsets(const std::vector<std::uint32_t>& keys,
                                         std::uint32_t per_block, std::uint32_t shift) {
  const auto blocks = static_cast<std::uint32_t>((keys.size() + per_block - 1) / per_block);
  std::vector<std::uint32_t> offsets(16 * blocks + 1, 0);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ++offsets[(keys[i] >> shift & 15) * blocks + i / per_block + 1];
  }
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  offsets.pop_back();
  return offsets;
}

std::vector<TestKernel> sequence_kernels() {
  const std::vector<std::uint32_t> keys = words(9999);
  const std::uint32_t per_block = 512;
  const Argument sorting = value(static_cast<std::uint32_t>(keys.size()));
  const int letters = 374;
  std::vector<unsigned char> text(letters);
  for (int i = 0; i < letters; ++i) text[i] = static_cast<unsigned char>(i * i % 23);
  return {
      program("needleman_wunsch", "_Z11set_bordersPii", {12, 1, 1}, {32, 1, 1},
              {zeros(375 * 375), value(letters)}),
      with_constant(
          program("needleman_wunsch", "_Z11align_tilesPKhS0_Piiii", {6, 1, 1}, {64, 1, 1},
                  {Argument::buffer(text), Argument::buffer(text),
                   Argument::buffer(words(375 * 375, 1000)), value(letters), value(5), value(0)}),
          "similarity", words(24 * 24, 12)),
      program("radix_sort", "_Z12count_digitsPKjPjjjj", {20, 1, 1}, {256, 1, 1},
              {Argument::buffer(keys), zeros(16 * 20), sorting, value(per_block), value(8u)}),
      program("radix_sort", "_Z11scan_countsPjj", {1, 1, 1}, {1024, 1, 1},
              {Argument::buffer(words(5000, 100)), value(5000u)}),
      program("radix_sort", "_Z7scatterPKjS0_PjS1_S0_jjj", {20, 1, 1}, {256, 1, 1},
              {Argument::buffer(keys), Argument::buffer(words(9998)), zeros(keys.size()),
               zeros(keys.size()), Argument::buffer(digit_offsets(keys, per_block, 8)), sorting,
               value(per_block), value(8u)}),
  };
}

/// Where lists of `shortest` to below 2 * `shortest` things begin, and the last of them ends.
std::vector<std::uint32_t> list_starts(std::size_t lists, std::uint32_t shortest) {
  std::vector<std::uint32_t> starts{0};
  for (const std::uint32_t random : words(lists, shortest)) {
    starts.push_back(starts.back() + shortest + random);
  }
  return starts;
}

TestKernel search_kernel() {
  constexpr std::uint32_t kVertices = 2501;
  constexpr std::uint32_t kUnreached = ~0u;
  const auto starts = list_starts(kVertices, 4);
  std::vector<std::uint32_t> levels = words(kVertices, 8);
  for (std::uint32_t& level : levels) level = level > 2 ? kUnreached : level;
  return program("bfs", "_Z3bfsPKjS0_PjS1_jj", {40, 1, 1}, {64, 1, 1},
                 {Argument::buffer(starts), Argument::buffer(words(starts.back(), kVertices)),
                  Argument::buffer(levels), zeros(1), value(2u), value(kVertices)});
}

TestKernel box_kernel() {
  const auto starts = list_starts(27, 6);
  std::vector<double> particles;  // three coordinates and a charge each
  const std::vector<float> random = floats(std::size_t{4} * starts.back(), 0, 1);
  for (std::uint32_t box = 0; box < 27; ++box) {
    const std::array<double, 4> corner = {box % 3 + 0.0, box / 3 % 3 + 0.0, box / 9 + 0.0, -0.5};
    for (std::uint32_t i = 4 * starts[box]; i < 4 * starts[box + 1]; ++i) {
      particles.push_back(corner[i % 4] + random[i]);
    }
  }
  return program(
      "molecular_dynamics", "_Z18molecular_dynamicsPK8ParticlePKjP5Field", {3, 3, 3}, {96, 1, 1},
      {Argument::buffer(particles), Argument::buffer(starts), zeros(2 * particles.size())});
}

std::vector<TestKernel> particle_kernels() {
  const std::array<float, 3> from = {0.25f, -0.5f, 0.125f};
  return {
      program("nearest_neighbours", "_Z17measure_distancesPKfS0_S0_Pm5Pointj", {40, 1, 1},
              {128, 1, 1},
              {in(5001), in(5002), in(5003), zeros(2 * 5001), value(from), value(5001u)}),
      program("nearest_neighbours", "_Z12keep_nearestPKmPmj", {8, 1, 1}, {512, 1, 1},
              {Argument::buffer(words(2 * 8000)), zeros(2 * 8 * 64), value(8000u)}),
      search_kernel(),
      box_kernel(),
      program("nbody", "_Z5nbodyPK6float4S1_PS_S2_j", {2, 1, 1}, {256, 1, 1},
              {in(4 * 300), in(4 * 300 + 1), out(4 * 300), out(4 * 300), value(300u)}),
      program("monte_carlo", "_Z11monte_carloPK6OptionPd", {4, 1, 1}, {256, 1, 1},
              {in(5 * 4, 0.01f, 0.3f), zeros(2 * 4)}),
  };
}

}  // namespace

std::vector<TestKernel> program_kernels() {
  std::vector<TestKernel> all = basic_kernels();
  for (const auto& more :
       {grid_kernels(), matrix_kernels(), sequence_kernels(), particle_kernels()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace slate::test
