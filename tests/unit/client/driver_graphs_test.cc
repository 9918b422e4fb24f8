// The front for libcuda against a fake daemon: graphs, in the driver's structs.
#include <cstdio>
#include <fstream>
#include <sstream>
#include <vector>

#include "tests/unit/client/driver_fixture.h"

namespace slate::test {
namespace {

using Blocks = std::vector<unsigned>;

/// With graphs of kernel nodes, which the daemon's launches are told from by their blocks.
class DriverGraphsTest : public DriverFrontTest {
 protected:
  DriverGraphsTest() { EXPECT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS); }
  ~DriverGraphsTest() override { EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS); }

  CUDA_KERNEL_NODE_PARAMS kernel(unsigned blocks) {
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = function;
    params.gridDimX = blocks;
    params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
    params.blockDimX = 32;
    params.kernelParams = arguments;
    return params;
  }
  CUgraphNode add(const CUDA_KERNEL_NODE_PARAMS& params) {
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &params), CUDA_SUCCESS);
    return node;
  }
  CUgraphExec instantiate() {
    CUgraphExec exec = nullptr;
    EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    return exec;
  }
  /// The blocks of the kernels that a launch of the graph launches.
  Blocks launched_by(CUgraphExec exec) {
    const std::size_t before = daemon->launches().size();
    EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
    wait_for_daemon();
    Blocks blocks;
    const auto launches = daemon->launches();
    for (std::size_t i = before; i < launches.size(); ++i) blocks.push_back(launches[i].grid[0]);
    return blocks;
  }

  CUgraph graph = nullptr;
};

TEST_F(DriverGraphsTest, AKernelIsNamedByEitherHandle) {
  CUDA_KERNEL_NODE_PARAMS params = kernel(2);
  params.func = nullptr;
  CUgraphNode node = nullptr;
  EXPECT_EQ(cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &params), CUDA_ERROR_INVALID_VALUE);
  params.kern = reinterpret_cast<CUkernel>(function);
  params.ctx = reinterpret_cast<CUcontext>(&params);
  EXPECT_EQ(cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &params), CUDA_ERROR_INVALID_CONTEXT);
  params.ctx = context;
  add(params);
  params.func = reinterpret_cast<CUfunction>(&params);
  EXPECT_EQ(cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &params), CUDA_ERROR_INVALID_HANDLE);
  add(kernel(3));
  EXPECT_EQ(launched_by(instantiate()), (Blocks{2, 3}));
}

TEST_F(DriverGraphsTest, ANodesArgumentsAreTold) {
  argument = 0x1122334455667788;
  const CUgraphNode node = add(kernel(2));
  argument = 0;
  CUDA_KERNEL_NODE_PARAMS told{};
  ASSERT_EQ(cuGraphKernelNodeGetParams_v2(node, &told), CUDA_SUCCESS);
  EXPECT_EQ(told.func, function);
  EXPECT_EQ(told.gridDimX, 2u);
  EXPECT_EQ(told.blockDimX, 32u);
  EXPECT_EQ(*static_cast<std::uint64_t*>(told.kernelParams[0]), 0x1122334455667788u);
  EXPECT_EQ(cuGraphKernelNodeSetParams_v2(node, &told), CUDA_SUCCESS) << "as it was told";
  CUDA_KERNEL_NODE_PARAMS_v1 older{};
  ASSERT_EQ(cuGraphKernelNodeGetParams(node, &older), CUDA_SUCCESS);
  EXPECT_EQ(older.func, function);
  EXPECT_EQ(*static_cast<std::uint64_t*>(older.kernelParams[0]), 0x1122334455667788u);
  CUgraphNodeType type{};
  EXPECT_EQ(cuGraphNodeGetType(node, &type), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_KERNEL);
}

TEST_F(DriverGraphsTest, APackedBufferIsSplitByTheKernelsParameters) {
  daemon->describe(ipc::FunctionReply{1024, 0, 49152, 0, 0, 16, 90, 90, 2, 16}, {4, 8});
  CUmodule module = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, ".version 9.0\n.target sm_75\n.address_size 64\n"),
            CUDA_SUCCESS);
  CUDA_KERNEL_NODE_PARAMS params = kernel(2);
  ASSERT_EQ(cuModuleGetFunction(&params.func, module, "other"), CUDA_SUCCESS);
  const struct {
    std::uint32_t first = 5;
    std::uint64_t second = 6;
  } block;
  std::size_t bytes = sizeof(block);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER,
                   const_cast<void*>(static_cast<const void*>(&block)), CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &bytes, CU_LAUNCH_PARAM_END};
  params.extra = extra;
  CUgraphNode node = nullptr;
  EXPECT_EQ(cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &params), CUDA_ERROR_INVALID_VALUE)
      << "both lists of arguments";
  params.kernelParams = nullptr;
  bytes = 8;
  EXPECT_EQ(cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &params), CUDA_ERROR_INVALID_VALUE)
      << "too short";
  bytes = sizeof(block);
  node = add(params);
  CUDA_KERNEL_NODE_PARAMS told{};
  ASSERT_EQ(cuGraphKernelNodeGetParams_v2(node, &told), CUDA_SUCCESS);
  EXPECT_EQ(*static_cast<std::uint32_t*>(told.kernelParams[0]), 5u);
}

