#include "tools/trace_command.h"

#include <fmt/format.h>

#include <cstdio>

#include "tools/control_client.h"
#include "tools/whole_file.h"

namespace slate::tools {
int trace_command(const std::string& runtime_dir, const std::string& file, double seconds) {
  ipc::ControlRequest request;
  request.verb = ipc::ControlVerb::kTrace;
  request.seconds = seconds;
  const auto trace = ask_daemon(runtime_dir, request);
  Result<void> written;
  if (trace && file == "-") {
    std::fputs(trace->c_str(), stdout);
  } else if (trace) {
    written = write_whole(file, *trace);
  }
  if (trace && written) return 0;
  fmt::print(stderr, "slatectl: {}\n", trace ? written.error().message : trace.error().message);
  return 1;
}

}  // namespace slate::tools
