// Graphs of nodes and of captured streams, executable ones that change, and launches with
// attributes.
#include <vector>

#include "check.h"

namespace {

constexpr char kPtx[] = R"(
.version 7.8
.target sm_90
.address_size 64

// word[i] = word[i] * factor + blocks of a cluster, for 64 words a block
.visible .entry scale(.param .u64 words, .param .u32 factor)
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [words];
  ld.param.u32 %r1, [factor];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.u32 %r5, %r3, %r4, %r2;
  cvta.to.global.u64 %rd1, %rd1;
  mul.wide.u32 %rd2, %r5, 4;
  add.s64 %rd3, %rd1, %rd2;
  mov.u32 %r6, %cluster_nctarank;
  ld.global.u32 %r7, [%rd3];
  mad.lo.u32 %r7, %r7, %r1, %r6;
  st.global.u32 [%rd3], %r7;
  ret;
}
)";

constexpr unsigned kBlocks = 4, kThreads = 64, kWords = kBlocks * kThreads;
constexpr std::size_t kBytes = kWords * sizeof(unsigned);

CUfunction scale = nullptr;
CUdeviceptr words = 0;
unsigned* host = nullptr;  // pinned

void print(const char* what) {
  unsigned different = 0;
  for (unsigned i = 0; i < kWords; ++i) different += host[i] != host[0];
  std::printf("%s: %u, %u differ\n", what, host[0], different);
}

CUDA_KERNEL_NODE_PARAMS kernel_node(void** arguments) {
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = scale;
  params.gridDimX = kBlocks;
  params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = kThreads;
  params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = arguments;
  return params;
}

CUDA_MEMCPY3D to_host() {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = words;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = host;
  copy.WidthInBytes = kBytes;
  copy.Height = copy.Depth = 1;
  return copy;
}

/// fill -> two kernels -> copy -> function of the program
void graph_of_nodes(CUcontext context, CUstream stream) {
  CUgraph graph = nullptr;
  CUgraphNode fill = nullptr, first = nullptr, second = nullptr, copy = nullptr, call = nullptr;
  CUgraphExec exec = nullptr;
  unsigned factors[2] = {3, 10};
  void* arguments[2][2] = {{&words, &factors[0]}, {&words, &factors[1]}};
  static int calls = 0;
  CHECK(cuGraphCreate(&graph, 0));
  CUDA_MEMSET_NODE_PARAMS filled{words, 0, 2, 4, kWords, 1};
  CHECK(cuGraphAddMemsetNode(&fill, graph, nullptr, 0, &filled, context));
  CUDA_KERNEL_NODE_PARAMS params = kernel_node(arguments[0]);
  CHECK(cuGraphAddKernelNode(&first, graph, &fill, 1, &params));
  params = kernel_node(arguments[1]);
  CHECK(cuGraphAddKernelNode(&second, graph, &first, 1, &params));
  const CUDA_MEMCPY3D copied = to_host();
  CHECK(cuGraphAddMemcpyNode(&copy, graph, &second, 1, &copied, context));
  CUDA_HOST_NODE_PARAMS called{[](void*) { ++calls; }, nullptr};
  CHECK(cuGraphAddHostNode(&call, graph, &copy, 1, &called));
  std::size_t nodes = 0;
  CHECK(cuGraphGetNodes(graph, nullptr, &nodes));
  CHECK(cuGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 5; ++i) CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
  std::printf("%zu nodes, the function was called %d times\n", nodes, calls);
  print("fill 2, times 3 plus 1, times 10 plus 1");

  factors[1] = 100;
  CHECK(cuGraphExecKernelNodeSetParams(exec, second, &params));
  CHECK(cuGraphNodeSetEnabled(exec, first, 0));
  CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
  print("without the first kernel, times 100 plus 1");
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}

void captured_graph(CUstream stream) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUstream other = nullptr;
  CUevent event = nullptr;
  unsigned factor = 2;
  void* arguments[] = {&words, &factor};
  CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CHECK(cuMemsetD32(words, 1, kWords));
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CHECK(cuLaunchKernel(scale, kBlocks, 1, 1, kThreads, 1, 1, 0, stream, arguments, nullptr));
  CHECK(cuEventRecord(event, stream));
  CHECK(cuStreamWaitEvent(other, event, 0));
  CHECK(cuLaunchKernel(scale, kBlocks, 1, 1, kThreads, 1, 1, 0, other, arguments, nullptr));
  CHECK(cuMemcpyDtoHAsync(host, words, kBytes, other));
  CHECK(cuEventRecord(event, other));
  CHECK(cuStreamWaitEvent(stream, event, 0));
  CHECK(cuStreamEndCapture(stream, &graph));
  CHECK(cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
  for (int i = 0; i < 3; ++i) CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
  print("captured, three times");
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
  CHECK(cuEventDestroy(event));
  CHECK(cuStreamDestroy(other));
}

void launch_with(const char* what, std::vector<CUlaunchAttribute> attributes, CUstream stream,
                 unsigned cluster_blocks = 1) {
  unsigned factor = 2;
  void* arguments[] = {&words, &factor};
  CUlaunchConfig config{};
  config.gridDimX = kBlocks;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = kThreads;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(attributes.size());
  CHECK(cuMemsetD32Async(words, 5, kWords, stream));
  CHECK(cuLaunchKernelEx(&config, scale, arguments, nullptr));
  CHECK(cuMemcpyDtoHAsync(host, words, kBytes, stream));
  CHECK(cuStreamSynchronize(stream));
  for (unsigned i = 0; i < kWords; ++i) host[i] -= cluster_blocks;
  print(what);
}

void attributes(CUstream stream) {
  CUlaunchAttribute cluster{}, early{}, priority{}, cooperative{};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim = {2, 1, 1};
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value.programmaticStreamSerializationAllowed = 1;
  priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  priority.value.priority = -1;
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  launch_with("without attributes", {}, stream);
  launch_with("that may begin early, with a priority", {early, priority}, stream);
  launch_with("cooperative", {cooperative}, stream);
  int has_clusters = 0;
  CHECK(cuDeviceGetAttribute(&has_clusters, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
  if (has_clusters == 0) cluster.value.clusterDim = {1, 1, 1};
  launch_with("in clusters of two, where there are clusters", {cluster}, stream,
              has_clusters != 0 ? 2 : 1);
}

}  // namespace

int main() {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUstream stream = nullptr;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, kPtx));
  CHECK(cuModuleGetFunction(&scale, module, "scale"));
  CHECK(cuMemAlloc(&words, kBytes));
  CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&host), kBytes, 0));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  graph_of_nodes(context, stream);
  captured_graph(stream);
  attributes(stream);
  CHECK(cuStreamDestroy(stream));
  CHECK(cuMemFreeHost(host));
  CHECK(cuMemFree(words));
  CHECK(cuModuleUnload(module));
  CHECK(cuDevicePrimaryCtxRelease(0));
  return 0;
}
