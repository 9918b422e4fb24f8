// Opening, mapping, copies and fills on a GPU.
#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "gpu_fixture.h"

namespace slate::cuda {
namespace {

using device::AddressRange;

using GpuMemoryTest = GpuTest;

bool all_zero(const std::vector<std::uint8_t>& bytes) {
  return std::ranges::all_of(bytes, [](std::uint8_t byte) { return byte == 0; });
}

std::vector<std::uint8_t> pattern(std::size_t bytes) {
  std::vector<std::uint8_t> values(bytes);
  for (std::size_t i = 0; i < bytes; ++i) values[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
  return values;
}

TEST_F(GpuMemoryTest, InfoDescribesTheGpu) {
  const DeviceInfo& info = device_->info();
  EXPECT_GT(std::strlen(info.name), 0);
  EXPECT_GT(info.total_memory, std::uint64_t{1} << 30);
  EXPECT_GE(info.driver_version, 12080);
  EXPECT_EQ(info.is_simulated, 0);
  EXPECT_EQ(std::strlen(info.pci_bus_id), 12) << info.pci_bus_id;
  EXPECT_FALSE(std::ranges::all_of(info.uuid, [](std::uint8_t byte) { return byte == 0; }));
  EXPECT_EQ(info.attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE], 32);
  EXPECT_GE(info.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT], 1);
  EXPECT_GE(info.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR], 8);
  EXPECT_EQ(info.attributes[kDeviceAttributeCount - 1], 0);
  EXPECT_FALSE(device_->lost());
}

TEST_F(GpuMemoryTest, FreeMemoryFallsByWhatIsMapped) {
  const AddressRange big{.base = device_->reserve(std::uint64_t{1} << 30).value(),
                         .bytes = std::uint64_t{1} << 30};
  const auto before = device_->free_memory();
  ASSERT_TRUE(device_->map(big));
  const auto after = device_->free_memory();
  ASSERT_TRUE(before && after);
  EXPECT_LT(*after, *before);
  EXPECT_LE(*before, device_->info().total_memory);
  ASSERT_TRUE(device_->unmap(big));
  device_->unreserve(big);
}

TEST_F(GpuMemoryTest, MemoryMappedAgainAtTheSameAddressReadsAsZero) {
  EXPECT_TRUE(all_zero(read<std::uint8_t>(arena_.base, arena_.bytes)));
  ASSERT_TRUE(device_->fill(arena_.base, 0, 0xee, {arena_.bytes, 1}, stream_));
  finish(stream_);
  EXPECT_FALSE(all_zero(read<std::uint8_t>(arena_.base, arena_.bytes)));
  ASSERT_TRUE(device_->unmap(arena_));
  ASSERT_TRUE(device_->map(arena_));
  EXPECT_TRUE(all_zero(read<std::uint8_t>(arena_.base, arena_.bytes)));
}

TEST_F(GpuMemoryTest, AdjacentMappingsAreOneRangeToACopy) {
  const std::uint64_t chunk = device_->granularity();
  const AddressRange range{.base = device_->reserve(2 * chunk).value(), .bytes = 2 * chunk};
  ASSERT_TRUE(device_->map({.base = range.base, .bytes = chunk}));
  ASSERT_TRUE(device_->map({.base = range.base + chunk, .bytes = chunk}));
  const auto values = pattern(4096);
  write(range.base + chunk - 2048, values);
  EXPECT_EQ(read<std::uint8_t>(range.base + chunk - 2048, 4096), values);
  ASSERT_TRUE(device_->unmap({.base = range.base, .bytes = chunk}));
  EXPECT_EQ(read<std::uint8_t>(range.base + chunk, 2048),
            std::vector<std::uint8_t>(values.begin() + 2048, values.end()));
  ASSERT_TRUE(device_->unmap({.base = range.base + chunk, .bytes = chunk}));
  device_->unreserve(range);
}

