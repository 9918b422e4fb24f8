#include "tests/unit/heap/heap_fixture.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "device/cuda/cuda_device.h"
#include "injector/link/builtins.h"

namespace slate::test {
namespace {

constexpr std::uint64_t kAlign = 256;

/// The kernels as libslate would send them.
std::string kernels() {
  const char* const elsewhere = std::getenv("SLATE_TEST_HEAP_KERNELS");
  std::ifstream in(elsewhere != nullptr ? elsewhere : SLATE_HEAP_KERNELS);
  EXPECT_TRUE(in) << "the kernels are not where they were built, nor at SLATE_TEST_HEAP_KERNELS";
  std::ostringstream text;
  text << in.rdbuf();
  auto linked = ptx::with_builtins(text.str());
  EXPECT_TRUE(linked && linked->allocates && !linked->prints);
  return linked ? linked->text : "";
}

}  // namespace

void HeapTest::SetUp() {
  if (on_gpu() && !cuda::driver_finds_a_gpu()) GTEST_SKIP() << "no GPU";
  auto device = device::open_device(GetParam());
  ASSERT_TRUE(device) << device.error().message;
  device_ = std::move(*device);
  const std::string text = kernels();
  const auto module = device_->load_module(device::ImageKind::kPtx, std::as_bytes(std::span(text)));
  ASSERT_TRUE(module) << module.error().message;
  module_ = *module;
  stream_ = *device_->create_stream(0);
  const std::uint64_t unit = device_->granularity();
  arena_.bytes = (kDataBytes + ptx::heap_layout(8 << 20).bytes + unit - 1) / unit * unit;
  arena_.base = device_->reserve(arena_.bytes).value_or(0);
  const auto mapped = device_->map(arena_);
  ASSERT_TRUE(mapped) << mapped.error().message;
}

void HeapTest::TearDown() {
  if (device_ == nullptr) return;
  device_->destroy_stream(stream_);
  device_->unload_module(module_);
  EXPECT_TRUE(device_->unmap(arena_));
  device_->unreserve(arena_);
}

void HeapTest::make_heap(std::uint64_t bytes) {
  const ptx::HeapLayout layout = ptx::heap_layout(bytes);
  const device::Address at = arena_.base + kDataBytes;
  ASSERT_LE(kDataBytes + layout.bytes, arena_.bytes);
  // What was there before must not matter.
  ASSERT_TRUE(device_->fill(at, 0, 0x5a, {layout.bytes, 1}, stream_));
  ASSERT_TRUE(device_->fill(at, 0, 0, {layout.book_bytes, 1}, stream_));
  const ptx::HeapHeader header = layout.header_at(at);
  const std::uint32_t hint = layout.last_hint();
  copy(at, &header, sizeof(header));
  copy(at + ptx::kHeapLastHint, &hint, sizeof(hint));
  const auto variable = device_->find_global(module_, std::string(ptx::kHeapVariable));
  ASSERT_TRUE(variable) << variable.error().message;
  copy(variable->base, &at, sizeof(at));
  heap_ = {header.base, header.pages * ptx::kHeapPageBytes};
  EXPECT_LE(header.classes + header.pages * 4, header.base);
  EXPECT_EQ(heap_.base + heap_.bytes, at + layout.bytes);
  data_used_ = 0;
}

void HeapTest::forget_heap() {
  const auto variable = device_->find_global(module_, std::string(ptx::kHeapVariable));
  ASSERT_TRUE(variable) << variable.error().message;
  const device::Address none = 0;
  copy(variable->base, &none, sizeof(none));
}

std::vector<std::uint64_t> HeapTest::allocate(const std::vector<std::uint64_t>& bytes) {
  const device::Address pieces = space_for<std::uint64_t>(bytes.size());
  run("allocate", 1, 1, copy_of(bytes), static_cast<std::uint32_t>(bytes.size()), pieces);
  return read<std::uint64_t>(pieces, bytes.size());
}

void HeapTest::release(const std::vector<std::uint64_t>& pieces) {
  run("release", 1, 1, copy_of(pieces), static_cast<std::uint32_t>(pieces.size()));
}

bool HeapTest::is_empty() {
  const auto all = allocate({heap_.bytes});
  release(all);
  return all[0] == heap_.base;
}

void HeapTest::launch(const std::string& kernel, std::uint32_t blocks, std::uint32_t threads,
                      const std::vector<std::byte>& parameters) {
  const auto function = device_->find_function(module_, kernel);
  ASSERT_TRUE(function) << function.error().message;
  device::LaunchSpec spec;
  spec.function = *function;
  spec.grid = {blocks, 1, 1};
  spec.block = {threads, 1, 1};
  spec.parameters = parameters;
  spec.arena = arena_;
  const auto launched = device_->launch(spec, stream_);
  ASSERT_TRUE(launched) << launched.error().message;
  finish();
}

device::Address HeapTest::take_data(std::size_t bytes) {
  const device::Address at = arena_.base + data_used_;
  data_used_ += (bytes + kAlign - 1) / kAlign * kAlign;
  EXPECT_LE(data_used_, kDataBytes);
  EXPECT_TRUE(device_->fill(at, 0, 0, {bytes, 1}, stream_));
  return at;
}

void HeapTest::copy(device::Address to, const void* from, std::size_t bytes) {
  ASSERT_TRUE(device_->copy(Place::on_device(to), Place::on_host(from), {bytes, 1}, stream_));
  finish();
}

void HeapTest::copy_back(void* to, device::Address from, std::size_t bytes) {
  ASSERT_TRUE(device_->copy(Place::on_host(to), Place::on_device(from), {bytes, 1}, stream_));
  finish();
}

void HeapTest::finish() {
  const auto event = device_->create_event(false);
  ASSERT_TRUE(event);
  ASSERT_TRUE(device_->record(*event, stream_));
  Result<bool> reached = device_->query(*event);
  while (reached && !*reached) {
    device_->wait_for_progress(std::chrono::milliseconds(100));
    reached = device_->query(*event);
  }
  device_->destroy_event(*event);
  ASSERT_TRUE(reached) << reached.error().message;
}

}  // namespace slate::test
