#include "tests/unit/daemon/fake_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace slate::daemon {
namespace {

using device::Address;

void* pointer(Address address) {
  return reinterpret_cast<void*>(address);
}

constexpr const char* kKernels[] = {"noop", "write", "fault", "lose", "spin"};

}  // namespace

FakeDevice::FakeDevice(std::uint64_t capacity) : capacity_(capacity) {
  for (const char* known : kKernels) kernels_[known] = {};
  std::strcpy(info_.name, "Fake");
  info_.total_memory = capacity;
  info_.is_simulated = 1;
  info_.attributes[kSmCountAttribute] = 4;
  info_.attributes[kThreadsPerSmAttribute] = 2048;
  constexpr std::int32_t kLimits[] = {1024, 1024, 1024, 64, 2147483647, 65535, 65535};
  std::ranges::copy(kLimits, info_.attributes + 1);  // threads and sides of a block, of a grid
  constexpr int kSharedPerSm = 81;
  info_.attributes[kSharedPerSm] = 160 << 10;
  constexpr int kTexture1DLinearWidth = 69;
  info_.attributes[kTexture1DLinearWidth] = 1 << 28;
  set_array_limits(info_);
}

FakeDevice::~FakeDevice() {
  SLATE_CHECK(lost_ || holds_nothing());
}

bool FakeDevice::holds_nothing() const {
  const std::lock_guard lock(mutex_);
  return reserved_.empty() && mapped_.empty() && mapped_again_.empty() && registered_.empty() &&
         modules_.empty() && partitions_.empty() && streams_.empty() && arrays_.empty() &&
         objects_.empty();
}

void FakeDevice::hold(bool held) {
  const std::lock_guard lock(mutex_);
  held_ = held;
  run_all_locked();
}

bool FakeDevice::step(device::Stream stream) {
  const std::lock_guard lock(mutex_);
  const auto id = static_cast<std::uint64_t>(stream);
  return step_locked(id, streams_.at(id));
}

std::vector<device::Stream> FakeDevice::streams() const {
  const std::lock_guard lock(mutex_);
  std::vector<device::Stream> result;
  for (const auto& [id, queue] : streams_) result.push_back(device::Stream{id});
  return result;
}

std::vector<std::string> FakeDevice::trace() const {
  const std::lock_guard lock(mutex_);
  return trace_;
}

void FakeDevice::release_spinning() {
  const std::lock_guard lock(mutex_);
  spin_released_ = true;
  run_all_locked();
}

std::uint64_t FakeDevice::mapped_bytes() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& [base, bytes] : mapped_) sum += bytes;
  return sum;
}

bool FakeDevice::must_wait(const Piece& piece) const {
  if (piece.kind == Piece::Kind::kWait) return !piece.mark->reached;
  return piece.kind == Piece::Kind::kSpin && !spin_released_;
}

/// Runs the front of the queue; false when there is none or it has to wait.
bool FakeDevice::step_locked(std::uint64_t stream, Queue& queue) {
  if (queue.pieces.empty()) return false;
  Piece& front = queue.pieces.front();
  if (!queue.fault && must_wait(front)) return false;
  Piece piece = std::move(front);
  queue.pieces.pop_front();
  if (piece.kind == Piece::Kind::kRecord) {
    piece.mark->reached = true;
    piece.mark->error = queue.fault;
    ++marks_reached_;
    progress_.notify_all();
  } else if (piece.kind == Piece::Kind::kWork && !queue.fault) {
    trace_.push_back(piece.name + "@" + std::to_string(stream));
    if (const auto done = piece.work(); !done) queue.fault = done.error();
  }
  return true;
}

void FakeDevice::run_all_locked() {
  bool ran = !held_;
  while (ran) {
    ran = false;
    for (auto& [id, queue] : streams_) {
      while (step_locked(id, queue)) ran = true;
    }
  }
}

