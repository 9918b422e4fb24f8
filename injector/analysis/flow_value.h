// FlowValue: what is known of a value that registers and memory hold (address_flow.h).
// MemoryCell: of all that is in the local memory of threads, or in the shared memory of blocks.
// ParameterSlots: of what lies in the parameters and the results of calls, by its place.
// Thread: one at a time.
#pragma once

#include <compare>
#include <cstdint>
#include <map>

#include "injector/analysis/roots.h"
#include "injector/ptx/module.h"

namespace slate::injector {

struct FlowValue {
  OriginTable::Id origin = OriginTable::kNone;
  /// Whether it may be another one when the same kernel runs again with the same memory.
  bool by_chance = false;
};

/// Adds what `more` may be. Returns whether that is news.
bool join(OriginTable& origins, FlowValue& value, const FlowValue& more);
/// What may be any pointer, or a part of it, in so many bytes.
FlowValue unknown_value(std::uint32_t bytes);

class MemoryCell {
 public:
  /// Returns whether the contents are news.
  bool store(OriginTable& origins, const FlowValue& value, std::uint32_t bytes);
  FlowValue load(OriginTable& origins, std::uint32_t bytes) const;

 private:
  FlowValue wide_;    // values of 8 bytes
  FlowValue narrow_;  // values of 4
};

class ParameterSlots {
 public:
  /// A parameter, a result, or a variable that is passed.
  struct Owner {
    ptx::Reference reference = ptx::Reference::kNone;
    std::uint32_t index = 0;

    auto operator<=>(const Owner&) const = default;  // NOLINT: no null pointer
  };

  /// Returns whether the contents are news.
  bool store(OriginTable& origins, Owner owner, std::int64_t offset, std::uint32_t bytes,
             const FlowValue& value);
  /// From now on all that is there may be any pointer. Returns whether that is news.
  bool lose(Owner owner);
  FlowValue load(OriginTable& origins, Owner owner, std::int64_t offset, std::uint32_t bytes) const;
  /// Stores all that `from` of `source` has. Returns whether that is news.
  bool copy(OriginTable& origins, Owner owner, const ParameterSlots& source, Owner from);

 private:
  struct Slot {
    std::uint32_t bytes = 0;
    FlowValue value;
  };
  struct Contents {
    std::map<std::int64_t, Slot> slots;  // by offset
    bool is_lost = false;
  };
  FlowValue overlapping(OriginTable& origins, const Contents& contents, std::int64_t offset,
                        std::uint32_t bytes) const;

  std::map<Owner, Contents> contents_;
};

}  // namespace slate::injector
