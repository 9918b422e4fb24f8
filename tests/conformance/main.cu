// conformance [ROW...]: prints all rows, without calling what the named ones call.
#include "conformance.h"

int main(int count, char** words) {
  conformance::left_out.insert(words + 1, words + count);
  for (const conformance::Topic topic :
       {conformance::device_rows, conformance::memory_rows, conformance::stream_rows,
        conformance::event_rows, conformance::host_function_rows, conformance::launch_rows,
        conformance::function_rows, conformance::symbol_rows, conformance::pool_rows,
        conformance::array_rows, conformance::graph_rows, conformance::capture_rows,
        conformance::sharing_rows}) {
    topic();
  }
  ROW("end", cudaDeviceSynchronize());
  return 0;
}
