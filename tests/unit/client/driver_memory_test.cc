// Memory, copies, fills and questions about addresses, as programs of the driver's API use them.
// The codes are those that an H100 gave.
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/unit/client/driver_fixture.h"

namespace slate::test {
namespace {

class DriverMemoryTest : public DriverFrontTest {};

template <typename T>
CUresult ask(T& value, CUpointer_attribute attribute, CUdeviceptr address) {
  return cuPointerGetAttribute(&value, attribute, address);
}

CUdeviceptr address_of(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

TEST_F(DriverMemoryTest, AllocationsOfNothingAreInvalidOnTheDeviceOnly) {
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
  void* host = &address;
  EXPECT_EQ(cuMemAlloc_v2(&address, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAlloc_v2(nullptr, 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocPitch_v2(&address, &pitch, 100, 4, 5), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocPitch_v2(&address, &pitch, 100, 4, 16), CUDA_SUCCESS);
  EXPECT_EQ(pitch, 512u);
  EXPECT_EQ(cuMemHostAlloc(&host, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(host, nullptr);
}

TEST_F(DriverMemoryTest, OnlyTheBeginningOfAnAllocationIsFreed) {
  const CUdeviceptr address = allocate(1000);
  EXPECT_EQ(cuMemFree_v2(address + 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(0), CUDA_SUCCESS);
}

TEST_F(DriverMemoryTest, AnAddressBelongsToTheRangeThatWasAskedFor) {
  const CUdeviceptr address = allocate(1000);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  EXPECT_EQ(cuMemGetAddressRange_v2(&base, &bytes, address + 999), CUDA_SUCCESS);
  EXPECT_EQ(base, address);
  EXPECT_EQ(bytes, 1000u);
  EXPECT_EQ(cuMemGetAddressRange_v2(nullptr, &bytes, address), CUDA_SUCCESS);
  EXPECT_EQ(cuMemGetAddressRange_v2(&base, &bytes, address_of(&base)), CUDA_ERROR_NOT_FOUND);
}

TEST_F(DriverMemoryTest, WithoutAContextThereIsNoMemory) {
  cuCtxSetCurrent(nullptr);
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc_v2(&address, 16), CUDA_ERROR_INVALID_CONTEXT);
  std::size_t bytes = 0;
  EXPECT_EQ(cuMemGetInfo_v2(&bytes, &bytes), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(DriverMemoryTest, DeviceMemoryTellsItsAttributes) {
  const CUdeviceptr address = allocate(1000);
  CUcontext owner = nullptr;
  EXPECT_EQ(ask(owner, CU_POINTER_ATTRIBUTE_CONTEXT, address), CUDA_SUCCESS);
  EXPECT_EQ(owner, context);
  unsigned type = 0, capable = 0;
  EXPECT_EQ(ask(type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address), CUDA_SUCCESS);
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  CUdeviceptr device = 0, base = 0;
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(ask(device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address + 5), CUDA_SUCCESS);
    EXPECT_EQ(device, address + 5);
  }
  void* host = nullptr;
  EXPECT_EQ(ask(host, CU_POINTER_ATTRIBUTE_HOST_POINTER, address), CUDA_ERROR_INVALID_VALUE);
  std::size_t bytes = 0;
  EXPECT_EQ(ask(base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address + 5), CUDA_SUCCESS);
  EXPECT_EQ(ask(bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address + 5), CUDA_SUCCESS);
  EXPECT_EQ(base, address);
  EXPECT_EQ(bytes, 1000u);
  EXPECT_EQ(ask(bytes, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, address), CUDA_SUCCESS);
  EXPECT_EQ(bytes % (2 << 20), 0u);
  EXPECT_EQ(ask(capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address), CUDA_SUCCESS);
  EXPECT_EQ(capable, 1u);
  const auto unknown = static_cast<CUpointer_attribute>(30);
  EXPECT_EQ(ask(bytes, unknown, address), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverMemoryTest, EachAllocationHasANumberOfItsOwn) {
  const CUdeviceptr first = allocate(16), second = allocate(16);
  std::uint64_t numbers[3] = {};
  EXPECT_EQ(ask(numbers[0], CU_POINTER_ATTRIBUTE_BUFFER_ID, first), CUDA_SUCCESS);
  EXPECT_EQ(ask(numbers[1], CU_POINTER_ATTRIBUTE_BUFFER_ID, second), CUDA_SUCCESS);
  EXPECT_EQ(ask(numbers[2], CU_POINTER_ATTRIBUTE_BUFFER_ID, first + 8), CUDA_SUCCESS);
  EXPECT_NE(numbers[0], numbers[1]);
  EXPECT_EQ(numbers[0], numbers[2]);
}

TEST_F(DriverMemoryTest, StreamOrderedMemoryHasAPoolAndNoContext) {
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAllocAsync(&address, 64, nullptr), CUDA_SUCCESS);
  CUcontext owner = context;
  CUmemoryPool pool = nullptr, its = nullptr;
  EXPECT_EQ(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(ask(owner, CU_POINTER_ATTRIBUTE_CONTEXT, address), CUDA_SUCCESS);
  EXPECT_EQ(owner, nullptr);
  EXPECT_EQ(ask(its, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address), CUDA_SUCCESS);
  EXPECT_EQ(its, pool);
}

TEST_F(DriverMemoryTest, OfPlainMemoryOneQuestionIsInvalidAndManyAreNot) {
  int plain = 0;
  unsigned type = 9;
  EXPECT_EQ(ask(type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address_of(&plain)),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ask(type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0), CUDA_ERROR_INVALID_VALUE);
  CUcontext owner = context;
  int ordinal = 9;
  std::array attributes{CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  std::array<void*, 3> data{&owner, &type, &ordinal};
  EXPECT_EQ(cuPointerGetAttributes(3, attributes.data(), data.data(), address_of(&plain)),
            CUDA_SUCCESS);
  EXPECT_EQ(owner, nullptr);
  EXPECT_EQ(type, 0u);
  EXPECT_EQ(ordinal, -2);
  EXPECT_EQ(cuPointerGetAttributes(0, attributes.data(), data.data(), 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverMemoryTest, PinnedMemoryIsTheHostsAtOneAddress) {
  void* host = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&host, 10000, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
  unsigned type = 0, flags = 0;
  EXPECT_EQ(ask(type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address_of(host)), CUDA_SUCCESS);
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_HOST));
  void* its = nullptr;
  EXPECT_EQ(ask(its, CU_POINTER_ATTRIBUTE_HOST_POINTER, address_of(host) + 7), CUDA_SUCCESS);
  EXPECT_EQ(its, static_cast<char*>(host) + 7);
  std::size_t bytes = 0;
  EXPECT_EQ(ask(bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address_of(host)), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 10000u);
  CUdeviceptr device = 0, same = 0;
  EXPECT_EQ(cuMemHostGetDevicePointer_v2(&device, host, 0), CUDA_SUCCESS);
  EXPECT_EQ(ask(same, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address_of(host)), CUDA_SUCCESS);
  EXPECT_EQ(device, same);
  EXPECT_EQ(cuMemHostGetFlags(&flags, host), CUDA_SUCCESS);
  EXPECT_EQ(flags, 3u) << "all of it is mapped";
  EXPECT_EQ(cuMemFreeHost(host), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverMemoryTest, MemoryIsRegisteredOnce) {
  std::vector<char> mine(1 << 16);
  EXPECT_EQ(cuMemHostRegister_v2(mine.data(), mine.size(), 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostRegister_v2(mine.data(), mine.size(), 0),
            CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(cuMemHostUnregister(mine.data()), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostUnregister(mine.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  CUdeviceptr device = 0;
  EXPECT_EQ(cuMemHostGetDevicePointer_v2(&device, mine.data(), 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverMemoryTest, CopiesGoWhereTheirNameSays) {
  std::vector<int> numbers(100), back(100);
  std::iota(numbers.begin(), numbers.end(), 1);
  const CUdeviceptr first = allocate(400), second = allocate(400);
  EXPECT_EQ(cuMemcpyHtoD_v2(first, numbers.data(), 400), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoDAsync_v2(second, first, 400, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH_v2(back.data(), second, 400), CUDA_SUCCESS);
  EXPECT_EQ(back, numbers);
  std::ranges::fill(back, 0);
  EXPECT_EQ(cuMemcpy(address_of(back.data()), first, 400), CUDA_SUCCESS);
  EXPECT_EQ(back, numbers);
  EXPECT_EQ(cuMemcpyHtoD_v2(address_of(back.data()), numbers.data(), 400),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH_v2(back.data(), address_of(numbers.data()), 400),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoD_v2(second, first, 401), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD_v2(first, nullptr, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD_v2(first, numbers.data(), 0), CUDA_SUCCESS);
}

TEST_F(DriverMemoryTest, ACopyOfRowsLeavesTheRestAlone) {
  const CUdeviceptr device = allocate(64);
  EXPECT_EQ(cuMemsetD8_v2(device, 0, 64), CUDA_SUCCESS);
  const std::array<unsigned char, 6> rows{1, 2, 3, 4, 5, 6};
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = rows.data();
  copy.srcPitch = 3;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = device;
  copy.dstPitch = 16;
  copy.dstXInBytes = 2;
  copy.dstY = 1;
  copy.WidthInBytes = 3;
  copy.Height = 2;
  EXPECT_EQ(cuMemcpy2D_v2(&copy), CUDA_SUCCESS);
  std::array<unsigned char, 64> all{}, expected{};
  EXPECT_EQ(cuMemcpyDtoH_v2(all.data(), device, 64), CUDA_SUCCESS);
  std::copy_n(rows.begin(), 3, expected.begin() + 18);
  std::copy_n(rows.begin() + 3, 3, expected.begin() + 34);
  EXPECT_EQ(all, expected);
  copy.dstPitch = 4;
  EXPECT_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE) << "a row is too short";
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  EXPECT_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE) << "no array";
  EXPECT_EQ(cuMemcpy2D_v2(nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverMemoryTest, CopiesBetweenContextsNeedBoth) {
  const CUdeviceptr first = allocate(16), second = allocate(16);
  int none = 0;
  const auto stranger = reinterpret_cast<CUcontext>(&none);
  EXPECT_EQ(cuMemcpyPeer(second, context, first, context, 16), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyPeer(second, stranger, first, context, 16), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(DriverMemoryTest, ABatchTellsWhichCopyFailed) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  int from[2] = {7, 8}, back[2] = {};
  const CUdeviceptr device = allocate(8);
  CUdeviceptr to[2] = {device, device + 4};
  CUdeviceptr sources[2] = {address_of(&from[0]), address_of(&from[1])};
  std::size_t bytes[2] = {4, 4}, first = 0, failed = 9;
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  EXPECT_EQ(cuMemcpyBatchAsync(to, sources, bytes, 2, &attributes, &first, 1, &failed, stream),
            CUDA_SUCCESS);
  EXPECT_EQ(failed, SIZE_MAX);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH_v2(back, device, 8), CUDA_SUCCESS);
  EXPECT_EQ(back[1], 8);
  bytes[1] = 5;
  EXPECT_EQ(cuMemcpyBatchAsync(to, sources, bytes, 2, &attributes, &first, 1, &failed, stream),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(failed, 1u);
  EXPECT_EQ(cuMemcpyBatchAsync_v2(to, sources, bytes, 1, &attributes, &first, 1, nullptr),
            CUDA_ERROR_INVALID_VALUE)
      << "not on the default stream";
}

TEST_F(DriverMemoryTest, FillsHaveValuesOfOneTwoAndFourBytes) {
  const CUdeviceptr device = allocate(64);
  std::array<std::uint32_t, 16> words{};
  EXPECT_EQ(cuMemsetD32_v2(device, 0x12345678, 16), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD16Async(device + 4, 0xabcd, 2, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD2D8_v2(device + 8, 16, 0xff, 4, 2), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH_v2(words.data(), device, 64), CUDA_SUCCESS);
  const std::array<std::uint32_t, 8> expected{0x12345678, 0xabcdabcd, 0xffffffff, 0x12345678,
                                              0x12345678, 0x12345678, 0xffffffff, 0x12345678};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), words.begin()));
  EXPECT_EQ(cuMemsetD32_v2(device + 2, 1, 1), CUDA_ERROR_INVALID_VALUE) << "not aligned";
  EXPECT_EQ(cuMemsetD8_v2(device, 1, 65), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD32_v2(address_of(words.data()), 1, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverMemoryTest, MemoryCanAskThatSynchronousCallsAreDoneWhenTheyReturn) {
  const CUdeviceptr device = allocate(64);
  unsigned waits = 1, told = 9;
  EXPECT_EQ(ask(told, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device), CUDA_SUCCESS);
  EXPECT_EQ(told, 0u);
  EXPECT_EQ(cuPointerSetAttribute(&waits, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device), CUDA_SUCCESS);
  EXPECT_EQ(ask(told, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device + 63), CUDA_SUCCESS);
  EXPECT_EQ(told, 1u);
  EXPECT_EQ(cuMemsetD8_v2(device, 1, 64), CUDA_SUCCESS);
  waits = 0;
  EXPECT_EQ(cuPointerSetAttribute(&waits, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device), CUDA_SUCCESS);
  EXPECT_EQ(cuPointerSetAttribute(&waits, CU_POINTER_ATTRIBUTE_IS_MANAGED, device),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverMemoryTest, ManagedMemoryIsBothTheHostsAndTheDevices) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAllocManaged(&address, 64, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuMemAllocManaged(&address, 64, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  unsigned type = 0, managed = 0;
  void* host = nullptr;
  EXPECT_EQ(ask(type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address), CUDA_SUCCESS);
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  EXPECT_EQ(ask(managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address), CUDA_SUCCESS);
  EXPECT_EQ(managed, 1u);
  EXPECT_EQ(ask(host, CU_POINTER_ATTRIBUTE_HOST_POINTER, address), CUDA_SUCCESS);
  EXPECT_EQ(address_of(host), address);
  EXPECT_EQ(cuMemAdvise(address, 64, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU),
            CUDA_SUCCESS);
  EXPECT_EQ(cuMemAdvise(address, 64, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 1),
            CUDA_ERROR_INVALID_DEVICE);
  int preferred = 9;
  EXPECT_EQ(cuMemRangeGetAttribute(&preferred, sizeof(preferred),
                                   CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, address, 64),
            CUDA_SUCCESS);
  EXPECT_EQ(preferred, CU_DEVICE_CPU);
  EXPECT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
}

TEST_F(DriverMemoryTest, AnArrayTellsWhatItWasMadeOf) {
  CUarray array = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR wanted{16, 4, 0, CU_AD_FORMAT_HALF, 2, CUDA_ARRAY3D_SURFACE_LDST};
  CUDA_ARRAY3D_DESCRIPTOR told{};
  wanted.NumChannels = 3;
  EXPECT_EQ(cuArray3DCreate_v2(&array, &wanted), CUDA_ERROR_INVALID_VALUE);
  wanted.NumChannels = 2;
  const CUresult made = cuArray3DCreate_v2(&array, &wanted);
  ASSERT_EQ(made, CUDA_SUCCESS);
  EXPECT_EQ(cuArray3DGetDescriptor_v2(&told, array), CUDA_SUCCESS);
  EXPECT_EQ(told.Width, 16u);
  EXPECT_EQ(told.Format, CU_AD_FORMAT_HALF);
  EXPECT_EQ(told.Flags, static_cast<unsigned>(CUDA_ARRAY3D_SURFACE_LDST));
  EXPECT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
  EXPECT_EQ(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace slate::test
