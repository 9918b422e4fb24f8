// The kernels of kernels/ as form_bench launches them: grids, blocks and parameters, at sizes that
// fill a large GPU or that a simulated one finishes at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device/device.h"

namespace slate::bench {

/// A parameter: a buffer of random floats or words, or a value.
struct Parameter {
  std::uint64_t buffer_bytes = 0;
  bool floats = true;
  std::vector<std::byte> value;
};

struct FormKernel {
  std::string name;
  std::string program;  // whose file has it
  std::string entry;
  device::Dim3 grid, block;
  std::vector<Parameter> parameters;
  std::uint32_t shared_bytes = 0;
  int step_parameter =
      -1;  // counted up from 0 with every launch: the column of Gaussian elimination
};

std::vector<FormKernel> form_kernels(bool small);

}  // namespace slate::bench
