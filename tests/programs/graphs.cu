// Graphs: captured over two streams, made by hand, changed, updated, launched several times.
#include <cstdio>

__global__ void add(int* values, int amount) {
  values[threadIdx.x] += amount;
}
__global__ void times(int* values, int factor) {
  values[threadIdx.x] *= factor;
}

int* memory = nullptr;
int host[32];
int seen = 0;

void look(void* data) {
  seen = seen * 10 + *static_cast<int*>(data);
}

int first() {
  cudaMemcpy(host, memory, sizeof(host), cudaMemcpyDeviceToHost);
  return host[0];
}

void captured() {
  cudaStream_t stream = nullptr, other = nullptr;
  cudaEvent_t fork = nullptr, join = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  static int* more = nullptr;
  cudaMalloc(&more, sizeof(host));
  cudaMemset(memory, 0xff, sizeof(host));
  cudaDeviceSynchronize();

  const auto capture = [&](int amount, cudaGraph_t& graph) {
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    cudaMemsetAsync(memory, 0, sizeof(host), stream);
    cudaEventRecord(fork, stream);
    cudaStreamWaitEvent(other, fork);
    add<<<1, 32, 0, stream>>>(memory, amount);
    cudaMemsetAsync(more, 1, sizeof(host), other);
    cudaEventRecord(join, other);
    cudaStreamWaitEvent(stream, join);
    times<<<1, 32, 0, stream>>>(memory, 3);
    cudaMemcpyAsync(more, memory, sizeof(host), cudaMemcpyDeviceToDevice, stream);
    return cudaStreamEndCapture(stream, &graph);
  };
  cudaGraph_t graph = nullptr;
  std::printf("capture %s\n", cudaGetErrorName(capture(5, graph)));
  std::printf("nothing ran %d\n", first());

  std::size_t nodes = 0, edges = 0, roots = 0;
  cudaGraphGetNodes(graph, nullptr, &nodes);
  cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges);
  cudaGraphGetRootNodes(graph, nullptr, &roots);
  std::printf("nodes %zu edges %zu roots %zu\n", nodes, edges, roots);
  cudaGraphExec_t exec = nullptr;
  cudaGraphInstantiate(&exec, graph, 0);
  for (int i = 0; i < 2; ++i) cudaGraphLaunch(exec, stream);
  cudaStreamSynchronize(stream);
  cudaMemcpy(host, more, sizeof(host), cudaMemcpyDeviceToHost);
  std::printf("launched %d %d\n", host[31], first());

  // The same shape with another number.
  cudaGraph_t second = nullptr;
  capture(7, second);
  cudaGraphExecUpdateResultInfo info;
  std::printf("update %s\n", cudaGetErrorName(cudaGraphExecUpdate(exec, second, &info)));
  cudaGraphLaunch(exec, stream);
  cudaStreamSynchronize(stream);
  std::printf("updated %d\n", first());
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaGraphDestroy(second);
  cudaFree(more);
}

cudaKernelNodeParams kernel(void* function, void** arguments) {
  cudaKernelNodeParams params{};
  params.func = function;
  params.gridDim = dim3(1);
  params.blockDim = dim3(32);
  params.kernelParams = arguments;
  return params;
}

void by_hand() {
  cudaGraph_t graph = nullptr;
  cudaGraphCreate(&graph, 0);
  int from[32], to[32] = {};
  for (int i = 0; i < 32; ++i) from[i] = 100 + i;
  int amount = 1, factor = 2, one = 1, two = 2;
  void* add_arguments[] = {&memory, &amount};
  void* times_arguments[] = {&memory, &factor};
  cudaGraphNode_t upload, adding, multiplying, download, look_one, look_two, clearing;
  cudaGraphAddMemcpyNode1D(&upload, graph, nullptr, 0, memory, from, sizeof(from),
                           cudaMemcpyHostToDevice);
  cudaHostNodeParams looking{look, &one};
  cudaGraphAddHostNode(&look_one, graph, &upload, 1, &looking);
  const cudaKernelNodeParams add_params = kernel(reinterpret_cast<void*>(add), add_arguments);
  cudaGraphAddKernelNode(&adding, graph, &look_one, 1, &add_params);
  amount = 1000;  // the node has its own copy
  const cudaKernelNodeParams times_params = kernel(reinterpret_cast<void*>(times), times_arguments);
  cudaGraphAddKernelNode(&multiplying, graph, nullptr, 0, &times_params);
  cudaGraphAddDependencies(graph, &adding, &multiplying, nullptr, 1);
  cudaGraphAddMemcpyNode1D(&download, graph, &multiplying, 1, to, memory, sizeof(to),
                           cudaMemcpyDeviceToHost);
  looking.userData = &two;
  cudaGraphAddHostNode(&look_two, graph, &download, 1, &looking);
  cudaMemsetParams clear{};
  clear.dst = memory;
  clear.elementSize = 4;
  clear.value = 0x01020304;
  clear.width = 32;
  clear.height = 1;
  cudaGraphAddMemsetNode(&clearing, graph, &look_two, 1, &clear);

  cudaGraphExec_t exec = nullptr;
  std::printf("instantiate %s\n", cudaGetErrorName(cudaGraphInstantiate(&exec, graph, 0)));
  cudaGraphLaunch(exec, nullptr);
  cudaDeviceSynchronize();
  std::printf("by hand %d %d seen %d cleared %x\n", to[0], to[31], seen, first());

  int new_factor = 10;
  times_arguments[1] = &new_factor;
  std::printf("set %s\n",
              cudaGetErrorName(cudaGraphExecKernelNodeSetParams(exec, multiplying, &times_params)));
  cudaGraphNodeSetEnabled(exec, clearing, 0);
  cudaGraphLaunch(exec, nullptr);
  cudaDeviceSynchronize();
  std::printf("changed %d seen %d kept %d\n", to[0], seen, first());

  // A graph in a graph.
  cudaGraph_t outer = nullptr;
  cudaGraphCreate(&outer, 0);
  cudaGraphNode_t child, after;
  cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, graph);
  int more = 7;
  void* more_arguments[] = {&memory, &more};
  const cudaKernelNodeParams more_params = kernel(reinterpret_cast<void*>(add), more_arguments);
  cudaGraphAddKernelNode(&after, outer, &child, 1, &more_params);
  cudaGraphExec_t outer_exec = nullptr;
  cudaGraphInstantiate(&outer_exec, outer, 0);
  cudaGraphLaunch(outer_exec, nullptr);
  std::printf("child %x\n", first());
  // Circles are found.
  cudaGraphAddDependencies(graph, &multiplying, &upload, nullptr, 1);
  std::printf("circle %s\n", cudaGetErrorName(cudaGraphInstantiate(&exec, graph, 0)));
  cudaGraphDestroy(graph);
  cudaGraphDestroy(outer);
}

