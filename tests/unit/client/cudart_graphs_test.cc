// The front against a fake daemon: graphs inside graphs, and changes of executable graphs.
#include <atomic>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/unit/client/cudart_fixture.h"

namespace slate::test {
namespace {

/// With graphs of kernel nodes, which the daemon's launches are told from by their blocks.
class CudartGraphTest : public CudartTest {
 protected:
  cudaKernelNodeParams kernel(unsigned blocks) {
    cudaKernelNodeParams params{};
    params.func = const_cast<void*>(address(host_kernel));
    params.gridDim = dim3(blocks);
    params.blockDim = dim3(32);
    params.kernelParams = arguments;
    return params;
  }
  cudaGraphNode_t add(cudaGraph_t graph, unsigned blocks) {
    cudaGraphNode_t node = nullptr;
    const cudaKernelNodeParams params = kernel(blocks);
    EXPECT_EQ(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params), cudaSuccess);
    return node;
  }
  cudaGraph_t graph_of(std::initializer_list<unsigned> blocks) {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    for (const unsigned each : blocks) add(graph, each);
    return graph;
  }
  /// A graph that has a copy of another inside.
  struct Outer {
    cudaGraph_t graph = nullptr, inside = nullptr;
    cudaGraphNode_t child = nullptr, inner = nullptr;  // `inner`: the first node inside
  };
  static Outer around(cudaGraph_t graph) {
    Outer outer;
    EXPECT_EQ(cudaGraphCreate(&outer.graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphAddChildGraphNode(&outer.child, outer.graph, nullptr, 0, graph),
              cudaSuccess);
    EXPECT_EQ(cudaGraphChildGraphNodeGetGraph(outer.child, &outer.inside), cudaSuccess);
    std::size_t count = 1;
    EXPECT_EQ(cudaGraphGetNodes(outer.inside, &outer.inner, &count), cudaSuccess);
    return outer;
  }
  static cudaGraphExec_t instantiate(cudaGraph_t graph) {
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    return exec;
  }
  /// The blocks of the kernels that a launch of the graph launches.
  std::vector<unsigned> launched_by(cudaGraphExec_t exec) {
    const std::size_t before = daemon->launches().size();
    EXPECT_EQ(cudaGraphLaunch(exec, nullptr), cudaSuccess);
    EXPECT_EQ(cudaMemGetInfo(nullptr, nullptr), cudaSuccess);  // answers come behind all before
    std::vector<unsigned> blocks;
    const auto launches = daemon->launches();
    for (std::size_t i = before; i < launches.size(); ++i) blocks.push_back(launches[i].grid[0]);
    return blocks;
  }

 private:
  void* argument = nullptr;
  void* arguments[1] = {&argument};
};
using Blocks = std::vector<unsigned>;

TEST_F(CudartGraphTest, ANodeInAChildGraphCanBeChangedAfterTheChildWas) {
  cudaGraph_t graph = graph_of({1, 2}), same = graph_of({3, 4});
  const Outer outer = around(graph), other = around(same);
  cudaGraphExec_t exec = instantiate(outer.graph);
  ASSERT_EQ(cudaGraphExecChildGraphNodeSetParams(exec, outer.child, same), cudaSuccess);
  EXPECT_EQ(launched_by(exec), (Blocks{3, 4}));
  const cudaKernelNodeParams params = kernel(9);
  ASSERT_EQ(cudaGraphExecKernelNodeSetParams(exec, outer.inner, &params), cudaSuccess);
  EXPECT_EQ(launched_by(exec), (Blocks{9, 4}));
  cudaGraphExecUpdateResultInfo info{};
  ASSERT_EQ(cudaGraphExecUpdate(exec, other.graph, &info), cudaSuccess);
  EXPECT_EQ(launched_by(exec), (Blocks{3, 4}));
  ASSERT_EQ(cudaGraphExecKernelNodeSetParams(exec, outer.inner, &params), cudaSuccess);
  EXPECT_EQ(launched_by(exec), (Blocks{9, 4}));
}

TEST_F(CudartGraphTest, AChildGraphIsReplacedByOneOfTheSameShapeOnly) {
  const Outer outer = around(graph_of({1}));
  cudaGraphExec_t exec = instantiate(outer.graph);
  for (cudaGraph_t another : {graph_of({}), graph_of({1, 2}), outer.graph}) {
    EXPECT_EQ(cudaGraphExecChildGraphNodeSetParams(exec, outer.child, another),
              cudaErrorInvalidValue);
  }
  EXPECT_EQ(launched_by(exec), (Blocks{1}));
}

TEST_F(CudartGraphTest, ACircleInsideAChildGraphIsFound) {
  const Outer outer = around(graph_of({1, 2}));
  cudaGraphNode_t nodes[2] = {};
  std::size_t count = 2;
  ASSERT_EQ(cudaGraphGetNodes(outer.inside, nodes, &count), cudaSuccess);
  for (const int from : {0, 1}) {
    ASSERT_EQ(cudaGraphAddDependencies(outer.inside, &nodes[from], &nodes[1 - from], nullptr, 1),
              cudaSuccess);
  }
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&exec, outer.graph, 0), cudaErrorInvalidValue);
}

