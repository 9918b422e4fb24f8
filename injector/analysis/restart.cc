#include "injector/analysis/restart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace slate::injector {
namespace {

using Kind = ReachedMemory::Kind;

/// Where memory that is reached in one way lies in one launch.
struct Resolved {
  bool unknown = false;
  std::vector<AllocationId> allocations;
  std::string variable;

  void add(const std::vector<AllocationId>& more) {
    for (const AllocationId one : more) {
      if (std::ranges::find(allocations, one) == allocations.end()) allocations.push_back(one);
    }
  }
  bool meets(const Resolved& other) const {
    if (unknown || other.unknown) return true;
    if (!variable.empty() && variable == other.variable) return true;
    return std::ranges::any_of(allocations, [&](AllocationId one) {
      return std::ranges::find(other.allocations, one) != other.allocations.end();
    });
  }
};

class Resolver {
 public:
  Resolver(std::span<const std::byte> parameters, const MemoryMap& memory)
      : parameters_(parameters), memory_(memory) {}

  Resolved resolve(const ReachedMemory& reached) const {
    switch (reached.kind) {
      case Kind::kUnknown:
        return unknown();
      case Kind::kTexture:
        return reached.words.empty() ? unknown() : image(reached.words.front());
      case Kind::kVariable: {
        if (any_pointer(reached.words)) return unknown();
        Resolved found;
        const auto known = memory_.variable_named ? memory_.variable_named(reached.variable)
                                                  : std::optional<AllocationId>();
        if (known) {
          found.allocations = {*known};
        } else {
          found.variable = reached.variable;
        }
        return found;
      }
      case Kind::kOwn:
        return any_pointer(reached.words) ? unknown() : Resolved{};
      case Kind::kParameters:
        return sum(reached.words);
    }
    return unknown();
  }

 private:
  /// What 8 bytes of the parameters may be.
  struct Word {
    std::vector<AllocationId> allocations;  // empty: it is no pointer
    bool may_lead_elsewhere = false;        // perhaps a pointer to what is no allocation
    bool is_null = false;
  };

  static Resolved unknown() {
    Resolved all;
    all.unknown = true;
    return all;
  }

  std::optional<std::uint64_t> value_at(std::uint64_t offset) const {
    std::uint64_t value = 0;
    if (offset + sizeof(value) > parameters_.size()) return std::nullopt;
    std::memcpy(&value, parameters_.data() + offset, sizeof(value));
    return value;
  }

  /// A pointer behind the end of an allocation is one into it, and may be where another one begins.
  Word word_at(std::uint64_t offset) const {
    const auto value = value_at(offset);
    Word word;
    if (!value) {
      word.may_lead_elsewhere = true;
      return word;
    }
    word.is_null = *value == 0;
    if (word.is_null) return word;
    for (const std::uint64_t address : {*value, *value - 1}) {
      const auto found = memory_.allocation_at(address);
      if (!found) continue;
      if (std::ranges::find(word.allocations, *found) == word.allocations.end()) {
        word.allocations.push_back(*found);
      }
    }
    constexpr std::uint64_t kLeastAddress = std::uint64_t{1} << 32;
    word.may_lead_elsewhere = word.allocations.empty() && *value >= kLeastAddress;
    return word;
  }

  /// One of several words, of which some may be no pointers.
  Word any_of(const ParameterWord& range) const {
    if (range.extent == 0) return word_at(range.offset);
    Word all{.allocations = {}, .is_null = true};
    const std::uint64_t end = std::uint64_t{range.offset} + range.extent;
    for (std::uint64_t at = range.offset; at + 8 <= end && !all.may_lead_elsewhere; at += 8) {
      const Word one = word_at(at);
      for (const AllocationId id : one.allocations) {
        if (std::ranges::find(all.allocations, id) == all.allocations.end()) {
          all.allocations.push_back(id);
        }
      }
      all.may_lead_elsewhere |= one.may_lead_elsewhere;
      all.is_null &= one.is_null;
    }
    return all;
  }

  bool any_pointer(const std::vector<ParameterWord>& words) const {
    return std::ranges::any_of(words, [&](const ParameterWord& range) {
      const Word word = any_of(range);
      return word.may_lead_elsewhere || !word.allocations.empty();
    });
  }

  /// One pointer, the others being numbers. Null leads nowhere.
  Resolved sum(const std::vector<ParameterWord>& words) const {
    Resolved found;
    std::size_t pointers = 0;
    bool same = true;  // several pointers into one allocation: their difference is a number
    bool is_null = true;
    for (const ParameterWord& range : words) {
      const Word word = any_of(range);
      is_null &= word.is_null;
      if (word.may_lead_elsewhere) return unknown();
      if (word.allocations.empty()) continue;
      same &=
          word.allocations.size() == 1 && (pointers == 0 || found.allocations == word.allocations);
      found.add(word.allocations);
      ++pointers;
    }
    if (pointers == 0) return is_null && words.size() == 1 ? Resolved{} : unknown();
    return pointers == 1 || same ? found : unknown();
  }

  Resolved image(const ParameterWord& word) const {
    const auto handle = value_at(word.offset);
    if (word.extent != 0 || !handle || !memory_.allocation_of_image) return unknown();
    const auto found = memory_.allocation_of_image(*handle);
    if (!found) return unknown();
    Resolved one;
    one.allocations.push_back(*found);
    return one;
  }

