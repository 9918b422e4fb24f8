// Ptxas: the toolkit's assembler, run as a process, for machine code that can be kept, and the
// linker beside it, for kernels that launch others. The driver
// has the same one inside but gives its code out only as relocatable code, which can use more
// registers and be slower. Any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
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

  /// Whether link() is to be had: an nvlink beside the assembler, and the device's runtime,
  /// libcudadevrt.a, in the same toolkit. kNotSupported with the reason.
  Result<void> can_link() const;
  /// A cubin of all the texts, each assembled by itself, with the device's runtime. Errors as
  /// compile(), and as can_link(). The limit is for each run. Requires: as compile(), and not
  /// empty.
  Result<std::vector<std::byte>> link(std::span<const std::string> ptx,
                                      std::chrono::milliseconds most_cpu) const;

 private:
  struct Program {
    std::string path;
    std::string identity;
  };
  struct Linker {
    std::string path;
    std::string library;  // the device's runtime
  };
  Result<Linker> find_linker() const;
  Result<void> run(const std::string& program, std::span<const std::string> arguments,
                   const std::string& input, const std::filesystem::path& words,
                   std::chrono::milliseconds most_cpu) const;
  const Result<Program>& program() const;
  Result<Program> look() const;

  const PtxasSettings settings_;
  mutable std::once_flag looked_;
  mutable std::optional<Result<Program>> program_;
};

}  // namespace slate::cuda
