// The front against a fake daemon: what each call answers, by the rules that an H200 with CUDA 13.0
// follows. Streams, events, captures and graphs are in cudart_streams_test.cc.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "tests/unit/client/cudart_fixture.h"

namespace slate::test {
namespace {

TEST_F(CudartTest, TheFirstCallConnectsAndResetEndsTheSession) {
  EXPECT_EQ(daemon->sessions(), 0);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(daemon->sessions(), 1);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 100), cudaSuccess);
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorContextIsDestroyed);
  EXPECT_EQ(daemon->sessions(), 2);
}

TEST_F(CudartTest, MemoryErrorsAreCudas) {
  void* memory = reinterpret_cast<void*>(1);
  EXPECT_EQ(cudaMalloc(&memory, 1ull << 50), cudaErrorMemoryAllocation);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(cudaMalloc(nullptr, 10), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMalloc(&memory, 0), cudaSuccess);
  EXPECT_EQ(memory, nullptr);
  ASSERT_EQ(cudaMalloc(&memory, 4096), cudaSuccess);
  EXPECT_EQ(cudaFree(static_cast<char*>(memory) + 256), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(memory, 0, 4), cudaErrorInvalidValue);
  std::size_t pitch = 0;
  ASSERT_EQ(cudaMallocPitch(&memory, &pitch, 600, 3), cudaSuccess);
  EXPECT_EQ(pitch, 1024u);
}

