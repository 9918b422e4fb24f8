// HeapTest: a device, the kernels of kernels.cu with malloc and free of slate's own, a heap for
// them, and short ways to run one. The parameter is the device's description.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "injector/link/heap.h"
#include "tests/unit/packed_arguments.h"

namespace slate::test {

class HeapTest : public testing::TestWithParam<std::string> {
 protected:
  static constexpr std::uint64_t kDataBytes = 4 << 20;

  void SetUp() override;
  void TearDown() override;

  /// An empty heap of so many bytes, in place of the one before. At most 8 MiB.
  void make_heap(std::uint64_t bytes);
  /// What a module has that was not told of a heap.
  void forget_heap();
  device::AddressRange heap() const { return heap_; }

  /// Waits.
  template <typename... Args>
  void run(const std::string& kernel, std::uint32_t blocks, std::uint32_t threads, Args... args) {
    launch(kernel, blocks, threads, packed_arguments(args...));
  }

  /// Memory for results, zero at first; everything in it goes with the next make_heap().
  template <typename T>
  device::Address space_for(std::size_t count) {
    return take_data(count * sizeof(T));
  }
  template <typename T>
  device::Address copy_of(const std::vector<T>& values) {
    const device::Address at = take_data(values.size() * sizeof(T));
    copy(at, values.data(), values.size() * sizeof(T));
    return at;
  }
  template <typename T>
  std::vector<T> read(device::Address from, std::size_t count) {
    std::vector<T> values(count);
    copy_back(values.data(), from, count * sizeof(T));
    return values;
  }

  /// What one thread is given for each of these sizes, in this order.
  std::vector<std::uint64_t> allocate(const std::vector<std::uint64_t>& bytes);
  void release(const std::vector<std::uint64_t>& pieces);
  /// True when all of the heap can be had as one piece, which is given back.
  bool is_empty();
  bool on_gpu() const { return GetParam() == "cuda"; }

 private:
  void launch(const std::string& kernel, std::uint32_t blocks, std::uint32_t threads,
              const std::vector<std::byte>& parameters);
  device::Address take_data(std::size_t bytes);
  void copy(device::Address to, const void* from, std::size_t bytes);
  void copy_back(void* to, device::Address from, std::size_t bytes);
  void finish();

  std::unique_ptr<device::Device> device_;
  device::Module module_{};
  device::Stream stream_{};
  device::AddressRange arena_, heap_;
  std::uint64_t data_used_ = 0;
};

}  // namespace slate::test
