// The front against a fake daemon: streams, events, captures and graphs.
#include <atomic>
#include <thread>
#include <vector>

#include "tests/unit/client/cudart_fixture.h"

namespace slate::test {
namespace {

TEST_F(CudartTest, UnsafeCallsDuringACaptureAreRefusedAsItsModeSays) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  void* memory = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  cudaGraph_t graph = nullptr;
  const std::vector<std::function<cudaError_t()>> calls{
      [] {
        void* made = nullptr;
        return cudaMalloc(&made, 64);
      },
      [&] { return cudaFree(memory); },
      [] {
        void* made = nullptr;
        return cudaMallocHost(&made, 64);
      },
      [&] { return cudaEventQuery(event); },
      [&] { return cudaEventSynchronize(event); },
      [] { return cudaDeviceSynchronize(); },
  };
  for (const auto& call : calls) {
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  }
  // Of another thread's capture that is this thread's own business, and of a relaxed one, nothing.
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  std::thread([&] { EXPECT_EQ(cudaEventQuery(event), cudaSuccess); }).join();
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  // A thread that takes the risk may go on.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
}

TEST_F(CudartTest, StreamErrorsAreCudas) {
  EXPECT_EQ(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(cudaStreamPerThread), cudaErrorInvalidResourceHandle);
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, 0xff), cudaErrorInvalidValue);
  ASSERT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -99), cudaSuccess);
  int priority = 7;
  EXPECT_EQ(cudaStreamGetPriority(stream, &priority), cudaSuccess);
  EXPECT_EQ(priority, -5);
  unsigned flags = 7;
  EXPECT_EQ(cudaStreamGetFlags(stream, &flags), cudaSuccess);
  EXPECT_EQ(flags, unsigned{cudaStreamNonBlocking});
  EXPECT_EQ(cudaStreamGetFlags(nullptr, &flags), cudaSuccess);
  EXPECT_EQ(flags, 0u);
  EXPECT_EQ(launch(1, 32, 0, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(launch(1, 32, 0, stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
}

TEST_F(CudartTest, AThreadsOwnStreamEndsWithTheThread) {
  unsigned long long here = 0, here_again = 0, there = 0;
  ASSERT_EQ(cudaStreamGetId(cudaStreamPerThread, &here), cudaSuccess);
  ASSERT_EQ(cudaStreamGetId(cudaStreamPerThread, &here_again), cudaSuccess);
  std::thread([&] { cudaStreamGetId(cudaStreamPerThread, &there); }).join();
  EXPECT_EQ(here, here_again);
  EXPECT_NE(here, there);
  EXPECT_EQ(cudaStreamQuery(reinterpret_cast<cudaStream_t>(here)), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(reinterpret_cast<cudaStream_t>(there)), cudaErrorInvalidResourceHandle);
}

TEST_F(CudartTest, EventErrorsAreCudas) {
  cudaEvent_t first = nullptr, last = nullptr, untimed = nullptr;
  EXPECT_EQ(cudaEventCreateWithFlags(&first, 0xff), cudaErrorInvalidValue);
  EXPECT_EQ(cudaEventCreateWithFlags(&first, cudaEventInterprocess), cudaErrorInvalidValue);
  ASSERT_EQ(cudaEventCreate(&first), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&last), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming), cudaSuccess);
  float ms = 0;
  EXPECT_EQ(cudaEventElapsedTime(&ms, first, last), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(first, nullptr), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(last, nullptr), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(untimed, nullptr), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(untimed), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&ms, first, last), cudaSuccess);
  EXPECT_EQ(ms, 1.5f);
  EXPECT_EQ(cudaEventElapsedTime(&ms, first, untimed), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecordWithFlags(first, nullptr, 7), cudaErrorInvalidValue);
  EXPECT_EQ(cudaEventRecordWithFlags(first, nullptr, cudaEventRecordExternal),
            cudaErrorIllegalState);
  EXPECT_EQ(cudaStreamWaitEvent(nullptr, last, 7), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamWaitEvent(nullptr, nullptr, 0), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(first), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(first), cudaErrorInvalidResourceHandle);
}

