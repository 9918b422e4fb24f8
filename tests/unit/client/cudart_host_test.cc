// Pinned host memory as a program sees it, with a daemon that has it mapped elsewhere.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "tests/unit/client/cudart_fixture.h"

namespace slate::test {
namespace {

using ipc::CommandType;

template <typename T>
cudaError_t malloc_host(T** memory, std::size_t bytes) {
  return cudaMallocHost(reinterpret_cast<void**>(memory), bytes);
}

class CudartHostTest : public FrontTest {
 protected:
  CudartHostTest() { EXPECT_EQ(cudaMalloc(&device, kBytes), cudaSuccess); }

  int staged() const {
    return daemon->copies_from(PlaceKind::kSlot) + daemon->copies_to(PlaceKind::kSlot);
  }
  int pinned() const {
    return daemon->copies_from(PlaceKind::kBlock) + daemon->copies_to(PlaceKind::kBlock);
  }

  static constexpr std::size_t kBytes = 1 << 20;
  void* device = nullptr;
};

TEST_F(CudartHostTest, CopiesOfPinnedMemoryAreOneCommandEach) {
  int *from = nullptr, *to = nullptr;
  ASSERT_EQ(malloc_host(&from, kBytes), cudaSuccess);
  ASSERT_EQ(malloc_host(&to, kBytes), cudaSuccess);
  std::iota(from, from + kBytes / 4, 1);
  EXPECT_EQ(cudaMemcpyAsync(device, from, kBytes, cudaMemcpyDefault, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(to, device, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(std::memcmp(from, to, kBytes), 0);
  EXPECT_EQ(pinned(), 2);
  EXPECT_EQ(staged(), 0);
  EXPECT_EQ(cudaFreeHost(from), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(from), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(to), cudaSuccess);
}

TEST_F(CudartHostTest, SmallCopiesOfPinnedMemoryAreReadAtOnceWhereNobodyCanTell) {
  constexpr std::size_t kSmall = 4096;
  int* from = nullptr;
  ASSERT_EQ(malloc_host(&from, kBytes), cudaSuccess);
  const auto copy = [&](int value) {
    std::fill_n(from, kSmall / 4, value);
    EXPECT_EQ(cudaMemcpy(device, from, kSmall, cudaMemcpyHostToDevice), cudaSuccess);
    from[0] = -1;
  };
  for (const int value : {1, 2, 3}) copy(value);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(daemon->copies_from(PlaceKind::kSlot), 3);
  EXPECT_EQ(pinned(), 0);
  std::vector<int> back(kSmall / 4);
  EXPECT_EQ(cudaMemcpy(back.data(), device, kSmall, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(back, std::vector<int>(kSmall / 4, 3));
  // One that is not ordered behind the copy might look too early.
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  copy(4);
  EXPECT_EQ(pinned(), 1);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  copy(5);
  EXPECT_EQ(pinned(), 1);
  EXPECT_EQ(cudaMemcpy(device, from, kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(pinned(), 2) << "too large";
  EXPECT_EQ(cudaFreeHost(from), cudaSuccess);
}

TEST_F(CudartHostTest, RectanglesOfPinnedMemoryKeepTheirPitches) {
  unsigned char* host = nullptr;
  ASSERT_EQ(malloc_host(&host, kBytes), cudaSuccess);
  std::memset(host, 7, kBytes);
  ASSERT_EQ(cudaMemset(device, 0, kBytes), cudaSuccess);
  ASSERT_EQ(cudaMemcpy2D(device, 512, host, 300, 200, 50, cudaMemcpyHostToDevice), cudaSuccess);
  std::vector<unsigned char> back(512 * 50);
  ASSERT_EQ(cudaMemcpy(back.data(), device, back.size(), cudaMemcpyDeviceToHost), cudaSuccess);
  for (std::size_t i = 0; i < back.size(); ++i)
    ASSERT_EQ(back[i], i % 512 < 200 ? 7 : 0) << "byte " << i;
  EXPECT_EQ(pinned(), 1);
  EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
}

TEST_F(CudartHostTest, TheDevicesAddressIsTold) {
  char* host = nullptr;
  ASSERT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&host), 5000, cudaHostAllocMapped), cudaSuccess);
  void* mapped = nullptr;
  ASSERT_EQ(cudaHostGetDevicePointer(&mapped, host + 100, 0), cudaSuccess);
  // The daemon of this test is in this process: what one side writes the other one reads.
  std::strcpy(static_cast<char*>(mapped), "there");
  EXPECT_STREQ(host + 100, "there");
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, host + 100), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes.hostPointer, host + 100);
  EXPECT_EQ(attributes.devicePointer, mapped);
  unsigned flags = 0;
  EXPECT_EQ(cudaHostGetFlags(&flags, host), cudaSuccess);
  EXPECT_EQ(flags, unsigned{cudaHostAllocMapped});
  EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
}

TEST_F(CudartHostTest, SmallPiecesShareABlockAndHaveTheirOwnFlags) {
  std::vector<char*> pieces(100);
  for (char*& piece : pieces) {
    const unsigned flags =
        &piece == &pieces[7] ? cudaHostAllocPortable : cudaHostAllocWriteCombined;
    ASSERT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&piece), 64, flags), cudaSuccess);
    std::memset(piece, static_cast<int>(&piece - pieces.data()), 64);
  }
  EXPECT_LT(daemon->count(CommandType::kHostAllocate), 5);
  unsigned flags = 0;
  EXPECT_EQ(cudaHostGetFlags(&flags, pieces[7]), cudaSuccess);
  EXPECT_EQ(flags, unsigned{cudaHostAllocPortable});
  void* mapped = nullptr;
  ASSERT_EQ(cudaHostGetDevicePointer(&mapped, pieces[42] + 3, 0), cudaSuccess);
  EXPECT_EQ(*static_cast<char*>(mapped), 42);
  EXPECT_EQ(cudaHostGetDevicePointer(&mapped, pieces[42] + 64, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(device, pieces[9], 64, cudaMemcpyDefault, nullptr), cudaSuccess);
  char back[64] = {};
  EXPECT_EQ(cudaMemcpy(back, device, 64, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(back[63], 9);
  EXPECT_EQ(cudaFreeHost(pieces[9] + 1), cudaErrorInvalidValue);
  for (char* piece : pieces) EXPECT_EQ(cudaFreeHost(piece), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pieces[9]), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostGetFlags(&flags, pieces[7]), cudaErrorInvalidValue);
}

TEST_F(CudartHostTest, SmallPiecesOutliveTheirSession) {
  char *small = nullptr, *neighbour = nullptr, *large = nullptr;
  ASSERT_EQ(malloc_host(&small, 100), cudaSuccess);
  ASSERT_EQ(malloc_host(&neighbour, 100), cudaSuccess);
  ASSERT_EQ(malloc_host(&large, 40000), cudaSuccess);
  std::strcpy(neighbour, "still there");
  for (int i = 0; i < 2; ++i) ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(small), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(large), cudaSuccess);
  EXPECT_STREQ(neighbour, "still there");
  char back[16] = {};
  EXPECT_EQ(cudaMemcpy(device, neighbour, 12, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(back, device, 12, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_STREQ(back, "still there");
  EXPECT_EQ(cudaFreeHost(neighbour), cudaSuccess);
}

TEST_F(CudartHostTest, RegisteredMemoryKeepsItsContentsAndIsCopiedStraight) {
  // Neither end on a page's border: the edges go through staging.
  std::vector<unsigned char> memory(kBytes);
  unsigned char* const host = memory.data() + 100;
  constexpr std::size_t kSize = kBytes - 300;
  for (std::size_t i = 0; i < kSize; ++i) host[i] = static_cast<unsigned char>(i * 7 + i / 251);
  const std::vector<unsigned char> before(host, host + kSize);
  ASSERT_EQ(cudaHostRegister(host, kSize, cudaHostRegisterDefault), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(host, kSize, 0), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(std::memcmp(host, before.data(), kSize), 0);
  ASSERT_EQ(cudaMemcpy(device, host, kSize, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(pinned(), 1);
  std::memset(host, 0, kSize);
  ASSERT_EQ(cudaMemcpy(host, device, kSize, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(std::memcmp(host, before.data(), kSize), 0);
  EXPECT_EQ(pinned(), 2);
  EXPECT_EQ(cudaHostUnregister(host), cudaSuccess);
  EXPECT_EQ(std::memcmp(host, before.data(), kSize), 0) << "unregistering keeps the contents too";
  ASSERT_EQ(cudaMemcpy(device, host, kSize, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(pinned(), 2) << "ordinary memory again";
  EXPECT_EQ(cudaHostUnregister(host), cudaErrorHostMemoryNotRegistered);
}

TEST_F(CudartHostTest, MemoryThatIsNotThereIsNotRegistered) {
  void* const gone =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  const auto half = static_cast<char*>(gone) + kBytes / 2;
  ASSERT_EQ(::munmap(half, kBytes / 2), 0);
  EXPECT_EQ(cudaHostRegister(gone, kBytes, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostRegister(half, 100, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostRegister(half, 100, cudaHostRegisterMapped), cudaErrorInvalidValue);
  unsigned flags = 0;
  EXPECT_EQ(cudaHostGetFlags(&flags, half), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostRegister(gone, kBytes / 2, 0), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(gone), cudaSuccess);
  ::munmap(gone, kBytes / 2);
}

TEST_F(CudartHostTest, MemoryThatCannotBeSharedInPlaceIsRegisteredAllTheSame) {
  char stack[200 << 10];
  std::memset(stack, 5, sizeof(stack));
  ASSERT_EQ(cudaHostRegister(stack, sizeof(stack), 0), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(device, stack, sizeof(stack), cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(pinned(), 0);
  EXPECT_EQ(cudaHostUnregister(stack), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(stack, sizeof(stack), cudaHostRegisterMapped), cudaErrorNotSupported);
  EXPECT_EQ(stack[1000], 5);
}

TEST_F(CudartHostTest, AResetEndsRegistrations) {
  // In pages of its own, as shared memory takes their place.
  const auto page_of = [](const void* at) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      std::uint64_t begin = 0, end = 0;
      char access[8] = {};
      std::sscanf(line.c_str(), "%lx-%lx %7s", &begin, &end, access);
      if (begin <= reinterpret_cast<std::uintptr_t>(at) &&
          reinterpret_cast<std::uintptr_t>(at) < end) {
        return std::string(access);
      }
    }
    return std::string();
  };
  std::vector<unsigned char> memory(kBytes, 7);
  ASSERT_EQ(cudaHostRegister(memory.data(), kBytes, 0), cudaSuccess);
  ASSERT_EQ(page_of(&memory[kBytes / 2]), "rw-s");
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(page_of(&memory[kBytes / 2]), "rw-p");
  EXPECT_EQ(memory, std::vector<unsigned char>(kBytes, 7));
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, memory.data()), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(cudaHostUnregister(memory.data()), cudaErrorHostMemoryNotRegistered);
  EXPECT_EQ(cudaHostRegister(memory.data(), kBytes, 0), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(memory.data()), cudaSuccess);
}

TEST_F(CudartHostTest, GraphsFillPinnedMemory) {
  constexpr int kCount = 16;
  int* host = nullptr;
  ASSERT_EQ(malloc_host(&host, kBytes), cudaSuccess);
  char stack[200 << 10] = {};
  ASSERT_EQ(cudaHostRegister(stack, sizeof(stack), 0), cudaSuccess);  // which the device cannot see
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  cudaMemsetParams params{};
  params.value = 0x01020304;
  params.elementSize = 4;
  params.width = kCount;
  params.height = 1;
  for (void* const to : {static_cast<void*>(host), static_cast<void*>(stack)}) {
    params.dst = to;
    cudaGraphNode_t node = nullptr;
    ASSERT_EQ(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &params), cudaSuccess);
  }
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(host[i], 0x01020304);
    EXPECT_EQ(std::memcmp(stack + 4 * i, host, 4), 0);
  }
  EXPECT_EQ(cudaHostUnregister(stack), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
}

TEST_F(CudartHostTest, PinnedMemoryOutlivesAResetAsPlainMemory) {
  int* host = nullptr;
  ASSERT_EQ(malloc_host(&host, kBytes), cudaSuccess);
  host[0] = 42;
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(host[0], 42);
  ASSERT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(device, host, kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(pinned(), 0);
  EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
}

TEST_F(CudartHostTest, QueriesAndWaitsForFinishedWorkAskNobody) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(device, 1, 100, stream), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  std::size_t bytes = 0;
  ASSERT_EQ(cudaMemGetInfo(&bytes, nullptr), cudaSuccess);  // a round trip, so all is done
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(daemon->count(CommandType::kQuery), 0);
  EXPECT_EQ(daemon->count(CommandType::kSynchronize), 0);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
}  // namespace slate::test
