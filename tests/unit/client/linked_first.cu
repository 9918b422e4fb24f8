// Compiled apart from linked_second.cu, whose function it calls.
extern "C" __device__ int helper(int value);

__global__ void scale(float* values, float factor, int count) {
  if (threadIdx.x < helper(count)) values[threadIdx.x] *= factor;
}
