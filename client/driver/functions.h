// The functions that cuGetProcAddress gives, by name and version. Their table is generated from
// functions.txt (generate_functions.py). Constant data.
#pragma once

#include <span>
#include <string_view>

namespace slate::driver {

/// The newest CUDA version whose functions are in the table.
inline constexpr int kNewestVersion = 13000;

/// The functions that a name means from one CUDA version on. Null: the version is too old.
struct FunctionVersion {
  int since;  // 3020 for CUDA 3.2
  void* legacy;
  void* per_thread;  // for programs with per-thread default streams
};

struct NamedFunction {
  std::string_view name;
  std::span<const FunctionVersion> versions;  // the oldest first
};

/// Sorted by name.
std::span<const NamedFunction> named_functions();

}  // namespace slate::driver