/// A graph that allocates for itself, and one that leaves its memory to the program.
void with_memory() {
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  for (const bool frees : {true, false}) {
    int* own = nullptr;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    cudaMallocAsync(&own, sizeof(host), stream);
    cudaMemsetAsync(own, 0, sizeof(host), stream);
    add<<<1, 32, 0, stream>>>(own, frees ? 11 : 22);
    cudaMemcpyAsync(memory, own, sizeof(host), cudaMemcpyDeviceToDevice, stream);
    if (frees) cudaFreeAsync(own, stream);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    const cudaError_t first_launch = cudaGraphLaunch(exec, stream);
    const cudaError_t second_launch = cudaGraphLaunch(exec, stream);
    cudaGetLastError();
    cudaStreamSynchronize(stream);
    std::printf("memory %s %s %d\n", cudaGetErrorName(first_launch),
                cudaGetErrorName(second_launch), first());
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    if (frees) continue;
    times<<<1, 32, 0, stream>>>(own, 2);  // it is the program's now
    cudaMemcpyAsync(memory, own, sizeof(host), cudaMemcpyDeviceToDevice, stream);
    cudaStreamSynchronize(stream);
    const int kept = first();
    std::printf("kept %d %s\n", kept, cudaGetErrorName(cudaFree(own)));
  }
}

/// A copy of several slices is one node, and is changed as one.
void with_slices() {
  constexpr int kWidth = 16, kHeight = 3, kDepth = 4, kCount = kWidth * kHeight * kDepth;
  unsigned char *from[2], *to;
  for (int i = 0; i < 2; ++i) {
    cudaMalloc(&from[i], 2 * kCount);
    cudaMemset(from[i], i + 1, 2 * kCount);
  }
  cudaMalloc(&to, kCount);
  cudaMemcpy3DParms parms{};
  parms.srcPtr = {from[0], kWidth, kWidth, 2 * kHeight};
  parms.dstPtr = {to, kWidth, kWidth, kHeight};
  parms.extent = {kWidth, kHeight, kDepth};
  parms.kind = cudaMemcpyDeviceToDevice;
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  cudaMemcpy3DAsync(&parms, stream);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaStreamEndCapture(stream, &graph);
  cudaGraphNode_t nodes[8];
  std::size_t count = 8;
  cudaGraphGetNodes(graph, nodes, &count);
  cudaGraphInstantiate(&exec, graph, 0);
  parms.srcPtr.ptr = from[1];
  const cudaError_t changed = cudaGraphExecMemcpyNodeSetParams(exec, nodes[0], &parms);
  cudaGraphLaunch(exec, stream);
  cudaStreamSynchronize(stream);
  unsigned char bytes[kCount];
  cudaMemcpy(bytes, to, kCount, cudaMemcpyDeviceToHost);
  int sum = 0;
  for (const unsigned char byte : bytes) sum += byte;
  std::printf("slices: nodes %zu, %s, %d of %d\n", count, cudaGetErrorName(changed), sum,
              2 * kCount);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  for (void* each : {from[0], from[1], to}) cudaFree(each);
}

int main() {
  cudaMalloc(&memory, sizeof(host));
  captured();
  by_hand();
  with_memory();
  with_slices();
  cudaFree(memory);
  cudaGetLastError();
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