Result<void> FakeDevice::push(device::Stream stream, Piece piece) {
  const std::lock_guard lock(mutex_);
  if (lost_) return fail(ErrorCode::kIllegalAddress, "the device is lost");
  const auto found = streams_.find(static_cast<std::uint64_t>(stream));
  if (found == streams_.end()) return fail(ErrorCode::kInvalidHandle, "no such stream");
  found->second.pieces.push_back(std::move(piece));
  run_all_locked();
  return {};
}

Result<std::uint64_t> FakeDevice::free_memory() {
  return capacity_ - mapped_bytes();
}

bool FakeDevice::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

Result<Address> FakeDevice::reserve(std::uint64_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return fail(ErrorCode::kOutOfMemory, "reserve");
  const std::lock_guard lock(mutex_);
  reserved_.emplace(reinterpret_cast<Address>(memory), bytes);
  return reinterpret_cast<Address>(memory);
}

void FakeDevice::unreserve(device::AddressRange range) {
  const std::lock_guard lock(mutex_);
  const auto found = reserved_.find(range.base);
  SLATE_CHECK(found != reserved_.end() && found->second == range.bytes);
  SLATE_CHECK(munmap(pointer(range.base), range.bytes) == 0);
  reserved_.erase(found);
}

Result<void> FakeDevice::map(device::AddressRange range) {
  SLATE_CHECK(range.bytes % kGranularity == 0 && range.bytes > 0);
  if (mapped_bytes() + range.bytes > capacity_) return fail(ErrorCode::kOutOfMemory, "device full");
  const std::lock_guard lock(mutex_);
  SLATE_CHECK(!is_mapped(range.base, 1));
  SLATE_CHECK(mprotect(pointer(range.base), range.bytes, PROT_READ | PROT_WRITE) == 0);
  mapped_.emplace(range.base, range.bytes);
  return {};
}

Result<void> FakeDevice::map_again(device::AddressRange range, Address mapped) {
  const std::lock_guard lock(mutex_);
  SLATE_CHECK(is_mapped(mapped, range.bytes) && !is_mapped(range.base, 1));
  SLATE_CHECK(mprotect(pointer(range.base), range.bytes, PROT_READ | PROT_WRITE) == 0);
  const auto first = mapped_again_.find(mapped);
  mapped_again_[range.base] = {first == mapped_again_.end() ? mapped : first->second.base,
                               range.bytes};
  return {};
}

Result<void> FakeDevice::unmap(device::AddressRange range) {
  const std::lock_guard lock(mutex_);
  if (mapped_again_.erase(range.base) == 0) {
    const auto found = mapped_.find(range.base);
    SLATE_CHECK(found != mapped_.end() && found->second == range.bytes);
    mapped_.erase(found);
    // What is mapped elsewhere stays, and counts there.
    const auto same = std::ranges::find_if(
        mapped_again_, [&](const auto& each) { return each.second.base == range.base; });
    if (same != mapped_again_.end()) {
      const Address next = same->first;
      mapped_again_.erase(same);
      mapped_.emplace(next, range.bytes);
      for (auto& [at, of] : mapped_again_) {
        if (of.base == range.base) of.base = next;
      }
    }
  }
  SLATE_CHECK(madvise(pointer(range.base), range.bytes, MADV_DONTNEED) == 0);
  SLATE_CHECK(mprotect(pointer(range.base), range.bytes, PROT_NONE) == 0);
  return {};
}

bool FakeDevice::is_mapped(Address address, std::uint64_t bytes) const {
  const auto in = [&](const auto& ranges) {
    const auto next = ranges.upper_bound(address);
    if (next == ranges.begin()) return false;
    const auto& [base, size] = *std::prev(next);
    return device::AddressRange{base, size}.contains(address, bytes);
  };
  const bool in_again = std::ranges::any_of(mapped_again_, [&](const auto& each) {
    return device::AddressRange{each.first, each.second.bytes}.contains(address, bytes);
  });
  return in(mapped_) || in_again || in(hosts_);
}

Result<void> FakeDevice::register_host(void* memory, std::size_t) {
  const std::lock_guard lock(mutex_);
  registered_.insert(memory);
  return {};
}