TEST_F(CudartTest, WhatIsCapturedIsSentByTheLaunchOfTheGraphAndNotBefore) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(launch(3, 32, 0, stream), cudaSuccess);
  EXPECT_EQ(launch(1, 2000, 0, stream), cudaErrorInvalidValue) << "checked as ever";
  EXPECT_EQ(launch(5, 64, 0, stream), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  ASSERT_EQ(cudaMemGetInfo(nullptr, nullptr), cudaSuccess);
  EXPECT_TRUE(daemon->launches().empty());
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, nullptr), cudaSuccess);
  ASSERT_EQ(cudaMemGetInfo(nullptr, nullptr), cudaSuccess);
  const auto launches = daemon->launches();
  ASSERT_EQ(launches.size(), 4u);
  EXPECT_EQ(launches[0].grid[0], 3u);
  EXPECT_EQ(launches[1].block[0], 64u);
  EXPECT_NE(launches[0].stream, launches[2].stream);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaErrorInvalidValue);
}

TEST_F(CudartTest, AGraphOutlivesAReset) {
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  void* argument = nullptr;
  void* arguments[] = {&argument};
  cudaKernelNodeParams params{};
  params.func = const_cast<void*>(address(host_kernel));
  params.gridDim = dim3(2);
  params.blockDim = dim3(32);
  params.kernelParams = arguments;
  cudaGraphNode_t node = nullptr;
  ASSERT_EQ(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(daemon->launches().size(), 1u);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(CudartTest, WorkOfTheDefaultStreamBreaksTheCaptureOfABlockingStream) {
  cudaStream_t blocking = nullptr, free_stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&free_stream, cudaStreamNonBlocking), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(free_stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(launch(1, 32), cudaSuccess) << "a stream that does not wait for the default one";
  EXPECT_EQ(cudaStreamEndCapture(free_stream, &graph), cudaSuccess);
  cudaGraphDestroy(graph);
  ASSERT_EQ(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(launch(1, 32), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(launch(1, 32), cudaSuccess) << "over with the capture";
}

TEST_F(CudartTest, ACaptureEndsWithTheThreadThatBeganItUnlessItIsRelaxed) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  for (const bool relaxed : {false, true}) {
    const auto mode = relaxed ? cudaStreamCaptureModeRelaxed : cudaStreamCaptureModeThreadLocal;
    ASSERT_EQ(cudaStreamBeginCapture(stream, mode), cudaSuccess);
    cudaGraph_t graph = nullptr;
    cudaError_t other = cudaErrorUnknown;
    std::thread([&] { other = cudaStreamEndCapture(stream, &graph); }).join();
    EXPECT_EQ(other, relaxed ? cudaSuccess : cudaErrorStreamCaptureWrongThread);
    if (!relaxed) {
      EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    }
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
}

TEST_F(CudartTest, AThreadInThreadLocalModeMindsItsOwnCapturesOnly) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;
  std::thread([&] {
    cudaStreamCaptureMode here = mode;
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&here), cudaSuccess);
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  }).join();
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_F(CudartTest, AskingTheDefaultStreamWhetherItCapturesBreaksNoCapture) {
  cudaStream_t blocking = nullptr;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeGlobal), cudaSuccess);
  cudaStreamCaptureStatus status{};
  EXPECT_EQ(cudaStreamIsCapturing(nullptr, &status), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(cudaStreamGetCaptureInfo(nullptr, &status, nullptr, nullptr, nullptr, nullptr, nullptr),
            cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(cudaStreamIsCapturing(blocking, &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph), cudaSuccess);
}

TEST_F(CudartTest, ACaptureEndsWithTheStreamThatItBeganOn) {
  cudaStream_t origin = nullptr, joined = nullptr;
  cudaEvent_t event = nullptr;
  cudaGraph_t graph = nullptr;
  void* memory = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&joined, cudaStreamNonBlocking), cudaSuccess);
  const auto begin = [&] {
    ASSERT_EQ(cudaStreamCreateWithFlags(&origin, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(origin, cudaStreamCaptureModeGlobal), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(event, origin), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(joined, event), cudaSuccess);
  };
  begin();
  EXPECT_EQ(cudaStreamDestroy(origin), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(joined, &graph), cudaErrorIllegalState);
  EXPECT_EQ(launch(1, 32, 0, joined), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  // A stream that only joined takes its work along, if there is some.
  for (const bool works : {false, true}) {
    begin();
    if (works) {
      EXPECT_EQ(launch(1, 32, 0, joined), cudaSuccess);
    }
    EXPECT_EQ(cudaStreamDestroy(joined), cudaSuccess);
    EXPECT_EQ(cudaStreamEndCapture(origin, &graph),
              works ? cudaErrorStreamCaptureUnjoined : cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&joined, cudaStreamNonBlocking), cudaSuccess);
  }
  // So with the stream of a thread that ends.
  std::thread([] {
    EXPECT_EQ(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeGlobal),
              cudaSuccess);
  }).join();
  EXPECT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
}

