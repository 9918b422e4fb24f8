// What the programs of this folder share: an end with a message when a call fails.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>

inline void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  (void)cuGetErrorName(result, &name);
  std::printf("%s: %s\n", call, name != nullptr ? name : "an unknown error");
  std::exit(1);
}
#define CHECK(call) check((call), #call)
