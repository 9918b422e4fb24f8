// CUDA C++ source to PTX: takes a whole .cu file as its author wrote it, keeps what the device
// needs, and lets NVRTC compile that. Messages name the author's own file and lines. All of it runs
// in the caller's process and with its rights: files are read as the caller.
//
// Thread: any. NVRTC is opened at run time, at the first call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace slate::source {

struct SourceOptions {
  std::string name = "source.cu";  // name of the file in messages
  std::string directory = {};  // first place to search for #include "..."; empty: the current one
  std::vector<std::string> include_directories = {};
  std::vector<std::string> options = {};  // for NVRTC: "-DN=4", "--use_fast_math", "-std=c++20"
  std::uint32_t architecture = 90;        // 90 for compute_90
  /// Template instances that the source itself does not make: "scale<float>".
  std::vector<std::string> instances = {};
};

struct CompiledSource {
  std::string ptx;
  /// Every kernel found or asked for: its name as written ("scale<float>", "ns::add"), and its name
  /// in the PTX.
  std::vector<std::pair<std::string, std::string>> kernels;
  std::string log;  // warnings; empty when there are none
};

/// Compiles the source. Errors: kInvalidPtx with NVRTC's (or the scanner's) words, one "FILE(LINE):
/// error: ..." a line; kNotSupported when no NVRTC is found, naming the places.
Result<CompiledSource> compile(std::string_view text, const SourceOptions& options);

/// The device part alone, as NVRTC gets it. #line directives keep the line numbers.
Result<std::string> strip_host_code(std::string_view text, const SourceOptions& options);

/// What the result of compile() depends on besides the text: NVRTC's version and the options. For
/// cache keys.
Result<std::string> compiler_identity(const SourceOptions& options);

}  // namespace slate::source
