// What the tests of SimDevice share: a device, an arena, the kernels, and a way to wait.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/sim/sim_device.h"
#include "tests/unit/packed_arguments.h"
#include "tests/unit/sim_device/kernels.h"

namespace slate::sim {

inline void PrintTo(const Error& error, std::ostream* out) {
  *out << error_name(error.code) << ": " << error.message;
}

class SimFixture : public testing::Test {
 protected:
  static constexpr std::uint64_t kArenaBytes = 4 * kChunkBytes;

  void open(std::string_view settings_text) {
    auto settings = parse_settings(settings_text);
    ASSERT_TRUE(settings) << settings.error().message;
    settings->observer = [this](const LaunchStatistics& statistics) {
      std::lock_guard lock(statistics_mutex_);
      statistics_.push_back(statistics);
    };
    device_.reset();
    auto device = SimDevice::make(*settings);
    ASSERT_TRUE(device) << device.error().message;
    device_ = std::move(*device);
    module_ = load(kKernels);
    arena_ = make_arena();
    stream_ = *device_->create_stream(0);
  }

  device::Module load(std::string_view ptx) {
    auto module = device_->load_module(device::ImageKind::kPtx, std::as_bytes(std::span(ptx)));
    EXPECT_TRUE(module) << module.error().message;
    return module.value_or(device::Module{});
  }

  device::AddressRange make_arena() {
    const device::AddressRange arena{device_->reserve(kArenaBytes).value_or(0), kArenaBytes};
    const auto mapped = device_->map(arena);
    EXPECT_TRUE(mapped) << mapped.error().message;
    return arena;
  }

  device::Function function(const std::string& name) {
    auto found = device_->find_function(module_, name);
    EXPECT_TRUE(found) << found.error().message;
    return found.value_or(device::Function{});
  }

  template <typename... Args>
  Result<void> launch(device::Stream stream, const std::string& name, device::Dim3 grid,
                      device::Dim3 block, Args... args) {
    const std::vector<std::byte> packed = slate::test::packed_arguments(args...);
    device::LaunchSpec spec;
    spec.function = function(name);
    spec.grid = grid;
    spec.block = block;
    spec.parameters = packed;
    spec.arena = arena_;
    return device_->launch(spec, stream);
  }

  /// Waits until what is on the stream now has ended; its error if it faulted.
  Result<void> finish(device::Stream stream) {
    auto event = device_->create_event(false);
    if (!event) return std::unexpected(event.error());
    if (auto recorded = device_->record(*event, stream); !recorded) return recorded;
    Result<bool> reached = device_->query(*event);
    while (reached && !*reached) {
      device_->wait_for_progress(std::chrono::seconds(1));
      reached = device_->query(*event);
    }
    device_->destroy_event(*event);
    if (!reached) return std::unexpected(reached.error());
    return {};
  }

  /// Both go through a stream of their own, past whatever runs.
  template <typename T>
  void write(device::Address to, const std::vector<T>& values) {
    const Box shape{values.size() * sizeof(T), 1};
    const device::Stream stream = *device_->create_stream(0);
    ASSERT_TRUE(device_->copy(Place::on_device(to), Place::on_host(values.data()), shape, stream));
    ASSERT_TRUE(finish(stream));
    device_->destroy_stream(stream);
  }

  template <typename T>
  std::vector<T> read(device::Address from, std::size_t count) {
    std::vector<T> values(count);
    const device::Stream stream = *device_->create_stream(0);
    EXPECT_TRUE(device_->copy(Place::on_host(values.data()), Place::on_device(from),
                              {count * sizeof(T), 1}, stream));
    EXPECT_TRUE(finish(stream));
    device_->destroy_stream(stream);
    return values;
  }

  /// Waits until a kernel has written something to this word. A test that waits in vain runs into
  /// its time limit.
  void wait_for_word(device::Address address) {
    while (read<std::uint32_t>(address, 1)[0] == 0) {
    }
  }

  /// The address of 32-bit word `i` of the arena.
  device::Address word(std::uint64_t i) const { return arena_.base + 4 * i; }

  std::mutex statistics_mutex_;
  std::vector<LaunchStatistics> statistics_;
  device::Module module_{};
  device::AddressRange arena_;
  device::Stream stream_{};
  std::unique_ptr<SimDevice> device_;
};

}  // namespace slate::sim
