// What CUDA refuses, and as what: boxes beyond their memory, changes of executable graphs, graphs
// that allocate, events and callbacks in captures. A line for each call.
#include <cstdio>

namespace {

cudaStream_t stream = nullptr;
char *first = nullptr, *second = nullptr;  // memory on the device
constexpr std::size_t kBytes = 1 << 20;

void show(const char* what, cudaError_t error) {
  std::printf("  %s: %s\n", what, cudaGetErrorName(error));
  cudaGetLastError();
}

__global__ void set(int* values, int value) {
  values[threadIdx.x] = value;
}

void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
  cudaStreamBeginCapture(stream, mode);
}
/// Says so when the capture was lost.
cudaGraph_t end() {
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(stream, &graph);
  if (error != cudaSuccess) show("lost", error);
  return graph;
}

cudaMemcpy3DParms box() {
  cudaMemcpy3DParms parms{};
  parms.srcPtr = {first, 64, 64, 8};
  parms.dstPtr = {second, 64, 64, 8};
  parms.extent = {32, 4, 4};
  parms.kind = cudaMemcpyDeviceToDevice;
  return parms;
}

template <typename Change>
void show_box(const char* what, const Change& change) {
  cudaMemcpy3DParms parms = box();
  change(parms);
  show(what, cudaMemcpy3D(&parms));
}

void boxes() {
  std::puts("boxes");
  using Parms = cudaMemcpy3DParms&;
  show_box("inside", [](Parms) {});
  show_box("up to the row's end", [](Parms p) { p.srcPos.x = 32; });
  show_box("beyond the row", [](Parms p) { p.srcPos.x = 33; });
  show_box("beyond the target's row", [](Parms p) { p.dstPos.x = 40; });
  show_box("up to the slice's end", [](Parms p) { p.srcPos.y = 4; });
  show_box("beyond the slice", [](Parms p) { p.srcPos.y = 5; });
  show_box("higher than the slice", [](Parms p) { p.extent.height = 9; });
  show_box("higher, one slice", [](Parms p) { p.extent.height = 9, p.extent.depth = 1; });
  show_box("slices without height", [](Parms p) { p.srcPtr.ysize = 0; });
  show_box("one without height", [](Parms p) { p.srcPtr.ysize = 0, p.extent.depth = 1; });
  show_box("rows of no width", [](Parms p) { p.srcPtr.xsize = 0; });
  show_box("a short pitch", [](Parms p) { p.srcPtr.pitch = 31; });
  show_box("of one row a slice", [](Parms p) { p.srcPtr.pitch = 31, p.extent.height = 1; });
  show_box("of one row", [](Parms p) { p.srcPtr.pitch = 31, p.extent = {32, 1, 1}; });
  show_box("no pitch, one row", [](Parms p) { p.srcPtr.pitch = 0, p.extent = {32, 1, 1}; });
  show_box("nothing, far outside", [](Parms p) { p.srcPos.x = 400, p.extent.depth = 0; });
  show_box("beyond the memory", [](Parms p) { p.srcPos.z = 100000; });
  const auto kind = cudaMemcpyDeviceToDevice;
  show("rows, a short pitch", cudaMemcpy2D(first, 31, second, 64, 32, 2, kind));
  show("one row, a short pitch", cudaMemcpy2D(first, 31, second, 64, 32, 1, kind));
  show("one row, no pitch", cudaMemcpy2D(first, 0, second, 0, 32, 1, kind));
  show("fill beyond the row", cudaMemset3D({first, 64, 64, 8}, 0, {65, 4, 4}));
  show("fill beyond the slice", cudaMemset3D({first, 64, 64, 8}, 0, {32, 9, 4}));
  show("fill beyond the width", cudaMemset3D({first, 64, 32, 8}, 0, {64, 4, 4}));
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaGraphCreate(&graph, 0);
  cudaMemcpy3DParms parms = box();
  parms.srcPos.x = 33;
  show("node beyond the row", cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &parms));
  parms = box();
  parms.extent.width = 0;
  show("node of nothing", cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &parms));
}

const char* verdict(cudaGraphExec_t exec, cudaGraph_t graph) {
  cudaGraphExecUpdateResultInfo info;
  cudaGraphExecUpdate(exec, graph, &info);
  cudaGetLastError();
  return info.result == cudaGraphExecUpdateSuccess                  ? "taken"
         : info.result == cudaGraphExecUpdateErrorParametersChanged ? "parameters"
                                                                    : "something else";
}