void FakeDevice::unregister_host(void* memory) {
  const std::lock_guard lock(mutex_);
  SLATE_CHECK(registered_.erase(memory) == 1);
}

Result<std::uint32_t> FakeDevice::max_active_clusters(const device::LaunchSpec&) {
  return fail(ErrorCode::kNotSupported, "the fake device has no thread block clusters");
}
Result<std::uint32_t> FakeDevice::max_cluster_size(const device::LaunchSpec&) {
  return fail(ErrorCode::kNotSupported, "the fake device has no thread block clusters");
}

Result<Address> FakeDevice::map_host(int fd, std::uint64_t bytes, Address least) {
  void* const memory =
      ::mmap(reinterpret_cast<void*>(least), bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return fail_errno("map_host");
  const std::lock_guard lock(mutex_);
  registered_.insert(memory);
  hosts_.emplace(reinterpret_cast<Address>(memory), bytes);
  return reinterpret_cast<Address>(memory);
}

void FakeDevice::unmap_host(device::AddressRange range) {
  unregister_host(reinterpret_cast<void*>(range.base));
  {
    const std::lock_guard lock(mutex_);
    SLATE_CHECK(hosts_.erase(range.base) == 1);
  }
  SLATE_CHECK(::munmap(reinterpret_cast<void*>(range.base), range.bytes) == 0);
}

Result<std::vector<std::vector<std::uint32_t>>> FakeDevice::partition_units() {
  if (can_be_partitioned_) return std::vector<std::vector<std::uint32_t>>{{0}, {1}, {2}, {3}};
  return fail(ErrorCode::kNotSupported, "the fake device cannot be partitioned");
}

Result<device::Partition> FakeDevice::create_partition(std::uint32_t, std::uint32_t) {
  if (const auto units = partition_units(); !units) return std::unexpected(units.error());
  const std::lock_guard lock(mutex_);
  partitions_.insert(next_);
  return device::Partition{next_++};
}

void FakeDevice::destroy_partition(device::Partition partition) {
  const std::lock_guard lock(mutex_);
  SLATE_CHECK(partitions_.erase(static_cast<std::uint64_t>(partition)) == 1);
}

Result<device::Stream> FakeDevice::create_stream(int, device::Partition partition) {
  const std::lock_guard lock(mutex_);
  const auto part = static_cast<std::uint64_t>(partition);
  SLATE_CHECK(partition == device::kWholeDevice || partitions_.contains(part));
  if (lost_) return fail(ErrorCode::kIllegalAddress, "the device is lost");
  streams_[next_].partition = part;
  return device::Stream{next_++};
}

void FakeDevice::destroy_stream(device::Stream stream) {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(static_cast<std::uint64_t>(stream));
  SLATE_CHECK(found != streams_.end() && (lost_ || found->second.pieces.empty()));
  streams_.erase(found);
}

Result<void> FakeDevice::cancel(device::Stream stream) {
  if (!can_cancel_) return fail(ErrorCode::kNotSupported, "cancel");
  const std::lock_guard lock(mutex_);
  Queue& queue = streams_.at(static_cast<std::uint64_t>(stream));
  std::erase_if(queue.pieces,
                [](const Piece& piece) { return piece.kind != Piece::Kind::kRecord; });
  for (const Piece& piece : queue.pieces) {
    piece.mark->reached = true;
    piece.mark->error = Error{ErrorCode::kLaunchFailed, "cancelled"};
    ++marks_reached_;
  }
  queue.pieces.clear();
  progress_.notify_all();
  run_all_locked();
  return {};
}

Result<device::Event> FakeDevice::create_event(bool) {
  const std::lock_guard lock(mutex_);
  if (lost_) return fail(ErrorCode::kIllegalAddress, "the device is lost");
  events_.emplace(next_, nullptr);
  return device::Event{next_++};
}

void FakeDevice::destroy_event(device::Event event) {
  const std::lock_guard lock(mutex_);
  SLATE_CHECK(events_.erase(static_cast<std::uint64_t>(event)) == 1);
}

Result<void> FakeDevice::record(device::Event event, device::Stream stream) {
  if (refuses_records_) return fail(ErrorCode::kOutOfResources, "no events are left");
  ++records_;
  auto mark = std::make_shared<Mark>();
  {
    const std::lock_guard lock(mutex_);
    events_.at(static_cast<std::uint64_t>(event)) = mark;
  }
  return push(stream, {Piece::Kind::kRecord, "record", {}, mark});
}

Result<void> FakeDevice::wait(device::Stream stream, device::Event event) {
  MarkPointer mark;
  {
    const std::lock_guard lock(mutex_);
    mark = events_.at(static_cast<std::uint64_t>(event));
  }
  if (!mark) return {};
  return push(stream, {Piece::Kind::kWait, "wait", {}, mark});
}

Result<bool> FakeDevice::query(device::Event event) {
  const std::lock_guard lock(mutex_);
  if (lost_) return fail(ErrorCode::kIllegalAddress, "the device is lost");
  const MarkPointer& mark = events_.at(static_cast<std::uint64_t>(event));
  if (!mark) return true;
  if (mark->reached && mark->error) return std::unexpected(*mark->error);
  return mark->reached;
}

Result<float> FakeDevice::elapsed_ms(device::Event, device::Event) {
  return 1.5f;
}

void FakeDevice::wait_for_progress(std::chrono::microseconds timeout) {
  std::unique_lock lock(mutex_);
  progress_.wait_for(lock, timeout, [&] { return marks_reached_ != marks_seen_; });
  marks_seen_ = marks_reached_;
}

FakeDevice::Piece FakeDevice::piece_of(const device::LaunchSpec& spec) {
  Address argument = 0;
  std::memcpy(&argument, spec.parameters.data(), sizeof(argument));
  std::string name;
  {
    const std::lock_guard lock(mutex_);
    name = functions_.at(static_cast<std::uint64_t>(spec.function));
  }
  Piece piece{name == "spin" ? Piece::Kind::kSpin : Piece::Kind::kWork, name, {}, {}};
  piece.work = [this, name, argument, arena = spec.arena]() -> Result<void> {
    if (name == "fault") return fail(ErrorCode::kIllegalAddress, "kernel fault touched 0x10");
    if (name == "lose") lost_ = true;
    if (name != "write") return {};
    if (!arena.contains(argument, 4) || !is_mapped(argument, 4)) {
      return fail(ErrorCode::kIllegalAddress, "kernel write touched what is not its own");
    }
    const int value = 42;
    std::memcpy(pointer(argument), &value, sizeof(value));
    return {};
  };
  return piece;
}

Result<void> FakeDevice::launch(const device::LaunchSpec& spec, device::Stream stream) {
  if (spec.block.count() > 1024) return fail(ErrorCode::kInvalidConfiguration, "block too large");
  if (spec.dynamic_shared_bytes > kMostShared)
    return fail(ErrorCode::kInvalidConfiguration, "too much shared memory");
  Piece piece = piece_of(spec);
  const auto hook = [this] {
    const std::lock_guard lock(mutex_);
    return before_launch_;
  }();
  if (hook) hook(piece.name);
  {
    const std::lock_guard lock(mutex_);
    const Queue& queue = streams_.at(static_cast<std::uint64_t>(stream));
    newest_.store({.ahead = spec.ahead,
                   .on_a_part = queue.partition != 0,
                   .overlaps = spec.overlaps,
                   .carveout = spec.carveout});
  }
  launches_.fetch_add(1);
  return push(stream, std::move(piece));
}

Result<void> FakeDevice::fill(Address to, std::uint64_t to_pitch, FillValue value, const Box& shape,
                              device::Stream stream) {
  const auto work = [=]() -> Result<void> {
    for (std::uint64_t row = 0; row < shape.height; ++row) {
      for (std::uint64_t at = 0; at < shape.width; at += value.bytes)
        std::memcpy(pointer(to + row * to_pitch + at), &value.bits, value.bytes);
    }
    return {};
  };
  return push(stream, {Piece::Kind::kWork, "fill", work, {}});
}

}  // namespace slate::daemon
