// What slate-inject --form analyse says: the kernels of files with their verdicts, as a table for
// people, as JSON for programs (docs/slate_inject.md), and counted. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "injector/analysis/analysis.h"
#include "injector/fence/fence.h"

namespace slate::tools {

struct KernelReport {
  std::string name;                  // as in the PTX
  std::string demangled;             // the same where there is nothing to demangle
  injector::EntryAnalysis analysis;  // its `name` is not to be used: the module is gone
  injector::FenceVerdict fence;      // of the kernel itself, without forms
};

struct ImageReport {
  std::size_t image = 0;  // which of the file's
  std::string target;     // "sm_90"
  std::vector<KernelReport> kernels;
};

struct FileReport {
  std::string file;
  std::vector<ImageReport> images;
  std::vector<std::string> errors;
};

/// A row a kernel, with the reasons.
std::string report_rows(const FileReport& report, bool mangled);
/// The counts over all files: kernels by form, and the reasons by how often they come.
std::string report_summary(const std::vector<FileReport>& reports);
/// The same, and the rows unless `summary_only`.
std::string report_json(const std::vector<FileReport>& reports, bool summary_only);

/// A reason without what differs from kernel to kernel: its line, and numbers.
std::string general_reason(std::string_view reason);

}  // namespace slate::tools
