#include "daemon/engine/commands/command_reach.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace slate::daemon {

using ipc::CommandType;

namespace {

ReachedRanges unknown(std::string name, std::string why_not) {
  return {.read = {},
          .written = {},
          .reads_anything = true,
          .writes_anything = true,
          .name = std::move(name),
          .why_not = std::move(why_not)};
}

}  // namespace

ReachedRanges CommandReach::of(const Book::Open& open) {
  ReachedRanges reached = memory_of(open.command);
  if (reached.why_not.empty() && open.command.header.type == CommandType::kLaunch)
    reached.why_not = why_not_again(open.command);
  if (reached.why_not.empty() && reached.reads_anything) reached.why_not = "it may read anything";
  if (open.passed && reached.why_not.empty()) reached.why_not = "too much work came behind it";
  reached.is_done = open.done;
  return reached;
}

ReachedRanges CommandReach::memory_of(const ipc::Command& command) {
  ReachedRanges reached;
  switch (command.header.type) {
    case CommandType::kLaunch:
      reached = of_launch(command);
      break;
    case CommandType::kCopy: {
      const auto copy = command.as<ipc::Copy>();
      reached = copy ? of_copy(*copy) : ReachedRanges{};
      break;
    }
    case CommandType::kCopyInline: {
      std::span<const std::byte> bytes;
      const auto copy = command.as<ipc::CopyInline>(&bytes);
      reached.name = "a copy";
      if (copy) reached.written.push_back({copy->address, bytes.size()});
      break;
    }
    case CommandType::kFill: {
      const auto fill = command.as<ipc::Fill>();
      reached.name = "a fill";
      if (!fill || fill->width == 0 || fill->height == 0) break;
      const auto extent = extent_of({fill->width, fill->height}, fill->pitch, 0);
      if (extent) reached.written.push_back({fill->to, *extent});
      break;
    }
    default:
      break;  // nothing of memory
  }
  return reached;
}

ReachedRanges CommandReach::of_copy(const ipc::Copy& copy) const {
  ReachedRanges reached;
  reached.name = "a copy";
  if (copy.box.empty()) return reached;
  if (copy.to.is(PlaceKind::kArray) || copy.from.is(PlaceKind::kArray))
    return unknown("a copy", "it is of an array");
  if (const auto range = range_of(copy.from, copy.box)) reached.read.push_back(*range);
  if (const auto range = range_of(copy.to, copy.box)) reached.written.push_back(*range);
  return reached;
}

/// Nullopt for a staging slot: the client does not touch it before the copy has ended.
std::optional<device::AddressRange> CommandReach::range_of(const Place& place,
                                                           const Box& box) const {
  const auto extent = extent_of(box, place.pitch, place.slice);
  if (!extent) return std::nullopt;
  if (place.is(PlaceKind::kDevice)) return device::AddressRange{place.address, *extent};
  if (!place.is(PlaceKind::kBlock)) return std::nullopt;
  const auto memory = host_.blocks().find(place.object, place.address, *extent);
  if (!memory) return std::nullopt;
  return device::AddressRange{reinterpret_cast<device::Address>(*memory), *extent};
}

/// What a program maps itself may be there twice. But then no command of it is carried out again
/// (session_book.h), for which alone that would matter.
std::optional<device::AddressRange> CommandReach::allocation_at(device::Address address) const {
  if (const auto block = memory_.manager().block_of(address)) return block;
  if (const auto block = host_.blocks().block_of(address)) return block;
  return mapped_.ranges().reservation_of(address);
}