void changed_copies(std::size_t rows) {
  std::printf("copies of %zu rows\n", rows);
  const auto copy = [](char* from, std::size_t width, std::size_t rows) {
    cudaMemcpy3DParms parms = box();
    parms.srcPtr.ptr = from;
    parms.extent = {width, rows, 1};
    return parms;
  };
  const cudaMemcpy3DParms same = copy(first, 32, rows), moved = copy(first + 4096, 32, rows),
                          wider = copy(first, 48, rows), other = copy(first, 32, 5 - rows);
  cudaGraph_t graph = nullptr, next = nullptr;
  cudaGraphNode_t node = nullptr, changed = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaGraphCreate(&graph, 0);
  cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &same);
  cudaGraphInstantiate(&exec, graph, 0);
  show("as it is", cudaGraphExecMemcpyNodeSetParams(exec, node, &same));
  show("from elsewhere", cudaGraphExecMemcpyNodeSetParams(exec, node, &moved));
  show("wider", cudaGraphExecMemcpyNodeSetParams(exec, node, &wider));
  show("other rows", cudaGraphExecMemcpyNodeSetParams(exec, node, &other));
  static char host[64];
  show("from the host",
       cudaGraphExecMemcpyNodeSetParams1D(exec, node, second, host, 16, cudaMemcpyHostToDevice));
  show("of nothing",
       cudaGraphExecMemcpyNodeSetParams1D(exec, node, second, first, 0, cudaMemcpyDeviceToDevice));
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphCreate(&next, 0);
  cudaGraphAddMemcpyNode(&changed, next, nullptr, 0, &same);
  std::printf("  updated: %s", verdict(exec, next));
  for (const cudaMemcpy3DParms* parms : {&moved, &other}) {
    cudaGraphMemcpyNodeSetParams(changed, parms);
    std::printf(" %s", verdict(exec, next));
  }
  std::puts("");
}

void changed_fills(std::size_t rows) {
  std::printf("fills of %zu rows\n", rows);
  const auto fill = [](char* to, unsigned value, unsigned element, std::size_t width,
                       std::size_t rows) {
    return cudaMemsetParams{to, 256, value, element, width, rows};
  };
  const cudaMemsetParams plain = fill(first, 1, 4, 16, rows), value = fill(first, 2, 4, 16, rows),
                         moved = fill(second, 1, 4, 16, rows), bytes = fill(first, 1, 1, 16, rows),
                         narrow = fill(first, 1, 4, 8, rows),
                         other = fill(first, 1, 4, 16, 5 - rows);
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaGraphCreate(&graph, 0);
  cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &plain);
  cudaGraphInstantiate(&exec, graph, 0);
  show("another value", cudaGraphExecMemsetNodeSetParams(exec, node, &value));
  show("elsewhere", cudaGraphExecMemsetNodeSetParams(exec, node, &moved));
  show("bytes", cudaGraphExecMemsetNodeSetParams(exec, node, &bytes));
  show("other rows", cudaGraphExecMemsetNodeSetParams(exec, node, &other));
  show("narrower", cudaGraphExecMemsetNodeSetParams(exec, node, &narrow));
}

cudaKernelNodeParams kernel(void** arguments) {
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(set);
  params.gridDim = dim3(1);
  params.blockDim = dim3(32);
  params.kernelParams = arguments;
  return params;
}

void nodes_that_are_gone() {
  std::puts("nodes that are gone");
  int value = 1;
  void* arguments[] = {&first, &value};
  const cudaKernelNodeParams params = kernel(arguments);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaGraphNode_t node = nullptr, removed = nullptr;
  cudaGraphCreate(&graph, 0);
  cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params);
  cudaGraphAddKernelNode(&removed, graph, &node, 1, &params);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphDestroyNode(removed);
  show("removed", cudaGraphExecKernelNodeSetParams(exec, removed, &params));
  show("removed, enabled", cudaGraphNodeSetEnabled(exec, removed, 0));
  show("there", cudaGraphExecKernelNodeSetParams(exec, node, &params));
  cudaGraphDestroy(graph);
  show("without the graph", cudaGraphExecKernelNodeSetParams(exec, node, &params));
  show("launch", cudaGraphLaunch(exec, stream));
}

cudaGraph_t allocating(bool frees, void** memory) {
  begin();
  cudaMallocAsync(memory, 4096, stream);
  set<<<1, 32, 0, stream>>>(static_cast<int*>(*memory), 5);
  if (frees) cudaFreeAsync(*memory, stream);
  return end();
}