TEST_F(GpuMemoryTest, MemoryMappedAgainIsTheSameAndTakesNoMore) {
  const std::uint64_t chunk = device_->granularity();
  const AddressRange range{.base = device_->reserve(5 * chunk).value(), .bytes = 5 * chunk};
  ASSERT_TRUE(device_->map({.base = range.base, .bytes = chunk}));
  const auto before = device_->free_memory();
  ASSERT_TRUE(device_->map_again({.base = range.base + 2 * chunk, .bytes = chunk}, range.base));
  EXPECT_EQ(device_->free_memory().value(), before.value());
  EXPECT_TRUE(all_zero(read<std::uint8_t>(range.base + 2 * chunk, chunk)));
  const auto values = pattern(4096);
  write(range.base + 2 * chunk, values);
  EXPECT_EQ(read<std::uint8_t>(range.base, 4096), values);
  ASSERT_TRUE(device_->unmap({.base = range.base, .bytes = chunk}));
  EXPECT_EQ(read<std::uint8_t>(range.base + 2 * chunk, 4096), values);
  ASSERT_TRUE(
      device_->map_again({.base = range.base + 4 * chunk, .bytes = chunk}, range.base + 2 * chunk));
  EXPECT_EQ(read<std::uint8_t>(range.base + 4 * chunk, 4096), values);
  ASSERT_TRUE(device_->unmap({.base = range.base + 2 * chunk, .bytes = chunk}));
  ASSERT_TRUE(device_->unmap({.base = range.base + 4 * chunk, .bytes = chunk}));
  device_->unreserve(range);
}

TEST_F(GpuMemoryTest, ExportedMemoryOutlivesItsMapping) {
  const std::uint64_t chunk = device_->granularity();
  const AddressRange range{.base = device_->reserve(4 * chunk).value(), .bytes = 4 * chunk};
  const AddressRange first{.base = range.base, .bytes = chunk};
  const AddressRange second{.base = range.base + 2 * chunk, .bytes = chunk};
  ASSERT_TRUE(device_->map(first));
  const auto values = pattern(4096);
  write(first.base, values);
  const auto exported = device_->export_memory(first);
  ASSERT_TRUE(exported) << exported.error().message;
  ASSERT_TRUE(device_->unmap(first));
  ASSERT_TRUE(device_->map_exported(second, exported->get()));
  EXPECT_EQ(read<std::uint8_t>(second.base, 4096), values);
  ASSERT_TRUE(device_->unmap(second));
  device_->unreserve(range);
}

TEST_F(GpuMemoryTest, AddressesInASessionsWindowAreGranted) {
  std::vector<AddressRange> reserved;
  for (const std::uint64_t most : {device_->info().total_memory, std::uint64_t{2} << 40}) {
    for (const std::uint64_t session : {1, 2, 7, 11}) {
      const auto window = device_->window_of(session, most).reservation;
      EXPECT_GE(window.bytes, most);
      const auto base = device_->reserve_at(window.bytes, 0, window.base);
      ASSERT_TRUE(base) << base.error().message;
      EXPECT_EQ(*base, window.base) << session;
      reserved.push_back({.base = *base, .bytes = window.bytes});
    }
    for (const AddressRange range : std::exchange(reserved, {})) device_->unreserve(range);
  }
}

TEST_F(GpuMemoryTest, MappingTwiceIsRefusedAndLosesNothing) {
  const auto values = pattern(64);
  write(arena_.base, values);
  EXPECT_FALSE(device_->map(arena_));
  EXPECT_EQ(read<std::uint8_t>(arena_.base, 64), values);
}

TEST_F(GpuMemoryTest, MoreThanThereIsIsOutOfMemory) {
  const std::uint64_t chunk = device_->granularity();
  const std::uint64_t bytes = (device_->info().total_memory / chunk + 1) * chunk;
  const AddressRange huge{.base = device_->reserve(bytes).value(), .bytes = bytes};
  const auto mapped = device_->map(huge);
  ASSERT_FALSE(mapped);
  EXPECT_EQ(mapped.error().code, ErrorCode::kOutOfMemory) << mapped.error().message;
  EXPECT_FALSE(device_->lost());
  device_->unreserve(huge);
  EXPECT_TRUE(all_zero(read<std::uint8_t>(arena_.base, 64)));
}

TEST_F(GpuMemoryTest, PageableMemoryIsCopiedBothWays) {
  const auto values = pattern(3'000'001);
  write(arena_.base + 3, values);
  EXPECT_EQ(read<std::uint8_t>(arena_.base + 3, values.size()), values);
}

