// Global alignment of two sequences: the score of every pair of prefixes is the best of its three
// neighbours' plus a step. A launch takes one antidiagonal of tiles, which depend on those of the
// launches before; within a tile the threads go along its antidiagonals, a barrier each. Integers,
// exact; many launches, the first and last of them tiny.
#include <algorithm>
#include <array>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::Run;

constexpr int kTile = 64;  // cells along a tile's edge, and threads of a block
constexpr int kLetters = 24;
constexpr int kGap = 5;  // what skipping a letter costs

using Similarity = std::array<std::array<int, kLetters>, kLetters>;

__constant__ int similarity[kLetters][kLetters];

}  // namespace

/// The cells of no letters of one sequence. `scores` has n + 1 rows of n + 1 cells.
__global__ void set_borders(int* scores, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i > n) return;
  scores[i] = -kGap * i;
  scores[static_cast<std::size_t>(i) * (n + 1)] = -kGap * i;
}

/// Tile (x, y) of antidiagonal x + y = `diagonal`; block 0 has the lowest x, `first_x`.
__global__ void align_tiles(const unsigned char* __restrict__ across,
                            const unsigned char* __restrict__ down, int* scores, int n,
                            int diagonal, int first_x) {
  __shared__ int tile[kTile + 1][kTile + 1];
  __shared__ unsigned char letters_down[kTile];
  const int t = static_cast<int>(threadIdx.x);
  const int tile_x = first_x + static_cast<int>(blockIdx.x);
  const int left = tile_x * kTile;  // the cell before the tile's first one
  const int top = (diagonal - tile_x) * kTile;
  const int columns = min(kTile, n - left);
  const int rows = min(kTile, n - top);
  int* const corner = scores + static_cast<std::size_t>(top) * (n + 1) + left;
  const auto global = [&](int row, int column) -> int& {
    return corner[static_cast<std::size_t>(row) * (n + 1) + column];
  };

  const int letter_across = t < columns ? across[left + t] : 0;
  letters_down[t] = t < rows ? down[top + t] : 0;
  if (t == 0) tile[0][0] = global(0, 0);
  if (t < columns) tile[0][t + 1] = global(0, t + 1);
  if (t < rows) tile[t + 1][0] = global(t + 1, 0);
  for (int step = 0; step < 2 * kTile - 1; ++step) {
    __syncthreads();
    const int row = step - t;
    if (t < columns && row >= 0 && row < rows) {
      const int matched = tile[row][t] + similarity[letters_down[row]][letter_across];
      tile[row + 1][t + 1] = max(matched, max(tile[row][t + 1], tile[row + 1][t]) - kGap);
    }
  }
  __syncthreads();
  for (int row = 1; row <= rows; ++row) {
    if (t < columns) global(row, t + 1) = tile[row][t + 1];
  }
}

namespace {

Similarity make_similarity() {
  Similarity table{};
  for (unsigned a = 0; a < kLetters; ++a) {
    for (unsigned b = 0; b <= a; ++b) {
      const auto random = static_cast<int>(slate::kernels::mix(1, a * kLetters + b) >> 33);
      table[a][b] = table[b][a] = a == b ? 4 + random % 8 : random % 8 - 4;
    }
  }
  return table;
}

std::vector<unsigned char> make_sequence(std::uint64_t seed, int length) {
  std::vector<unsigned char> letters(static_cast<std::size_t>(length));
  for (int i = 0; i < length; ++i) {
    letters[i] = static_cast<unsigned char>((slate::kernels::mix(seed, i) >> 40) % kLetters);
  }
  return letters;
}

/// Every cell, row by row.
void check(Run& run, const std::vector<int>& scores, const std::vector<unsigned char>& across,
           const std::vector<unsigned char>& down, const Similarity& table) {
  const std::size_t columns = across.size() + 1;
  std::vector<int> row(columns);
  for (std::size_t x = 0; x < columns; ++x) row[x] = -kGap * static_cast<int>(x);
  for (std::size_t y = 0; y <= down.size(); ++y) {
    int diagonal = row[0];
    if (y > 0) row[0] -= kGap;
    for (std::size_t x = 1; x < columns && y > 0; ++x) {
      const int above = row[x];
      row[x] =
          std::max({diagonal + table[across[x - 1]][down[y - 1]], above - kGap, row[x - 1] - kGap});
      diagonal = above;
    }
    for (std::size_t x = 0; x < columns; ++x) {
      run.compare_exact(scores[y * columns + x], row[x]);
    }
  }
}

void run(Run& run) {
  const int n = static_cast<int>(run.size());
  const std::vector<unsigned char> across = make_sequence(2, n);
  const std::vector<unsigned char> down = make_sequence(3, n);
  const Similarity table = make_similarity();
  SLATE_REQUIRE(cudaMemcpyToSymbol(similarity, table.data(), sizeof(table)));

  DeviceBuffer<unsigned char> device_across(across), device_down(down);
  DeviceBuffer<int> scores(static_cast<std::size_t>(n + 1) * (n + 1));
  const int tiles = static_cast<int>(blocks_for(n, kTile));
  run.time([&] {
    set_borders<<<blocks_for(n + 1, 256), 256>>>(scores.data(), n);
    for (int diagonal = 0; diagonal < 2 * tiles - 1; ++diagonal) {
      const int first_x = std::max(0, diagonal - tiles + 1);
      const int last_x = std::min(diagonal, tiles - 1);
      align_tiles<<<last_x - first_x + 1, kTile>>>(device_across.data(), device_down.data(),
                                                   scores.data(), n, diagonal, first_x);
    }
  });
  const std::vector<int> result = scores.download();

  run.add_output(result);
  if (run.wants_check()) check(run, result, across, down, table);
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "needleman_wunsch",
                                      .summary = "Alignment of two sequences, tiles by diagonals",
                                      .size_meaning = "letters of each sequence",
                                      .default_size = 500,
                                      .max_size = 32767},
                                     argc, argv, run);
}
