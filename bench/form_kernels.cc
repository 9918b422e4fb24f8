#include "bench/form_kernels.h"

#include <cstring>

namespace slate::bench {
namespace {

Parameter floats(std::uint64_t count) {
  return {count * 4, true, {}};
}
Parameter words(std::uint64_t count) {
  return {count * 4, false, {}};
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

FormKernel gaussian(const char* name, std::uint32_t n) {
  return {name,
          "gaussian",
          "_Z11update_rowsPfS_PKfjj",
          {n / 4, n / 4},
          {4, 4},
          {floats(std::uint64_t{n} * n), floats(n), floats(n), value(n), value(0u)},
          0,
          4};
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
       {floats(s.options), floats(s.options), floats(s.options), floats(s.options),
        floats(s.options), value(Market{0.02f, 0.3f}), value(s.options)}},
      gaussian("gaussian", s.unknowns),
      gaussian("gaussian8192", s.many_unknowns),
      {"sgemm",
       "sgemm",
       "_Z5sgemmILj32EEvPKfS1_Pfj",
       {s.product / 32, s.product / 32},
       {32, 32},
       {floats(product), floats(product), floats(product), value(s.product)}},
      {"transpose",
       "transpose",
       "_Z9transposePKfPfj",
       {s.transposed / 32, s.transposed / 32},
       {32, 8},
       {floats(transposed), floats(transposed), value(s.transposed)}},
      {"vector_add",
       "vector_add",
       "_Z10vector_addPKfS0_Pfj",
       {s.added / 256},
       {256},
       {floats(s.added), floats(s.added), floats(s.added), value(s.added)}},
      {"reduction",
       "reduction",
       "_Z6reducePKfPfm",
       {s.sum_blocks},
       {256},
       {floats(s.summed), floats(s.sum_blocks), value(s.summed)},
       1024},
      {"histogram",
       "histogram",
       "_Z9histogramPKjPjm",
       {s.histogram_blocks},
       {256},
       {words(s.samples / 4), words(256), value(s.samples)}},
      {"stencil3d",
       "stencil3d",
       "_Z9stencil3dPKfPf7Weightsi",
       {s.cube / 32, s.cube / 8},
       {32, 8},
       {floats(cube), floats(cube), value(Weights{{0.4f, 0.06f, 0.025f, 0.01f, 0.005f}}),
        value(static_cast<int>(s.cube))}},
      {"scan",
       "scan",
       "_Z11scan_blocksPKjPjS1_j",
       {s.scanned / 512},
       {256},
       {words(s.scanned), words(s.scanned), words(s.scanned / 512), value(s.scanned)}},
      {"add_offsets",
       "scan",
       "_Z11add_offsetsPjPKjj",
       {s.scanned / 512},
       {256},
       {words(s.scanned), words(s.scanned / 512), value(s.scanned)}},
      {"early_return",
       "early_return",
       "_Z12early_returnPKjPKhPjj",
       {s.cells / 256},
       {256},
       {words(s.cells), words(s.cells / 4), words(s.cells), value(s.cells)}},
      {"fma_loop",
       "fma_loop",
       "_Z8fma_loopPfj",
       {s.chains / 256},
       {256},
       {floats(s.chains), value(s.chains)}},
      {"stream_read",
       "stream_read",
       "_Z11stream_readPK5uint4Pjm",
       {s.read_blocks},
       {256},
       {words(s.vectors * 4), words(s.read_blocks * 256), value(s.vectors)}},
  };
}

}  // namespace slate::bench