/// Whether a number of 8 bytes leads from one pointer's allocation into another one, as a stride
/// between matrices that were allocated one by one does. To the end of the own one is no such way.
bool CommandReach::steps_elsewhere(std::span<const std::byte> parameters) const {
  constexpr int kMostShift = 4;  // elements have up to 16 bytes
  std::vector<std::uint64_t> pointers, numbers;
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= parameters.size();
       at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, parameters.data() + at, sizeof(word));
    if (word != 0) (allocation_at(word) ? pointers : numbers).push_back(word);
  }
  const auto leads_elsewhere = [&](std::uint64_t pointer, std::uint64_t way) {
    const auto found = allocation_at(pointer + way);
    if (!found) return false;
    const auto own = allocation_at(pointer);
    return found->base != own->base && pointer + way != own->base + own->bytes;
  };
  for (const std::uint64_t pointer : pointers) {
    for (const std::uint64_t number : numbers) {
      for (int shift = 0; shift <= kMostShift; ++shift) {
        if (leads_elsewhere(pointer, number << shift)) return true;
      }
    }
  }
  return false;
}

/// Each kernel is read once.
Result<const injector::Reach*> CommandReach::reach_of(std::uint64_t function,
                                                      const FunctionRecord& kernel) {
  const auto found = known_.find(function);
  if (found != known_.end()) return &found->second;
  auto reach = code_.modules().reach_of(kernel);
  if (!reach) return std::unexpected(reach.error());
  return &known_.emplace(function, std::move(*reach)).first->second;
}

/// A variable that is at home counts by itself, not as the home that it is in.
std::optional<device::AddressRange> CommandReach::place_at(device::Address address) const {
  const ModuleStore& modules = code_.modules();
  return modules.is_home(address) ? modules.variable_at(address) : allocation_at(address);
}

injector::MemoryMap CommandReach::memory_map(const FunctionRecord& kernel) const {
  using Id = std::optional<injector::AllocationId>;
  return {.allocation_at = [this](std::uint64_t address) -> Id {
            const auto range = place_at(address);
            return range ? Id(range->base) : std::nullopt;
          },
          .allocation_of_image = nullptr,
          .variable_named = [this, &kernel](const std::string& name) -> Id {
            const auto range = code_.modules().at_home(kernel, name);
            return range ? Id(range->base) : std::nullopt;
          }};
}

/// Requires: memory_of() knows what it reaches.
std::string CommandReach::why_not_again(const ipc::Command& command) {
  std::span<const std::byte> parameters;
  const auto launch = command.as<ipc::Launch>(&parameters);
  if (!launch) return {};
  const auto kernel = code_.modules().find_function(launch->function);
  if (!kernel) return kernel.error().message;
  const auto reach = reach_of(launch->function, **kernel);
  return reach ? injector::may_restart(**reach, parameters, memory_map(**kernel)).why_not
               : reach.error().message;
}

ReachedRanges CommandReach::of_launch(const ipc::Command& command) {
  std::span<const std::byte> parameters;
  const auto launch = command.as<ipc::Launch>(&parameters);
  if (!launch) return {};
  const auto kernel = code_.modules().find_function(launch->function);
  if (!kernel) return unknown("a kernel", "its module is gone");
  const std::string& name = *(*kernel)->name;
  const auto reach = reach_of(launch->function, **kernel);
  if (!reach) return unknown(name, reach.error().message);
  const auto all = injector::reach_of_launch(**reach, parameters, memory_map(**kernel));
  ReachedRanges reached;
  reached.reads_anything = all.everything;
  reached.writes_anything = all.writes_everything;
  reached.name = name;
  if (memory_.backing() != nullptr && steps_elsewhere(parameters))
    reached.reads_anything = reached.writes_anything = true;
  for (const auto& place : all.allocations) {
    const auto range = place_at(place.allocation);
    if (!range) continue;
    if (place.read) reached.read.push_back(*range);
    if (place.written) reached.written.push_back(*range);
  }
  // Which constant a kernel reads is not always known.
  const bool reads_constants =
      std::ranges::any_of((*reach)->memory, &injector::ReachedMemory::is_constant);
  if ((*kernel)->bank != nullptr && reads_constants) {
    for (const OwnConstantSet::Pair& pair : (*kernel)->bank->pairs)
      reached.read.push_back(pair.program);
  }
  return reached;
}

}  // namespace slate::daemon
