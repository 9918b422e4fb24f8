// fork() and exec() in a program with a session, as far as they touch memory and descriptors.
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/client/cudart_fixture.h"

namespace slate::test {
namespace {

using ipc::CommandType;

std::set<int> open_descriptors() {
  std::set<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    found.insert(std::stoi(entry.path().filename()));
  std::erase_if(found, [](int fd) { return ::fcntl(fd, F_GETFD) == -1; });  // the listing's own
  return found;
}

class CudartForkTest : public FrontTest {
 protected:
  /// Before there is a session, from wherever the test was started.
  const std::set<int> started_with_ = open_descriptors();

  CudartForkTest() { EXPECT_EQ(cudaMalloc(&device, kBytes), cudaSuccess); }
  template <typename Child>
  static int status_of(const Child& run) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);  // rather dead than waiting for a lock that nobody holds
      ::_exit(run() ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }

  static constexpr std::size_t kBytes = 256 << 10;
  void* device = nullptr;
};

TEST_F(CudartForkTest, AChildThatOnlyEndsLeavesTheParentsSessionAlone) {
  EXPECT_EQ(status_of([] { return true; }), 0);
  EXPECT_EQ(cudaMemset(device, 1, kBytes), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(daemon->sessions(), 1);
}

TEST_F(CudartForkTest, RegisteredMemoryIsTheChildsOwn) {
  std::vector<unsigned char> memory(kBytes, 1);
  ASSERT_EQ(cudaHostRegister(memory.data(), kBytes, 0), cudaSuccess);
  const int status = status_of([&] {
    const bool same = memory[kBytes / 2] == 1;
    std::memset(memory.data(), 2, kBytes);
    return same;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory[kBytes / 2], 1) << "what a child writes stays with it";
  std::memset(memory.data(), 3, kBytes);
  ASSERT_EQ(cudaMemcpy(device, memory.data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  unsigned char back = 0;
  ASSERT_EQ(cudaMemcpy(&back, static_cast<char*>(device) + kBytes / 2, 1, cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(back, 3) << "and the parent's is still what the device reads";
  EXPECT_EQ(cudaHostUnregister(memory.data()), cudaSuccess);
}

TEST_F(CudartForkTest, AChildFindsNoTableInUse) {
  // Each of these looks into another table of the process's.
  const std::vector<std::function<void()>> uses{
      [] {
        cudaStreamAttrValue value{};
        cudaStreamSetAttribute(nullptr, cudaStreamAttributeAccessPolicyWindow, &value);
      },
      [] {
        cudaResourceDesc resource{};
        cudaGetTextureObjectResourceDesc(&resource, 1);
      },
      [this] {
        unsigned flags = 0;
        cudaHostGetFlags(&flags, device);
      },
  };
  for (const auto& use : uses) {
    use();
    std::atomic<bool> stop{false};
    std::thread other([&] {
      while (!stop) use();
    });
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(status_of([&] {
                  use();
                  return true;
                }),
                0);
    }
    stop = true;
    other.join();
  }
}

TEST_F(CudartForkTest, AProgramStartedByExecInheritsNoDescriptor) {
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, kBytes), cudaSuccess);
  int ours = 0;
  for (const int fd : open_descriptors()) {
    if (started_with_.contains(fd)) continue;
    ++ours;
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0)
        << std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)).string();
  }
  EXPECT_GT(ours, 0);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

}  // namespace
}  // namespace slate::test
