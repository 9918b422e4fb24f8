#include "client/session/host_blocks.h"

#include <sys/mman.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/mutex.h"

namespace slate::client {
namespace {

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

/// Fills `fresh` from the pages at `address`, then puts it there, in one step for every reader.
Result<void> put_in_place(void* fresh, std::uint64_t address, std::uint64_t bytes) {
  if (fresh == MAP_FAILED) return fail_errno("mapping memory to be registered");
  std::memcpy(fresh, pointer(address), bytes);
  if (::mremap(fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(address)) ==
      MAP_FAILED) {
    auto failure = fail_errno("moving memory to be registered");
    ::munmap(fresh, bytes);
    return failure;
  }
  return {};
}

struct MapsLine {
  std::uint64_t begin = 0, end = 0;
  char access[8] = {}, name[8] = {};  // of the name only the beginning
};

/// This process's mappings by rising address, while `look` returns true.
template <typename Look>
void for_each_mapping(const Look& look) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                             &std::fclose);
  if (!maps) return;
  char line[512];
  while (std::fgets(line, sizeof(line), maps.get()) != nullptr) {
    MapsLine mapping;
    const int fields = std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %7s",
                                   &mapping.begin, &mapping.end, mapping.access, mapping.name);
    if (fields >= 3 && !look(mapping)) return;
  }
}

}  // namespace

void HostBlocks::insert(const HostBlock& block) {
  WriteLock lock(mutex_);
  blocks_.insert_or_assign(block.address, block);
}

std::optional<HostBlock> HostBlocks::find(std::uint64_t address) const {
  return touching(address, 1);
}

std::optional<HostBlock> HostBlocks::touching(std::uint64_t address, std::uint64_t bytes) const {
  ReadLock lock(mutex_);
  auto next = blocks_.upper_bound(address);
  if (next != blocks_.begin()) {
    const HostBlock& before = std::prev(next)->second;
    if (address - before.address < before.bytes) return before;
  }
  if (next != blocks_.end() && next->first - address < bytes) return next->second;
  return std::nullopt;
}

std::optional<HostBlock> HostBlocks::take(std::uint64_t address) {
  WriteLock lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return std::nullopt;
  const HostBlock block = found->second;
  blocks_.erase(found);
  return block;
}

void HostBlocks::unmap_managed() {
  WriteLock lock(mutex_);
  std::erase_if(blocks_, [](const auto& entry) {
    const HostBlock& block = entry.second;
    if (block.managed) unmap_shared(block.address, block.bytes);
    return block.managed;
  });
}

void HostBlocks::make_private() {
  WriteLock lock(mutex_);
  make_private_in_child();
  std::erase_if(blocks_, [](const auto& entry) { return entry.second.replaces; });
}

void HostBlocks::make_private_in_child() {
  for (const auto& [address, block] : blocks_) {
    // A program without the memory could not go on: then it had better share it.
    if (block.replaces) (void)replace_with_private(address, block.bytes);
  }
}

Result<std::uint64_t> map_shared(const UniqueFd& fd, std::uint64_t bytes, std::uint64_t wished) {
  // The kernel takes a free address that is wished.
  void* const mapped =
      ::mmap(pointer(wished), bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) return fail_errno("mapping pinned memory");
  ::madvise(mapped, bytes, MADV_DONTFORK);
  return reinterpret_cast<std::uintptr_t>(mapped);
}

Result<bool> map_shared_at(const UniqueFd& fd, std::uint64_t bytes, std::uint64_t address) {
  void* const mapped = ::mmap(pointer(address), bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_FIXED_NOREPLACE, fd.get(), 0);
  if (mapped == MAP_FAILED) {
    if (errno == EEXIST) return false;
    return fail_errno("mapping managed memory");
  }
  // Kernels before Linux 4.17 take the address for a wish.
  if (mapped != pointer(address)) {
    ::munmap(mapped, bytes);
    return false;
  }
  ::madvise(mapped, bytes, MADV_DONTFORK);
  return true;
}

std::uint64_t end_of_taken(std::uint64_t address, std::uint64_t bytes) {
  std::uint64_t taken = address;
  for_each_mapping([&](const MapsLine& mapping) {
    if (mapping.begin < address + bytes && mapping.end > address) taken = mapping.end;
    return mapping.begin < address + bytes;
  });
  return taken;
}

bool is_mapped(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t first = address / HostBlocks::kPage * HostBlocks::kPage;
  // Does nothing but complain of what is not there.
  return ::msync(pointer(first), address - first + bytes, MS_ASYNC) == 0;
}

bool is_replaceable(std::uint64_t address, std::uint64_t bytes) {
  std::uint64_t covered = address;
  for_each_mapping([&](const MapsLine& mapping) {
    if (mapping.end <= covered) return true;
    const std::string_view name = mapping.name;
    const bool plain = name.empty() || name.starts_with("[heap]") || name.starts_with("[anon:");
    if (mapping.begin > covered || std::strcmp(mapping.access, "rw-p") != 0 || !plain) return false;
    covered = mapping.end;
    return covered < address + bytes;
  });
  return covered >= address + bytes;
}

Result<void> replace_with_shared(const UniqueFd& fd, std::uint64_t address, std::uint64_t bytes) {
  return put_in_place(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0),
                      address, bytes);
}

Result<void> replace_with_private(std::uint64_t address, std::uint64_t bytes) {
  return put_in_place(
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), address,
      bytes);
}

void unmap_shared(std::uint64_t address, std::uint64_t bytes) {
  ::munmap(pointer(address), bytes);
}

}  // namespace slate::client
