// Checks an entry of the arithmetic table, in both instruction sets, against a reference function
// of one lane's values.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/unit/sim_alu/alu_inputs.h"

namespace slate::sim {

template <class T>
T from_bits(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(bits);
  } else {
    return static_cast<T>(bits);
  }
}
template <class T>
std::uint64_t to_bits(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::make_unsigned_t<T>>(value);
  }
}

/// The tables that this machine can run.
inline std::vector<const AluTable*> alu_tables() {
  std::vector<const AluTable*> tables{&AluTable::of(AluIsa::kBase)};
  if (alu_isa_supported(AluIsa::kV3)) tables.push_back(&AluTable::of(AluIsa::kV3));
  return tables;
}

/// The lanes of `name` on random and edge inputs equal reference(lane values): same(result,
/// expected).
template <class R, class... S, class Same>
void expect_lanes(const std::string& name, R (*reference)(S...), Same same, int warps = 200) {
  for (const AluTable* table : alu_tables()) {
    const AluOp* op = table->find(name);
    ASSERT_NE(op, nullptr) << name;
    ASSERT_EQ(op->sources, sizeof...(S)) << name;
    AluInputs inputs(1 + std::hash<std::string>()(name));
    constexpr int kBytes[] = {static_cast<int>(sizeof(S))...};
    for (int w = 0; w < warps; ++w) {
      AluCall call;
      for (int k = 0; k < op->sources; ++k) call.s[k] = inputs.lanes(op->s[k], kBytes[k]);
      call.run(*op, kAllLanes);
      for (int i = 0; i < kWarpSize; ++i) {
        const R expected = [&]<std::size_t... K>(std::index_sequence<K...>) {
          return reference(from_bits<S>(get_lane(call.s[K], sizeof(S), i))...);
        }
        (std::index_sequence_for<S...>());
        const R result = from_bits<R>(get_lane(call.d, sizeof(R), i));
        ASSERT_TRUE(same(result, expected))
            << name << std::hex << " gives " << to_bits(result) << ", not " << to_bits(expected)
            << " for " << get_lane(call.s[0], kBytes[0], i) << ", "
            << get_lane(call.s[1], sizeof...(S) > 1 ? kBytes[sizeof...(S) > 1 ? 1 : 0] : 8, i)
            << ", "
            << get_lane(call.s[2], sizeof...(S) > 2 ? kBytes[sizeof...(S) > 2 ? 2 : 0] : 8, i);
      }
    }
  }
}

template <class R, class... S>
void expect_bits(const std::string& name, R (*reference)(S...), int warps = 200) {
  expect_lanes(
      name, reference, [](R a, R b) { return to_bits(a) == to_bits(b); }, warps);
}

/// One result for the same value in all lanes; bits in, bits out.
inline std::uint64_t evaluate(const std::string& name, std::vector<std::uint64_t> values,
                              Mask carry = 0) {
  const AluOp* op = alu_tables().back()->find(name);
  EXPECT_NE(op, nullptr) << name;
  if (op == nullptr) return ~std::uint64_t{0};
  AluCall call;
  call.carry = carry;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const int bytes = lane_bytes_of(op->s[k]);
    if (bytes == 0) *call.s[k].lanes<Mask>() = values[k] != 0 ? kAllLanes : 0;
    for (int i = 0; bytes != 0 && i < kWarpSize; ++i) set_lane(call.s[k], bytes, i, values[k]);
  }
  call.run(*op, kAllLanes);
  const int bytes = lane_bytes_of(op->d);
  return bytes == 0 ? *call.d.lanes<Mask>() : get_lane(call.d, bytes, 0);
}

}  // namespace slate::sim
