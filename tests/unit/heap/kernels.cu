// What the heap's tests run: kernels that call malloc and free in every way. Each live piece is
// filled with words that only its owner writes, so that two pieces that overlap are found.
#include <cstdint>

namespace {

__device__ unsigned next(unsigned& random) {
  random ^= random << 13;
  random ^= random >> 17;
  random ^= random << 5;
  return random;
}

struct Piece {
  unsigned* memory;
  unsigned words, mark;

  /// First and last word, and some between.
  __device__ unsigned step() const { return words < 16 ? 1 : words / 8; }
  __device__ void fill() const {
    for (unsigned i = 0; i < words; i += step()) memory[i] = mark + i;
    memory[words - 1] = mark;
  }
  __device__ bool intact() const {
    for (unsigned i = 0; i + 1 < words; i += step()) {
      if (memory[i] != mark + i) return false;
    }
    return memory[words - 1] == mark;
  }
};

}  // namespace

struct Found {
  unsigned long long given, refused, damaged, misaligned;
};

/// Every thread keeps up to four pieces of at most `most` bytes, and gives all back in the end.
extern "C" __global__ void churn(unsigned rounds, unsigned most, unsigned seed, Found* found) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned random = (thread + 1) * 2654435761u ^ seed;
  Piece pieces[4] = {};
  for (unsigned round = 0; round < rounds; ++round) {
    Piece& piece = pieces[next(random) % 4];
    if (piece.memory != nullptr) {
      if (!piece.intact()) atomicAdd(&found->damaged, 1ull);
      free(piece.memory);
    }
    // Small ones more often than large ones.
    const unsigned limit = most >> next(random) % 8;
    const unsigned bytes = 4 + next(random) % (limit > 8 ? limit - 4 : 4);
    piece = {static_cast<unsigned*>(malloc(bytes)), bytes / 4, next(random)};
    if (piece.memory == nullptr) {
      atomicAdd(&found->refused, 1ull);
      continue;
    }
    atomicAdd(&found->given, 1ull);
    if (reinterpret_cast<std::uintptr_t>(piece.memory) % 16 != 0) {
      atomicAdd(&found->misaligned, 1ull);
    }
    piece.fill();
  }
  for (const Piece& piece : pieces) {
    if (piece.memory == nullptr) continue;
    if (!piece.intact()) atomicAdd(&found->damaged, 1ull);
    free(piece.memory);
  }
}

/// All threads allocate until nothing is left, up to `most` pieces in all.
extern "C" __global__ void exhaust(unsigned long long bytes, unsigned most, void** pieces,
                                   unsigned* count) {
  while (void* const piece = malloc(bytes)) {
    const unsigned at = atomicAdd(count, 1u);
    if (at >= most) {
      free(piece);
      return;
    }
    pieces[at] = piece;
  }
}

/// Pieces [0, count), in an order that has nothing to do with that of their addresses.
extern "C" __global__ void give_back(void** pieces, unsigned count, unsigned stride) {
  const unsigned threads = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
    free(pieces[static_cast<unsigned long long>(i) * stride % count]);
  }
}

/// One thread does what the list says: sizes are allocated, addresses given back.
extern "C" __global__ void allocate(const unsigned long long* bytes, unsigned count,
                                    void** pieces) {
  for (unsigned i = 0; i < count; ++i) pieces[i] = malloc(bytes[i]);
}
extern "C" __global__ void release(void** pieces, unsigned count) {
  for (unsigned i = 0; i < count; ++i) free(pieces[i]);
}

/// Every thread wants one piece of `bytes` and has it at once with all others'.
extern "C" __global__ void one_each(unsigned long long bytes, void** pieces) {
  pieces[blockIdx.x * blockDim.x + threadIdx.x] = malloc(bytes);
}

/// Neighbours in a warp take and give back in turn what fills the whole heap.
extern "C" __global__ void contend(unsigned rounds, unsigned long long bytes, unsigned* given) {
  for (unsigned i = 0; i < rounds; ++i) {
    if (void* const piece = malloc(bytes)) {
      atomicAdd(given, 1u);
      free(piece);
    }
  }
}

/// One block takes and gives back until the other was told that there is no room.
extern "C" __global__ void beside(unsigned long long bytes, volatile unsigned* told) {
  if (blockIdx.x != 0) {
    *told = malloc(bytes) == nullptr ? 1 : 2;
    return;
  }
  while (*told == 0) free(malloc(16));
}

struct Counted {
  int value;
  __device__ explicit Counted(int v) : value(v) {}
  __device__ ~Counted() { value = -1; }
};

/// new and delete, also of arrays, are malloc and free.
extern "C" __global__ void with_new(int* sums) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  Counted* const one = new Counted(thread);
  int* const many = new int[thread % 50 + 1];
  for (int i = 0; i <= thread % 50; ++i) many[i] = i;
  int sum = one->value;
  for (int i = 0; i <= thread % 50; ++i) sum += many[i];
  sums[thread] = sum;
  delete one;
  delete[] many;
}
