// Roots: the pointers from which an address is computed. OriginTable: sets of roots as numbers, and
// what instructions make of them. It knows values and no instructions (address_flow.h does).
// Thread: one at a time.
//
// An origin is a set of alternatives, since ways through the code join. Each alternative is a sum:
// the roots that have been added to one another. Plain numbers are no roots, so the origin of a
// number is one empty sum. An origin only says more than the truth, never less.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "injector/analysis/effort.h"

namespace slate::injector {

enum class RootKind : std::uint8_t {
  kParameter,       // 8 bytes of the kernel's parameters, which may be a pointer
  kParameterSpace,  // the address of the kernel's parameters
  kVariable,        // the address of a variable of the module
  kLocal,           // the thread's own memory
  kShared,          // the block's
  kNull,            // the number 0, where a pointer may be
  kUnknown,         // what may be a pointer and was loaded, or made in a way that is not followed
};

/// Which bits of a pointer a value holds.
enum class RootPart : std::uint8_t {
  kWhole,
  kLow,     // 32 bits; of a parameter those at `number`, whether they are its lower or upper ones
  kHigh,    // the upper 32 bits, not of a parameter
  kRaised,  // upper 32 bits, shifted to their place
};

struct Root {
  RootKind kind = RootKind::kUnknown;
  RootPart part = RootPart::kWhole;
  std::uint32_t number = 0;  // offset in the parameters, or index into Module::variables
  /// kParameter: any 8 bytes of so many from `number`; 0: those at it. kParameterSpace: not 0 if it
  /// is anywhere in the parameter that `number` lies in.
  std::uint32_t extent = 0;

  auto operator<=>(const Root&) const = default;  // NOLINT: no null pointer
};

using RootSum = std::vector<Root>;  // sorted, distinct

class OriginTable {
 public:
  using Id = std::uint32_t;
  static constexpr Id kNone = 0;         // no value yet
  static constexpr Id kNumber = 1;       // no pointer
  static constexpr Id kUnknown = 2;      // may be any pointer
  static constexpr Id kUnknownHalf = 3;  // may be 32 bits of any pointer
  static constexpr Id kNull = 4;

  explicit OriginTable(Effort& effort);

  const std::vector<RootSum>& alternatives(Id origin) const { return *origins_[origin]; }

  Id of(const Root& root);
  /// The origin of a value that is one or the other.
  Id joined(Id a, Id b);
  /// The origin of what is added up, or made bit by bit, of both.
  Id sum(Id a, Id b);
  /// Whether the value is no pointer but null; also where there is no value yet.
  bool is_number(Id a) const;
  /// Whether the value may hold 32 bits of a pointer.
  bool has_halves(Id a) const;
  /// A multiple, or a quotient. Loaded pointers are not multiplied: such a value is an index.
  Id scaled(Id a);
  /// A constant is added.
  Id moved(Id a, std::int64_t by);
  /// The lower and the upper 32 bits of 64.
  Id low(Id a);
  Id high(Id a);
  /// 32 bits, shifted left by 32.
  Id raised(Id a);
  Id packed(Id low, Id high);
  /// Bits of the value in another order: halves of pointers are lost.
  Id blurred(Id a);

  static constexpr std::size_t kMostAlternatives = 16;
  static constexpr std::size_t kMostRoots = 6;  // in a sum

 private:
  using Origin = std::vector<RootSum>;  // sorted, distinct
  using Change = std::function<std::optional<Root>(const Root&)>;

  Id intern(Origin origin);
  /// Each root as `change` makes it; dropped where that is nothing.
  Id mapped(Id a, const Change& change);
  static RootSum added(const RootSum& a, const RootSum& b);
  static RootSum simplified(RootSum sum);

  Effort& effort_;
  std::map<Origin, Id> ids_;
  std::vector<const Origin*> origins_;                  // keys of ids_
  std::unordered_map<std::uint64_t, Id> joins_, sums_;  // by both operands
  bool any_parameter_space_ = false;                    // whether an origin ever had such a root
};

}  // namespace slate::injector
