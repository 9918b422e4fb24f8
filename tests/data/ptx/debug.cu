// With -G: locations, debug sections, nothing optimised.
__device__ __noinline__ int twice(int x) { return 2 * x; }
__global__ void debugged(int* p, int n) { for (int i = 0; i < n; ++i) { int t = twice(p[i]); p[i] = t; } }