  std::span<const std::byte> parameters_;
  const MemoryMap& memory_;
};

std::string at(std::uint32_t line, std::string_view what) {
  return fmt::format("line {}: {}", line, what);
}

/// A reason that holds whatever the pointers are; empty if there is none.
std::string reason_of_kernel(const Reach& reach) {
  if (!reach.complete) return "what it reaches is not known: its analysis takes too long";
  for (std::size_t i = 0; i < static_cast<std::size_t>(kFirstHarmless); ++i) {
    const auto effect = static_cast<Effect>(i);
    // Chance mostly comes of atomics, which say more.
    if (effect == Effect::kChance) continue;
    if (const std::uint32_t line = reach.line(effect)) return at(line, sentence_of(effect));
  }
  return {};
}

std::string reason_of_pair(const ReachedMemory& read, const ReachedMemory& written) {
  if (&read == &written && read.kind != Kind::kUnknown) {
    return at(read.read, fmt::format("reads {}, which it writes (line {})", read.description(),
                                     written.written));
  }
  return at(read.read, fmt::format("reads {}, which may be what it writes (line {}): {}",
                                   read.description(), written.written, written.description()));
}

}  // namespace

LaunchReach reach_of_launch(const Reach& reach, std::span<const std::byte> parameters,
                            const MemoryMap& memory) {
  LaunchReach found;
  found.everything = !reach.from_arguments();
  found.writes_everything = !reach.is_closed();
  const Resolver resolver(parameters, memory);
  for (const ReachedMemory& reached : reach.memory) {
    const Resolved resolved = resolver.resolve(reached);
    found.everything |= resolved.unknown && !reached.is_constant;
    found.writes_everything |= resolved.unknown && reached.written != 0;
    for (const AllocationId id : resolved.allocations) {
      auto place = std::ranges::find(found.allocations, id, &LaunchReach::Place::allocation);
      if (place == found.allocations.end()) {
        place = found.allocations.insert(place, {.allocation = id});
      }
      place->read |= reached.read != 0;
      place->written |= reached.written != 0;
    }
    const bool is_new =
        std::ranges::find(found.variables, resolved.variable) == found.variables.end();
    if (!resolved.variable.empty() && is_new) found.variables.push_back(resolved.variable);
  }
  return found;
}

Restart may_restart(const Reach& reach, std::span<const std::byte> parameters,
                    const MemoryMap& memory) {
  if (std::string reason = reason_of_kernel(reach); !reason.empty()) return {std::move(reason)};
  const Resolver resolver(parameters, memory);
  std::vector<Resolved> places;
  for (const ReachedMemory& reached : reach.memory) {
    places.push_back(resolver.resolve(reached));
    const Resolved& place = places.back();
    // The thread's own memory, or null: nobody else can see it.
    if (!place.unknown && place.allocations.empty() && place.variable.empty()) continue;
    if (reached.atomic != 0) {
      return {at(reached.atomic, "an atomic operation on " + reached.description())};
    }
    if (reached.ordered != 0) {
      return {at(reached.ordered, "shares " + reached.description() +
                                      " with others while it runs (volatile or ordered)")};
    }
  }
  if (const std::uint32_t line = reach.line(Effect::kChance)) {
    return {at(line, sentence_of(Effect::kChance))};
  }
  const auto pair = [&](bool same) -> std::optional<Restart> {
    for (std::size_t r = 0; r < places.size(); ++r) {
      if (reach.memory[r].read == 0 || reach.memory[r].is_constant) continue;
      for (std::size_t w = 0; w < places.size(); ++w) {
        if (reach.memory[w].written == 0 || same != (r == w)) continue;
        if (places[r].meets(places[w]))
          return Restart{reason_of_pair(reach.memory[r], reach.memory[w])};
      }
    }
    return std::nullopt;
  };
  if (const auto found = pair(true)) return *found;
  return pair(false).value_or(Restart{});
}

Restart may_restart_if_distinct(const Reach& reach) {
  constexpr std::uint64_t kFirst = std::uint64_t{1} << 20;
  std::uint64_t end = 0;
  std::vector<std::uint64_t> pointers(reach.pointers.begin(), reach.pointers.end());
  for (const ReachedMemory& reached : reach.memory) {
    for (const ParameterWord& word : reached.words) {
      end = std::max<std::uint64_t>(end, word.offset + std::max(word.extent, 8u));
      if (reached.kind == Kind::kTexture) pointers.push_back(word.offset);
    }
  }
  for (const std::uint64_t pointer : pointers) end = std::max(end, pointer + 8);
  // Each pointer leads into the middle of an allocation of its own.
  std::vector<std::byte> parameters(end);
  for (const std::uint64_t pointer : pointers) {
    const std::uint64_t value = (kFirst + pointer) << 32 | 0x80000000;
    std::memcpy(parameters.data() + pointer, &value, sizeof(value));
  }
  const auto allocation = [](std::uint64_t address) -> std::optional<AllocationId> {
    if (address >> 32 < kFirst) return std::nullopt;
    return address >> 32;
  };
  return may_restart(reach, parameters, {allocation, allocation});
}

}  // namespace slate::injector
