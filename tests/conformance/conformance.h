// What the rows of the conformance program share. A row calls one function of cudart in one way and
// prints one line, "NAME: ANSWER", that is the same wherever the runtime behaves the same. Rows
// whose answer depends on the device print their name with a trailing "@". One thread.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <string>
#include <vector>

#include "row.h"

namespace conformance {

/// Rows of one topic: each prints its lines. They leave nothing behind but the context.
using Topic = void (*)();

void device_rows();
void memory_rows();
void stream_rows();
void event_rows();
void host_function_rows();
void launch_rows();
void function_rows();
void symbol_rows();
void pool_rows();
void array_rows();
void graph_rows();
void capture_rows();
void sharing_rows();

/// Prints a row's answer: what the call returned, and, when cudaGetLastError then says something
/// else, that.
inline void end_row(cudaError_t returned, const std::string& more = {}) {
  const cudaError_t last = cudaGetLastError();
  std::printf("%s", cudaGetErrorName(returned));
  if (last != returned) std::printf(" last %s", cudaGetErrorName(last));
  std::printf("%s%s\n", more.empty() ? "" : " ", more.c_str());
}

/// A row of a value.
template <typename T>
void value_row(const char* name, T value) {
  std::printf("%s: %s\n", name, std::to_string(value).c_str());
}

/// A handle that nothing ever had.
template <typename Handle>
Handle wild_handle() {
  static long long somewhere[32];
  return reinterpret_cast<Handle>(somewhere);
}

/// Does nothing; takes two parameters.
__global__ void two_parameters(int* out, double value);

}  // namespace conformance
