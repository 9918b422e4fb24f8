// driver_rows [ROW...]: prints all rows of the driver, without calling what the named ones call.
#include "driver_rows.h"

#include <cstdlib>

namespace conformance {

std::string name_of(CUresult result) {
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr)
    return std::to_string(static_cast<int>(result));
  return name;
}

void end_row(CUresult returned, const std::string& more) {
  std::printf("%s%s%s\n", name_of(returned).c_str(), more.empty() ? "" : " ", more.c_str());
  std::fflush(stdout);
}

}  // namespace conformance

int main(int count, char** words) {
  using namespace conformance;
  left_out.insert(words + 1, words + count);
  std::atexit(exit_rows);  // before cuInit(), so that it runs after the driver's own handler
  for (void (*const topic)() :
       {uninitialised_rows, device_rows, no_context_rows, primary_context_rows, proc_address_rows,
        memory_rows, pointer_rows, host_memory_rows, stream_rows, event_rows, limit_rows, code_rows,
        launch_rows, own_context_rows, forked_child_rows, release_rows}) {
    topic();
  }
  return 0;
}
