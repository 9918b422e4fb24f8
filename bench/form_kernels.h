// The kernels of kernels/ as form_bench launches them: grids, blocks, and the inputs that the
// programs give them, at sizes that fill a large GPU or that a simulated one finishes at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "device/device.h"

namespace slate::bench {

/// A parameter: a buffer, or a value.
struct Parameter {
  std::uint64_t buffer_bytes = 0;                    // 0: a value
  std::function<std::uint32_t(std::uint64_t)> word;  // of the buffer, by index; null: all 0
  bool is_written = false;                           // by the kernel
  std::vector<std::byte> value;
};

struct FormKernel {
  std::string name;
  std::string program;  // whose file has it
  std::string entry;
  device::Dim3 grid, block;
  std::vector<Parameter> parameters;
  std::uint32_t shared_bytes = 0;
  int step_parameter = -1;       // the column of Gaussian elimination: not the same in every launch
  std::uint32_t step_count = 0;  // columns
};

std::vector<FormKernel> form_kernels(bool small);

}  // namespace slate::bench
