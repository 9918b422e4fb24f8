// Managed memory as a program sees it, and pinned memory where a device address is asked for.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "tests/unit/client/cudart_fixture.h"

namespace slate::test {
namespace {

using ipc::CommandType;

constexpr cudaMemLocation kDevice{cudaMemLocationTypeDevice, 0};
constexpr cudaMemLocation kHost{cudaMemLocationTypeHost, 0};

class CudartManagedTest : public FrontTest {
 protected:
  static unsigned char* managed(std::size_t bytes) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal), cudaSuccess);
    return static_cast<unsigned char*>(memory);
  }
  static int attribute(const void* memory, std::size_t bytes, cudaMemRangeAttribute which) {
    int value = 1234;
    EXPECT_EQ(cudaMemRangeGetAttribute(&value, sizeof(value), which, memory, bytes), cudaSuccess);
    return value;
  }

  static constexpr std::size_t kBytes = 1 << 20;
};

TEST_F(CudartManagedTest, AnAddressThatIsTakenInTheProgramIsNotUsed) {
  // This daemon's first answer is where it has the memory itself, in this very process.
  unsigned char* const memory = managed(kBytes);
  EXPECT_EQ(daemon->count(CommandType::kHostAllocate), 2);
  EXPECT_EQ(daemon->count(CommandType::kHostFree), 1);
  std::memset(memory, 3, kBytes);
  unsigned char back[64] = {};
  ASSERT_EQ(cudaMemcpy(back, memory + 100, sizeof(back), cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(back[63], 3);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
}

TEST_F(CudartManagedTest, ArgumentsAreChecked) {
  void* memory = this;
  EXPECT_EQ(cudaMallocManaged(nullptr, 16, cudaMemAttachGlobal), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMallocManaged(&memory, 0, cudaMemAttachGlobal), cudaSuccess);
  EXPECT_EQ(memory, nullptr) << "of no bytes there is nothing";
  EXPECT_EQ(cudaMallocManaged(&memory, 16, cudaMemAttachSingle), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMallocManaged(&memory, 16, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMallocManaged(&memory, 16, cudaMemAttachHost), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(CudartManagedTest, EveryDirectionOfACopyIsAllowed) {
  unsigned char* const memory = managed(kBytes);
  std::vector<unsigned char> host(kBytes, 5);
  void* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
  for (const auto kind : {cudaMemcpyHostToDevice, cudaMemcpyDefault, cudaMemcpyHostToHost}) {
    std::memset(memory, 0, kBytes);
    EXPECT_EQ(cudaMemcpy(memory, host.data(), kBytes, kind), cudaSuccess) << kind;
    EXPECT_EQ(memory[kBytes - 1], 5) << kind;
  }
  EXPECT_EQ(cudaMemcpy(device, memory, kBytes, cudaMemcpyDeviceToDevice), cudaSuccess);
  std::memset(memory, 0, kBytes);
  EXPECT_EQ(cudaMemcpy(memory, device, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(memory[7], 5);
  EXPECT_EQ(cudaMemset(memory, 9, kBytes), cudaSuccess);
  EXPECT_EQ(memory[kBytes - 1], 9);
  EXPECT_EQ(cudaMemset(memory, 9, kBytes + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(CudartManagedTest, PinnedMemoryIsFilledAndCopiedAsDeviceMemory) {
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, kBytes), cudaSuccess);
  auto* const bytes = static_cast<unsigned char*>(pinned);
  EXPECT_EQ(cudaMemset(pinned, 4, kBytes), cudaSuccess);
  EXPECT_EQ(bytes[kBytes - 1], 4);
  EXPECT_EQ(cudaMemset(pinned, 4, kBytes + 1), cudaErrorInvalidValue);
  std::vector<unsigned char> host(kBytes, 6);
  EXPECT_EQ(cudaMemcpy(pinned, host.data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(bytes[0], 6);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  // Registered memory whose edges share pages with others.
  std::vector<unsigned char> mine(kBytes);
  ASSERT_EQ(cudaHostRegister(mine.data() + 10, kBytes - 20, 0), cudaSuccess);
  EXPECT_EQ(cudaMemset(mine.data() + 10, 8, kBytes - 20), cudaSuccess);
  EXPECT_EQ(mine[9], 0);
  EXPECT_EQ(mine[10], 8);
  EXPECT_EQ(mine[kBytes - 11], 8);
  EXPECT_EQ(cudaHostUnregister(mine.data() + 10), cudaSuccess);
  EXPECT_EQ(cudaMemset(mine.data(), 1, 16), cudaErrorInvalidValue);
}

TEST_F(CudartManagedTest, PointersAreToldApart) {
  unsigned char* const memory = managed(1000);
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, memory + 9), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeManaged);
  EXPECT_EQ(attributes.device, 0);
  EXPECT_EQ(attributes.devicePointer, memory + 9);
  EXPECT_EQ(attributes.hostPointer, memory + 9);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(CudartManagedTest, AdviceIsToldForTheRangeAsAWhole) {
  unsigned char* const memory = managed(kBytes);
  unsigned char* const half = memory + kBytes / 2;
  EXPECT_EQ(attribute(memory, kBytes, cudaMemRangeAttributeLastPrefetchLocation),
            cudaInvalidDeviceId);
  EXPECT_EQ(cudaMemPrefetchAsync(memory, kBytes / 2, kDevice, 0, nullptr), cudaSuccess);
  EXPECT_EQ(attribute(memory, 1, cudaMemRangeAttributeLastPrefetchLocation), 0);
  EXPECT_EQ(attribute(memory, kBytes, cudaMemRangeAttributeLastPrefetchLocation),
            cudaInvalidDeviceId);
  EXPECT_EQ(cudaMemPrefetchAsync(half, kBytes / 2, kHost, 0, nullptr), cudaSuccess);
  EXPECT_EQ(attribute(half, 1, cudaMemRangeAttributeLastPrefetchLocation), cudaCpuDeviceId);
  EXPECT_EQ(attribute(memory, kBytes, cudaMemRangeAttributeLastPrefetchLocationType),
            cudaMemLocationTypeInvalid);
  EXPECT_EQ(cudaMemAdvise(memory, kBytes, cudaMemAdviseSetReadMostly, kDevice), cudaSuccess);
  EXPECT_EQ(attribute(memory, kBytes, cudaMemRangeAttributeReadMostly), 1);
  EXPECT_EQ(cudaMemAdvise(half, 1, cudaMemAdviseUnsetReadMostly, kDevice), cudaSuccess);
  EXPECT_EQ(attribute(memory, kBytes, cudaMemRangeAttributeReadMostly), 0);
  EXPECT_EQ(attribute(half + 4096, 1, cudaMemRangeAttributeReadMostly), 1) << "pages, not more";
  EXPECT_EQ(cudaMemAdvise(memory, kBytes, cudaMemAdviseSetAccessedBy, kDevice), cudaSuccess);
  int devices[3] = {};
  EXPECT_EQ(cudaMemRangeGetAttribute(devices, sizeof(devices), cudaMemRangeAttributeAccessedBy,
                                     memory, kBytes),
            cudaSuccess);
  EXPECT_EQ(devices[0], 0);
  EXPECT_EQ(devices[1], cudaInvalidDeviceId);
  EXPECT_EQ(cudaMemAdvise(memory, kBytes, cudaMemAdviseSetPreferredLocation, kHost), cudaSuccess);
  EXPECT_EQ(attribute(memory, kBytes, cudaMemRangeAttributePreferredLocation), cudaCpuDeviceId);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  unsigned char* const again = managed(kBytes);
  EXPECT_EQ(attribute(again, kBytes, cudaMemRangeAttributePreferredLocation), cudaInvalidDeviceId);
}

TEST_F(CudartManagedTest, AdviceOnWhatIsNotManagedOrNowhereIsRefused) {
  unsigned char* const memory = managed(kBytes);
  void* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
  int value = 0;
  EXPECT_EQ(cudaMemPrefetchAsync(device, kBytes, kDevice, 0, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemPrefetchAsync(memory, 0, kDevice, 0, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemPrefetchAsync(memory, kBytes + 1, kDevice, 0, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemPrefetchAsync(memory, kBytes, kDevice, 1, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemPrefetchAsync(memory, kBytes, {cudaMemLocationTypeDevice, 9}, 0, nullptr),
            cudaErrorInvalidDevice);
  EXPECT_EQ(cudaMemAdvise(memory, kBytes, unknown<cudaMemoryAdvise>(77), kDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemRangeGetAttribute(&value, 3, cudaMemRangeAttributeReadMostly, memory, kBytes),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemRangeGetAttribute(&value, 4, unknown<cudaMemRangeAttribute>(77), memory, 1),
            cudaErrorInvalidValue);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  EXPECT_EQ(cudaStreamAttachMemAsync(stream, memory, 0, cudaMemAttachSingle), cudaSuccess);
  EXPECT_EQ(cudaStreamAttachMemAsync(stream, memory, kBytes, cudaMemAttachGlobal), cudaSuccess);
  EXPECT_EQ(cudaStreamAttachMemAsync(stream, memory, 5, cudaMemAttachSingle),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamAttachMemAsync(nullptr, memory, 0, cudaMemAttachSingle),
            cudaErrorInvalidValue);
  void* pointers[] = {memory, memory + 8192};
  std::size_t sizes[] = {4096, 4096};
  cudaMemLocation places[] = {kDevice, kHost};
  std::size_t first[] = {0, 1};
  EXPECT_EQ(cudaMemPrefetchBatchAsync(pointers, sizes, 2, places, first, 2, 0, stream),
            cudaSuccess);
  EXPECT_EQ(attribute(memory + 8192, 1, cudaMemRangeAttributeLastPrefetchLocation),
            cudaCpuDeviceId);
  first[1] = 0;
  EXPECT_EQ(cudaMemPrefetchBatchAsync(pointers, sizes, 2, places, first, 2, 0, stream),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemDiscardBatchAsync(pointers, sizes, 2, 0, stream), cudaSuccess);
  EXPECT_EQ(cudaMemDiscardBatchAsync(pointers, sizes, 2, 0, nullptr), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace slate::test
