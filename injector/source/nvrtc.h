// Nvrtc: NVIDIA's run-time compiler, opened with dlopen and left open. Any thread.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace slate::source {

struct NvrtcOutput {
  bool ok = false;
  std::string ptx;
  std::string log;
  std::vector<std::pair<std::string, std::string>> lowered;  // name expression, name in the PTX
};

class Nvrtc {
 public:
  /// libnvrtc.so.13 as the loader finds it, else below $CUDA_HOME, $CUDA_PATH, /usr/local/cuda.
  /// kNotSupported says where it was looked for.
  static Result<Nvrtc> open();

  std::pair<int, int> version() const { return version_; }
  /// The toolkit's include directories; empty when there are none beside the library.
  const std::vector<std::string>& includes() const { return includes_; }

  /// A text that does not compile is a result with ok == false; an Error is NVRTC's own failure.
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
