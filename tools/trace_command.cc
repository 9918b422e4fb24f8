#include "tools/trace_command.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "tools/control_client.h"

namespace slate::tools {
namespace {

/// Beside it and renamed, so that nobody finds half a trace there.
Result<void> write_file(const std::string& path, const std::string& text) {
  const std::string beside = path + ".part";
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  if (!file) return fail_errno(beside);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (file && std::rename(beside.c_str(), path.c_str()) == 0) return {};
  const auto error = fail_errno(path);
  std::remove(beside.c_str());
  return error;
}

}  // namespace

int trace_command(const std::string& runtime_dir, const std::string& file, double seconds) {
  ipc::ControlRequest request;
  request.verb = ipc::ControlVerb::kTrace;
  request.seconds = seconds;
  const auto trace = ask_daemon(runtime_dir, request);
  Result<void> written;
  if (trace && file == "-") {
    fmt::print("{}", *trace);
  } else if (trace) {
    written = write_file(file, *trace);
  }
  if (trace && written) return 0;
  fmt::print(stderr, "slatectl: {}\n", trace ? written.error().message : trace.error().message);
  return 1;
}

}  // namespace slate::tools
