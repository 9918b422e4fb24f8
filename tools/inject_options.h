// The command line of slate-inject as values, checked: what run_inject() is asked to do.
#pragma once

#include <cstdint>
#include <expected>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace slate::tools {

enum class InjectTask : std::uint8_t { kWorker, kSlice, kProfile, kAll, kAnalyse };

struct InjectRequest {
  InjectTask task = InjectTask::kAll;
  std::vector<std::string> files;
  std::string output;                  // empty: standard output
  std::vector<std::string> kernels;    // empty: all; see selects() in base/kernel_name.h
  std::optional<std::uint32_t> image;  // of the PTX images in a file, counted from 0
  std::uint32_t max_registers = 0;     // 0: no limit for the worker form
  bool builtins = false;               // linked in first
  bool fence = false;                  // added last
  std::uint32_t reserved_shared = 0;   // of the fence: bytes of shared memory before a block's own
  // For CUDA C++ sources.
  std::uint32_t architecture = 90;
  std::vector<std::string> include_directories;
  std::vector<std::string> macros;  // "N=4"
  // For analyse.
  bool json = false;
  bool summary = false;
  bool mangled = false;
};

inline constexpr int kUsage = 64;

/// What the arguments ask for, or the exit status when there is nothing to do: 0 after --help and
/// --version, kUsage after a sentence on `err`.
std::expected<InjectRequest, int> parse_inject_options(const std::vector<std::string>& arguments,
                                                       std::ostream& out, std::ostream& err);

}  // namespace slate::tools
