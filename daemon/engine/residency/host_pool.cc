#include "daemon/engine/residency/host_pool.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/sizes.h"
#include "daemon/engine/host_pages.h"
#include "ipc/shared_memory.h"

namespace slate::daemon {
namespace {

/// Extents begin at multiples of it, which is the least that a device maps.
constexpr std::uint64_t kGrain = 2 << 20;

Result<UniqueFd> make_file(const std::string& directory, std::uint64_t bytes) {
  UniqueFd fd(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) return fail_errno("a file for swapped memory in " + directory);
  if (const auto taken = ipc::populate(fd.get(), 0, bytes); !taken)
    return std::unexpected(taken.error());
  return fd;
}

/// Bytes that the system could give without taking them from programs; 0: unknown.
std::uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  for (std::uint64_t kib = 0; file >> name >> kib;) {
    if (name == "MemAvailable:") return kib << 10;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

}  // namespace

/// Its free bytes are the pool's, under the pool's mutex.
class HostPool::Chunk {
 public:
  static Result<std::shared_ptr<Chunk>> map(UniqueFd fd, std::uint64_t offset,
                                            std::uint64_t bytes) {
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(),
                                static_cast<off_t>(offset));
    if (memory == MAP_FAILED) return fail_errno("memory for what is not on the device");
    return std::make_shared<Chunk>(std::move(fd), offset, static_cast<std::byte*>(memory), bytes);
  }

  Chunk(UniqueFd fd, std::uint64_t begin, std::byte* memory, std::uint64_t bytes)
      : fd_(std::move(fd)), begin_(begin), memory_(memory), bytes_(bytes), free_{{0, bytes}} {}
  ~Chunk() {
    if (is_pinned()) pinned_by_->unregister_host(memory_);
    ::munmap(memory_, bytes_);
  }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  int fd() const { return fd_.get(); }
  std::uint64_t bytes() const { return bytes_; }
  /// The byte at an offset in the descriptor's memory.
  std::byte* at(std::uint64_t offset) const { return memory_ + (offset - begin_); }
  bool pin(device::Device& device) {
    if (device.register_host(memory_, bytes_)) pinned_by_ = &device;
    return is_pinned();
  }
  bool is_pinned() const { return pinned_by_ != nullptr; }
  bool is_used() const { return used_ > 0; }

  /// The lowest place with room.
  std::optional<std::uint64_t> take(std::uint64_t wanted) {
    for (const auto& [offset, room] : free_) {
      if (room < wanted) continue;
      const std::uint64_t at = offset, rest = room - wanted;
      free_.erase(at);
      if (rest > 0) free_.emplace(at + wanted, rest);
      used_ += wanted;
      return at;
    }
    return std::nullopt;
  }
  void give(std::uint64_t offset, std::uint64_t given) {
    used_ -= given;
    auto next = free_.lower_bound(offset);
    if (next != free_.end() && next->first == offset + given) {
      given += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += given;
        return;
      }
    }
    free_.emplace(offset, given);
  }
  /// The bytes are neither used here nor free.
  void leave(std::uint64_t left) { used_ -= left; }

 private:
  const UniqueFd fd_;
  const std::uint64_t begin_;  // where the memory is in the descriptor's
  std::byte* const memory_;
  const std::uint64_t bytes_;
  std::uint64_t used_ = 0;
  std::map<std::uint64_t, std::uint64_t> free_;  // bytes by offset
  device::Device* pinned_by_ = nullptr;
};

std::byte* HostPool::Extent::memory() const {
  return chunk->at(offset);
}

int HostPool::Extent::fd() const {
  return chunk->fd();
}

HostPool::HostPool(device::Device& device, Settings settings)
    : device_(device), settings_(std::move(settings)), thread_([this] { run(); }) {}

HostPool::~HostPool() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  wishes_.notify_all();
  thread_.join();
}

void HostPool::run() {
  MutexLock lock(mutex_);
  while (true) {
    wishes_.wait(lock, [&]() SLATE_REQUIRES(mutex_) { return ending_ || ahead_ > bytes_; });
    if (ending_) return;
    const std::uint64_t wish = std::min(ahead_, bytes_ + settings_.chunk);
    lock.unlock();
    const auto grown = grow_to(wish);
    lock.lock();
    if (!grown) {
      ahead_ = 0;
      is_full_ = true;
    }
    grown_.notify_all();
  }
}

Result<std::shared_ptr<HostPool::Chunk>> HostPool::make_chunk(std::uint64_t bytes) {
  const bool may_pin = counts().pinned + bytes <= settings_.pinned;
  const bool in_memory = may_pin || settings_.directory.empty();
  auto fd = in_memory ? ipc::make_shared_memory("slate-swap", bytes)
                      : make_file(settings_.directory, bytes);
  if (!fd) return std::unexpected(fd.error());
  auto chunk = Chunk::map(std::move(*fd), 0, bytes);
  if (!chunk) return chunk;
  if (in_memory) {
    if (const auto taken = take_pages((*chunk)->at(0), bytes); !taken)
      return std::unexpected(taken.error());
  }
  if (may_pin && !(*chunk)->pin(device_))
    log_warning("{} MiB for swapped memory are not pinned, so moves are slow", bytes >> 20);
  return chunk;
}

Result<void> HostPool::grow_to(std::uint64_t bytes) {
  return grow(bytes, settings_.chunk);
}

