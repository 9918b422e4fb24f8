// Nvrtc: NVIDIA's run-time compiler, opened with dlopen and left open. It compiles text as it is;
// source.h takes out the host's code before. Thread: any.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace slate::source {

/// Result of a compilation.
struct NvrtcOutput {
  bool ok = false;
  std::string ptx;
  std::string log;
  std::vector<std::pair<std::string, std::string>> lowered;  // name expression, name in the PTX
};

class Nvrtc {
 public:
  /// Opens libnvrtc.so.13 as the loader finds it, else below $CUDA_HOME, $CUDA_PATH or
  /// /usr/local/cuda. Errors: kNotSupported, naming the places.
  static Result<Nvrtc> open();

  std::pair<int, int> version() const { return version_; }
  /// The toolkit's include directories; empty when there are none beside the library.
  const std::vector<std::string>& includes() const { return includes_; }

  /// Compiles `text` under `name`. `expressions`: name expressions of template instances. A text
  /// that does not compile gives a result with ok == false. Errors: NVRTC's own failures.
  Result<NvrtcOutput> compile(const std::string& text, const std::string& name,
                              const std::vector<std::string>& options,
                              const std::vector<std::string>& expressions) const;

 private:
  struct Functions;
  std::shared_ptr<const Functions> functions_;
  std::pair<int, int> version_{0, 0};
  std::vector<std::string> includes_;
};

}  // namespace slate::source
