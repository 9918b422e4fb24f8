#include "device/sim/memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/sizes.h"

namespace slate::sim {
namespace {

using device::Address;
using device::AddressRange;

// Sanitizers, RLIMIT_AS and strict overcommit may all refuse the first size. The base is a wish, so
// that addresses repeat from process to process: seeded runs are the same, and a session finds its
// own in the next engine. They are free in programs. AddressSanitizer has its heap at the usual
// one; ThreadSanitizer leaves programs the first half tebibyte, and little else.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kLargestSpace = 8ull << 40, kWishedBase = 0x2000'0000'0000u;
#elif defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kLargestSpace = 256ull << 30, kWishedBase = 64ull << 30;
#else
constexpr std::uint64_t kLargestSpace = 8ull << 40, kWishedBase = 0x6000'0000'0000u;
#endif
constexpr std::uint64_t kSmallestSpace = 4ull << 30;

bool whole_chunks(AddressRange range) {
  return range.base % kChunkBytes == 0 && range.bytes % kChunkBytes == 0 && range.bytes > 0;
}

std::string text(AddressRange range) {
  return fmt::format("{:#x}+{:#x}", range.base, range.bytes);
}

void* to_pointer(Address address) {
  return reinterpret_cast<void*>(address);
}

/// Plain pages, not yet there, whatever was in their place. A kernel that has passed the check of
/// its address meanwhile reads zeros, or writes what nobody reads: its next access is the fault.
bool reset_pages(AddressRange range) {
  return ::mmap(to_pointer(range.base), range.bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
                0) == to_pointer(range.base);
}

bool map_shared(int fd, AddressRange range) {
  return ::mmap(to_pointer(range.base), range.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                fd, 0) == to_pointer(range.base);
}

/// Memory of zeros that outlives its mappings, and the process where somebody holds it.
Result<std::shared_ptr<UniqueFd>> make_pages(std::uint64_t bytes) {
  auto fd = std::make_shared<UniqueFd>(::memfd_create("slate-sim", MFD_CLOEXEC));
  if (!*fd || ::ftruncate(fd->get(), static_cast<off_t>(bytes)) != 0)
    return fail(ErrorCode::kOutOfMemory, fail_errno("map: memfd").error().message);
  return fd;
}

}  // namespace

Result<std::unique_ptr<Memory>> Memory::make(std::uint64_t capacity) {
  if (capacity == 0 || capacity % kChunkBytes != 0) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("sim memory of {} bytes: not a multiple of 2 MiB", capacity));
  }
  std::unique_ptr<Memory> memory(new Memory);
  memory->capacity_ = capacity;
  for (std::uint64_t bytes = kLargestSpace; bytes >= kSmallestSpace; bytes /= 2) {
    void* mapping = ::mmap(to_pointer(kWishedBase), bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) continue;
    memory->mapping_ = mapping;
    memory->mapping_bytes_ = bytes;
    break;
  }
  if (memory->mapping_ == nullptr) return fail_errno("reserving the address space of sim");
  const auto begin = reinterpret_cast<std::uint64_t>(memory->mapping_);
  memory->space_base_ = (begin + kChunkBytes - 1) / kChunkBytes * kChunkBytes;
  memory->space_bytes_ =
      (begin + memory->mapping_bytes_ - memory->space_base_) / kChunkBytes * kChunkBytes;
  memory->owners_ =
      std::make_unique<std::atomic<std::uint16_t>[]>(memory->space_bytes_ / kChunkBytes);
  return memory;
}

Memory::~Memory() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapping_bytes_);
}

std::uint64_t Memory::mapped_bytes() const {
  MutexLock lock(mutex_);
  return mapped_;
}

Result<void> Memory::take(std::uint64_t bytes) {
  MutexLock lock(mutex_);
  if (bytes > capacity_ - mapped_) {
    return fail(ErrorCode::kOutOfMemory, fmt::format("{} bytes wanted, {} of {} free", bytes,
                                                     capacity_ - mapped_, capacity_));
  }
  mapped_ += bytes;
  return {};
}

void Memory::give_back(std::uint64_t bytes) {
  MutexLock lock(mutex_);
  SLATE_CHECK(mapped_ >= bytes);
  mapped_ -= bytes;
}

Result<std::uint16_t> Memory::unused_tag() {
  for (int attempt = 0; attempt < MemoryView::kNoOwner; ++attempt) {
    const std::uint16_t tag = next_tag_;
    next_tag_ = tag + 1 == MemoryView::kNoOwner ? 1 : static_cast<std::uint16_t>(tag + 1);
    const auto has_tag = [tag](const Reservation& each) { return each.tag == tag; };
    if (std::none_of(reservations_.begin(), reservations_.end(), has_tag)) return tag;
  }
  return fail(ErrorCode::kLimit, "sim: too many address reservations");
}

