// Calls of every kind: direct, recursive, by pointer, virtual, printf, assert, structures by value.
#include <cassert>
#include <cstdio>
struct Big { int values[20]; };
struct Base { __device__ virtual int f(int x) { return x; } int y; };
struct Derived : Base { __device__ Derived(int z); __device__ int f(int x) override { return x * 3 + y; } };
__device__ __noinline__ Derived::Derived(int z) { y = z; }
__device__ int counters[16];
struct Thing { int a; float b; const char* s; int* p; };
__device__ Thing things[2] = {{1, 2.5f, "hello", counters}, {3, 4.5f, "bye", counters + 2}};
__device__ __noinline__ float square(float x) { return x * x + 1; }
__device__ __noinline__ float half_of(float x) { return x / 2; }
__device__ float (*functions[2])(float) = {square, half_of};
__device__ int fibonacci(int n) { return n <= 1 ? 1 : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ Big make(int x) { Big b; for (int i = 0; i < 20; i++) b.values[i] = x + i * threadIdx.x; return b; }
__global__ void call_all(float* out, int n, Big big, Base* object) {
  out[0] = functions[n & 1](out[1]) + square(out[2]) + big.values[n % 20];
  out[3] = make(n).values[n % 20] + things[n & 1].b;
  atomicAdd(&counters[n & 15], fibonacci(n));
  printf("%d %f %s\n", n, out[0], things[n & 1].s);
  Derived d(n);
  out[4] = object->f(n) + ((Base*)&d)->f(3);
  assert(n > 3);
}
