// Memory pools, graphs, stream capture.
#include <cstdint>

#include "conformance.h"

namespace conformance {
namespace {

void nothing(void*) {}

cudaKernelNodeParams kernel_params(void** arguments) {
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(two_parameters);
  params.gridDim = dim3(1);
  params.blockDim = dim3(32);
  params.kernelParams = arguments;
  return params;
}

}  // namespace

void pool_rows() {
  cudaMemPool_t pool = nullptr, standard = nullptr;
  void* memory = nullptr;
  ROW("cudaDeviceGetDefaultMemPool/normal", cudaDeviceGetDefaultMemPool(&standard, 0));
  ROW("cudaDeviceGetDefaultMemPool/null", cudaDeviceGetDefaultMemPool(nullptr, 0));
  ROW("cudaDeviceGetDefaultMemPool/beyond", cudaDeviceGetDefaultMemPool(&pool, 99));
  ROW("cudaMallocAsync/normal", cudaMallocAsync(&memory, 4096, nullptr));
  ROW("cudaFreeAsync/normal", cudaFreeAsync(memory, nullptr));
  ROW("cudaMallocAsync/null", cudaMallocAsync(static_cast<void**>(nullptr), 4096, nullptr));
  ROW("cudaMallocAsync/zero", cudaMallocAsync(&memory, 0, nullptr));
  ROW("cudaMallocAsync/too-much", cudaMallocAsync(&memory, 1ull << 50, nullptr));
  ROW("cudaFreeAsync/null", cudaFreeAsync(nullptr, nullptr));
  cudaMalloc(&memory, 4096);
  ROW("cudaFreeAsync/of-cudaMalloc", cudaFreeAsync(memory, nullptr));
  cudaMallocAsync(&memory, 4096, nullptr);
  ROW("cudaFree/of-cudaMallocAsync", cudaFree(memory));
  cudaMemPoolProps properties{};
  ROW("cudaMemPoolCreate/empty", cudaMemPoolCreate(&pool, &properties));
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  ROW("cudaMemPoolCreate/null", cudaMemPoolCreate(nullptr, &properties));
  ROW("cudaMemPoolCreate/normal", cudaMemPoolCreate(&pool, &properties));
  std::uint64_t value = 12345;
  ROW("cudaMemPoolGetAttribute/threshold",
      cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &value),
      std::to_string(value));
  int flag = -1;
  ROW("cudaMemPoolGetAttribute/reuse",
      cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &flag),
      std::to_string(flag));
  ROW("cudaMemPoolGetAttribute/unknown",
      cudaMemPoolGetAttribute(pool, unknown<cudaMemPoolAttr>(99), &value));
  ROW("cudaMemPoolSetAttribute/used",
      cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
  ROW("cudaMemPoolSetAttribute/high-not-zero",
      cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &value));
  ROW("cudaMemPoolTrimTo/normal", cudaMemPoolTrimTo(pool, 0));
  ROW("cudaMallocFromPoolAsync/normal", cudaMallocFromPoolAsync(&memory, 4096, pool, nullptr));
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value);
  value_row("cudaMemPoolGetAttribute/used", value);
  cudaFreeAsync(memory, nullptr);
  cudaDeviceSynchronize();
  ROW("cudaMemPoolDestroy/normal", cudaMemPoolDestroy(pool));
  ROW("cudaMemPoolDestroy/default", cudaMemPoolDestroy(standard));
  ROW("cudaStreamSynchronize/after-pools", cudaStreamSynchronize(nullptr));
}

