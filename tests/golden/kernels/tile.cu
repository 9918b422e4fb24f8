// Every block has a barrier that all its threads come to: two copies of the tile take turns, so
// that nobody waits between blocks, and the next task is known in time. The tile is so large that a
// second form with one copy is made, for blocks of so few threads that two cost occupancy.
extern "C" __global__ void tile(const unsigned* in, unsigned* out, unsigned count) {
  __shared__ unsigned cells[16][40];
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  for (unsigned row = threadIdx.y; row < 16; row += blockDim.y) {
    cells[row][threadIdx.x] = in[(block * 256 + row * 16 + threadIdx.x) % count];
  }
  __syncthreads();
  for (unsigned row = threadIdx.y; row < 4; row += blockDim.y) {
    const unsigned i = block * 64 + row * 16 + threadIdx.x;
    if (i < count) out[i] = cells[threadIdx.x][row] * 3 + blockIdx.y;
  }
}