TEST_F(DriverGraphsTest, CopiesAndFillsAreDoneByTheLaunch) {
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAlloc_v2(&memory, 64), CUDA_SUCCESS);
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = memory;
  fill.value = 0x0102;
  fill.elementSize = 2;
  fill.width = 4;
  fill.height = 1;
  CUgraphNode filled = nullptr, copied = nullptr;
  ASSERT_EQ(cuGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill, context), CUDA_SUCCESS);
  std::uint16_t back[4] = {};
  CUDA_MEMCPY3D copy{};  // one row: without pitches and heights
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = memory;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = back;
  copy.WidthInBytes = sizeof(back);
  copy.Height = copy.Depth = 1;
  ASSERT_EQ(cuGraphAddMemcpyNode(&copied, graph, &filled, 1, &copy, context), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(instantiate(), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(back[0], 0x0102);
  EXPECT_EQ(back[3], 0x0102);
  CUDA_MEMCPY3D told{};
  ASSERT_EQ(cuGraphMemcpyNodeGetParams(copied, &told), CUDA_SUCCESS);
  EXPECT_EQ(told.srcMemoryType, CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(told.srcDevice, memory);
  EXPECT_EQ(told.dstHost, back);
  EXPECT_EQ(told.WidthInBytes, sizeof(back));
  EXPECT_EQ(cuGraphMemcpyNodeSetParams(copied, &told), CUDA_SUCCESS);
  CUDA_MEMSET_NODE_PARAMS fill_told{};
  ASSERT_EQ(cuGraphMemsetNodeGetParams(filled, &fill_told), CUDA_SUCCESS);
  EXPECT_EQ(fill_told.elementSize, 2u);
  copy.dstMemoryType = static_cast<CUmemorytype>(0);
  EXPECT_EQ(cuGraphMemcpyNodeSetParams(copied, &copy), CUDA_ERROR_INVALID_VALUE);
  CUgraphNode before = nullptr;
  std::size_t count = 1;
  EXPECT_EQ(cuGraphNodeGetDependencies(copied, &before, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(before, filled);
}

TEST_F(DriverGraphsTest, AnExecutableGraphTakesOverWorkAndTellsWhyNot) {
  const CUgraphNode node = add(kernel(2));
  const CUgraphExec exec = instantiate();
  const CUDA_KERNEL_NODE_PARAMS params = kernel(5);
  EXPECT_EQ(cuGraphExecKernelNodeSetParams_v2(exec, node, &params), CUDA_SUCCESS);
  EXPECT_EQ(launched_by(exec), (Blocks{5}));
  CUgraphExecUpdateResultInfo info{};
  EXPECT_EQ(cuGraphExecUpdate_v2(exec, graph, &info), CUDA_SUCCESS);
  EXPECT_EQ(launched_by(exec), (Blocks{2}));
  add(kernel(3));
  CUgraphNode refused = nullptr;
  CUgraphExecUpdateResult result{};
  EXPECT_EQ(cuGraphExecUpdate(exec, graph, &refused, &result),
            CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  EXPECT_EQ(cuGraphNodeSetEnabled(exec, node, 0), CUDA_SUCCESS);
  EXPECT_EQ(launched_by(exec), (Blocks{}));
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverGraphsTest, AllVersionsInstantiate) {
  add(kernel(2));
  CUgraphExec exec = nullptr;
  CUgraphNode refused = reinterpret_cast<CUgraphNode>(1);
  char text[4] = "abc";
  EXPECT_EQ(cuGraphInstantiate(&exec, graph, &refused, text, sizeof(text)), CUDA_SUCCESS);
  EXPECT_EQ(refused, nullptr);
  EXPECT_STREQ(text, "");
  EXPECT_EQ(cuGraphInstantiate_v2(&exec, graph, nullptr, nullptr, 0), CUDA_SUCCESS);
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  EXPECT_EQ(cuGraphInstantiateWithParams(&exec, graph, &params), CUDA_SUCCESS);
  EXPECT_EQ(params.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
  cuuint64_t flags = 0;
  EXPECT_EQ(cuGraphExecGetFlags(exec, &flags), CUDA_SUCCESS);
  EXPECT_EQ(flags, cuuint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY});
  EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 1 << 20), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH),
            CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(DriverGraphsTest, ANodeOfAnyTypeIsMadeFromTheOneStruct) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  params.kernel.func = function;
  params.kernel.gridDimX = 7;
  params.kernel.gridDimY = params.kernel.gridDimZ = 1;
  params.kernel.blockDimX = params.kernel.blockDimY = params.kernel.blockDimZ = 1;
  params.kernel.kernelParams = arguments;
  CUgraphNode first = nullptr, second = nullptr, released = nullptr;
  ASSERT_EQ(cuGraphAddNode_v2(&first, graph, nullptr, nullptr, 0, &params), CUDA_SUCCESS);
  CUgraphNodeParams memory{};
  memory.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  memory.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  memory.alloc.bytesize = 1000;
  ASSERT_EQ(cuGraphAddNode(&second, graph, &first, 1, &memory), CUDA_SUCCESS);
  ASSERT_NE(memory.alloc.dptr, 0u);
  ASSERT_EQ(cuGraphAddMemFreeNode(&released, graph, &second, 1, memory.alloc.dptr), CUDA_SUCCESS);
  CUDA_MEM_ALLOC_NODE_PARAMS told{};
  EXPECT_EQ(cuGraphMemAllocNodeGetParams(second, &told), CUDA_SUCCESS);
  EXPECT_EQ(told.bytesize, 1000u);
  EXPECT_EQ(told.dptr, memory.alloc.dptr);
  cuuint64_t reserved = 0;
  EXPECT_EQ(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved),
            CUDA_SUCCESS);
  EXPECT_EQ(reserved, 1000u);
  EXPECT_EQ(launched_by(instantiate()), (Blocks{7}));
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  EXPECT_EQ(cuGraphAddNode_v2(&first, graph, nullptr, nullptr, 0, &params),
            CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(DriverGraphsTest, AGraphIsDrawnForGraphviz) {
  const std::string path = testing::TempDir() + "slate_graph.dot";
  const auto drawn = [&](unsigned flags) {
    EXPECT_EQ(cuGraphDebugDotPrint(graph, path.c_str(), flags), CUDA_SUCCESS);
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  EXPECT_EQ(drawn(0), "digraph work {\n}\n");
  const CUgraphNode first = add(kernel(7));
  CUgraphNode empty = nullptr, child = nullptr;
  ASSERT_EQ(cuGraphAddEmptyNode(&empty, graph, &first, 1), CUDA_SUCCESS);
  CUgraph inner = nullptr;
  ASSERT_EQ(cuGraphClone(&inner, graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddChildGraphNode(&child, graph, &empty, 1, inner), CUDA_SUCCESS);
  const std::string plain = drawn(0), detailed = drawn(CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
  for (const char* const part :
       {"node_0 [shape=box, label=\"kernel ", "node_1 [shape=box, label=\"empty\"]",
        "node_0 -> node_1;", "node_1 -> node_2;", "subgraph cluster_node_2 {",
        "node_2_0 -> node_2_1;"}) {
    EXPECT_NE(plain.find(part), std::string::npos) << part << " is not in " << plain;
  }
  EXPECT_EQ(plain.find("grid"), std::string::npos);
  EXPECT_NE(detailed.find("grid 7 x 1 x 1\nblock 32 x 1 x 1"), std::string::npos) << detailed;
  EXPECT_EQ(cuGraphDebugDotPrint(graph, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphDebugDotPrint(nullptr, path.c_str(), 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphDebugDotPrint(graph, "/nowhere/graph.dot", 0), CUDA_ERROR_OPERATING_SYSTEM);
  EXPECT_EQ(cuGraphDestroy(inner), CUDA_SUCCESS);
  ASSERT_EQ(std::remove(path.c_str()), 0);
}

TEST_F(DriverGraphsTest, ACopyOfAGraphHasNodesOfItsOwn) {
  const CUgraphNode node = add(kernel(2));
  CUgraph clone = nullptr;
  CUgraphNode found = nullptr;
  ASSERT_EQ(cuGraphClone(&clone, graph), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphNodeFindInClone(&found, node, clone), CUDA_SUCCESS);
  EXPECT_NE(found, node);
  EXPECT_EQ(cuGraphDestroyNode(found), CUDA_SUCCESS);
  std::size_t count = 7;
  EXPECT_EQ(cuGraphGetNodes(clone, nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(cuGraphGetRootNodes(graph, nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(cuGraphDestroy(clone), CUDA_SUCCESS);
}

}  // namespace
}  // namespace slate::test
