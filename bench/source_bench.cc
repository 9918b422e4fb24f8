// CUDA C++ files through injector/source: how long stripping and compiling take, and what came out.
// One JSON object a line on stdout, for bench/source_coverage.py.
//
//   source_bench [-I DIRECTORY]... [-D MACRO]... [--strip] [--instance NAME]... FILE...
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "injector/source/source.h"

namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

void report(const std::string& path, slate::source::SourceOptions options, bool strip_only,
            bool with_ptx) {
  namespace source = slate::source;
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream whole;
  whole << stream.rdbuf();
  const std::string text = whole.str();
  options.name = path;
  options.directory = std::filesystem::path(path).parent_path().string();
  nlohmann::json line{{"file", path}};
  auto start = std::chrono::steady_clock::now();
  const auto stripped = source::strip_host_code(text, options);
  line["strip_ms"] = milliseconds_since(start);
  if (strip_only) {
    std::fputs(stripped ? stripped->c_str() : stripped.error().message.c_str(), stdout);
    return;
  }
  start = std::chrono::steady_clock::now();
  const auto result = source::compile(text, options);
  line["compile_ms"] = milliseconds_since(start);
  line["ok"] = result.has_value();
  if (result) {
    line["kernels"] = result->kernels;
    line["log"] = result->log;
    line["ptx_bytes"] = result->ptx.size();
    if (with_ptx) line["ptx"] = result->ptx;
  } else {
    line["error"] = result.error().message;
  }
  const auto replace = nlohmann::json::error_handler_t::replace;
  fmt::print("{}\n", line.dump(-1, ' ', false, replace));
}

}  // namespace

int main(int argc, char** argv) {
  slate::source::SourceOptions options;
  std::vector<std::string> files;
  bool strip_only = false;
  bool with_ptx = false;
  for (int at = 1; at < argc; ++at) {
    const std::string_view argument = argv[at];
    if (argument == "-I" && at + 1 < argc) {
      options.include_directories.emplace_back(argv[++at]);
    } else if (argument == "--instance" && at + 1 < argc) {
      options.instances.emplace_back(argv[++at]);
    } else if (argument == "--strip") {
      strip_only = true;
    } else if (argument == "--ptx") {
      with_ptx = true;
    } else if (argument.starts_with("-")) {
      options.options.emplace_back(argument);
    } else {
      files.emplace_back(argument);
    }
  }
  for (const auto& file : files) report(file, options, strip_only, with_ptx);
  return 0;
}
