// CUDA C++ source to PTX: takes a whole .cu file as its author wrote it, host code and all, keeps
// what the device needs, and has NVRTC compile that. Messages name the author's own file and lines.
// Everything here runs in the caller's process and with its rights: files are read as the caller.
//
// Any thread. NVRTC is opened at run time, at the first call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace slate::source {

struct SourceOptions {
  std::string name = "source.cu";  // stands for the file in messages
  std::string directory = {};  // where #include "..." is looked up first; empty: the current one
  std::vector<std::string> include_directories = {};
  std::vector<std::string> options = {};  // for NVRTC: "-DN=4", "--use_fast_math", "-std=c++20"
  std::uint32_t architecture = 90;        // 90 for compute_90
  /// Template instances that the source itself does not make: "scale<float>".
  std::vector<std::string> instances = {};
};

struct CompiledSource {
  std::string ptx;
  /// For every kernel found or asked for: as written ("scale<float>", "ns::add") and as it is
  /// called in the PTX.
  std::vector<std::pair<std::string, std::string>> kernels;
  std::string log;  // warnings; empty when there are none
};

/// kInvalidPtx with NVRTC's (or the scanner's) words, one "FILE(LINE): error: ..." a line;
/// kNotSupported when no NVRTC is found, saying where it was looked for.
Result<CompiledSource> compile(std::string_view text, const SourceOptions& options);

/// The device part alone, as NVRTC gets it; line numbers are kept by #line directives.
Result<std::string> strip_host_code(std::string_view text, const SourceOptions& options);

/// What makes the result of compile() what it is, besides the text: NVRTC's version and the
/// options. Part of a cache key.
Result<std::string> compiler_identity(const SourceOptions& options);

}  // namespace slate::source
