// The kernels that every form is tried on: those of tests/golden/kernels, and those of the programs
// in kernels/ with shapes and arguments like the programs' own, only smaller.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <ostream>
#include <string>
#include <vector>

#include "tests/unit/forms/form_runner.h"

namespace slate::test {

struct TestKernel {
  std::string file;  // in tests/golden/kernels or the program's name
  bool is_program = false;
  KernelCase kernel;
  bool has_worker = true;  // else the analysis must refuse
  bool one_wave = false;   // counts on all its blocks being there: never sliced
};

std::vector<TestKernel> golden_kernels();
std::vector<TestKernel> program_kernels();
/// A golden kernel over a grid `scale` times as wide, for devices that are through with the small
/// one at once; a program's kernel as it is.
TestKernel widened(const TestKernel& kernel, std::uint32_t scale);
inline void PrintTo(const TestKernel& kernel, std::ostream* out) {
  *out << kernel.kernel.name;
}

/// Its PTX: of the golden folder, or out of the built program.
std::string ptx_of(const TestKernel& kernel);

inline constexpr std::uint32_t kMostRegisters = 64;  // that forms of the kernels may use

/// A device on sim with SMs, schedules and time slices by `seed`.
inline std::string sim_settings(int seed) {
  return "sim:sms=" + std::to_string(1 + seed % 7) + ",memory=256M,seed=" + std::to_string(seed) +
         ",quantum=" + std::to_string(1 + seed * 13 % 200) + ",max_kernel_seconds=60";
}

/// The name of a kernel, for a test of it.
inline std::string name_of(const testing::TestParamInfo<TestKernel>& info) {
  std::string name = info.param.kernel.name;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

}  // namespace slate::test
