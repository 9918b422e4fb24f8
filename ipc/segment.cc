#include "ipc/segment.h"

#include <boost/interprocess/mapped_region.hpp>
#include <new>
#include <utility>

#include "ipc/shared_memory.h"

namespace slate::ipc {
namespace {

namespace bip = boost::interprocess;

constexpr std::uint64_t kSegmentBytes = sizeof(SegmentLayout);

Result<bip::mapped_region> map(int fd) {
  return map_shared_memory(fd, kSegmentBytes, "the shared segment");
}

}  // namespace

struct Segment::Mapping {
  UniqueFd fd;  // of a created one
  bip::mapped_region region;
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

Result<Segment> Segment::create(const DeviceInfo& device, std::uint64_t memory_limit) {
  auto fd = make_shared_memory("slate-segment", kSegmentBytes);
  if (!fd) return std::unexpected(fd.error());
  // Copies through the staging slots come and go; without the rest there is no session.
  if (auto ok = populate(fd->get(), 0, offsetof(SegmentLayout, staging)); !ok)
    return std::unexpected(ok.error());
  auto region = map(fd->get());
  if (!region) return std::unexpected(region.error());
  Segment segment;
  segment.mapping_ = std::make_unique<Mapping>(std::move(*fd), std::move(*region));
  // Value-initialisation of the whole layout would touch, hence allocate, every staging page.
  segment.layout_ = static_cast<SegmentLayout*>(segment.mapping_->region.get_address());
  new (&segment.layout_->status) StatusPage{};
  segment.layout_->header = {kMagic, kProtocolVersion, 0};
  StatusPage& status = segment.layout_->status;
  status.device = device;
  status.memory_limit = memory_limit;
  status.staging_granted.store(kLeastStagingSlots, std::memory_order_relaxed);
  status.state.store(static_cast<std::uint32_t>(SessionState::kServing), std::memory_order_release);
  return segment;
}

Result<Segment> Segment::from_fd(UniqueFd fd, bool keeps_fd) {
  auto region = map(fd.get());
  if (!region) return std::unexpected(region.error());
  Segment segment;
  segment.mapping_ =
      std::make_unique<Mapping>(keeps_fd ? std::move(fd) : UniqueFd(), std::move(*region));
  segment.layout_ = static_cast<SegmentLayout*>(segment.mapping_->region.get_address());
  const SegmentHeader& header = segment.layout_->header;
  if (header.magic != kMagic || header.protocol != kProtocolVersion)
    return fail(ErrorCode::kProtocol, "the shared segment is not of this protocol version");
  return segment;
}

int Segment::fd() const {
  return mapping_ ? mapping_->fd.get() : -1;
}

}  // namespace slate::ipc
