// Ptxas: the toolkit's assembler, run as a process, for machine code that can be kept, and the
// linker beside it, for kernels that launch others. The driver has the same assembler inside, but
// returns only relocatable code, which can use more registers and be slower. Thread: any; the
// caller waits.
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
  std::string path;          // empty: find_ptxas() searches for it
  int major = 0, minor = 0;  // compute capability to compile for
  /// Version of the driver that will load the code: 13000 for CUDA 13.0.
  std::int32_t driver_version = 0;
  /// Longest time of one compilation, however busy the machine is; below half an hour.
  std::chrono::milliseconds most_wait = std::chrono::minutes(10);
};

/// Returns `configured` if it is not empty, else the first of $CUDA_HOME/bin, $PATH (absolute
/// entries) and /usr/local/cuda/bin that has a ptxas. Errors: kNotSupported if there is none.
Result<std::string> find_ptxas(const std::string& configured);

/// Returns "sm_90" for a device of 9.0, or "sm_90a" if `ptx` names a target of that kind.
std::string architecture_for(std::string_view ptx, int major, int minor);

class Ptxas {
 public:
  /// Starts nothing: the assembler is searched for when it is first needed.
  explicit Ptxas(PtxasSettings settings) : settings_(std::move(settings)) {}
  Ptxas(const Ptxas&) = delete;
  Ptxas& operator=(const Ptxas&) = delete;

  /// What the code depends on besides the text: the assembler's version and the options. Asked
  /// once. Errors: kNotSupported, with the reason, where no assembler is usable: there is none, it
  /// does not state its version, or its CUDA is a major version that the driver is too old for.
  Result<std::string> identity() const;

  /// Returns a cubin. Requires: no NUL in `ptx`. Errors: those of identity(), and
  /// - kInvalidPtx with the assembler's words: it refuses the text;
  /// - kLimit: it took more than `most_cpu` of processor time;
  /// - kIo: it cannot be run, or `most_wait` has passed;
  /// - kInternal: it crashed or wrote no code.
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
  /// Searches for the assembler and asks for its version.
  Result<Program> look() const;

  const PtxasSettings settings_;
  mutable std::once_flag looked_;
  mutable std::optional<Result<Program>> program_;
};

}  // namespace slate::cuda
