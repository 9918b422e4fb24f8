#include "conformance.h"

int main() {
  for (const conformance::Topic topic :
       {conformance::device_rows, conformance::memory_rows, conformance::stream_rows,
        conformance::event_rows, conformance::host_function_rows, conformance::launch_rows,
        conformance::function_rows, conformance::symbol_rows, conformance::pool_rows,
        conformance::graph_rows, conformance::capture_rows}) {
    topic();
  }
  ROW("end", cudaDeviceSynchronize());
  return 0;
}
