// Ptxas: the toolkit's assembler, run as a process, for machine code that can be kept. The driver
// has the same one inside but gives its code out only as relocatable code, which can use more
// registers and be slower. Any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slate::cuda {

struct PtxasSettings {
  std::string path;                 // empty: find_ptxas() looks for it
  int major = 0, minor = 0;         // compute capability to compile for
  std::int32_t driver_version = 0;  // 13000: the driver that will load the code
  /// Of one compilation, whatever else the machine has to do; under half an hour.
  std::chrono::milliseconds most_wait = std::chrono::minutes(10);
};

/// `configured` if that is not empty, else the first of $CUDA_HOME/bin, $PATH (absolute entries)
/// and /usr/local/cuda/bin that has a ptxas. kNotSupported if there is none.
Result<std::string> find_ptxas(const std::string& configured);

/// "sm_90" for a device of 9.0, or "sm_90a" where that is the kind of target that `ptx` names.
std::string architecture_for(std::string_view ptx, int major, int minor);

class Ptxas {
 public:
  /// Starts nothing: the assembler is looked for when it is first needed.
  explicit Ptxas(PtxasSettings settings) : settings_(std::move(settings)) {}
  Ptxas(const Ptxas&) = delete;
  Ptxas& operator=(const Ptxas&) = delete;

  /// What its code depends on besides the text: the assembler's own version and the options. Asked
  /// once. kNotSupported, with the reason, where no assembler is of use: there is none, it does not
  /// say its version, or its CUDA is a major version that the driver is too old for.
  Result<std::string> identity() const;

  /// A cubin. kInvalidPtx with the assembler's words where it refuses the text, kLimit where it
  /// takes more than `most_cpu` of processor time, kIo where it cannot be run or has so little of a
  /// processor that it takes `most_wait`, kInternal where it crashes or writes no code, and as
  /// identity(). Requires: no NUL in `ptx`.
  Result<std::vector<std::byte>> compile(
      std::string_view ptx, std::chrono::milliseconds most_cpu = std::chrono::minutes(10)) const;

 private:
  struct Program {
    std::string path;
    std::string identity;
  };
  const Result<Program>& program() const;
  Result<Program> look() const;

  const PtxasSettings settings_;
  mutable std::once_flag looked_;
  mutable std::optional<Result<Program>> program_;
};

}  // namespace slate::cuda
