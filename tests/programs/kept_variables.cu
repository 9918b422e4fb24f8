// A program whose variables of every kind have to be kept: constants that change, variables that
// kernels write, one that begins with the address of another, and addresses that it has asked for.
// It checks all of them in each round. An argument is the seconds that it goes on. A second one
// leaves out the kernel that cannot be done again, as it follows a pointer from memory.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kCount = 256;

__constant__ int factors[16] = {3};
__constant__ int offset;
__device__ int first[kCount], second[kCount];
__device__ int third[kCount] = {7, 8, 9};
__device__ int* const list[] = {first, second};
__device__ int chosen;

__device__ int factor(int i) {
  return factors[i & 15] + offset;
}
// None of them reads what it writes, so that it can be done again.
__global__ void forth() {
  const int i = static_cast<int>(threadIdx.x);
  second[i] = first[i] + factor(i);
}
__global__ void back(int* to) {
  const int i = static_cast<int>(threadIdx.x);
  to[i] = second[i] + factor(i);
}
__global__ void gather(int* to) {
  const int i = static_cast<int>(threadIdx.x);
  to[i] = list[chosen][i] + third[i];
}

int failures = 0;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

void expect(const char* what, int round, int got, int wanted) {
  if (got == wanted) return;
  if (++failures < 10)
    std::fprintf(stderr, "round %d: %s is %d, not %d\n", round, what, got, wanted);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  int *at_first = nullptr, *at_offset = nullptr, *gathered = nullptr;
  CHECK(cudaGetSymbolAddress(reinterpret_cast<void**>(&at_first), first));
  CHECK(cudaGetSymbolAddress(reinterpret_cast<void**>(&at_offset), offset));
  CHECK(cudaMalloc(&gathered, kCount * sizeof(int)));
  int wanted[kCount] = {}, got[kCount];
  int round = 0;
  do {
    int host[16];
    for (int i = 0; i < 16; ++i) host[i] = round + i;
    const int added = round % 10;
    CHECK(cudaMemcpyToSymbol(factors, host, sizeof(host)));
    CHECK(cudaMemcpy(at_offset, &added, sizeof(added), cudaMemcpyHostToDevice));
    forth<<<1, kCount>>>();
    CHECK(cudaDeviceSynchronize());
    back<<<1, kCount>>>(at_first);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < kCount; ++i) wanted[i] += 2 * (round + (i & 15) + added);
    CHECK(cudaMemcpyFromSymbol(got, first, sizeof(got)));
    for (int i = 0; i < kCount; ++i) expect("first", round, got[i], wanted[i]);
    int offset_now = -1;
    CHECK(cudaMemcpyFromSymbol(&offset_now, offset, sizeof(offset_now)));
    expect("offset", round, offset_now, added);
    ++round;
    if (argc > 2) continue;
    const int which = round & 1;
    CHECK(cudaMemcpyToSymbol(chosen, &which, sizeof(which)));
    gather<<<1, kCount>>>(gathered);
    CHECK(cudaMemcpy(got, gathered, sizeof(got), cudaMemcpyDeviceToHost));
    for (int i = 0; i < kCount; ++i) {
      const int before = wanted[i] - (which != 0 ? host[i & 15] + added : 0);
      expect("gathered", round, got[i], before + (i < 3 ? 7 + i : 0));
    }
  } while (failures == 0 && (round < 20 || std::chrono::steady_clock::now() < end));
  std::printf("%s\n", failures == 0 ? "all variables are kept" : "variables are lost");
  return failures == 0 ? 0 : 1;
}
