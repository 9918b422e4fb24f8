// GpuTest: a Device on the first GPU, or a skip where there is none; an arena, and short ways to
// move bytes.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "device/cuda/cuda_device.h"
#include "gpu_kernels.h"

namespace slate::cuda {

inline constexpr std::uint64_t kMillisecond = 1'000'000;  // in ns

/// A parameter block: values at the offsets that their own alignment gives them.
class Parameters {
 public:
  template <typename T>
  Parameters& add(T value) {
    bytes_.resize((bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T) + sizeof(T));
    std::memcpy(bytes_.data() + bytes_.size() - sizeof(T), &value, sizeof(T));
    return *this;
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!driver_finds_a_gpu()) GTEST_SKIP() << "no GPU";
    auto opened = open_cuda_device(0);
    ASSERT_TRUE(opened) << opened.error().message;
    device_ = std::move(*opened);
    auto stream = device_->create_stream(0);
    ASSERT_TRUE(stream) << stream.error().message;
    stream_ = *stream;
    arena_.bytes = 4 * device_->granularity();
    auto base = device_->reserve(arena_.bytes);
    ASSERT_TRUE(base) << base.error().message;
    arena_.base = *base;
    auto mapped = device_->map(arena_);
    ASSERT_TRUE(mapped) << mapped.error().message;
  }

  void TearDown() override {
    if (device_ == nullptr) return;
    if (!device_->lost()) finish(stream_);
    device_->destroy_stream(stream_);
  }

  /// Waits for the work on a stream; records what went wrong as a failure of the test.
  void finish(device::Stream stream) {
    const auto finished = wait_for(stream);
    ASSERT_TRUE(finished) << finished.error().message;
    ASSERT_TRUE(*finished) << "not finished within a minute";
  }

  /// As the engine waits: query and wait_for_progress. False after a minute.
  Result<bool> wait_for(device::Stream stream) {
    auto event = device_->create_event(false);
    if (!event) return std::unexpected(event.error());
    Result<bool> finished = false;
    if (auto recorded = device_->record(*event, stream); !recorded) {
      finished = std::unexpected(recorded.error());
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (finished && !*finished && std::chrono::steady_clock::now() < end) {
      finished = device_->query(*event);
      if (finished && !*finished) device_->wait_for_progress(std::chrono::milliseconds(1));
    }
    device_->destroy_event(*event);
    return finished;
  }

  template <typename T>
  void write(device::Address to, const std::vector<T>& values) {
    const std::uint64_t bytes = values.size() * sizeof(T);
    const auto copied =
        device_->copy(Place::on_device(to), Place::on_host(values.data()), {bytes, 1}, stream_);
    ASSERT_TRUE(copied) << copied.error().message;
    finish(stream_);
  }

  template <typename T>
  std::vector<T> read(device::Address from, std::size_t count) {
    std::vector<T> values(count);
    const auto copied = device_->copy(Place::on_host(values.data()), Place::on_device(from),
                                      {count * sizeof(T), 1}, stream_);
    EXPECT_TRUE(copied) << copied.error().message;
    finish(stream_);
    return values;
  }

  Result<device::Module> load(std::string_view ptx) {
    return device_->load_module(device::ImageKind::kPtx, std::as_bytes(std::span(ptx)));
  }

  /// The function `name` of gpu_kernels.h.
  device::Function kernel(const std::string& name) {
    auto module = load(kTestPtx);
    EXPECT_TRUE(module) << module.error().message;
    if (!module) return {};
    auto function = device_->find_function(*module, name);
    EXPECT_TRUE(function) << function.error().message;
    return function ? *function : device::Function{};
  }

  /// Timed events tell how long a kernel between them takes on `stream`.
  void expect_events_to_measure(device::Stream stream) {
    const device::Event start = device_->create_event(true).value();
    const device::Event stop = device_->create_event(true).value();
    Parameters parameters;
    parameters.add(arena_.base).add(std::uint32_t{1}).add(20 * kMillisecond);
    ASSERT_TRUE(device_->record(start, stream));
    ASSERT_TRUE(device_->launch(
        {.function = kernel("late_store"), .parameters = parameters.bytes()}, stream));
    ASSERT_TRUE(device_->record(stop, stream));
    finish(stream);
    const auto elapsed = device_->elapsed_ms(start, stop);
    ASSERT_TRUE(elapsed) << elapsed.error().message;
    EXPECT_GE(*elapsed, 19.0F);  // the kernel itself waits 20 ms by the GPU's clock
    device_->destroy_event(start);
    device_->destroy_event(stop);
  }

  std::unique_ptr<device::Device> device_;
  device::Stream stream_{};
  device::AddressRange arena_;
};

}  // namespace slate::cuda
