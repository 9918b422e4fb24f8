#include "daemon/engine/saved_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <future>

#include "daemon/engine/host_pages.h"
#include "daemon/engine/own_copies.h"
#include "ipc/shared_memory.h"

namespace slate::daemon {
namespace {

/// Bytes of one copy. Its time is far below what a device may take to answer.
constexpr std::uint64_t kChunk = 64 << 20;

std::uint64_t chunk_at(std::uint64_t offset, std::uint64_t bytes) {
  return std::min(kChunk, bytes - offset);
}

/// Shared memory as this process sees it.
class Mapping {
 public:
  Mapping(int fd, std::uint64_t bytes)
      : bytes_(bytes), memory_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) {}
  ~Mapping() {
    if (is_there()) ::munmap(memory_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  bool is_there() const { return memory_ != MAP_FAILED; }
  std::byte* at(std::uint64_t offset) const { return static_cast<std::byte*>(memory_) + offset; }

 private:
  const std::uint64_t bytes_;
  void* const memory_;
};

enum class Direction { kToHost, kToDevice };

Result<void> copy_all(device::Device& device, device::AddressRange range, int memory,
                      Direction direction) {
  const Mapping mapping(memory, range.bytes);
  if (!mapping.is_there()) return fail_errno("memory of a suspended session");
  const bool to_host = direction == Direction::kToHost;
  // Pages of the next chunk are taken while this one is copied.
  const auto prepare = [&](std::uint64_t offset) {
    if (!to_host || offset >= range.bytes) return std::future<Result<void>>();
    return std::async(std::launch::async, take_pages, mapping.at(offset),
                      chunk_at(offset, range.bytes));
  };
  auto prepared = prepare(0);
  OwnCopies copies(device);
  for (std::uint64_t offset = 0; offset < range.bytes; offset += kChunk) {
    if (const auto taken = to_host ? prepared.get() : Result<void>(); !taken) return taken;
    prepared = prepare(offset + kChunk);
    const Place on_device = Place::on_device(range.base + offset);
    const Place on_host = Place::on_host(mapping.at(offset));
    const auto begun = copies.begin(to_host ? on_host : on_device, to_host ? on_device : on_host,
                                    chunk_at(offset, range.bytes));
    if (!begun) return begun;
    if (const auto done = copies.finish(); !done) return done;
  }
  return {};
}

}  // namespace

Result<UniqueFd> save_memory(device::Device& device, device::AddressRange range) {
  auto memory = ipc::make_shared_memory("slate-suspended", range.bytes);
  if (!memory) return memory;
  const auto copied = copy_all(device, range, memory->get(), Direction::kToHost);
  if (!copied) return std::unexpected(copied.error());
  return memory;
}

Result<void> restore_memory(device::Device& device, device::AddressRange range, int saved) {
  return copy_all(device, range, saved, Direction::kToDevice);
}

}  // namespace slate::daemon
