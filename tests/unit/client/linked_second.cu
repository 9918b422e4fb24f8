// What linked_first.cu calls.
extern "C" __device__ int helper(int value) {
  return value + 1;
}
