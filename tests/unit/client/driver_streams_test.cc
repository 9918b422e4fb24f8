// The front for libcuda against a fake daemon: streams, events, captures, pools.
#include <array>
#include <cstring>
#include <future>
#include <set>
#include <string>

#include "client/driver/export_tables.h"
#include "tests/unit/client/driver_fixture.h"

namespace slate::test {
namespace {

using StreamsTest = DriverFrontTest;

/// Capture modes are arguments in nearly every test.
constexpr CUstreamCaptureMode kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;

TEST_F(StreamsTest, ErrorsOfStreamsAreTheDrivers) {
  CUstream stream = nullptr;
  EXPECT_EQ(cuStreamCreate(&stream, 5), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamDestroy_v2(nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuStreamDestroy_v2(CU_STREAM_PER_THREAD), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_DEFAULT), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuStreamQuery(nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuStreamQuery(nullptr), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(StreamsTest, APriorityIsClampedAndTold) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100), CUDA_SUCCESS);
  int priority = 7, least = 7, greatest = 7;
  EXPECT_EQ(cuStreamGetPriority(stream, &priority), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxGetStreamPriorityRange(&least, &greatest), CUDA_SUCCESS);
  EXPECT_EQ(priority, -5);
  EXPECT_EQ(least, 0);
  EXPECT_EQ(greatest, -5);
  CUstreamAttrValue value{};
  EXPECT_EQ(cuStreamGetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value), CUDA_SUCCESS);
  EXPECT_EQ(value.priority, -5);
  unsigned flags = 7;
  EXPECT_EQ(cuStreamGetFlags(stream, &flags), CUDA_SUCCESS);
  EXPECT_EQ(flags, unsigned{CU_STREAM_NON_BLOCKING});
  CUdevice device = 7;
  EXPECT_EQ(cuStreamGetDevice(stream, &device), CUDA_SUCCESS);
  EXPECT_EQ(device, 0);
}

TEST_F(StreamsTest, IdsTellStreamsApart) {
  const CUstream stream = non_blocking_stream();
  std::array<unsigned long long, 4> ids{};
  EXPECT_EQ(cuStreamGetId(nullptr, &ids[0]), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamGetId(CU_STREAM_LEGACY, &ids[1]), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamGetId(CU_STREAM_PER_THREAD, &ids[2]), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamGetId(stream, &ids[3]), CUDA_SUCCESS);
  EXPECT_EQ(ids[0], 7u);
  EXPECT_EQ(ids[1], 7u);
  EXPECT_NE(ids[2], ids[3]);
  EXPECT_NE(ids[2], 7u);
  EXPECT_EQ(cuStreamGetId(stream, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(StreamsTest, ThePerThreadVariantsMeanTheThreadsOwnStream) {
  unsigned long long own = 0, null = 0;
  EXPECT_EQ(cuStreamGetId(CU_STREAM_PER_THREAD, &own), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamGetId_ptsz(nullptr, &null), CUDA_SUCCESS);
  EXPECT_EQ(null, own);
}

TEST_F(StreamsTest, AStreamKnowsTheContextThatItWasMadeIn) {
  const CUstream first = non_blocking_stream();
  CUcontext other = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  const CUstream second = non_blocking_stream();
  CUcontext told = nullptr;
  CUgreenCtx green = reinterpret_cast<CUgreenCtx>(1);
  EXPECT_EQ(cuStreamGetCtx(first, &told), CUDA_SUCCESS);
  EXPECT_EQ(told, context);
  EXPECT_EQ(cuStreamGetCtx(nullptr, &told), CUDA_SUCCESS);
  EXPECT_EQ(told, other);
  ASSERT_EQ(cuCtxDestroy_v2(other), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamGetCtx_v2(second, &told, &green), CUDA_SUCCESS);
  EXPECT_EQ(told, other);
  EXPECT_EQ(green, nullptr);
}

TEST_F(StreamsTest, ErrorsOfEventsAreTheDrivers) {
  CUevent first = nullptr, last = nullptr, untimed = nullptr;
  EXPECT_EQ(cuEventCreate(&first, 0xff), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuEventCreate(&first, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuEventCreate(&first, CU_EVENT_DEFAULT), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&last, CU_EVENT_BLOCKING_SYNC), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  float ms = 0;
  EXPECT_EQ(cuEventQuery(first), CUDA_SUCCESS) << "never recorded";
  EXPECT_EQ(cuEventSynchronize(first), CUDA_SUCCESS);
  EXPECT_EQ(cuEventElapsedTime_v2(&ms, first, last), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventRecord(first, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecordWithFlags(last, nullptr, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(untimed, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuEventSynchronize(untimed), CUDA_SUCCESS);
  EXPECT_EQ(cuEventElapsedTime(&ms, first, last), CUDA_SUCCESS);
  EXPECT_EQ(ms, 1.5f);
  EXPECT_EQ(cuEventElapsedTime(&ms, first, untimed), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventRecordWithFlags(first, nullptr, 7), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuEventRecordWithFlags(first, nullptr, CU_EVENT_RECORD_EXTERNAL),
            CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(cuStreamWaitEvent(nullptr, nullptr, 0), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuStreamWaitEvent(nullptr, last, 7), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuEventDestroy_v2(first), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(first), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(StreamsTest, FunctionsOfTheProgramRunInTheStreamsOrder) {
  const CUstream stream = non_blocking_stream();
  struct Calls {
    std::string order;
    std::promise<void> done;
  } calls;
  const auto first = [](void* data) { static_cast<Calls*>(data)->order.append("1"); };
  const auto second = [](CUstream, CUresult outcome, void* data) {
    static_cast<Calls*>(data)->order.append(outcome == CUDA_SUCCESS ? "2" : "?");
    static_cast<Calls*>(data)->done.set_value();
  };
  EXPECT_EQ(cuLaunchHostFunc(stream, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchHostFunc(stream, first, &calls), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamAddCallback(stream, second, &calls, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamAddCallback(stream, second, &calls, 0), CUDA_SUCCESS);
  calls.done.get_future().wait();  // the fake daemon has no gates to wait for
  EXPECT_EQ(calls.order, "12");
}

TEST_F(StreamsTest, AllVersionsTellTheSameOfACapture) {
  const CUstream stream = non_blocking_stream();
  CUgraph graph = nullptr, told = nullptr;
  CUstreamCaptureStatus status{};
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, kGlobal), CUDA_SUCCESS);
  EXPECT_EQ(launch(3, 32, stream), CUDA_SUCCESS);
  cuuint64_t first = 0, second = 0, third = 0;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 0;
  EXPECT_EQ(cuStreamGetCaptureInfo(stream, &status, &first), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(cuStreamGetCaptureInfo_v2(stream, &status, &second, &told, &nodes, &count),
            CUDA_SUCCESS);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(cuStreamGetCaptureInfo_v3(stream, &status, &third, &told, &nodes, &edges, &count),
            CUDA_SUCCESS);
  EXPECT_TRUE(first == second && second == third);
  EXPECT_EQ(edges, nullptr);
  EXPECT_EQ(cuStreamUpdateCaptureDependencies_v2(stream, nullptr, nullptr, 0,
                                                 CU_STREAM_SET_CAPTURE_DEPENDENCIES),
            CUDA_SUCCESS);
  EXPECT_EQ(launch(4, 32, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  std::size_t edge_count = 7;
  EXPECT_EQ(cuGraphGetEdges(graph, nullptr, nullptr, &edge_count), CUDA_SUCCESS);
  EXPECT_EQ(edge_count, 0u);
  EXPECT_EQ(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_F(StreamsTest, UnsafeCallsDuringACaptureAreRefusedAsItsModeSays) {
  const CUstream stream = non_blocking_stream();
  CUgraph graph = nullptr;
  CUevent event = nullptr;
  ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  ASSERT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(mode, kGlobal);
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, kGlobal), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
}

TEST_F(StreamsTest, PoolsCountWhatIsAllocatedFromThem) {
  CUmemoryPool pool = nullptr, current = nullptr;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  ASSERT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&address, 1000, pool, nullptr), CUDA_SUCCESS);
  cuuint64_t used = 0, threshold = 4096;
  EXPECT_EQ(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used), CUDA_SUCCESS);
  EXPECT_EQ(used, 1000u);
  EXPECT_EQ(cuMemFreeAsync(address, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used), CUDA_SUCCESS);
  EXPECT_EQ(used, 0u);
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
            CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &threshold),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuDeviceSetMemPool(0, pool), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGetMemPool(&current, 0), CUDA_SUCCESS);
  EXPECT_EQ(current, pool);
  EXPECT_EQ(cuDeviceGetDefaultMemPool(&current, 1), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(StreamsTest, WhatIsSharedBetweenProgramsIsToldByHandle) {
  CUevent timed = nullptr, shared = nullptr;
  CUipcEventHandle handle{};
  ASSERT_EQ(cuEventCreate(&timed, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&shared, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  EXPECT_EQ(cuIpcGetEventHandle(&handle, timed), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuIpcGetEventHandle(nullptr, shared), CUDA_ERROR_INVALID_VALUE);
  CUipcMemHandle memory{};
  CUdeviceptr address = 0;
  EXPECT_EQ(cuIpcGetMemHandle(&memory, 0x1234), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuIpcOpenMemHandle_v2(&address, memory, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuIpcCloseMemHandle(0x1234), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(StreamsTest, LibrariesTellStreamsApartByTheirNumbers) {
  constexpr unsigned char kId[] = {0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48,
                                   0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8, 0xf2};
  CUuuid id;
  std::memcpy(id.bytes, kId, sizeof(kId));
  const void* found = nullptr;
  ASSERT_EQ(cuGetExportTable(&found, &id), CUDA_SUCCESS);
  const auto& table = *static_cast<const driver::ToolsContext*>(found);
  std::set<std::uint64_t> numbers;
  for (const CUstream stream : {CUstream(nullptr), CU_STREAM_PER_THREAD, non_blocking_stream()}) {
    std::uint64_t object = 0, number = 0;
    EXPECT_EQ(table.stream_object(context, stream, &object, stream == CU_STREAM_PER_THREAD ? 1 : 0),
              CUDA_SUCCESS);
    EXPECT_EQ(table.stream_number(context, object, &number), CUDA_SUCCESS);
    numbers.insert(number);
  }
  EXPECT_EQ(numbers.size(), 3u);
  std::uint64_t none = 0;
  EXPECT_EQ(table.stream_number(context, 0, &none), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace slate::test