device::Device::Window Memory::window_of(std::uint64_t session, std::uint64_t most) const {
  constexpr std::uint64_t kHost = device::Device::kHostWindowBytes;
  const std::uint64_t reserved = std::max(kHost, round_up(4 * most, kChunkBytes));
  const std::uint64_t stride = reserved + kHost;
  const std::uint64_t slots = space_bytes_ / 2 / stride;
  if (slots == 0) return {};
  const Address base = space_base_ + space_bytes_ / 2 + session % slots * stride;
  return {.reservation = {base, reserved}, .host = base + reserved};
}

Result<Address> Memory::reserve(std::uint64_t bytes, Address least, std::uint64_t align) {
  if (bytes == 0 || bytes % kChunkBytes != 0) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("reserve: {} bytes is no multiple of 2 MiB", bytes));
  }
  MutexLock lock(mutex_);
  // First fit between the reservations, which are sorted.
  const Address end = space_base_ + space_bytes_;
  const Address first = std::max(space_base_, std::min(least, end));
  const std::uint64_t step = std::max(align, kChunkBytes);
  const auto aligned = [step](Address address) { return address + (step - address % step) % step; };
  Address base = aligned(first);
  auto position = reservations_.begin();
  while (position != reservations_.end() && position->range.base < base + bytes) {
    base = std::max(base, aligned(position->range.base + position->range.bytes));
    ++position;
  }
  if (base > end || end - base < bytes) {
    return fail(ErrorCode::kOutOfMemory,
                fmt::format("reserve: no {} bytes of address space left", bytes));
  }
  Result<std::uint16_t> tag = unused_tag();
  if (!tag) return std::unexpected(std::move(tag.error()));
  reservations_.insert(position, Reservation{{base, bytes}, *tag, {}});
  return base;
}

Memory::Reservation* Memory::find(AddressRange range) {
  for (Reservation& each : reservations_) {
    if (each.range.contains(range.base, range.bytes)) return &each;
  }
  return nullptr;
}

void Memory::set_owner(AddressRange range, std::uint16_t tag) {
  for (std::size_t i = 0; i < range.bytes / kChunkBytes; ++i) {
    owners_[chunk(range.base) + i].store(tag, std::memory_order_relaxed);
  }
}

void Memory::release(const Reservation& reservation, const Mapping& mapping) {
  const AddressRange range = mapping.range;
  SLATE_CHECK(reservation.range.contains(range.base, range.bytes));
  set_owner(range, 0);
  // What is there next must be zeros.
  SLATE_CHECK(reset_pages(range));
  if (mapping.is_host || mapping.pages.use_count() > 1) return;  // not counted, or mapped elsewhere
  SLATE_CHECK(mapped_ >= range.bytes);
  mapped_ -= range.bytes;
}

void Memory::unreserve(AddressRange range) {
  MutexLock lock(mutex_);
  const auto same = [range](const Reservation& each) {
    return each.range.base == range.base && each.range.bytes == range.bytes;
  };
  const auto found = std::find_if(reservations_.begin(), reservations_.end(), same);
  if (found == reservations_.end()) return;
  while (!found->mapped.empty()) {
    release(*found, found->mapped.back());
    found->mapped.pop_back();
  }
  reservations_.erase(found);
}

/// The reservation that has these chunks, none of which is mapped.
Result<Memory::Reservation*> Memory::find_unmapped(AddressRange range) {
  Reservation* reservation = whole_chunks(range) ? find(range) : nullptr;
  if (reservation == nullptr) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("map: {} is not whole chunks of one reservation", text(range)));
  }
  for (const Mapping& mapping : reservation->mapped) {
    if (mapping.range.overlaps(range)) {
      return fail(ErrorCode::kInvalidValue, fmt::format("map: {} is mapped already", text(range)));
    }
  }
  return reservation;
}

Result<void> Memory::map(AddressRange range) {
  return back(range, nullptr, Counted::kNew);
}

Result<void> Memory::map_on_host(AddressRange range) {
  return back(range, nullptr, Counted::kHost);
}

Result<void> Memory::map_again(AddressRange range, Address mapped) {
  std::shared_ptr<UniqueFd> pages;
  {
    const MutexLock lock(mutex_);
    const AddressRange source{mapped, range.bytes};
    const auto found = find_mapping(source);
    if (!found)
      return fail(ErrorCode::kInvalidValue,
                  fmt::format("map_again: {} is no range that was mapped", text(source)));
    pages = (*found)->pages;
  }
  return back(range, std::move(pages), Counted::kAlready);
}

