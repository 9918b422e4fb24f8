#include "tools/inject_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "injector/analysis/restart.h"

namespace slate::tools {
namespace {

using injector::EntryAnalysis;
using injector::Restart;
using nlohmann::json;

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

struct Counts {
  std::size_t kernels = 0;
  std::size_t worker = 0;
  std::size_t worker_or_slice = 0;
  std::size_t restartable = 0;
  std::size_t failed_files = 0;
  std::size_t fenced = 0;
  injector::AccessCounts accesses;  // of the fenced kernels
  /// By what is refused ("worker", "slice", "both", "restart", "fence") and the sentence.
  std::map<std::pair<std::string, std::string>, std::size_t> reasons;

  std::size_t native_only() const { return kernels - worker_or_slice; }
};

void count(const KernelReport& kernel, Counts& counts) {
  const EntryAnalysis& analysis = kernel.analysis;
  ++counts.kernels;
  if (kernel.fence.legal()) {
    ++counts.fenced;
    counts.accesses += kernel.fence.counts;
  } else {
    ++counts.reasons[{"fence", general_reason(kernel.fence.why_not)}];
  }
  counts.worker += analysis.worker.legal() ? 1 : 0;
  counts.worker_or_slice += analysis.worker.legal() || analysis.slice.legal() ? 1 : 0;
  const Restart restart = may_restart_if_distinct(analysis.reach);
  counts.restartable += restart.restartable() ? 1 : 0;
  if (!restart.restartable()) ++counts.reasons[{"restart", general_reason(restart.why_not)}];
  const std::string worker = general_reason(analysis.worker.why_not);
  const std::string slice = general_reason(analysis.slice.why_not);
  if (!worker.empty() && worker == slice) {
    ++counts.reasons[{"both", worker}];
    return;
  }
  if (!worker.empty()) ++counts.reasons[{"worker", worker}];
  if (!slice.empty()) ++counts.reasons[{"slice", slice}];
}

Counts count_all(const std::vector<FileReport>& reports) {
  Counts counts;
  for (const FileReport& report : reports) {
    counts.failed_files += report.errors.empty() ? 0 : 1;
    for (const ImageReport& image : report.images) {
      for (const KernelReport& kernel : image.kernels) count(kernel, counts);
    }
  }
  return counts;
}

std::string number_of(std::size_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

/// Commonest first.
std::vector<std::pair<std::pair<std::string, std::string>, std::size_t>> ranked(
    const Counts& counts) {
  std::vector<std::pair<std::pair<std::string, std::string>, std::size_t>> reasons(
      counts.reasons.begin(), counts.reasons.end());
  std::ranges::stable_sort(reasons, std::ranges::greater(), [](const auto& r) { return r.second; });
  return reasons;
}

/// "no worker: REASON; no slice: REASON; no restart: REASON; no fence: REASON", or nothing.
std::string reasons_of(const KernelReport& kernel, const Restart& restart) {
  std::string text;
  const auto add = [&](std::string_view what, const std::string& reason) {
    if (!reason.empty()) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", what, reason);
  };
  const std::string& worker = kernel.analysis.worker.why_not;
  const std::string& slice = kernel.analysis.slice.why_not;
  const bool native_only = !worker.empty() && worker == slice;
  if (native_only) {
    add("native only", worker);
  } else {
    add("no worker", worker);
    add("no slice", slice);
  }
  add("no restart", restart.why_not);
  add("no fence", kernel.fence.why_not);
  return text;
}

/// "12/40": checks of accesses.
std::string checks_of(const injector::FenceVerdict& fence) {
  if (!fence.legal()) return "-";
  return fmt::format("{}/{}", fence.counts.checks, fence.counts.accesses);
}

std::string row(const KernelReport& kernel, bool mangled) {
  const EntryAnalysis& analysis = kernel.analysis;
  const auto yes = [](bool value) { return value ? "yes" : "-"; };
  const Restart restart = may_restart_if_distinct(analysis.reach);
  const std::string reasons = reasons_of(kernel, restart);
  return fmt::format(
      "{:<6} {:<5} {:<4} {:<6} {:<4} {:<5} {:<7} {:>8} {:>6} {:>7}  {}{}{}\n",
      yes(analysis.worker.legal()), yes(analysis.slice.legal()), yes(analysis.late_exits),
      yes(analysis.drains), yes(analysis.needs_whole_rows || analysis.needs_whole_warps),
      yes(analysis.independent_blocks), yes(restart.restartable()), analysis.barriers,
      analysis.static_shared_bytes, checks_of(kernel.fence),
      mangled ? kernel.name : kernel.demangled, reasons.empty() ? "" : "  # ", reasons);
}

json verdict_json(const injector::Verdict& verdict) {
  return {{"legal", verdict.legal()},
          {"why_not", verdict.legal() ? json() : json(verdict.why_not)}};
}

/// `covered`: accesses that an earlier check has shown already.
json fence_json(const injector::FenceVerdict& fence) {
  return {{"legal", fence.legal()},
          {"why_not", fence.legal() ? json() : json(fence.why_not)},
          {"accesses", fence.counts.accesses},
          {"proven", fence.counts.proven},
          {"covered", fence.counts.covered},
          {"checks", fence.counts.checks},
          {"branches", fence.counts.branches},
          {"hoisted", fence.counts.hoisted}};
}

/// `surely`: no way through the kernel writes it before.
json undefined_json(const EntryAnalysis& analysis) {
  if (!analysis.undefined) return {};
  return {{"register", analysis.undefined->register_name},
          {"line", analysis.undefined->line},
          {"surely", analysis.undefined->surely}};
}

/// A line of the PTX, or null for none.
json line_json(std::uint32_t line) {
  return line == 0 ? json() : json(line);
}

json memory_json(const injector::ReachedMemory& memory) {
  json words = json::array();
  for (const injector::ParameterWord& word : memory.words) {
    words.push_back({{"offset", word.offset}, {"extent", word.extent}});
  }
  return {{"memory", memory.description()},       {"parameters", std::move(words)},
          {"constant", memory.is_constant},       {"read", line_json(memory.read)},
          {"written", line_json(memory.written)}, {"atomic", line_json(memory.atomic)},
          {"ordered", line_json(memory.ordered)}, {"hinted", line_json(memory.hinted)}};
}

json reach_json(const injector::Reach& reach) {
  json memory = json::array();
  for (const injector::ReachedMemory& one : reach.memory) memory.push_back(memory_json(one));
  json effects = json::object();
  for (std::size_t i = 0; i < static_cast<std::size_t>(injector::Effect::kCount); ++i) {
    const auto effect = static_cast<injector::Effect>(i);
    if (const std::uint32_t line = reach.line(effect)) effects[name_of(effect)] = line;
  }
  return {{"complete", reach.complete},
          {"from_arguments", reach.from_arguments()},
          {"memory", std::move(memory)},
          {"effects", std::move(effects)}};
}

json restart_json(const Restart& restart) {
  return {{"restartable", restart.restartable()},
          {"why_not", restart.restartable() ? json() : json(restart.why_not)}};
}

json kernel_json(const KernelReport& kernel) {
  const EntryAnalysis& analysis = kernel.analysis;
  return {{"name", kernel.name},
          {"demangled", kernel.demangled},
          {"worker", verdict_json(analysis.worker)},
          {"slice", verdict_json(analysis.slice)},
          {"profile", verdict_json(analysis.profile)},
          {"fence", fence_json(kernel.fence)},
          {"may_fuse", analysis.may_fuse.empty() ? json() : json(analysis.may_fuse)},
          {"undefined", undefined_json(analysis)},
          {"reach", reach_json(analysis.reach)},
          {"restart", restart_json(may_restart_if_distinct(analysis.reach))},
          {"late_exits", analysis.late_exits},
          {"drains", analysis.drains},
          {"whole_rows", analysis.needs_whole_rows},
          {"whole_warps", analysis.needs_whole_warps},
          {"independent_blocks", analysis.independent_blocks},
          {"barriers", analysis.barriers},
          {"static_shared_bytes", analysis.static_shared_bytes}};
}

json file_json(const FileReport& report) {
  json images = json::array();
  for (const ImageReport& image : report.images) {
    json kernels = json::array();
    for (const KernelReport& kernel : image.kernels) kernels.push_back(kernel_json(kernel));
    images.push_back(
        {{"image", image.image}, {"target", image.target}, {"kernels", std::move(kernels)}});
  }
  return {{"file", report.file}, {"errors", report.errors}, {"images", std::move(images)}};
}

}  // namespace

std::string general_reason(std::string_view reason) {
  if (reason.starts_with("line ")) {
    reason.remove_prefix(std::min(reason.size(), reason.find(": ") + 2));
  }
  constexpr std::string_view kRead = "may read ";
  const std::size_t written = reason.find(" before anything is written");
  if (reason.starts_with(kRead) && written != std::string_view::npos) {
    return std::string(kRead).append("a register").append(reason.substr(written));
  }
  std::string text;
  bool names_variable = false;  // the word before says so
  for (std::size_t i = 0; i < reason.size();) {
    std::size_t end = i;
    while (end < reason.size() && is_word(reason[end])) ++end;
    const std::string_view word = reason.substr(i, end - i);
    const bool number = !word.empty() && std::ranges::all_of(word, [](char c) {
      return std::isdigit(static_cast<unsigned char>(c)) != 0;
    });
    const bool compound = end < reason.size() && reason[end] == '-';  // 32-bit
    text += number && !compound ? std::string_view("N") : names_variable ? "NAME" : word;
    names_variable = word == "variable";
    if (end < reason.size()) text += reason[end++];
    i = end;
  }
  return text;
}

std::string report_rows(const FileReport& report, bool mangled) {
  std::string text;
  for (const ImageReport& image : report.images) {
    text += report.images.size() > 1
                ? fmt::format("{} (image {}, {})\n", report.file, image.image, image.target)
                : fmt::format("{} ({})\n", report.file, image.target);
    text += "WORKER SLICE LATE DRAINS ROWS INDEP RESTART BARRIERS SHARED  CHECKS  KERNEL\n";
    for (const KernelReport& kernel : image.kernels) text += row(kernel, mangled);
    text += '\n';
  }
  return text;
}

std::string report_summary(const std::vector<FileReport>& reports) {
  const Counts counts = count_all(reports);
  const auto share = [&](std::size_t part) {
    return counts.kernels == 0
               ? 0.0
               : 100.0 * static_cast<double>(part) / static_cast<double>(counts.kernels);
  };
  std::string text = fmt::format(
      "{}, {}: worker {} ({:.1f} %), worker or slice {} ({:.1f} %), native only {} "
      "({:.1f} %)\n",
      number_of(reports.size(), "file"), number_of(counts.kernels, "kernel"), counts.worker,
      share(counts.worker), counts.worker_or_slice, share(counts.worker_or_slice),
      counts.native_only(), share(counts.native_only()));
  text += fmt::format(
      "restartable where all pointers lead to allocations of their own: {} ({:.1f} %)\n",
      counts.restartable, share(counts.restartable));
  text += fmt::format("fence {} ({:.1f} %): {} accesses, {} proven, {} covered, {} checks\n",
                      counts.fenced, share(counts.fenced), counts.accesses.accesses,
                      counts.accesses.proven, counts.accesses.covered, counts.accesses.checks);
  if (counts.failed_files != 0) text += number_of(counts.failed_files, "file") + " with errors\n";
  for (const auto& [key, times] : ranked(counts)) {
    text += fmt::format("{:>6}  {:<10} {}\n", times,
                        key.first == "both" ? "native" : "no " + key.first, key.second);
  }
  return text;
}

std::string report_json(const std::vector<FileReport>& reports, bool summary_only) {
  const Counts counts = count_all(reports);
  json reasons = json::array();
  for (const auto& [key, times] : ranked(counts)) {
    reasons.push_back({{"refused", key.first}, {"reason", key.second}, {"kernels", times}});
  }
  json result;
  result["summary"] = {{"files", reports.size()},
                       {"files_with_errors", counts.failed_files},
                       {"kernels", counts.kernels},
                       {"worker", counts.worker},
                       {"worker_or_slice", counts.worker_or_slice},
                       {"native_only", counts.native_only()},
                       {"restartable", counts.restartable},
                       {"fenced", counts.fenced},
                       {"reasons", std::move(reasons)}};
  if (!summary_only) {
    result["files"] = json::array();
    for (const FileReport& report : reports) result["files"].push_back(file_json(report));
  }
  // A name that is not UTF-8 must not end the program.
  return result.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace slate::tools
