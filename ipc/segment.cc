#include "ipc/segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <boost/interprocess/shared_memory_object.hpp>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "ipc/host_memory.h"
#include "ipc/mapping_guard.h"
#include "ipc/shared_room.h"

namespace slate::ipc {
namespace {

namespace bip = boost::interprocess;

constexpr std::uint64_t kSegmentBytes = sizeof(SegmentLayout);

/// A descriptor received from another process, in the shape that Boost's mapped_region maps.
class ReceivedMemory {
 public:
  explicit ReceivedMemory(int fd) : fd_(fd) {}
  bip::mapping_handle_t get_mapping_handle() const {
    return bip::ipcdetail::mapping_handle_from_file_handle(fd_);
  }
  static bip::mode_t get_mode() { return bip::read_write; }

 private:
  int fd_;
};

std::unexpected<Error> boost_failure(std::string_view what, const bip::interprocess_exception& e) {
  return fail(ErrorCode::kIo, std::string(what) + ": " + e.what());
}

/// The segment has the size that both sides were compiled with, or the peer is another version.
Result<void> check_size(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return fail_errno("shared segment");
  if (static_cast<std::uint64_t>(info.st_size) < kSegmentBytes)
    return fail(ErrorCode::kProtocol, "the shared segment is smaller than this version's layout");
  return {};
}

}  // namespace

struct Segment::Mapping {
  bip::shared_memory_object object;  // empty on all but a created one: the mapping stays without
  bip::mapped_region region;
  MappingGuard guard;  // the daemon's; goes before the mapping
};

Segment::Segment() = default;
Segment::Segment(Segment&& other) noexcept
    : mapping_(std::move(other.mapping_)), layout_(std::exchange(other.layout_, nullptr)) {}
Segment& Segment::operator=(Segment&& other) noexcept {
  mapping_ = std::move(other.mapping_);
  layout_ = std::exchange(other.layout_, nullptr);
  return *this;
}
Segment::~Segment() = default;

Result<Segment> Segment::create(const std::string& name, std::uint32_t uid,
                                const DeviceInfo& device, std::uint64_t memory_limit) {
  Segment segment;
  segment.mapping_ = std::make_unique<Mapping>();
  try {
    Mapping& mapping = *segment.mapping_;
    mapping.object = bip::shared_memory_object(bip::create_only, name.c_str(), bip::read_write,
                                               bip::permissions(0600));
    const int fd = mapping.object.get_mapping_handle().handle;
    if (uid != ::geteuid() && ::fchown(fd, uid, static_cast<gid_t>(-1)) != 0) {
      auto failure = fail_errno("giving the shared segment to its user");
      remove(name);
      return failure;
    }
    // Copies through the staging slots come and go; without the rest there is no session.
    if (auto ok = take_room(fd, offsetof(SegmentLayout, staging), "a session's segment"); !ok) {
      remove(name);
      return std::unexpected(ok.error());
    }
    mapping.object.truncate(static_cast<bip::offset_t>(kSegmentBytes));
    mapping.region = bip::mapped_region(mapping.object, bip::read_write, 0, kSegmentBytes);
    // Value-initialisation of the whole layout would touch, hence allocate, every staging page.
    segment.layout_ = static_cast<SegmentLayout*>(mapping.region.get_address());
    auto guard = MappingGuard::make(segment.layout_, kSegmentBytes);
    if (!guard) {
      remove(name);
      return std::unexpected(guard.error());
    }
    mapping.guard = std::move(*guard);
    new (&segment.layout_->status) StatusPage{};
  } catch (const bip::interprocess_exception& e) {
    remove(name);
    return boost_failure("making the shared segment " + name, e);
  }
  segment.layout_->header = {kMagic, kProtocolVersion, 0};
  StatusPage& status = segment.layout_->status;
  status.device = device;
  status.memory_limit = memory_limit;
  status.staging_granted.store(kLeastStagingSlots, std::memory_order_relaxed);
  status.state.store(static_cast<std::uint32_t>(SessionState::kServing), std::memory_order_release);
  return segment;
}

Result<Segment> Segment::open(const std::string& name, std::uint64_t bytes) {
  if (bytes != kSegmentBytes)
    return fail(
        ErrorCode::kProtocol,
        "slated lays out shared memory differently: libslate and slated are of different versions");
  Segment segment;
  segment.mapping_ = std::make_unique<Mapping>();
  try {
    Mapping& mapping = *segment.mapping_;
    mapping.object = bip::shared_memory_object(bip::open_only, name.c_str(), bip::read_write);
    if (auto ok = check_size(mapping.object.get_mapping_handle().handle); !ok)
      return std::unexpected(ok.error());
    mapping.region = bip::mapped_region(mapping.object, bip::read_write, 0, kSegmentBytes);
    mapping.object =
        bip::shared_memory_object();  // the mapping stays; the descriptor is not needed
  } catch (const bip::interprocess_exception& e) {
    return boost_failure("opening the shared segment " + name, e);
  }
  segment.layout_ = static_cast<SegmentLayout*>(segment.mapping_->region.get_address());
  const SegmentHeader& header = segment.layout_->header;
  if (header.magic != kMagic || header.protocol != kProtocolVersion)
    return fail(ErrorCode::kProtocol, "the shared segment is not of this protocol version");
  return segment;
}

Result<Segment> Segment::from_fd(UniqueFd fd) {
  if (auto ok = check_size(fd.get()); !ok) return std::unexpected(ok.error());
  Segment segment;
  segment.mapping_ = std::make_unique<Mapping>();
  try {
    segment.mapping_->region =
        bip::mapped_region(ReceivedMemory(fd.get()), bip::read_write, 0, kSegmentBytes);
  } catch (const bip::interprocess_exception& e) {
    return boost_failure("mapping a shared segment", e);
  }
  Mapping& mapping = *segment.mapping_;
  segment.layout_ = static_cast<SegmentLayout*>(mapping.region.get_address());
  auto guard = MappingGuard::make(segment.layout_, kSegmentBytes);
  if (!guard) return std::unexpected(guard.error());
  mapping.guard = std::move(*guard);
  return segment;
}

void Segment::remove(const std::string& name) {
  bip::shared_memory_object::remove(name.c_str());
}

int Segment::remove_stale(const std::string& prefix) {
  const std::string_view wanted = std::string_view(prefix).substr(prefix.starts_with('/') ? 1 : 0);
  HostMemory::remove_stale();
  DIR* directory = ::opendir("/dev/shm");
  if (!directory) return 0;
  int removed = 0;
  while (const dirent* entry = ::readdir(directory)) {  // NOLINT(concurrency-mt-unsafe): own DIR
    if (!std::string_view(entry->d_name).starts_with(wanted)) continue;
    if (::unlinkat(::dirfd(directory), entry->d_name, 0) == 0) ++removed;
  }
  ::closedir(directory);
  return removed;
}

int Segment::fd() const {
  return !mapping_ ? -1 : mapping_->object.get_mapping_handle().handle;
}

}  // namespace slate::ipc
