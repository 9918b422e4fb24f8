#include "bench/form_kernels.h"

#include <bit>
#include <cstring>

#include "kernels/common/program.h"

namespace slate::bench {
namespace {

using kernels::mix;
using kernels::uniform;

/// As uniform_floats().
Parameter floats(std::uint64_t count, std::uint64_t seed, float low, float high) {
  return {
      count * 4,
      [=](std::uint64_t i) { return std::bit_cast<std::uint32_t>(uniform(seed, i, low, high)); },
      false,
      {}};
}
Parameter words(std::uint64_t count, std::uint32_t (*word)(std::uint64_t)) {
  return {count * 4, word, false, {}};
}
/// Four bytes each, for floats too.
Parameter output(std::uint64_t count) {
  return {count * 4, nullptr, true, {}};
}
Parameter written(Parameter parameter) {
  parameter.is_written = true;
  return parameter;
}
template <typename T>
Parameter value(T v) {
  Parameter parameter;
  parameter.value.resize(sizeof(T));
  std::memcpy(parameter.value.data(), &v, sizeof(T));
  return parameter;
}

/// Elements, or the edge of matrices and cubes; blocks where a grid does not follow from those.
struct Sizes {
  std::uint32_t options, unknowns, many_unknowns, product, transposed, added, sum_blocks,
      histogram_blocks, cube, scanned, cells, chains, read_blocks;
  std::uint64_t summed, samples, vectors;
};
constexpr Sizes kLarge{.options = 40'000'000,
                       .unknowns = 2048,
                       .many_unknowns = 8192,
                       .product = 4096,
                       .transposed = 16384,
                       .added = 268'435'456,
                       .sum_blocks = 4096,
                       .histogram_blocks = 2048,
                       .cube = 512,
                       .scanned = 134'217'728,
                       .cells = 67'108'864,
                       .chains = 17'301'504,
                       .read_blocks = 8192,
                       .summed = 536'870'912,
                       .samples = 1'073'741'824,
                       .vectors = 67'108'864};
constexpr Sizes kSmall{.options = 16'384,
                       .unknowns = 64,
                       .many_unknowns = 128,
                       .product = 128,
                       .transposed = 256,
                       .added = 32'768,
                       .sum_blocks = 64,
                       .histogram_blocks = 64,
                       .cube = 32,
                       .scanned = 16'384,
                       .cells = 16'384,
                       .chains = 4'096,
                       .read_blocks = 64,
                       .summed = 65'536,
                       .samples = 65'536,
                       .vectors = 32'768};

struct Market {
  float riskless, volatility;
};
struct Weights {
  float w[5];
};

/// The multipliers, which the program computes anew for every column, are as small as those are.
FormKernel gaussian(const char* name, std::uint32_t n) {
  const auto matrix = [n](std::uint64_t i) {
    const bool on_diagonal = i / n == i % n;
    return std::bit_cast<std::uint32_t>(
        on_diagonal ? uniform(2, i / n, 1, 2) + static_cast<float>(n) : uniform(1, i, -1, 1));
  };
  const float most = 1.0f / static_cast<float>(n);
  return {.name = name,
          .program = "gaussian",
          .entry = "_Z11update_rowsPfS_PKfjj",
          .grid = {n / 4, n / 4},
          .block = {4, 4},
          .parameters = {{std::uint64_t{n} * n * 4, matrix, true, {}},
                         written(floats(n, 3, -1, 1)),
                         floats(n, 4, -most, most),
                         value(n),
                         value(0u)},
          .step_parameter = 4,
          .step_count = n - 1};
}

/// histogram: each of four samples is the product of two uniform bytes.
std::uint32_t sample_word(std::uint64_t i) {
  const std::uint64_t bits = mix(1, i);
  std::uint32_t word = 0;
  for (unsigned at = 0; at < 32; at += 8) {
    const std::uint64_t product = (bits >> (2 * at) & 255) * (bits >> (2 * at + 8) & 255);
    word |= static_cast<std::uint32_t>(product >> 8) << at;
  }
  return word;
}

/// scan: numbers of 20 bits.
std::uint32_t short_word(std::uint64_t i) {
  return static_cast<std::uint32_t>(mix(1, i) >> 44);
}

std::uint32_t any_word(std::uint64_t i) {
  return static_cast<std::uint32_t>(mix(1, i));
}

/// stream_read: vectors of 16 bytes.
std::uint32_t vector_word(std::uint64_t i) {
  return static_cast<std::uint32_t>(mix(1 + i % 4 / 2, i / 4) >> (i % 2 * 32));
}

/// early_return: after how many rounds a cell leaves, as in its lifetime_of(); a byte each.
std::uint32_t lifetimes_word(std::uint64_t i) {
  constexpr std::uint64_t kThreads = 256, kRounds = 8;
  std::uint32_t word = 0;
  for (unsigned at = 0; at < 4; ++at) {
    const std::uint64_t cell = 4 * i + at, block = cell / kThreads;
    std::uint64_t lifetime = static_cast<unsigned>(mix(2, cell) >> 40) % (kRounds + 1);
    if (block % 8 == 1) lifetime = 0;
    if (block % 8 == 2) lifetime = kRounds;
    if (block % 8 == 3) lifetime = (cell / 32 + block) % (kRounds + 1);
    word |= static_cast<std::uint32_t>(lifetime) << (8 * at);
  }
  return word;
}

}  // namespace

std::vector<FormKernel> form_kernels(bool small) {
  const Sizes& s = small ? kSmall : kLarge;
  const std::uint64_t product = std::uint64_t{s.product} * s.product;
  const std::uint64_t transposed = std::uint64_t{s.transposed} * s.transposed;
  const std::uint64_t cube = std::uint64_t{s.cube} * s.cube * s.cube;
  return {
      {"black_scholes",
       "black_scholes",
       "_Z13black_scholesPKfS0_S0_PfS1_6Marketj",
       {(s.options + 255) / 256},
       {256},
       {floats(s.options, 1, 5, 30), floats(s.options, 2, 1, 100), floats(s.options, 3, 0.25f, 10),
        output(s.options), output(s.options), value(Market{0.02f, 0.3f}), value(s.options)}},
      gaussian("gaussian", s.unknowns),
      gaussian("gaussian8192", s.many_unknowns),
      {"sgemm",
       "sgemm",
       "_Z5sgemmILj32EEvPKfS1_Pfj",
       {s.product / 32, s.product / 32},
       {32, 32},
       {floats(product, 1, -1, 1), floats(product, 2, -1, 1), output(product), value(s.product)}},
      {"transpose",
       "transpose",
       "_Z9transposePKfPfj",
       {s.transposed / 32, s.transposed / 32},
       {32, 8},
       {floats(transposed, 1, -1, 1), output(transposed), value(s.transposed)}},
      {"vector_add",
       "vector_add",
       "_Z10vector_addPKfS0_Pfj",
       {s.added / 256},
       {256},
       {floats(s.added, 1, -1, 1), floats(s.added, 2, -1, 1), output(s.added), value(s.added)}},
      {"reduction",
       "reduction",
       "_Z6reducePKfPfm",
       {s.sum_blocks},
       {256},
       {floats(s.summed, 1, 0, 1), output(s.sum_blocks), value(s.summed)},
       1024},
      {"histogram",
       "histogram",
       "_Z9histogramPKjPjm",
       {s.histogram_blocks},
       {256},
       {words(s.samples / 4, sample_word), output(256), value(s.samples)}},
      {"stencil3d",
       "stencil3d",
       "_Z9stencil3dPKfPf7Weightsi",
       {s.cube / 32, s.cube / 8},
       {32, 8},
       {floats(cube, 1, -1, 1), output(cube), value(Weights{{0.4f, 0.06f, 0.025f, 0.01f, 0.005f}}),
        value(static_cast<int>(s.cube))}},
      {"scan",
       "scan",
       "_Z11scan_blocksPKjPjS1_j",
       {s.scanned / 512},
       {256},
       {words(s.scanned, short_word), output(s.scanned), output(s.scanned / 512),
        value(s.scanned)}},
      {"add_offsets",
       "scan",
       "_Z11add_offsetsPjPKjj",
       {s.scanned / 512},
       {256},
       {written(words(s.scanned, short_word)), words(s.scanned / 512, any_word), value(s.scanned)}},
      {"early_return",
       "early_return",
       "_Z12early_returnPKjPKhPjj",
       {s.cells / 256},
       {256},
       {words(s.cells, any_word), words(s.cells / 4, lifetimes_word), output(s.cells),
        value(s.cells)}},
      {"fma_loop",
       "fma_loop",
       "_Z8fma_loopPfj",
       {s.chains / 256},
       {256},
       {output(s.chains), value(s.chains)}},
      {"stream_read",
       "stream_read",
       "_Z11stream_readPK5uint4Pjm",
       {s.read_blocks},
       {256},
       {words(s.vectors * 4, vector_word), output(s.read_blocks * 256), value(s.vectors)}},
  };
}

}  // namespace slate::bench
