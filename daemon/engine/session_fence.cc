#include "daemon/engine/session_fence.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>
#include <thread>
#include <type_traits>

#include "base/check.h"

namespace slate::daemon {
namespace {

using device::AddressRange;
using injector::FenceRange;
using injector::FenceRecord;
using injector::FenceTable;
using injector::Violation;

std::span<const std::byte> bytes_of(const auto& value) {
  return std::as_bytes(std::span(&value, 1));
}

auto values_of(const auto& map) {
  std::vector<std::remove_cvref_t<decltype(map.begin()->second)>> values;
  for (const auto& [key, value] : map) values.push_back(value);
  return values;
}

ErrorCode code_of(Violation kind) {
  switch (kind) {
    case Violation::kMisaligned:
      return ErrorCode::kMisalignedAddress;
    case Violation::kAssert:
      return ErrorCode::kAssert;
    case Violation::kTrap:
    case Violation::kBreakpoint:
      return ErrorCode::kLaunchFailed;
    case Violation::kBranch:
    case Violation::kBarrier:
    case Violation::kWarp:
      return ErrorCode::kIllegalInstruction;
    case Violation::kNone:
    case Violation::kRange:
    case Violation::kHandle:
      break;
  }
  return ErrorCode::kIllegalAddress;
}

/// A kernel may have ended before the record is complete, if its threads found that another
/// kernel's had claimed it. The rest takes microseconds.
void wait_for_record(std::atomic_ref<std::uint32_t>& state) {
  constexpr std::chrono::milliseconds kLongest{100};
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  while (state.load(std::memory_order_acquire) == FenceRecord::kClaimed &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
}

/// What the thread did, as the end of "thread ... of kernel ...".
std::string deed_of(const FenceRecord& record) {
  const bool writes = (record.flags & injector::kFenceWrites) != 0;
  switch (static_cast<Violation>(record.kind)) {
    case Violation::kMisaligned:
      return fmt::format("{} {} bytes at the misaligned address {:#x}", writes ? "wrote" : "read",
                         record.bytes, record.address);
    case Violation::kTrap:
      return "executed a trap instruction";
    case Violation::kAssert:
      return "failed an assertion";
    case Violation::kBreakpoint:
      return "executed a breakpoint instruction";
    case Violation::kHandle:
      return fmt::format("used the number {:#x}, which is no texture or surface of its program's",
                         record.address);
    case Violation::kBranch:
      return fmt::format("jumped by the index {} beyond its table", record.address);
    case Violation::kBarrier:
      return "used a barrier that there cannot be";
    case Violation::kWarp:
      return "executed a matrix instruction in a warp that lacks lanes";
    case Violation::kNone:
    case Violation::kRange:
      break;
  }
  return fmt::format("{} {} bytes at {:#x}, which is no memory of its program's",
                     writes ? "wrote" : "read", record.bytes, record.address);
}

std::string block_of(const FenceRecord& record) {
  return (record.flags & injector::kFenceNumbered) != 0
             ? fmt::format("number {}", record.block[0])
             : fmt::format("({},{},{})", record.block[0], record.block[1], record.block[2]);
}

}  // namespace

SessionFence::~SessionFence() {
  SLATE_CHECK(!slot_);
}

Result<void> SessionFence::add_module(device::Module module, device::Address constants,
                                      ModuleNames names) {
  if (!slot_) {
    const auto slot = memory_->take(*this);
    if (!slot) return std::unexpected(slot.error());
    slot_ = *slot;
    watched_.store(slot->seen);
  }
  const MutexLock lock(mutex_);
  if (table_ == nullptr) table_ = std::make_unique<FenceTable>();
  names_.push_back(std::move(names));
  const Module added{constants, static_cast<std::uint32_t>(names_.size())};
  modules_.insert_or_assign(module, added);
  return write_constants({added});
}

void SessionFence::remove_module(device::Module module) {
  const MutexLock lock(mutex_);
  modules_.erase(module);
}

void SessionFence::add_variable(device::Module module, AddressRange range) {
  if (memory_ == nullptr || range.bytes == 0) return;
  const MutexLock lock(mutex_);
  const auto [first, last] = variables_.equal_range(module);
  const bool is_known = std::any_of(first, last, [&](const auto& each) {
    return each.second.base == range.base && each.second.bytes == range.bytes;
  });
  if (is_known) return;
  variables_.emplace(module, range);
  changed_.store(true);
}

void SessionFence::remove_variables(device::Module module) {
  const MutexLock lock(mutex_);
  const auto [first, last] = variables_.equal_range(module);
  std::vector<AddressRange> gone;
  for (auto each = first; each != last; ++each) gone.push_back(each->second);
  variables_.erase(first, last);
  // Kernels of shared code have the same variables.
  std::erase_if(gone, [&](const AddressRange& range) SLATE_REQUIRES(mutex_) {
    return std::ranges::any_of(variables_, [&](const auto& other) {
      return other.second.base == range.base && other.second.bytes == range.bytes;
    });
  });
  cut_out(gone);
}

void SessionFence::add_handle(std::uint64_t handle) {
  if (memory_ == nullptr) return;
  const MutexLock lock(mutex_);
  handles_.push_back(handle);
  changed_.store(true);
}

void SessionFence::remove_handle(std::uint64_t handle) {
  const MutexLock lock(mutex_);
  if (std::erase(handles_, handle) == 0) return;
  changed_.store(true);
  if (table_ == nullptr) return;
  std::ranges::replace(std::span(table_->handle).first(table_->handles), handle, std::uint64_t{0});
  // A device that refuses is lost: no kernel begins on it any more.
  (void)write_table();
  (void)write_constants(values_of(modules_));
}

injector::FenceConstants SessionFence::constants_of(const Module& module) const {
  injector::FenceConstants constants = injector::constants_of_extent(extent_.base, extent_.bytes);
  constants.table = slot_->table.base;
  constants.record = slot_->record.base;
  constants.module = module.number;
  for (std::size_t i = 0; i < injector::kFastHandles && i < handles_.size(); ++i)
    constants.fast_handles[i] = handles_[handles_.size() - 1 - i];
  return constants;
}

Result<void> SessionFence::write_constants(const std::vector<Module>& modules) {
  std::vector<injector::FenceConstants> constants;
  std::vector<FenceMemory::Write> writes;
  constants.reserve(modules.size());
  for (const Module& each : modules) {
    constants.push_back(constants_of(each));
    writes.push_back({each.constants, bytes_of(constants.back())});
  }
  return memory_->write(writes);
}

/// Entries first, then the counts. FenceTable::ended, which lies between, is the kernels' own.
Result<void> SessionFence::write_table() {
  const auto bytes = bytes_of(*table_);
  const auto piece = [&](std::size_t begin, std::size_t size) {
    return FenceMemory::Write{slot_->table.base + begin, bytes.subspan(begin, size)};
  };
  const FenceMemory::Write writes[] = {
      piece(offsetof(FenceTable, ranges), table_->range_count * sizeof(FenceRange)),
      piece(offsetof(FenceTable, handle), table_->handles * sizeof(std::uint64_t)),
      piece(0, offsetof(FenceTable, ended))};
  return memory_->write(writes);
}

void SessionFence::take_out(AddressRange range) {
  const MutexLock lock(mutex_);
  cut_out({&range, 1});
}

/// Takes the range out of the ranges of the table, and adds what lies behind it in one of them.
/// Whether there was anything to take.
bool SessionFence::cut_in_table(AddressRange range) {
  const device::Address end = range.base + range.bytes;
  bool cuts = false;
  const std::uint32_t count = table_->range_count;
  for (std::uint32_t i = 0; i < count; ++i) {
    FenceRange& each = table_->ranges[i];
    if (each.bytes == 0 || !range.overlaps({each.base, each.bytes})) continue;
    cuts = true;
    const device::Address its_end = each.base + each.bytes;
    if (its_end > end && table_->range_count < FenceTable::kMostRanges)
      table_->ranges[table_->range_count++] = {end, its_end - end};
    each.bytes = range.base > each.base ? range.base - each.base : 0;
  }
  return cuts;
}

/// Kernels may run that use what lies beside the ranges: that is in the table at any time. So what
/// is added is written first. A device that refuses is lost: no kernel begins on it any more.
void SessionFence::cut_out(std::span<const AddressRange> ranges) {
  if (ranges.empty()) return;
  ++forgotten_;
  if (table_ == nullptr) return;
  const std::vector<FenceRange> before(table_->ranges, table_->ranges + table_->range_count);
  bool cuts_table = false, cuts_extent = false;
  for (const AddressRange& range : ranges) {
    cuts_table |= cut_in_table(range);
    if (!extent_.overlaps(range)) continue;
    cuts_extent = true;
    extent_.bytes = range.base > extent_.base ? range.base - extent_.base : 0;
  }
  if (!cuts_table && !cuts_extent) return;
  changed_.store(true);
  if (table_->range_count > before.size()) {
    std::vector<FenceRange> after(table_->ranges, table_->ranges + before.size());
    std::ranges::copy(before, table_->ranges);
    (void)write_table();
    std::ranges::copy(after, table_->ranges);
  }
  (void)write_table();
  if (cuts_extent) (void)write_constants(values_of(modules_));
}

SessionFence::Wanted SessionFence::wanted(const std::vector<AddressRange>& mapped,
                                          const Ranges& host) const {
  Wanted all;
  const auto add = [&](AddressRange range) {
    auto& bytes = all[range.base];
    bytes = std::max(bytes, range.bytes);
  };
  for (const AddressRange& each : mapped) add(each);
  if (host != nullptr) std::ranges::for_each(*host, add);
  for (const auto& [module, each] : variables_) add(each);
  return all;
}

std::vector<AddressRange> SessionFence::runs_of(const std::vector<AddressRange>& mapped) {
  std::vector<AddressRange> runs;
  for (const AddressRange& each : mapped) {
    if (runs.empty() || runs.back().base + runs.back().bytes != each.base) {
      runs.push_back(each);
    } else {
      runs.back().bytes += each.bytes;
    }
  }
  return runs;
}

AddressRange SessionFence::longest_of(const std::vector<AddressRange>& runs) {
  const auto longest = std::ranges::max_element(runs, {}, &AddressRange::bytes);
  return longest == runs.end() ? AddressRange{} : *longest;
}

AddressRange SessionFence::likely_extent(const MemoryManager& memory) const {
  return longest_of(runs_of(memory.mapped()));
}

/// The longest run of what is mapped, or one that is half as long and begins where the extent does.
/// A kernel reads the beginning and the size one after the other. So the beginning changes while no
/// kernel looks at it, or while the extent is empty. Then it stays so until all kernels that may
/// have seen the old beginning have ended.
Result<void> SessionFence::choose_extent(const std::vector<AddressRange>& mapped, bool idle) {
  const std::vector<AddressRange> runs = runs_of(mapped);
  const AddressRange longest = longest_of(runs);
  if (idle || extent_.base == 0) {
    seen_moves_ = moves_;
    new_move_.reset();
    extent_ = longest;
    return {};
  }
  if (seen_moves_ != moves_) return {};
  for (const AddressRange& run : runs) {
    if (run.contains(extent_.base, extent_.bytes))
      extent_.bytes = run.base + run.bytes - extent_.base;
  }
  if (longest.bytes / 2 <= extent_.bytes) return {};
  extent_.bytes = 0;
  if (const auto emptied = write_constants(values_of(modules_)); !emptied) return emptied;
  extent_.base = longest.base;
  new_move_ = ++moves_;
  return {};
}

void SessionFence::move_was_seen(std::uint64_t move) {
  const MutexLock lock(mutex_);
  seen_moves_ = std::max(seen_moves_, move);
  changed_.store(true);
}

Result<void> SessionFence::fill_table(const Wanted& wanted, bool idle) {
  Wanted missing = wanted;
  std::span<FenceRange> entries(table_->ranges);
  for (FenceRange& each : entries.first(table_->range_count)) {
    const auto found = missing.find(each.base);
    if (each.bytes == 0) continue;
    if (found != missing.end() && found->second == each.bytes) {
      missing.erase(found);
    } else if (idle) {
      each.bytes = 0;  // before, kernels may still use it
    }
  }
  if (idle) {
    const auto used = entries.first(table_->range_count);
    const auto gone =
        std::ranges::remove_if(used, [](const auto& each) { return each.bytes == 0; });
    table_->range_count = static_cast<std::uint32_t>(used.size() - gone.size());
  }
  // A range that has grown is there twice until no work is left.
  for (const auto& [base, bytes] : missing) {
    if (table_->range_count == FenceTable::kMostRanges)
      return fail(ErrorCode::kLimit, "too many ranges of memory for fenced kernels");
    entries[table_->range_count++] = {base, bytes};
  }
  return {};
}

Result<void> SessionFence::fill_handles(bool idle) {
  std::span<std::uint64_t> entries(table_->handle);
  std::vector<std::uint64_t> missing = handles_;
  if (idle) table_->handles = 0;
  for (const std::uint64_t each : entries.first(table_->handles)) std::erase(missing, each);
  for (const std::uint64_t each : missing) {
    if (table_->handles == FenceTable::kMostHandles)
      return fail(ErrorCode::kLimit, "too many textures and surfaces for fenced kernels");
    entries[table_->handles++] = each;
  }
  return {};
}

Result<void> SessionFence::write(const MemoryManager& memory, const Ranges& host, bool idle) {
  while (true) {
    std::uint64_t forgotten = 0;
    {
      const MutexLock lock(mutex_);
      forgotten = forgotten_;
    }
    const std::uint64_t version = memory.mapped_version();
    const auto mapped = memory.mapped();
    const MutexLock lock(mutex_);
    if (forgotten != forgotten_) continue;  // some of it may be gone
    changed_.store(false);
    if (const auto done = choose_extent(mapped, idle); !done) return done;
    if (const auto done = fill_table(wanted(mapped, host), idle); !done) return done;
    if (const auto done = fill_handles(idle); !done) return done;
    if (const auto done = write_table(); !done) return done;
    if (const auto done = write_constants(values_of(modules_)); !done) return done;
    seen_version_ = version;
    seen_host_ = host;
    return {};
  }
}

std::optional<Error> SessionFence::violation() const {
  FenceRecord* const watched = watched_.load(std::memory_order_acquire);
  if (watched == nullptr) return std::nullopt;
  std::atomic_ref<std::uint32_t> state(watched->state);
  if (state.load(std::memory_order_acquire) == FenceRecord::kClaimed) wait_for_record(state);
  if (state.load(std::memory_order_acquire) != FenceRecord::kComplete) return std::nullopt;
  const FenceRecord record = *watched;
  const MutexLock lock(mutex_);
  return Error{code_of(static_cast<Violation>(record.kind)),
               fmt::format("{}: thread ({},{},{}) of block {} {}", where(record), record.thread[0],
                           record.thread[1], record.thread[2], block_of(record), deed_of(record))};
}

/// "kernel K", or "kernel K in function F".
std::string SessionFence::where(const FenceRecord& record) const {
  if (record.module == 0 || record.module > names_.size()) return "a kernel";
  const ModuleNames& names = names_[record.module - 1];
  const std::string kernel = "kernel " + *names.kernel;
  if (record.function >= names.functions.size()) return kernel;
  const std::string& function = names.functions[record.function];
  return function.starts_with(*names.kernel) ? kernel
                                             : fmt::format("{} in function {}", kernel, function);
}

void SessionFence::release() {
  if (!slot_) return;
  watched_.store(nullptr);
  memory_->give_back(*slot_, *this);
  slot_.reset();
}

}  // namespace slate::daemon
