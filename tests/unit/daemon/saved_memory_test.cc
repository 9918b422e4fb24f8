#include "daemon/engine/saved_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <vector>

#include "daemon/engine/host_pages.h"
#include "daemon/engine/own_copies.h"
#include "device/device.h"

namespace slate::daemon {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::uint32_t word(std::uint64_t index, std::uint32_t seed) {
  return static_cast<std::uint32_t>(index) * 2654435761u + seed;
}

class SavedMemoryTest : public testing::Test {
 protected:
  /// Mapped device memory.
  device::AddressRange map(std::uint64_t bytes) {
    const device::AddressRange range{*device_->reserve(bytes), bytes};
    EXPECT_TRUE(device_->map(range));
    return range;
  }
  void unmap(device::AddressRange range) {
    EXPECT_TRUE(device_->unmap(range));
    device_->unreserve(range);
  }
  void write(device::AddressRange range, std::uint32_t seed) {
    std::vector<std::uint32_t> words(range.bytes / 4);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = word(i, seed);
    copy(Place::on_device(range.base), Place::on_host(words.data()), range.bytes);
  }
  std::size_t wrong_words(device::AddressRange range, std::uint32_t seed) {
    std::vector<std::uint32_t> words(range.bytes / 4);
    copy(Place::on_host(words.data()), Place::on_device(range.base), range.bytes);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < words.size(); ++i) wrong += words[i] != word(i, seed);
    return wrong;
  }

  const std::unique_ptr<device::Device> device_ =
      std::move(*device::open_device("sim:sms=1,memory=512M"));

 private:
  void copy(const Place& to, const Place& from, std::uint64_t bytes) {
    OwnCopies copies(*device_);
    ASSERT_TRUE(copies.begin(to, from, bytes));
    ASSERT_TRUE(copies.finish());
  }
};

TEST_F(SavedMemoryTest, ItComesBackWordForWordWhateverItsSize) {
  for (const std::uint64_t bytes : {2 * kMiB, 64 * kMiB, 66 * kMiB, 150 * kMiB}) {
    const auto range = map(bytes);
    write(range, 7);
    const auto saved = save_memory(*device_, range);
    ASSERT_TRUE(saved) << saved.error().message;
    write(range, 8);
    ASSERT_TRUE(restore_memory(*device_, range, saved->get()));
    EXPECT_EQ(wrong_words(range, 7), 0u) << bytes;
    unmap(range);
  }
}

TEST(HostPagesTest, PagesAreTakenToTheLastByteAndKeepTheirContents) {
  for (const std::uint64_t bytes : {4096 * 3ul, 5 * kMiB, 70 * kMiB}) {
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    std::memset(memory, 5, 4096);
    EXPECT_TRUE(take_pages(static_cast<std::byte*>(memory), bytes));
    std::vector<unsigned char> resident(bytes / 4096);
    ASSERT_EQ(::mincore(memory, bytes, resident.data()), 0);
    std::size_t there = 0;
    for (const unsigned char each : resident) there += each & 1u;
    EXPECT_EQ(there, resident.size()) << bytes;
    EXPECT_EQ(static_cast<unsigned char*>(memory)[4095], 5);
    EXPECT_EQ(static_cast<unsigned char*>(memory)[4096], 0);
    ::munmap(memory, bytes);
  }
}

TEST(HostPagesTest, AMappingThatCannotBeWrittenHasNone) {
  void* const memory = ::mmap(nullptr, kMiB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_EQ(take_pages(static_cast<std::byte*>(memory), kMiB).error().code,
            ErrorCode::kOutOfMemory);
  ::munmap(memory, kMiB);
}

}  // namespace
}  // namespace slate::daemon