namespace {

void memory_node_rows() {
  cudaGraph_t graph = nullptr;
  cudaGraphCreate(&graph, 0);
  cudaGraphNode_t allocating = nullptr, freeing = nullptr;
  cudaMemAllocNodeParams params{};
  ROW("cudaGraphAddMemAllocNode/empty",
      cudaGraphAddMemAllocNode(&allocating, graph, nullptr, 0, &params));
  params.poolProps.allocType = cudaMemAllocationTypePinned;
  params.poolProps.location = {cudaMemLocationTypeDevice, 0};
  params.bytesize = 4096;
  ROW("cudaGraphAddMemAllocNode/null",
      cudaGraphAddMemAllocNode(nullptr, graph, nullptr, 0, &params));
  ROW("cudaGraphAddMemAllocNode/normal",
      cudaGraphAddMemAllocNode(&allocating, graph, nullptr, 0, &params),
      params.dptr != nullptr ? "address" : "none");
  ROW("cudaGraphAddMemFreeNode/normal",
      cudaGraphAddMemFreeNode(&freeing, graph, &allocating, 1, params.dptr));
  cudaGraphExec_t exec = nullptr;
  cudaGraphInstantiate(&exec, graph, 0);
  ROW("cudaGraphLaunch/frees-its-memory", cudaGraphLaunch(exec, nullptr));
  ROW("cudaGraphLaunch/frees-its-memory-again", cudaGraphLaunch(exec, nullptr));
  cudaDeviceSynchronize();
  std::uint64_t used = 99;
  ROW("cudaDeviceGetGraphMemAttribute/used",
      cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used),
      std::to_string(used));
  ROW("cudaDeviceGetGraphMemAttribute/null",
      cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, nullptr));
  ROW("cudaDeviceGetGraphMemAttribute/beyond",
      cudaDeviceGetGraphMemAttribute(99, cudaGraphMemAttrUsedMemCurrent, &used));
  ROW("cudaDeviceGraphMemTrim/normal", cudaDeviceGraphMemTrim(0));
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

}  // namespace

void graph_rows() {
  cudaGraph_t graph = nullptr, clone = nullptr;
  ROW("cudaGraphCreate/null", cudaGraphCreate(nullptr, 0));
  ROW("cudaGraphCreate/flags", cudaGraphCreate(&graph, 1));
  ROW("cudaGraphCreate/normal", cudaGraphCreate(&graph, 0));
  int* out = nullptr;
  double value = 1;
  void* arguments[] = {&out, &value};
  cudaKernelNodeParams kernel = kernel_params(arguments);
  cudaGraphNode_t first = nullptr, second = nullptr, third = nullptr;
  ROW("cudaGraphAddKernelNode/null", cudaGraphAddKernelNode(nullptr, graph, nullptr, 0, &kernel));
  ROW("cudaGraphAddKernelNode/normal", cudaGraphAddKernelNode(&first, graph, nullptr, 0, &kernel));
  kernel.blockDim = dim3(2000);
  ROW("cudaGraphAddKernelNode/many-threads",
      cudaGraphAddKernelNode(&second, graph, nullptr, 0, &kernel));
  ROW("cudaGraphAddEmptyNode/normal", cudaGraphAddEmptyNode(&second, graph, &first, 1));
  cudaHostNodeParams host{nothing, nullptr};
  ROW("cudaGraphAddHostNode/normal", cudaGraphAddHostNode(&third, graph, &second, 1, &host));
  const cudaGraphNode_t twice[] = {first, first};
  ROW("cudaGraphAddEmptyNode/twice-the-same", cudaGraphAddEmptyNode(&second, graph, twice, 2));
  ROW("cudaGraphAddDependencies/there",
      cudaGraphAddDependencies(graph, &second, &third, nullptr, 1));
  ROW("cudaGraphAddDependencies/new", cudaGraphAddDependencies(graph, &first, &third, nullptr, 1));
  std::size_t count = 0;
  ROW("cudaGraphGetNodes/count", cudaGraphGetNodes(graph, nullptr, &count), std::to_string(count));
  ROW("cudaGraphGetEdges/count", cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count),
      std::to_string(count));
  ROW("cudaGraphGetRootNodes/count", cudaGraphGetRootNodes(graph, nullptr, &count),
      std::to_string(count));
  cudaGraphNode_t places[4] = {third, third, third, third};
  count = 4;
  ROW("cudaGraphNodeGetDependencies/more-room",
      cudaGraphNodeGetDependencies(third, places, nullptr, &count),
      std::to_string(count) + (places[2] == nullptr ? " null" : " not null"));
  cudaGraphNodeType type;
  ROW("cudaGraphNodeGetType/normal", cudaGraphNodeGetType(third, &type), std::to_string(type));
  ROW("cudaGraphClone/normal", cudaGraphClone(&clone, graph));
  cudaGraphNode_t found = nullptr;
  ROW("cudaGraphNodeFindInClone/normal", cudaGraphNodeFindInClone(&found, third, clone),
      found != nullptr && found != third ? "another" : "the same");
  cudaGraphExec_t exec = nullptr;
  ROW("cudaGraphInstantiate/null", cudaGraphInstantiate(nullptr, graph, 0));
  ROW("cudaGraphInstantiate/normal", cudaGraphInstantiate(&exec, graph, 0));
  ROW("cudaGraphLaunch/normal", cudaGraphLaunch(exec, nullptr));
  ROW("cudaGraphUpload/normal", cudaGraphUpload(exec, nullptr));
  cudaGraphExecUpdateResultInfo info{};
  ROW("cudaGraphExecUpdate/same", cudaGraphExecUpdate(exec, clone, &info),
      std::to_string(info.result));
  cudaGraphNode_t fourth = nullptr;
  cudaGraphAddEmptyNode(&fourth, clone, nullptr, 0);
  ROW("cudaGraphExecUpdate/another-node", cudaGraphExecUpdate(exec, clone, &info),
      std::to_string(info.result));
  kernel.blockDim = dim3(64);
  ROW("cudaGraphExecKernelNodeSetParams/normal",
      cudaGraphExecKernelNodeSetParams(exec, first, &kernel));
  ROW("cudaGraphExecKernelNodeSetParams/host-node",
      cudaGraphExecKernelNodeSetParams(exec, third, &kernel));
  ROW("cudaGraphNodeSetEnabled/kernel", cudaGraphNodeSetEnabled(exec, first, 0));
  ROW("cudaGraphNodeSetEnabled/host", cudaGraphNodeSetEnabled(exec, third, 0));
  ROW("cudaGraphExecDestroy/normal", cudaGraphExecDestroy(exec));
  ROW("cudaGraphDestroyNode/normal", cudaGraphDestroyNode(first));
  ROW("cudaGraphDestroy/normal", cudaGraphDestroy(graph));
  cudaGraphDestroy(clone);
  memory_node_rows();
  ROW("cudaDeviceSynchronize/after-graphs", cudaDeviceSynchronize());
}

