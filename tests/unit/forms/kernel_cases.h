// The kernels that every form is tried on: those of tests/golden/kernels, and those of the programs
// in kernels/ with shapes and arguments like the programs' own, only smaller.
#pragma once

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

}  // namespace slate::test