TEST_F(CudartGraphTest, ADisabledNodeStaysSoWhereverItsGraphIs) {
  cudaGraph_t graph = graph_of({1, 2});
  cudaGraphNode_t first = nullptr;
  std::size_t count = 1;
  ASSERT_EQ(cudaGraphGetNodes(graph, &first, &count), cudaSuccess);
  cudaGraphExec_t exec = instantiate(graph);
  ASSERT_EQ(cudaGraphNodeSetEnabled(exec, first, 0), cudaSuccess);
  EXPECT_EQ(launched_by(exec), (Blocks{2}));
  // Launched into a capture.
  cudaStream_t stream = nullptr;
  cudaGraph_t captured = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream, &captured), cudaSuccess);
  EXPECT_EQ(launched_by(instantiate(captured)), (Blocks{2}));
  // In a child graph.
  const Outer outer = around(graph);
  cudaGraphExec_t whole = instantiate(outer.graph);
  ASSERT_EQ(cudaGraphNodeSetEnabled(whole, outer.inner, 0), cudaSuccess);
  EXPECT_EQ(launched_by(whole), (Blocks{2}));
}

TEST_F(CudartGraphTest, ACooperativeNodeStaysSoWithOtherParameters) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  cudaKernelNodeParams params = kernel(1);
  ASSERT_EQ(
      cudaLaunchCooperativeKernel(params.func, dim3(1), dim3(32), params.kernelParams, 0, stream),
      cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphNode_t node = nullptr;
  std::size_t count = 1;
  ASSERT_EQ(cudaGraphGetNodes(graph, &node, &count), cudaSuccess);
  cudaGraphExec_t exec = instantiate(graph);
  params.gridDim = dim3(1000000);
  EXPECT_EQ(cudaGraphKernelNodeSetParams(node, &params), cudaErrorCooperativeLaunchTooLarge);
  EXPECT_EQ(cudaGraphExecKernelNodeSetParams(exec, node, &params),
            cudaErrorCooperativeLaunchTooLarge);
  params.gridDim = dim3(2);
  EXPECT_EQ(cudaGraphKernelNodeSetParams(node, &params), cudaSuccess);
  EXPECT_EQ(cudaGraphExecKernelNodeSetParams(exec, node, &params), cudaSuccess);
  EXPECT_EQ(launched_by(exec), (Blocks{2}));
  EXPECT_EQ(launched_by(instantiate(graph)), (Blocks{2}));
  for (const auto& launch : daemon->launches()) EXPECT_EQ(launch.flags, ipc::kLaunchCooperative);
}

TEST_F(CudartGraphTest, ACapturedLaunchIsRefusedTheSharedMemoryThatAnyOtherIs) {
  constexpr std::size_t kBeyond32Bits = std::size_t{1} << 32;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(launch(1, 32, kBeyond32Bits, stream), cudaErrorInvalidValue);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(launch(1, 32, kBeyond32Bits, stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
}

TEST_F(CudartGraphTest, AChildGraphEndsWithItsParent) {
  const Outer outer = around(graph_of({1}));
  EXPECT_EQ(cudaGraphDestroy(outer.inside), cudaErrorInvalidValue) << "it is the node's";
  std::size_t count = 0;
  ASSERT_EQ(cudaGraphGetNodes(outer.inside, nullptr, &count), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(outer.graph), cudaSuccess);
  EXPECT_EQ(cudaGraphGetNodes(outer.inside, nullptr, &count), cudaErrorInvalidValue);
}

TEST_F(CudartGraphTest, AGraphIsDrawnForGraphviz) {
  const std::string path = testing::TempDir() + "slate_cudart_graph.dot";
  cudaGraph_t graph = graph_of({3});
  ASSERT_EQ(cudaGraphDebugDotPrint(graph, path.c_str(), cudaGraphDebugDotFlagsVerbose),
            cudaSuccess);
  std::ostringstream drawn;
  drawn << std::ifstream(path).rdbuf();
  EXPECT_NE(drawn.str().find("grid 3 x 1 x 1"), std::string::npos) << drawn.str();
  EXPECT_EQ(cudaGraphDebugDotPrint(graph, nullptr, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphDebugDotPrint(graph, "/nowhere/graph.dot", 0), cudaErrorOperatingSystem);
  ASSERT_EQ(std::remove(path.c_str()), 0);
}

TEST_F(CudartGraphTest, ThreadsWithGraphsOfTheirOwnDoNotDisturbEachOther) {
  const auto empty_nodes = [] {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    for (int i = 0; i < 8; ++i) {
      cudaGraphNode_t node = nullptr;
      EXPECT_EQ(cudaGraphAddEmptyNode(&node, graph, nullptr, 0), cudaSuccess);
    }
    return graph;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      cudaGraph_t graph = empty_nodes();
      const Outer outer = around(graph);
      cudaGraphExec_t exec = instantiate(outer.graph);
      for (int round = 0; round < 5'000; ++round) {
        EXPECT_EQ(cudaGraphExecChildGraphNodeSetParams(exec, outer.child, graph), cudaSuccess);
        EXPECT_EQ(cudaGraphDestroy(empty_nodes()), cudaSuccess);
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

}  // namespace
}  // namespace slate::test