void graphs_that_allocate() {
  std::puts("graphs that allocate");
  void* memory = nullptr;
  cudaGraph_t graph = allocating(true, &memory), other = nullptr, clone = nullptr;
  cudaGraphExec_t exec = nullptr, again = nullptr;
  cudaGraphNode_t nodes[3], node = nullptr;
  std::size_t count = 3;
  cudaGraphGetNodes(graph, nodes, &count);
  show("instantiated", cudaGraphInstantiate(&exec, graph, 0));
  show("twice", cudaGraphInstantiate(&again, graph, 0));
  cudaGraphExecDestroy(exec);
  show("after the first", cudaGraphInstantiate(&exec, graph, 0));
  show("cloned", cudaGraphClone(&clone, graph));
  cudaGraphCreate(&other, 0);
  show("in another", cudaGraphAddChildGraphNode(&node, other, nullptr, 0, graph));
  show("without a node", cudaGraphDestroyNode(nodes[1]));
  show("without an edge", cudaGraphRemoveDependencies(graph, &nodes[0], &nodes[1], nullptr, 1));
  show("launched", cudaGraphLaunch(exec, stream));
  show("freed once more", cudaFree(memory));
  cudaGraphDestroy(graph);
  cudaGraphExecDestroy(exec);

  graph = allocating(false, &memory);
  show("free node", cudaGraphAddMemFreeNode(&node, graph, nullptr, 0, memory));
  show("a second one", cudaGraphAddMemFreeNode(&node, graph, nullptr, 0, memory));
  char* const inside = static_cast<char*>(memory) + 256;
  show("of a part", cudaGraphAddMemFreeNode(&node, graph, nullptr, 0, inside));
  show("of other memory", cudaGraphAddMemFreeNode(&node, graph, nullptr, 0, first));
  graph = allocating(false, &memory);
  show("in another graph", cudaGraphAddMemFreeNode(&node, other, nullptr, 0, memory));
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphInstantiate(&again, other, 0);
  show("freed before", cudaGraphLaunch(again, stream));
  show("allocated", cudaGraphLaunch(exec, stream));
  show("twice", cudaGraphLaunch(exec, stream));
  show("freed", cudaGraphLaunch(again, stream));
  show("twice", cudaGraphLaunch(again, stream));
  show("allocated again", cudaGraphLaunch(exec, stream));
  show("freed by the stream", cudaFreeAsync(memory, stream));

  cudaMallocAsync(&memory, 4096, stream);
  begin();
  show("captured free of the stream's", cudaFreeAsync(memory, stream));
  show("captured free of other memory", cudaFreeAsync(first, stream));
  show("captured nothing", cudaMallocAsync(&memory, 0, stream));
  cudaMallocAsync(&memory, 64, stream);
  show("captured free", cudaFreeAsync(memory, stream));
  show("captured twice", cudaFreeAsync(memory, stream));
  end();
}

void captured_events() {
  std::puts("captures");
  cudaEvent_t captured = nullptr, before = nullptr;
  cudaEventCreate(&captured);
  cudaEventCreate(&before);
  cudaEventRecord(before, stream);
  cudaStreamSynchronize(stream);
  float milliseconds = 0;
  begin();
  cudaEventRecord(captured, stream);
  show("query", cudaEventQuery(captured));
  end();
  begin();
  cudaEventRecord(captured, stream);
  show("synchronize", cudaEventSynchronize(captured));
  end();
  begin();
  cudaEventRecord(captured, stream);
  show("time since", cudaEventElapsedTime(&milliseconds, captured, before));
  show("time until", cudaEventElapsedTime(&milliseconds, before, captured));
  end();
  show("query after it", cudaEventQuery(captured));
  show("synchronize after it", cudaEventSynchronize(captured));
  show("time after it", cudaEventElapsedTime(&milliseconds, before, captured));
  show("wait after it", cudaStreamWaitEvent(stream, captured));
  cudaEventRecord(captured, stream);
  show("recorded anew", cudaEventSynchronize(captured));
  begin();
  show("callback", cudaStreamAddCallback(
                       stream, [](cudaStream_t, cudaError_t, void*) {}, nullptr, 0));
  end();
}

}  // namespace

int main() {
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaMalloc(&first, kBytes);
  cudaMalloc(&second, kBytes);
  boxes();
  for (const std::size_t rows : {1, 4}) changed_copies(rows);
  for (const std::size_t rows : {1, 4}) changed_fills(rows);
  nodes_that_are_gone();
  graphs_that_allocate();
  captured_events();
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