namespace {

__device__ int variable;

/// The types of the nodes that a stream has captured, which it then does no longer.
std::string types_of_captured(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess) return "none";
  cudaGraphNode_t nodes[4] = {};
  std::size_t count = 4;
  cudaGraphGetNodes(graph, nodes, &count);
  std::string types;
  for (std::size_t i = 0; i < count; ++i) {
    cudaGraphNodeType type;
    cudaGraphNodeGetType(nodes[i], &type);
    types += (i == 0 ? "" : " ") + std::to_string(type);
  }
  cudaGraphDestroy(graph);
  return types;
}

/// External events, symbols, peers, the default stream, streams that go. `stream` does not wait for
/// the default one.
void special_capture_rows(cudaStream_t stream) {
  constexpr auto kGlobal = cudaStreamCaptureModeGlobal;
  cudaEvent_t event = nullptr;
  cudaGraph_t graph = nullptr;
  cudaStreamCaptureStatus status;
  void* memory = nullptr;
  cudaMalloc(&memory, 64);
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  ROW("cudaStreamWaitEvent/external", cudaStreamWaitEvent(stream, event, cudaEventWaitExternal));
  cudaStreamBeginCapture(stream, kGlobal);
  ROW("cudaEventRecordWithFlags/external-capturing",
      cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
  ROW("cudaStreamWaitEvent/external-capturing",
      cudaStreamWaitEvent(stream, event, cudaEventWaitExternal));
  std::printf("cudaStreamEndCapture/external: %s\n", types_of_captured(stream).c_str());
  cudaStreamBeginCapture(stream, kGlobal);
  const int value = 1;
  ROW("cudaMemcpyToSymbolAsync/capturing",
      cudaMemcpyToSymbolAsync(variable, &value, sizeof(value), 0, cudaMemcpyHostToDevice, stream));
  ROW("cudaMemcpyPeerAsync/capturing", cudaMemcpyPeerAsync(memory, 0, memory, 0, 4, stream));
  ROW("cudaStreamEndCapture/of-peers", cudaStreamEndCapture(stream, &graph));
  cudaStream_t blocking = nullptr;
  cudaStreamCreate(&blocking);
  cudaStreamBeginCapture(blocking, kGlobal);
  ROW("cudaStreamIsCapturing/default-stream", cudaStreamIsCapturing(nullptr, &status));
  ROW("cudaStreamIsCapturing/blocking-then", cudaStreamIsCapturing(blocking, &status),
      std::to_string(status));
  ROW("cudaStreamDestroy/capturing", cudaStreamDestroy(blocking));
  ROW("cudaFree/capturing-stream-destroyed", cudaFree(memory));
  cudaEventDestroy(event);
  cudaGetLastError();
}

}  // namespace