TEST_F(GpuMemoryTest, RegisteredMemoryIsCopiedBothWays) {
  constexpr std::size_t kBytes = 1 << 20;
  void* host =
      ::mmap(nullptr, 2 * kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(host, MAP_FAILED);
  const auto registered = device_->register_host(host, 2 * kBytes);
  ASSERT_TRUE(registered) << registered.error().message;
  EXPECT_FALSE(device_->register_host(host, 2 * kBytes));  // once only

  auto* from = static_cast<std::uint8_t*>(host);
  const auto values = pattern(kBytes);
  std::ranges::copy(values, from);
  ASSERT_TRUE(
      device_->copy(Place::on_device(arena_.base), Place::on_host(from), {kBytes, 1}, stream_));
  ASSERT_TRUE(device_->copy(Place::on_host(from + kBytes), Place::on_device(arena_.base),
                            {kBytes, 1}, stream_));
  finish(stream_);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), from + kBytes));

  device_->unregister_host(host);
  EXPECT_TRUE(device_->register_host(host, 2 * kBytes));  // so it really was given back
  device_->unregister_host(host);
  ::munmap(host, 2 * kBytes);
}

TEST_F(GpuMemoryTest, SharedMemoryIsReachedByTheDeviceAtTheHostsAddress) {
  constexpr std::size_t kBytes = 1 << 20;
  const int fd = ::memfd_create("slate-test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(fd, kBytes), 0);
  const auto address = device_->map_host(fd, kBytes, 0);
  ASSERT_TRUE(address) << address.error().message;
  const auto values = pattern(kBytes);
  ASSERT_EQ(::pwrite(fd, values.data(), kBytes, 0), ssize_t{kBytes});
  // As the host's half of a copy, and as an address on the device.
  const void* const host = reinterpret_cast<void*>(*address);
  ASSERT_TRUE(
      device_->copy(Place::on_device(arena_.base), Place::on_host(host), {kBytes, 1}, stream_));
  ASSERT_TRUE(device_->fill(*address + 16, 0, 9, {16, 1}, stream_));
  finish(stream_);
  EXPECT_EQ(read<std::uint8_t>(arena_.base, kBytes), values);
  std::uint8_t filled[16] = {};
  ASSERT_EQ(::pread(fd, filled, sizeof(filled), 16), ssize_t{sizeof(filled)});
  EXPECT_TRUE(std::ranges::all_of(filled, [](std::uint8_t byte) { return byte == 9; }));
  device_->unmap_host({*address, kBytes});
  ::close(fd);
}

TEST_F(GpuMemoryTest, RectanglesTouchOnlyTheirRows) {
  constexpr Box kShape{.width = 13, .height = 5};
  const auto values = pattern(20 * kShape.height);
  ASSERT_TRUE(device_->fill(arena_.base, 0, 0xff, {4096, 1}, stream_));
  ASSERT_TRUE(device_->copy(Place::on_device(arena_.base, 100), Place::on_host(values.data(), 20),
                            kShape, stream_));
  ASSERT_TRUE(device_->copy(Place::on_device(arena_.base + 1024, 37),
                            Place::on_device(arena_.base, 100), kShape, stream_));
  std::vector<std::uint8_t> back(17 * kShape.height, 0x55);
  ASSERT_TRUE(device_->copy(Place::on_host(back.data(), 17),
                            Place::on_device(arena_.base + 1024, 37), kShape, stream_));
  finish(stream_);
  const auto on_device = read<std::uint8_t>(arena_.base, 4096);
  for (std::size_t row = 0; row < kShape.height; ++row) {
    for (std::size_t x = 0; x < 17; ++x) {
      const bool inside = x < kShape.width;
      const std::uint8_t value = values[row * 20 + x];
      EXPECT_EQ(back[row * 17 + x], inside ? value : 0x55) << row << ", " << x;
      EXPECT_EQ(on_device[row * 100 + x], inside ? value : 0xff) << row << ", " << x;
    }
  }
}

TEST_F(GpuMemoryTest, FillsTouchOnlyTheirBytes) {
  struct Case {
    std::uint64_t offset, pitch;
    Box shape;
  };
  for (const Case& c :
       {Case{4, 0, {16, 1}}, Case{3, 0, {17, 1}}, Case{8, 32, {12, 3}}, Case{5, 33, {7, 3}}}) {
    ASSERT_TRUE(device_->fill(arena_.base, 0, 0, {256, 1}, stream_));
    ASSERT_TRUE(device_->fill(arena_.base + c.offset, c.pitch, 0xa7, c.shape, stream_));
    std::vector<std::uint8_t> expected(256, 0);
    for (std::uint64_t row = 0; row < c.shape.height; ++row) {
      const auto start = expected.begin() + static_cast<std::ptrdiff_t>(c.offset + row * c.pitch);
      std::fill_n(start, c.shape.width, 0xa7);
    }
    EXPECT_EQ(read<std::uint8_t>(arena_.base, 256), expected) << "offset " << c.offset;
  }
}

}  // namespace
}  // namespace slate::cuda