TEST_F(CudartTest, AsynchronousCopiesOfSymbolsAreCapturedAndThoseBetweenDevicesNot) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  void* memory = nullptr;
  int value = 7, back = 0;
  ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaMemcpyToSymbolAsync(host_variable, &value, sizeof(value), 0, cudaMemcpyHostToDevice,
                                    stream),
            cudaSuccess);
  EXPECT_EQ(cudaMemcpyFromSymbolAsync(&back, host_variable, sizeof(back), 0, cudaMemcpyDeviceToHost,
                                      stream),
            cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  value = 9;
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(back, 9);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaMemcpyPeerAsync(memory, 0, memory, 0, 4, stream),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_F(CudartTest, ExternalEventsAreNodesOfWhatIsCaptured) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, event, cudaEventWaitExternal), cudaErrorIllegalState);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, event, cudaEventWaitExternal), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphNode_t nodes[2] = {};
  std::size_t count = 2;
  ASSERT_EQ(cudaGraphGetNodes(graph, nodes, &count), cudaSuccess);
  ASSERT_EQ(count, 2u);
  cudaEvent_t recorded = nullptr, waited = nullptr;
  EXPECT_EQ(cudaGraphEventRecordNodeGetEvent(nodes[0], &recorded), cudaSuccess);
  EXPECT_EQ(cudaGraphEventWaitNodeGetEvent(nodes[1], &waited), cudaSuccess);
  EXPECT_TRUE(recorded == event && waited == event);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
}

TEST_F(CudartTest, WhatAStreamWasToldOfItsCaptureStaysUntilItIsAskedAgain) {
  cudaStream_t streams[2] = {};
  const cudaGraphNode_t* told[2] = {};
  cudaGraphNode_t first = nullptr;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(streams[i], cudaStreamCaptureModeRelaxed), cudaSuccess);
    EXPECT_EQ(launch(1, 32, 0, streams[i]), cudaSuccess);
    cudaStreamCaptureStatus status{};
    std::size_t count = 0;
    ASSERT_EQ(
        cudaStreamGetCaptureInfo(streams[i], &status, nullptr, nullptr, &told[i], nullptr, &count),
        cudaSuccess);
    ASSERT_EQ(count, 1u);
    if (i == 0) first = told[0][0];
  }
  EXPECT_EQ(told[0][0], first);
  EXPECT_NE(told[1][0], first);
}

TEST_F(CudartTest, MemoryThatComesInStreamOrderIsFreedOnce) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocAsync(&memory, 100, nullptr), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(memory, nullptr), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(memory, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  ASSERT_EQ(cudaMemGetInfo(nullptr, nullptr), cudaSuccess);  // an answer comes behind all before it
  EXPECT_EQ(daemon->count(slate::ipc::CommandType::kMemoryFree), 1);
}

TEST_F(CudartTest, AHostFunctionRunsBeforeASynchronisationReturns) {
  static std::atomic<int> calls;
  calls = 0;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(cudaLaunchHostFunc(
                  nullptr, [](void*) { ++calls; }, nullptr),
              cudaSuccess);
  }
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(calls, 20);
}

TEST_F(CudartTest, StreamAttributesAreKeptAndCopied) {
  cudaStream_t one = nullptr, other = nullptr;
  ASSERT_EQ(cudaStreamCreate(&one), cudaSuccess);
  ASSERT_EQ(cudaStreamCreate(&other), cudaSuccess);
  cudaStreamAttrValue value{};
  value.accessPolicyWindow.num_bytes = 4096;
  ASSERT_EQ(cudaStreamSetAttribute(one, cudaStreamAttributeAccessPolicyWindow, &value),
            cudaSuccess);
  cudaStreamAttrValue seen{};
  ASSERT_EQ(cudaStreamGetAttribute(other, cudaStreamAttributeAccessPolicyWindow, &seen),
            cudaSuccess);
  EXPECT_EQ(seen.accessPolicyWindow.num_bytes, 0u);
  ASSERT_EQ(cudaStreamCopyAttributes(other, one), cudaSuccess);
  ASSERT_EQ(cudaStreamGetAttribute(other, cudaStreamAttributeAccessPolicyWindow, &seen),
            cudaSuccess);
  EXPECT_EQ(seen.accessPolicyWindow.num_bytes, 4096u);
  EXPECT_EQ(cudaStreamSetAttribute(one, unknown<cudaStreamAttrID>(99), &value),
            cudaErrorInvalidValue);
}

}  // namespace
}  // namespace slate::test
