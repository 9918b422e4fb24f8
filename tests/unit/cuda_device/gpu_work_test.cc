// Launches, streams and events on a GPU.
#include <thread>

#include "gpu_fixture.h"

namespace slate::cuda {
namespace {

using GpuWorkTest = GpuTest;

TEST_F(GpuWorkTest, AKernelFromPtxComputes) {
  constexpr std::uint32_t kCount = 100'000;
  std::vector<float> a(kCount), b(kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    a[i] = static_cast<float>(i);
    b[i] = 0.5F * static_cast<float>(i % 1000);
  }
  const device::Address a_at = arena_.base;
  const device::Address b_at = a_at + kCount * sizeof(float);
  const device::Address c_at = b_at + kCount * sizeof(float);
  write(a_at, a);
  write(b_at, b);
  Parameters parameters;
  parameters.add(a_at).add(b_at).add(c_at).add(kCount);
  const auto launched = device_->launch({.function = kernel("add"),
                                         .grid = {(kCount + 255) / 256},
                                         .block = {256},
                                         .parameters = parameters.bytes()},
                                        stream_);
  ASSERT_TRUE(launched) << launched.error().message;
  const auto c = read<float>(c_at, kCount + 1);
  for (std::uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(c[i], a[i] + b[i]) << i;
  EXPECT_EQ(c[kCount], 0.0F);  // the surplus threads wrote nothing
}

// c := a + b and a := c + b, with ever other b, in rows of all lengths: each launch needs the
// result of the one before it, and its own parameters.
TEST_F(GpuWorkTest, LaunchesThatComeAgainRunInOrderWithTheirOwnParameters) {
  constexpr std::uint32_t kCount = 1000;
  constexpr std::uint32_t kKinds = 7;
  const std::uint64_t bytes = kCount * sizeof(float);
  const device::Address a_at = arena_.base, c_at = a_at + bytes, b_at = c_at + bytes;
  for (std::uint32_t kind = 0; kind < kKinds; ++kind)
    write(b_at + kind * bytes, std::vector<float>(kCount, static_cast<float>(kind)));
  const device::Function add = kernel("add");
  float sum = 0;
  std::uint32_t made = 0;
  for (std::size_t round = 0; round < 200; ++round) {
    std::vector<Parameters> parameters;
    for (std::size_t i = 0; i < 1 + round % 23; ++i, ++made) {
      const std::uint32_t kind = made % kKinds;
      sum += static_cast<float>(kind);
      parameters.emplace_back()
          .add(made % 2 == 0 ? a_at : c_at)
          .add(b_at + kind * bytes)
          .add(made % 2 == 0 ? c_at : a_at)
          .add(kCount);
    }
    std::vector<device::LaunchSpec> specs;
    for (const Parameters& its : parameters) {
      specs.push_back({.function = add,
                       .grid = {(kCount + 255) / 256},
                       .block = {256},
                       .parameters = its.bytes()});
    }
    ASSERT_TRUE(device_->launch_row(specs, stream_));
  }
  const auto result = read<float>(made % 2 == 0 ? a_at : c_at, kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(result[i], sum) << i;
}

// One of many blocks of a kernel that goes on is on every SM, so its shared memory is of a size
// that the others can do with, too.
TEST_F(GpuWorkTest, LaunchesBesideAKernelThatGoesOnDoNotWaitForIt) {
  constexpr std::uint32_t kCarveout = 50;
  const device::Function count = kernel("count");
  const device::Stream other = device_->create_stream(0).value();
  const device::Event end = device_->create_event(false).value();
  Parameters parameters;
  parameters.add(arena_.base);
  const auto sms = static_cast<std::uint32_t>(sm_count(device_->info()));
  ASSERT_TRUE(device_->launch({.function = kernel("await"),
                               .grid = {sms},
                               .block = {512},
                               .parameters = parameters.bytes(),
                               .carveout = kCarveout},
                              other));
  ASSERT_TRUE(device_->record(end, other));
  // One by one at first, then as graphs that are made now.
  for (std::uint32_t blocks = 1; blocks < 30; ++blocks) {
    const std::vector<device::LaunchSpec> specs(
        16, {.function = count, .grid = {blocks}, .carveout = kCarveout});
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(device_->launch_row(specs, stream_));
    finish(stream_);
  }
  EXPECT_FALSE(device_->query(end).value());
  ASSERT_TRUE(device_->fill(arena_.base, 0, 1, {4, 1}, stream_));
  finish(other);
  device_->destroy_event(end);
  device_->destroy_stream(other);
}

// Blocks of 0.2 ms, 300 for each place on the device: those of a stream that came later would wait
// for the end of all of them.
TEST_F(GpuWorkTest, LaunchesThatGoAheadPassBlocksThatWait) {
  const device::Function count = kernel("count");
  const device::Stream other = device_->create_stream(0).value();
  const device::Event end = device_->create_event(false).value();
  const auto sms = static_cast<std::uint32_t>(sm_count(device_->info()));
  Parameters parameters;
  parameters.add(arena_.base).add(std::uint32_t{1}).add(kMillisecond / 5);
  ASSERT_TRUE(device_->launch({.function = kernel("late_store"),
                               .grid = {sms * 2 * 300},
                               .block = {1024},
                               .parameters = parameters.bytes()},
                              other));
  ASSERT_TRUE(device_->record(end, other));
  // By themselves and in a row, plainly and as graphs.
  for (int i = 0; i < 5; ++i) {
    const std::vector<device::LaunchSpec> specs(4, {.function = count, .grid = {3}, .ahead = true});
    ASSERT_TRUE(device_->launch(specs.front(), stream_));
    ASSERT_TRUE(device_->launch_row(specs, stream_));
    finish(stream_);
    EXPECT_FALSE(device_->query(end).value()) << i;
  }
  finish(other);
  device_->destroy_event(end);
  device_->destroy_stream(other);
}

TEST_F(GpuWorkTest, MixedParametersArriveAtTheirOffsets) {
  std::vector<std::byte> packed(37);
  const std::uint32_t last_word = 0xfeedbeef;
  std::memcpy(packed.data() + 8, &arena_.base, 8);
  std::memcpy(packed.data() + 28, &last_word, 4);
  packed[36] = std::byte{0x42};
  const auto launched =
      device_->launch({.function = kernel("mixed"), .parameters = packed}, stream_);
  ASSERT_TRUE(launched) << launched.error().message;
  EXPECT_EQ(read<std::uint32_t>(arena_.base, 2), (std::vector<std::uint32_t>{0x42, last_word}));
}

TEST_F(GpuWorkTest, AnImpossibleBlockIsAnInvalidConfigurationAndHarmless) {
  const auto launched = device_->launch({.function = kernel("count"), .block = {2048}}, stream_);
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().code, ErrorCode::kInvalidConfiguration);
  EXPECT_FALSE(device_->lost());
  EXPECT_TRUE(device_->launch({.function = kernel("count")}, stream_));
}

TEST_F(GpuWorkTest, AnEventIsReachedWhenTheWorkBeforeItIs) {
  const device::Stream other = device_->create_stream(0).value();
  const device::Event event = device_->create_event(false).value();
  EXPECT_TRUE(device_->query(event).value());  // never recorded
  Parameters parameters;
  parameters.add(arena_.base);
  ASSERT_TRUE(
      device_->launch({.function = kernel("await"), .parameters = parameters.bytes()}, stream_));
  ASSERT_TRUE(device_->record(event, stream_));
  EXPECT_FALSE(device_->query(event).value());
  ASSERT_TRUE(device_->fill(arena_.base, 0, 1, {4, 1}, other));
  finish(stream_);
  EXPECT_TRUE(device_->query(event).value());
  device_->destroy_event(event);
  device_->destroy_stream(other);
}

TEST_F(GpuWorkTest, TimedEventsMeasureTheWorkBetweenThem) {
  expect_events_to_measure(stream_);
}

TEST_F(GpuWorkTest, EventsWithoutTimingHaveNoElapsedTime) {
  const device::Event event = device_->create_event(false).value();
  ASSERT_TRUE(device_->record(event, stream_));
  finish(stream_);
  EXPECT_FALSE(device_->elapsed_ms(event, event));
  EXPECT_FALSE(device_->lost());
  device_->destroy_event(event);
}

TEST_F(GpuWorkTest, AStreamWaitsForAnothersEvent) {
  const device::Stream other = device_->create_stream(-1).value();
  const device::Event event = device_->create_event(false).value();
  const device::Address copy = arena_.base + 256;
  Parameters parameters;
  parameters.add(arena_.base).add(std::uint32_t{77}).add(50 * kMillisecond);
  ASSERT_TRUE(device_->launch({.function = kernel("late_store"), .parameters = parameters.bytes()},
                              stream_));
  ASSERT_TRUE(device_->record(event, stream_));
  ASSERT_TRUE(device_->wait(other, event));
  ASSERT_TRUE(device_->copy(Place::on_device(copy), Place::on_device(arena_.base), {4, 1}, other));
  finish(other);
  EXPECT_EQ(read<std::uint32_t>(copy, 1).front(), 77);
  device_->destroy_event(event);
  device_->destroy_stream(other);
}

TEST_F(GpuWorkTest, ADestroyedStreamFinishesItsWork) {
  const device::Stream other = device_->create_stream(0).value();
  const device::Event event = device_->create_event(false).value();
  Parameters parameters;
  parameters.add(arena_.base).add(std::uint32_t{5}).add(50 * kMillisecond);
  ASSERT_TRUE(
      device_->launch({.function = kernel("late_store"), .parameters = parameters.bytes()}, other));
  ASSERT_TRUE(device_->record(event, other));
  device_->destroy_stream(other);
  ASSERT_TRUE(device_->wait(stream_, event));
  EXPECT_EQ(read<std::uint32_t>(arena_.base, 1).front(), 5);
  device_->destroy_event(event);
}

TEST_F(GpuWorkTest, ThreadsShareTheDevice) {
  constexpr std::uint32_t kThreads = 8;
  constexpr std::uint32_t kLaunches = 200;
  const device::Module module = load(kTestPtx).value();
  const device::Function count = device_->find_function(module, "count").value();
  const device::AddressRange counters = device_->find_global(module, "counters").value();
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const device::Stream stream = device_->create_stream(0).value();
      for (std::uint32_t n = 0; n < kLaunches; ++n) {
        EXPECT_TRUE(device_->launch({.function = count}, stream));
      }
      finish(stream);
      device_->destroy_stream(stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read<std::uint32_t>(counters.base, 4)[2], kThreads * kLaunches);
  device_->unload_module(module);
}

}  // namespace
}  // namespace slate::cuda