void capture_rows() {
  cudaStream_t stream = nullptr, other = nullptr;
  cudaEvent_t event = nullptr;
  cudaGraph_t graph = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  constexpr auto kRelaxed = cudaStreamCaptureModeRelaxed;
  const auto state = [&] {
    cudaStreamCaptureStatus status;
    cudaStreamIsCapturing(stream, &status);
    return std::to_string(status);
  };
  ROW("cudaStreamBeginCapture/default-stream", cudaStreamBeginCapture(nullptr, kRelaxed));
  ROW("cudaStreamBeginCapture/unknown-mode",
      cudaStreamBeginCapture(stream, unknown<cudaStreamCaptureMode>(9)));
  ROW("cudaStreamEndCapture/none", cudaStreamEndCapture(stream, &graph));
  ROW("cudaStreamBeginCapture/normal", cudaStreamBeginCapture(stream, kRelaxed), state());
  ROW("cudaStreamBeginCapture/twice", cudaStreamBeginCapture(stream, kRelaxed), state());
  ROW("cudaStreamEndCapture/empty", cudaStreamEndCapture(stream, &graph),
      (graph != nullptr ? "graph " : "null ") + state());
  cudaGraphDestroy(graph);

  cudaStreamBeginCapture(stream, kRelaxed);
  ROW("cudaStreamSynchronize/capturing", cudaStreamSynchronize(stream), state());
  ROW("cudaStreamEndCapture/invalidated", cudaStreamEndCapture(stream, &graph),
      graph != nullptr ? "graph" : "null");

  cudaStreamBeginCapture(stream, kRelaxed);
  ROW("cudaStreamQuery/capturing", cudaStreamQuery(stream), state());
  cudaStreamEndCapture(stream, &graph);
  cudaGetLastError();

  cudaStreamBeginCapture(stream, kRelaxed);
  cudaEventRecord(event, stream);
  ROW("cudaEventQuery/captured", cudaEventQuery(event));
  cudaStreamEndCapture(stream, &graph);
  cudaGetLastError();

  cudaStreamBeginCapture(stream, kRelaxed);
  cudaEventRecord(event, stream);
  ROW("cudaStreamWaitEvent/joins", cudaStreamWaitEvent(other, event));
  cudaLaunchHostFunc(other, nothing, nullptr);
  ROW("cudaStreamEndCapture/other-stream", cudaStreamEndCapture(other, &graph));
  ROW("cudaStreamEndCapture/unjoined", cudaStreamEndCapture(stream, &graph));

  cudaEvent_t outside = nullptr;
  cudaEventCreateWithFlags(&outside, cudaEventDisableTiming);
  cudaEventRecord(outside, other);
  cudaStreamBeginCapture(stream, kRelaxed);
  ROW("cudaStreamWaitEvent/outside", cudaStreamWaitEvent(stream, outside), state());
  cudaStreamEndCapture(stream, &graph);
  cudaGetLastError();

  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  ROW("cudaDeviceSynchronize/capturing", cudaDeviceSynchronize(), state());
  cudaStreamEndCapture(stream, &graph);
  cudaGetLastError();
  special_capture_rows(stream);
  cudaStreamCaptureMode mode = kRelaxed;
  ROW("cudaThreadExchangeStreamCaptureMode/normal", cudaThreadExchangeStreamCaptureMode(&mode),
      std::to_string(mode));
  cudaThreadExchangeStreamCaptureMode(&mode);
  cudaStreamDestroy(stream);
  cudaStreamDestroy(other);
  cudaEventDestroy(event);
  cudaEventDestroy(outside);
  ROW("cudaStreamSynchronize/after-captures", cudaStreamSynchronize(nullptr));
}

}  // namespace conformance