TEST_F(CudartTest, CopiesFollowTheRulesOfTheirDirections) {
  char* d = nullptr;
  char* d2 = nullptr;
  std::vector<char> h(4096, 'h'), back(4096);
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&d), 4096), cudaSuccess);
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&d2), 4096), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(d, h.data(), 4096, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(d2, d, 4096, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(back.data(), d2, 4096, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(back, h);
  EXPECT_EQ(cudaMemcpy(back.data(), h.data(), 64, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(d, d2, 64, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(back.data(), h.data(), 64, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(d, h.data(), 64, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(d, h.data(), 64, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(back.data(), h.data(), 64, cudaMemcpyHostToHost), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(d, h.data(), 64, unknown<cudaMemcpyKind>(77)),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpy(d, h.data(), 0, unknown<cudaMemcpyKind>(77)), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(d + 1, h.data(), 4096, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(nullptr, h.data(), 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy2D(d, 16, h.data(), 32, 32, 2, cudaMemcpyHostToDevice),
            cudaErrorInvalidPitchValue);
  EXPECT_EQ(cudaMemset2D(d, 16, 0, 32, 2), cudaErrorInvalidValue);
}

TEST_F(CudartTest, FillsReachTheirRowsOnly) {
  char* d = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&d), 1024), cudaSuccess);
  ASSERT_EQ(cudaMemset(d, 1, 1024), cudaSuccess);
  ASSERT_EQ(cudaMemset2D(d, 256, 0x1ff, 16, 4), cudaSuccess);
  std::vector<char> back(1024);
  ASSERT_EQ(cudaMemcpy(back.data(), d, 1024, cudaMemcpyDeviceToHost), cudaSuccess);
  for (int i = 0; i < 1024; ++i) ASSERT_EQ(back[i], i % 256 < 16 ? '\xff' : '\1') << i;
}

TEST_F(CudartTest, VolumesAreCopiedSliceBySlice) {
  cudaPitchedPtr device{};
  ASSERT_EQ(cudaMalloc3D(&device, {40, 3, 2}), cudaSuccess);
  std::vector<char> h(40 * 3 * 2), back(h.size());
  for (std::size_t i = 0; i < h.size(); ++i) h[i] = static_cast<char>(i);
  cudaMemcpy3DParms parms{};
  parms.srcPtr = {h.data(), 40, 40, 3};
  parms.dstPtr = device;
  parms.extent = {40, 3, 2};
  parms.kind = cudaMemcpyHostToDevice;
  ASSERT_EQ(cudaMemcpy3D(&parms), cudaSuccess);
  parms.srcPtr = device;
  parms.dstPtr = {back.data(), 40, 40, 3};
  parms.kind = cudaMemcpyDeviceToHost;
  ASSERT_EQ(cudaMemcpy3D(&parms), cudaSuccess);
  EXPECT_EQ(back, h);
}

TEST_F(CudartTest, VolumesThatEndBeyondAllAddressesAreRefused) {
  cudaPitchedPtr device{};
  ASSERT_EQ(cudaMalloc3D(&device, {64, 4, 4}), cudaSuccess);
  ASSERT_EQ(device.pitch % 64, 0u);
  std::vector<char> back(64 * 4 * 4, 'x');
  cudaMemcpy3DParms good{};
  good.srcPtr = device;
  good.dstPtr = {back.data(), 64, 64, 4};
  good.extent = {64, 4, 2};
  good.kind = cudaMemcpyDeviceToHost;
  const auto refused = [&](auto change) {
    cudaMemcpy3DParms bad = good;
    change(bad);
    EXPECT_EQ(cudaMemcpy3D(&bad), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy3DAsync(&bad, nullptr), cudaErrorInvalidValue);
    EXPECT_EQ(std::ranges::count(back, 'x'), 64 * 4 * 4) << "nothing was copied";
  };
  // All of these wrap around to a place within the memory.
  refused([](auto& p) { p.srcPos.z = 1ull << 56; });
  refused([](auto& p) { p.dstPos.z = 1ull << 56; });
  refused([](auto& p) { p.extent.depth = (1ull << 56) + 1; });
  refused([](auto& p) {
    p.srcPtr.ysize = 0;
    p.extent.depth = 1;
    p.srcPos.y = 1ull << 58;
  });
  refused([](auto& p) {
    p.srcPtr.ysize = p.dstPtr.ysize = p.extent.height = 1ull << 33;
    p.extent.depth = 1ull << 33;
  });
  refused([](auto& p) { p.extent.depth = 5; });  // the last slice is not there
  ASSERT_EQ(cudaMemcpy3D(&good), cudaSuccess);
  EXPECT_EQ(std::ranges::count(back, 'x'), 64 * 4 * 2);
}

TEST_F(CudartTest, FillsThatEndBeyondAllAddressesAreRefusedWhole) {
  cudaPitchedPtr device{};
  ASSERT_EQ(cudaMalloc3D(&device, {64, 4, 4}), cudaSuccess);
  EXPECT_EQ(cudaMemset3D(device, 1, {64, 4, 5}), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset3D(device, 1, {64, 4, (1ull << 56) + 1}), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset2D(device.ptr, device.pitch, 1, 64, (1ull << 58) + 1), cudaErrorInvalidValue);
  std::vector<char> back(64, 'x');
  ASSERT_EQ(cudaMemcpy(back.data(), device.ptr, 64, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(std::ranges::count(back, '\0'), 64) << "nothing was filled";
}

TEST_F(CudartTest, RowsThatEndBeyondAllAddressesAreRefused) {
  char* d = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&d), 1024), cudaSuccess);
  char* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned), 1024), cudaSuccess);
  std::vector<char> h(1024);
  const std::size_t rows = (1ull << 60) + 1;
  for (char* const host : {h.data(), pinned}) {
    EXPECT_EQ(cudaMemcpy2D(d, 16, host, 16, 16, rows, cudaMemcpyHostToDevice),
              cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy2D(host, 16, d, 16, 16, rows, cudaMemcpyDeviceToHost),
              cudaErrorInvalidValue);
  }
  EXPECT_EQ(cudaMemset2D(pinned, 16, 1, 16, rows), cudaErrorInvalidValue);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  cudaGraphNode_t node = nullptr;
  const cudaMemsetParams wraps{d, 16, 0, 4, 1ull << 62, 1};
  EXPECT_EQ(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &wraps), cudaErrorInvalidValue);
  cudaGraphDestroy(graph);
  cudaFreeHost(pinned);
}

TEST_F(CudartTest, SymbolsAreCopiedWithinTheirSize) {
  std::vector<char> h(64, 's'), back(64);
  EXPECT_EQ(cudaMemcpyToSymbol(host_variable, h.data(), 64, 0, cudaMemcpyHostToDevice),
            cudaSuccess);
  EXPECT_EQ(cudaMemcpyFromSymbol(back.data(), host_variable, 64, 0, cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(back, h);
  EXPECT_EQ(cudaMemcpyToSymbol(host_variable, h.data(), 64, 4, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(host_variable, h.data(), 4, 0, cudaMemcpyDeviceToHost),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpyToSymbol(h.data(), h.data(), 4, 0, cudaMemcpyHostToDevice),
            cudaErrorInvalidSymbol);
  std::size_t size = 0;
  EXPECT_EQ(cudaGetSymbolSize(&size, host_variable), cudaSuccess);
  EXPECT_EQ(size, 64u);
  void* place = nullptr;
  EXPECT_EQ(cudaGetSymbolAddress(&place, host_variable), cudaSuccess);
  cudaPointerAttributes attributes{};
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, place), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(cudaFree(place), cudaErrorInvalidValue);
}

TEST_F(CudartTest, LaunchesThroughEveryEntryPointReachTheDaemon) {
  ASSERT_EQ(launch(2, 64), cudaSuccess);
  cudaKernel_t kernel = nullptr;
  ASSERT_EQ(__cudaGetKernel(&kernel, address(host_kernel)), cudaSuccess);
  void* argument = nullptr;
  void* arguments[] = {&argument};
  ASSERT_EQ(__cudaPushCallConfiguration(3, 32, 16, nullptr), 0u);
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = reinterpret_cast<cudaStream_t>(7);
  ASSERT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaSuccess);
  EXPECT_EQ(stream, nullptr);
  ASSERT_EQ(__cudaLaunchKernel(kernel, grid, block, arguments, shared, stream), cudaSuccess);
  ASSERT_EQ(__cudaLaunchKernel_ptsz(kernel, 4, 32, arguments, 0, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto launches = daemon->launches();
  ASSERT_EQ(launches.size(), 3u);
  EXPECT_EQ(launches[0].grid[0], 2u);
  EXPECT_EQ(launches[1].grid[0], 3u);
  EXPECT_EQ(launches[1].dynamic_shared_bytes, 16u);
  EXPECT_EQ(launches[1].stream, 0u);
  EXPECT_NE(launches[2].stream, 0u) << "the per-thread stream is not the legacy one";
}

TEST_F(CudartTest, ArgumentsThatThrowCostNoLaterLaunch) {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
  for (int i = 0; i < 100; ++i) ASSERT_EQ(__cudaPushCallConfiguration(1, 32, 0, nullptr), 0u);
  for (const unsigned blocks : {7u, 8u}) {
    ASSERT_EQ(__cudaPushCallConfiguration(blocks, 32, 0, nullptr), 0u);
    ASSERT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaSuccess);
    EXPECT_EQ(grid.x, blocks);
  }
  while (__cudaPopCallConfiguration(&grid, &block, &shared, &stream) == cudaSuccess) {
  }
  EXPECT_EQ(cudaGetLastError(), cudaErrorMissingConfiguration) << "and nothing is lost in silence";
}

TEST_F(CudartTest, LaunchErrorsAreCudas) {
  EXPECT_EQ(launch(1, 2000), cudaErrorInvalidValue);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(launch(0, 32), cudaErrorInvalidValue);
  EXPECT_EQ(launch(1, 32, 49153), cudaErrorInvalidValue);
  EXPECT_EQ(cudaLaunchKernel(address(plain_function), 1, 1, nullptr, 0, nullptr),
            cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaLaunchKernel(nullptr, 1, 1, nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaLaunchKernel(address(host_kernel), 1, 1, nullptr, 0, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(__cudaLaunchKernel(nullptr, 1, 1, nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream),
            cudaErrorMissingConfiguration);
  EXPECT_EQ(cudaFuncSetAttribute(address(host_kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 232448),
            cudaSuccess);
  EXPECT_EQ(launch(1, 32, 232448), cudaSuccess);
  EXPECT_EQ(cudaFuncSetAttribute(address(host_kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 232449),
            cudaErrorInvalidValue);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(daemon->launches().size(), 1u) << "what is refused is not sent";
}

TEST_F(CudartTest, CooperativeLaunchesThatDoNotFitAreNotSent) {
  void* argument = nullptr;
  void* arguments[] = {&argument};
  const auto cooperative = [&](unsigned blocks) {
    return cudaLaunchCooperativeKernel(address(host_kernel), dim3(blocks), dim3(32), arguments, 0,
                                       nullptr);
  };
  constexpr unsigned kFit = 132 * 32;
  EXPECT_EQ(cooperative(kFit), cudaSuccess);
  EXPECT_EQ(cooperative(kFit + 1), cudaErrorCooperativeLaunchTooLarge);
  EXPECT_EQ(cooperative(0), cudaErrorInvalidValue);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(daemon->launches().size(), 1u);
  EXPECT_EQ(daemon->launches()[0].flags, slate::ipc::kLaunchCooperative);
}

TEST_F(CudartTest, OnlyHarmlessLaunchAttributesAreTaken) {
  void* argument = nullptr;
  void* arguments[] = {&argument};
  cudaLaunchAttribute attribute{};
  cudaLaunchConfig_t config{};
  config.gridDim = 1;
  config.blockDim = 32;
  config.attrs = &attribute;
  config.numAttrs = 1;
  const auto launch_with = [&](cudaLaunchAttributeID id) {
    attribute.id = id;
    return cudaLaunchKernelExC(&config, address(host_kernel), arguments);
  };
  EXPECT_EQ(launch_with(cudaLaunchAttributePriority), cudaSuccess);
  attribute.val.clusterDim = {2, 1, 1};
  EXPECT_EQ(launch_with(cudaLaunchAttributeClusterDimension), cudaErrorNotSupported);
  attribute.val.clusterDim = {1, 1, 1};
  EXPECT_EQ(launch_with(cudaLaunchAttributeClusterDimension), cudaSuccess);
  attribute.val.cooperative = 1;
  EXPECT_EQ(launch_with(cudaLaunchAttributeCooperative), cudaSuccess);
  for (const int early : {0, 1}) {
    attribute.val.programmaticStreamSerializationAllowed = early;
    EXPECT_EQ(launch_with(cudaLaunchAttributeProgrammaticStreamSerialization), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(daemon->launches().back().flags, early != 0 ? slate::ipc::kLaunchOverlaps : 0);
  }
  EXPECT_EQ(launch_with(unknown<cudaLaunchAttributeID>(99)), cudaErrorInvalidValue);
}

TEST_F(CudartTest, DeviceQuestionsAreAnsweredFromTheSegment) {
  int count = 0, value = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  cudaDeviceProp properties{};
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_STREQ(properties.name, "Fake GPU");
  EXPECT_EQ(properties.major, 9);
  EXPECT_EQ(properties.multiProcessorCount, 132);
  EXPECT_EQ(properties.maxThreadsDim[2], 64);
  EXPECT_EQ(properties.totalGlobalMem, slate::test::FakeDaemon::kMemoryBytes);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrClockRate, 0), cudaSuccess);
  EXPECT_EQ(value, 1980000);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(148), 0),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaSetDeviceFlags(3), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessUnsupported);
  EXPECT_EQ(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrOnlyPartialNativeAtomicSupported, 0, 0),
            cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceGetP2PAttribute(&value, static_cast<cudaDeviceP2PAttr>(6), 0, 0),
            cudaErrorInvalidValue);
}

TEST_F(CudartTest, OccupancyIsAnH200s) {
  const auto blocks = [](int size, std::size_t shared) {
    int result = -7;
    EXPECT_EQ(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&result, address(host_kernel), size, shared),
        cudaSuccess);
    return result;
  };
  EXPECT_EQ(blocks(1, 0), 32);
  EXPECT_EQ(blocks(33, 0), 32);
  EXPECT_EQ(blocks(100, 0), 16);
  EXPECT_EQ(blocks(1024, 0), 2);
  EXPECT_EQ(blocks(1025, 0), 0);
  EXPECT_EQ(blocks(32, 20000), 11);
  EXPECT_EQ(blocks(32, 50000), 0) << "beyond what the kernel may ask for";
  EXPECT_EQ(
      cudaFuncSetAttribute(address(host_kernel), cudaFuncAttributeMaxDynamicSharedMemorySize, 1024),
      cudaSuccess);
  EXPECT_EQ(blocks(32, 20000), 11) << "a lower allowance does not count";
  EXPECT_EQ(cudaFuncSetAttribute(address(host_kernel),
                                 cudaFuncAttributePreferredSharedMemoryCarveout, 50),
            cudaSuccess);
  EXPECT_EQ(blocks(32, 20000), 6) << "half of the memory is wished for";
  EXPECT_EQ(blocks(32, 49152), 2);
  int result = 0;
  EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&result, address(host_kernel), 0, 0),
            cudaErrorInvalidValue);
}

TEST_F(CudartTest, PinnedMemoryThatCannotBeSharedIsOrdinaryMemoryWithARecord) {
  daemon->refuse(slate::ipc::CommandType::kHostAllocate,
                 {slate::ErrorCode::kNotSupported, "no shared memory today"});
  void* pinned = nullptr;
  EXPECT_EQ(cudaHostAlloc(&pinned, 100, 0xff), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostAlloc(&pinned, 100, cudaHostAllocMapped), cudaErrorNotSupported);
  ASSERT_EQ(cudaMallocHost(&pinned, 100), cudaSuccess);
  std::memset(pinned, 1, 100);
  cudaPointerAttributes attributes{};
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, pinned), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(cudaFree(pinned), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostRegister(pinned, 100, 0), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(&attributes), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostUnregister(&attributes), cudaErrorHostMemoryNotRegistered);
}

