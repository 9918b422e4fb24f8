#include "daemon/engine/imports.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace slate::daemon {

Imports::~Imports() {
  SLATE_CHECK(open_.empty() && closed_.empty());
}

Result<ipc::ImportReply> Imports::open(const ipc::ShareHandle& handle, uid_t uid) {
  if (open_.size() >= kMost) return fail(ErrorCode::kLimit, "too much memory of other programs");
  auto memory = exports_->open_memory(handle, uid);
  if (!memory) return std::unexpected(memory.error());
  const device::AddressRange range = memory->range;
  const auto [import, is_new] = open_.try_emplace(range.base, Import{*memory, 0});
  if (!is_new) let_go_of(*memory);  // one hold is enough
  merged_ = nullptr;
  return ipc::ImportReply{range.base, range.bytes, ++import->second.count};
}

Result<ipc::ImportReply> Imports::close(device::Address address) {
  const auto found = open_.find(address);
  if (found == open_.end())
    return fail(ErrorCode::kInvalidValue, "no memory of another program is open at this address");
  const Exports::Memory& memory = found->second.memory;
  const ipc::ImportReply reply{address, memory.range.bytes, --found->second.count};
  if (reply.count > 0) return reply;
  {
    const MutexLock lock(mutex_);
    closed_.emplace(address, memory);
  }
  open_.erase(found);
  merged_ = nullptr;
  return reply;
}

void Imports::finish_close(device::Address address) {
  Exports::Memory memory;
  {
    const MutexLock lock(mutex_);
    const auto found = closed_.find(address);
    SLATE_CHECK(found != closed_.end());
    memory = std::move(found->second);
    closed_.erase(found);
  }
  let_go_of(memory);
}

void Imports::release() {
  for (const auto& [address, import] : open_) let_go_of(import.memory);
  open_.clear();
  const MutexLock lock(mutex_);
  for (const auto& [address, memory] : closed_) let_go_of(memory);
  closed_.clear();
}

bool Imports::owns(device::Address address, std::uint64_t bytes) const {
  const auto next = open_.upper_bound(address);
  return next != open_.begin() && std::prev(next)->second.memory.range.contains(address, bytes);
}

Imports::Ranges Imports::with(const Ranges& others) {
  if (open_.empty()) return others;
  if (merged_ != nullptr && others_ == others) return merged_;
  auto ranges = others ? std::make_shared<std::vector<device::AddressRange>>(*others)
                       : std::make_shared<std::vector<device::AddressRange>>();
  for (const auto& [address, import] : open_) ranges->push_back(import.memory.range);
  std::ranges::sort(*ranges, {}, &device::AddressRange::base);
  others_ = others;
  merged_ = std::move(ranges);
  return merged_;
}

}  // namespace slate::daemon