/// `chunk_bytes`: the most of a new chunk.
Result<void> HostPool::grow(std::uint64_t bytes, std::uint64_t chunk_bytes) {
  const MutexLock growing(growing_);
  while (true) {
    const std::uint64_t present = counts().bytes;
    if (present >= bytes) return {};
    auto chunk =
        make_chunk(std::min(chunk_bytes, round_up(bytes - present, std::min(kGrain, chunk_bytes))));
    if (!chunk) return std::unexpected(chunk.error());
    const MutexLock lock(mutex_);
    bytes_ += (*chunk)->bytes();
    if ((*chunk)->is_pinned()) pinned_ += (*chunk)->bytes();
    chunks_.push_back(std::move(*chunk));
  }
}

void HostPool::grow_ahead(std::uint64_t bytes) {
  {
    const MutexLock lock(mutex_);
    if (bytes <= ahead_ || bytes <= bytes_) return;
    ahead_ = bytes;
  }
  wishes_.notify_all();
}

bool HostPool::can_grow_to(std::uint64_t bytes) const {
  const Counts now = counts();
  if (bytes > settings_.pinned && !settings_.directory.empty()) return false;
  const std::uint64_t more = difference(bytes, now.bytes);
  return more == 0 || available_memory() >= more + more / 2;
}

std::uint64_t HostPool::ready() const {
  const MutexLock lock(mutex_);
  return ahead_ > bytes_ ? bytes_ - used_ : std::numeric_limits<std::uint64_t>::max();
}

bool HostPool::owns(const Extent& extent) const {
  return std::ranges::find(chunks_, extent.chunk) != chunks_.end();
}

std::optional<HostPool::Extent> HostPool::take_present(std::uint64_t bytes) {
  for (const auto& chunk : chunks_) {
    if (const auto at = chunk->take(bytes)) {
      used_ += bytes;
      return Extent{chunk, *at, bytes};
    }
  }
  return std::nullopt;
}

/// Ends the oldest copies until there is room. Then the pool should grow, so that there is room for
/// both: later, as that takes long.
std::optional<HostPool::Extent> HostPool::take_kept(std::uint64_t bytes) {
  std::uint64_t ended = 0;
  while (!kept_.empty()) {
    const Extent oldest = kept_.extract(kept_.begin()).mapped();
    oldest.chunk->give(oldest.offset, oldest.bytes);
    kept_bytes_ -= oldest.bytes;
    ended += oldest.bytes;
    if (auto extent = take_present(bytes)) {
      if (!is_full_) ahead_ = std::max(ahead_, std::min(settings_.most, bytes_ + ended));
      wishes_.notify_all();
      return extent;
    }
  }
  return std::nullopt;
}

Result<HostPool::Extent> HostPool::take(std::uint64_t bytes) {
  const std::uint64_t size = round_up(bytes, kGrain);
  const std::uint64_t chunk_bytes = std::max(size, settings_.chunk);
  while (true) {
    std::uint64_t present = 0;
    {
      MutexLock lock(mutex_);
      auto extent = take_present(size);
      if (!extent) extent = take_kept(size);
      if (extent) return *std::move(extent);
      // The thread's next chunk is there soon. Behind it in the queue for growing_ it would take
      // long.
      if (ahead_ > bytes_ && !ending_) {
        grown_.wait(lock);
        continue;
      }
      present = bytes_;
    }
    if (const auto grown = grow(present + chunk_bytes, chunk_bytes); !grown) {
      const auto less = grow(present + size, chunk_bytes);
      if (!less) return std::unexpected(less.error());
    }
  }
}

void HostPool::give(Extent extent) {
  const MutexLock lock(mutex_);
  // An adopted chunk is no chunk of the pool, and goes with its extents.
  if (!owns(extent)) return;
  extent.chunk->give(extent.offset, extent.bytes);
  used_ -= extent.bytes;
}

HostPool::Ticket HostPool::keep(Extent extent) {
  const MutexLock lock(mutex_);
  if (!owns(extent)) return Ticket::kNone;
  const Ticket ticket{++last_ticket_};
  used_ -= extent.bytes;
  kept_bytes_ += extent.bytes;
  kept_.emplace(ticket, std::move(extent));
  return ticket;
}

std::optional<HostPool::Extent> HostPool::reclaim(Ticket ticket) {
  const MutexLock lock(mutex_);
  auto node = kept_.extract(ticket);
  if (node.empty()) return std::nullopt;
  kept_bytes_ -= node.mapped().bytes;
  used_ += node.mapped().bytes;
  return std::move(node.mapped());
}

void HostPool::forget(Ticket ticket) {
  if (auto extent = reclaim(ticket)) give(*std::move(extent));
}

void HostPool::leave(Extent extent) {
  const MutexLock lock(mutex_);
  if (!owns(extent)) return;
  extent.chunk->leave(extent.bytes);
  used_ -= extent.bytes;
}

Result<HostPool::Extent> HostPool::adopt(int fd, std::uint64_t offset, std::uint64_t bytes) {
  UniqueFd own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own) return fail_errno("memory of a session on the host");
  auto chunk = Chunk::map(std::move(own), offset, bytes);
  if (!chunk) return std::unexpected(chunk.error());
  return Extent{std::move(*chunk), offset, bytes};
}

void HostPool::trim() {
  std::vector<std::shared_ptr<Chunk>> gone;  // given back without the lock
  const MutexLock lock(mutex_);
  ahead_ = std::min(ahead_, settings_.ready);
  is_full_ = false;
  std::erase_if(chunks_, [&](const auto& chunk) SLATE_REQUIRES(mutex_) {
    if (chunk->is_used() || bytes_ - chunk->bytes() < settings_.ready) return false;
    bytes_ -= chunk->bytes();
    if (chunk->is_pinned()) pinned_ -= chunk->bytes();
    gone.push_back(chunk);
    return true;
  });
}

HostPool::Counts HostPool::counts() const {
  const MutexLock lock(mutex_);
  return {bytes_, pinned_, used_, kept_bytes_};
}

}  // namespace slate::daemon