Result<UniqueFd> Memory::export_memory(AddressRange range) {
  const MutexLock lock(mutex_);
  const auto found = find_mapping(range);
  if (!found)
    return fail(ErrorCode::kInvalidValue,
                fmt::format("export: {} is no range that was mapped", text(range)));
  UniqueFd copy(::fcntl((*found)->pages->get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return fail_errno("export");
  return copy;
}

Result<void> Memory::map_exported(AddressRange range, int memory) {
  struct stat found;
  if (::fstat(memory, &found) != 0 || std::cmp_not_equal(found.st_size, range.bytes))
    return fail(ErrorCode::kInvalidValue, "map_exported: memory of another size");
  auto pages = std::make_shared<UniqueFd>(::fcntl(memory, F_DUPFD_CLOEXEC, 0));
  if (!*pages) return fail_errno("map_exported");
  return back(range, std::move(pages), Counted::kNew);
}

/// Puts the pages there; null: new ones. `counted`: whether they count as memory already.
Result<void> Memory::back(AddressRange range, std::shared_ptr<UniqueFd> pages, Counted counted) {
  const MutexLock lock(mutex_);
  const auto reservation = find_unmapped(range);
  if (!reservation) return std::unexpected(reservation.error());
  const bool is_new = counted == Counted::kNew;
  if (is_new && range.bytes > capacity_ - mapped_) {
    return fail(ErrorCode::kOutOfMemory, fmt::format("map: {} bytes wanted, {} of {} free",
                                                     range.bytes, capacity_ - mapped_, capacity_));
  }
  if (pages == nullptr) {
    auto made = make_pages(range.bytes);
    if (!made) return std::unexpected(made.error());
    pages = std::move(*made);
  }
  if (!map_shared(pages->get(), range)) {
    (void)reset_pages(range);
    return fail(ErrorCode::kOutOfMemory, fail_errno("map: mmap").error().message);
  }
  set_owner(range, (*reservation)->tag);
  (*reservation)->mapped.push_back({range, std::move(pages), counted == Counted::kHost});
  if (is_new) mapped_ += range.bytes;
  return {};
}

Result<void> Memory::unmap(AddressRange range) {
  MutexLock lock(mutex_);
  Reservation* reservation = find(range);
  const auto found = find_mapping(range);
  if (reservation == nullptr || !found) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("unmap: {} is no range that was mapped", text(range)));
  }
  release(*reservation, **found);
  reservation->mapped.erase(*found);
  return {};
}

/// The very mapping of this range.
std::optional<std::vector<Memory::Mapping>::iterator> Memory::find_mapping(AddressRange range) {
  Reservation* reservation = find(range);
  if (reservation == nullptr) return std::nullopt;
  const auto same = [range](const Mapping& each) {
    return each.range.base == range.base && each.range.bytes == range.bytes;
  };
  const auto found = std::ranges::find_if(reservation->mapped, same);
  return found == reservation->mapped.end() ? std::nullopt : std::optional(found);
}

Result<Address> Memory::map_host(int fd, std::uint64_t bytes, Address least) {
  const std::uint64_t chunks = (bytes + kChunkBytes - 1) / kChunkBytes * kChunkBytes;
  const auto base = reserve(chunks, least);
  if (!base) return base;
  void* const mapped =
      ::mmap(to_pointer(*base), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if (mapped == MAP_FAILED) {
    auto failure = fail_errno("map_host");
    unmap_host({*base, bytes});
    return failure;
  }
  const MutexLock lock(mutex_);
  const Reservation* const reservation = find({*base, chunks});
  SLATE_CHECK(reservation != nullptr);
  // Up to the end of its last chunk: that nobody copies past the block is the engine's to see.
  set_owner({*base, chunks}, reservation->tag);
  return base;
}

void Memory::unmap_host(AddressRange range) {
  const std::uint64_t bytes = (range.bytes + kChunkBytes - 1) / kChunkBytes * kChunkBytes;
  {
    const MutexLock lock(mutex_);
    set_owner({range.base, bytes}, 0);
  }
  SLATE_CHECK(reset_pages({range.base, bytes}));
  unreserve({range.base, bytes});
}

Result<MemoryView> Memory::view(AddressRange arena) const {
  MemoryView view;
  if (arena.bytes == 0) return view;
  MutexLock lock(mutex_);
  if (whole_chunks(arena)) {
    for (const Reservation& each : reservations_) {
      if (!each.range.contains(arena.base, arena.bytes)) continue;
      view.space_base = arena.base;
      view.space_bytes = arena.bytes;
      view.owners = &owners_[chunk(arena.base)];
      view.tag = each.tag;
      return view;
    }
  }
  return fail(ErrorCode::kInvalidValue,
              fmt::format("arena {} is not whole chunks of one reservation", text(arena)));
}

bool Memory::is_mapped(Address address, std::uint64_t bytes) const {
  const AddressRange space{space_base_, space_bytes_};
  if (!space.contains(address, bytes)) return false;
  if (bytes == 0) return true;
  for (std::size_t i = chunk(address); i <= chunk(address + bytes - 1); ++i) {
    if (owners_[i].load(std::memory_order_relaxed) == 0) return false;
  }
  return true;
}

}  // namespace slate::sim