TEST_F(CudartTest, AFaultStaysUntilTheDeviceIsReset) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  daemon->fault_next();
  ASSERT_EQ(launch(1, 32), cudaSuccess) << "the launch itself goes well";
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "reading clears it, as on a GPU";
  EXPECT_EQ(cudaFree(memory), cudaErrorIllegalAddress);
  EXPECT_EQ(launch(1, 32), cudaErrorIllegalAddress);
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess) << "still answered";
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  EXPECT_EQ(launch(1, 32), cudaSuccess) << "the kernel is loaded anew";
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(CudartTest, ADaemonThatDiesFailsEveryLaterCall) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  daemon.reset();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorDevicesUnavailable);
  EXPECT_EQ(cudaFree(memory), cudaErrorDevicesUnavailable);
  EXPECT_EQ(launch(1, 32), cudaErrorDevicesUnavailable);
}

TEST_F(CudartTest, AForkedChildStartsAfreshAndLeavesTheParentAlone) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  const pid_t child = ::fork();
  if (child == 0) {
    void* own = nullptr;
    const bool good = cudaFree(memory) == cudaErrorInvalidValue &&
                      cudaMalloc(&own, 64) == cudaSuccess && cudaFree(own) == cudaSuccess;
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(cudaMemset(memory, 0, 64), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(daemon->sessions(), 2);
}

TEST_F(CudartTest, AChildLaunchesAndRegistersOnItsOwn) {
  ASSERT_EQ(launch(1, 32), cudaSuccess);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // rather dead than waiting for a lock that nobody holds
    const bool good = launch(1, 32) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess;
    __cudaRegisterFunction(handle, static_cast<const char*>(address(plain_function)), nullptr,
                           "kernel", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(launch(1, 32), cudaSuccess);
}

TEST_F(CudartTest, ThreadsHaveTheirOwnLastErrors) {
  EXPECT_EQ(cudaSetDevice(9), cudaErrorInvalidDevice);
  cudaError_t other = cudaErrorUnknown;
  std::thread([&] { other = cudaPeekAtLastError(); }).join();
  EXPECT_EQ(other, cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST_F(CudartTest, PoolsEndWithTheirSession) {
  cudaMemPool_t pool = nullptr;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  ASSERT_EQ(cudaMemPoolCreate(&pool, &properties), cudaSuccess);
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocFromPoolAsync(&memory, 100, pool, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(cudaMallocFromPoolAsync(&memory, 100, pool, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemPoolDestroy(pool), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMallocAsync(&memory, 100, nullptr), cudaSuccess) << "the default pool is there";
}

TEST_F(CudartTest, APoolGivesNoMoreThanItsSize) {
  cudaMemPool_t pool = nullptr;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  properties.maxSize = 1 << 20;
  ASSERT_EQ(cudaMemPoolCreate(&pool, &properties), cudaSuccess);
  void *memory = nullptr, *more = nullptr;
  EXPECT_EQ(cudaMallocFromPoolAsync(&memory, 2 << 20, pool, nullptr), cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaMallocFromPoolAsync(&memory, 1 << 20, pool, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMallocFromPoolAsync(&more, 1, pool, nullptr), cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaFreeAsync(memory, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMallocFromPoolAsync(&more, 1, pool, nullptr), cudaSuccess);
  // The most that it ever had is told until it is set.
  std::uint64_t high = 0, none = 0;
  ASSERT_EQ(cudaMemPoolTrimTo(pool, 0), cudaSuccess);
  ASSERT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &high), cudaSuccess);
  EXPECT_EQ(high, 1u << 20);
  ASSERT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &none), cudaSuccess);
  ASSERT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &high), cudaSuccess);
  EXPECT_EQ(high, 1u);
}

TEST_F(CudartTest, AResetGivesTheLimitsBack) {
  std::size_t fresh = 0, now = 0;
  ASSERT_EQ(cudaDeviceGetLimit(&fresh, cudaLimitStackSize), cudaSuccess);
  ASSERT_EQ(cudaDeviceSetLimit(cudaLimitStackSize, 4 * fresh), cudaSuccess);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  ASSERT_EQ(cudaDeviceGetLimit(&now, cudaLimitStackSize), cudaSuccess);
  EXPECT_EQ(now, fresh);
}

TEST_F(CudartTest, AKernelsClusterSettingsAreTold) {
  cudaFuncAttributes attributes{};
  ASSERT_EQ(
      cudaFuncSetAttribute(address(host_kernel), cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
      cudaSuccess);
  ASSERT_EQ(cudaFuncSetAttribute(address(host_kernel),
                                 cudaFuncAttributeClusterSchedulingPolicyPreference, 2),
            cudaSuccess);
  ASSERT_EQ(cudaFuncGetAttributes(&attributes, address(host_kernel)), cudaSuccess);
  EXPECT_EQ(attributes.nonPortableClusterSizeAllowed, 1);
  EXPECT_EQ(attributes.clusterSchedulingPolicyPreference, 2);
}

TEST_F(CudartTest, AFunctionThatIsMissingIsReportedToTheDaemon) {
  EXPECT_EQ(cudaGraphicsUnregisterResource(nullptr), cudaErrorNotSupported);
  EXPECT_EQ(cudaGraphicsUnregisterResource(nullptr), cudaErrorNotSupported);
  cudaGetLastError();
  ASSERT_EQ(cudaMemGetInfo(nullptr, nullptr), cudaSuccess);  // an answer comes behind all before it
  EXPECT_EQ(daemon->count(slate::ipc::CommandType::kUnsupportedCall), 2);
}

}  // namespace
}  // namespace slate::test
