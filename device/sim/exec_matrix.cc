// Matrix instructions: their memory accesses and moves. The products are in alu_matrix.cc.
#include <array>
#include <bit>
#include <cstring>

#include "device/sim/warp.h"

namespace slate::sim {
namespace {

constexpr std::uint32_t kRowBytes = 16;  // of an 8 * 8 matrix of 16 bits

/// Relaxed atomic accesses, as those of transfer.cc: other blocks may race for the same bytes.
template <typename T>
void read_units(std::uint64_t from, std::byte* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const T value = __atomic_load_n(reinterpret_cast<const T*>(from) + i, __ATOMIC_RELAXED);
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}
template <typename T>
void write_units(std::uint64_t to, const std::byte* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    __atomic_store_n(reinterpret_cast<T*>(to) + i, value, __ATOMIC_RELAXED);
  }
}

/// Calls visit(T()), where T is the unsigned type of `bytes` bytes.
template <typename Visit>
auto with_type(std::uint32_t bytes, const Visit& visit) {
  switch (bytes) {
    case 1:
      return visit(std::uint8_t{});
    case 2:
      return visit(std::uint16_t{});
    case 4:
      return visit(std::uint32_t{});
    default:
      return visit(std::uint64_t{});
  }
}

/// Moves `count` units of `unit` bytes between host memory and a line of a tile.
void move_line(bool stores, std::uint32_t unit, std::uint64_t host, std::byte* line,
               std::size_t count) {
  with_type(unit, [&]<typename T>(T) {
    return stores ? write_units<T>(host, line, count) : read_units<T>(host, line, count);
  });
}

/// visit(unit of a lane's register, unit of the tile, lane) for all that register `r` holds.
template <typename T, typename Visit>
void each_unit(const MatrixSite& site, unsigned r, std::byte* lanes, std::byte* tile,
               const Visit& visit) {
  const FragmentLayout& layout = site.layout;
  auto* const of_lanes = reinterpret_cast<T*>(lanes);
  auto* const of_tile = reinterpret_cast<T*>(tile);
  for (unsigned i = 0; i < layout.in_register; ++i) {
    const FragmentPlace first = first_place(layout, r % layout.registers(), i);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      const FragmentPlace place = place_of_lane(layout, first, lane);
      const unsigned at = site.inner_is_contiguous ? place.outer * layout.inner + place.inner
                                                   : place.inner * layout.outer + place.outer;
      visit(of_lanes[lane * layout.in_register + i], of_tile[at], lane);
    }
  }
}

}  // namespace

bool Warp::matrix(const Op& op, const Split& split, Mask exec) {
  const MatrixSite& site = block_->code->matrices[op.target];
  switch (site.action) {
    case MatrixAction::kMultiply:
      multiply_matrix(site, *split.frame, exec);
      return true;
    case MatrixAction::kTranspose:
      transpose_matrix(site, *split.frame, exec);
      return true;
    case MatrixAction::kLoad:
    case MatrixAction::kStore:
      return matrix_tile(op, site, split, exec);
    case MatrixAction::kLoadRows:
    case MatrixAction::kStoreRows:
      return matrix_rows(op, site, split, exec);
  }
  return true;
}

void Warp::multiply_matrix(const MatrixSite& site, const Frame& frame, Mask exec) {
  static const MatrixFn multiply = find_matrix_multiply();
  MatrixOperands operands;
  for (std::size_t i = 0; i < site.written.size(); ++i) operands.d[i] = at(site.written[i], frame);
  for (std::size_t i = 0; i < site.a.size(); ++i) operands.a[i] = at(site.a[i], frame);
  for (std::size_t i = 0; i < site.b.size(); ++i) operands.b[i] = at(site.b[i], frame);
  for (std::size_t i = 0; i < site.c.size(); ++i) operands.c[i] = at(site.c[i], frame);
  multiply(site.product, operands, exec);
}

void Warp::transpose_matrix(const MatrixSite& site, const Frame& frame, Mask exec) {
  const auto* const from = lanes<std::uint16_t>(site.a[0], frame);  // row by row
  std::array<std::uint16_t, 64> transposed;
  for (std::size_t i = 0; i < 64; ++i) transposed[i] = from[i % 8 * 8 + i / 8];
  auto* const to = lanes<std::uint32_t>(site.written[0], frame);
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::memcpy(to + lane, transposed.data() + 2 * lane, 4);
  }
}

/// The first lane's address counts: the manual wants the same of all.
bool Warp::matrix_tile(const Op& op, const MatrixSite& site, const Split& split, Mask exec) {
  const Frame& frame = *split.frame;
  const bool stores = site.action == MatrixAction::kStore;
  const std::vector<Ref>& registers = stores ? site.a : site.written;
  const int first = std::countr_zero(exec);
  const std::uint64_t base = base_address(op, frame, first);
  const std::uint64_t stride =
      lanes<std::uint32_t>(op.r[0], frame)[first] / site.units_of_stride * site.unit;
  const FragmentLayout& layout = site.layout;
  const std::size_t length = site.inner_is_contiguous ? layout.inner : layout.outer;
  const std::size_t lines = site.inner_is_contiguous ? layout.outer : layout.inner;
  const auto bytes = static_cast<std::uint32_t>(length * site.unit);
  alignas(64) std::byte tile[kMatrixElements * 4];
  if (stores) {
    ++stores_;
    with_type(site.unit, [&]<typename T>(T) {
      for (unsigned r = 0; r < registers.size(); ++r) {
        each_unit<T>(site, r, at(registers[r], frame), tile,
                     [](const T& of_lane, T& of_tile, unsigned) { of_tile = of_lane; });
      }
    });
  }
  for (std::size_t line = 0; line < lines; ++line) {
    const std::uint64_t address = base + line * stride;
    const std::uint64_t host = wide_address(
        op, split, address, bytes, stores ? Access::kWrite : Access::kRead, site.unit, first);
    if (host == 0) return false;
    move_line(stores, site.unit, host, tile + line * bytes, length);
  }
  if (stores) return true;
  with_type(site.unit, [&]<typename T>(T) {
    for (unsigned r = 0; r < registers.size(); ++r) {
      each_unit<T>(site, r, at(registers[r], frame), tile,
                   [&](T& of_lane, const T& of_tile, unsigned lane) {
                     of_lane = exec >> lane & 1 ? of_tile : of_lane;
                   });
    }
  });
  return true;
}

/// Matrix i has its rows at the addresses of lanes 8 * i to 8 * i + 7.
bool Warp::matrix_rows(const Op& op, const MatrixSite& site, const Split& split, Mask exec) {
  const Frame& frame = *split.frame;
  const bool stores = site.action == MatrixAction::kStoreRows;
  const std::vector<Ref>& registers = stores ? site.a : site.written;
  if (stores) ++stores_;
  for (std::size_t i = 0; i < registers.size(); ++i) {
    std::uint16_t elements[64];  // row by row
    std::uint64_t rows[8];
    for (int row = 0; row < 8; ++row) {
      const int lane = static_cast<int>(8 * i) + row;
      rows[row] = wide_address(op, split, base_address(op, frame, lane), kRowBytes,
                               stores ? Access::kWrite : Access::kRead, kRowBytes, lane);
      if (rows[row] == 0) return false;
      if (!stores) {
        move_line(false, 4, rows[row], reinterpret_cast<std::byte*>(elements + 8 * row), 4);
      }
    }
    auto* const halves = lanes<std::uint16_t>(registers[i], frame);
    for (std::size_t place = 0; place < 64; ++place) {
      if (!(exec >> (place / 2) & 1)) continue;
      const std::size_t in_matrix = site.transposes ? place % 8 * 8 + place / 8 : place;
      if (stores) {
        elements[in_matrix] = halves[place];
      } else {
        halves[place] = elements[in_matrix];
      }
    }
    for (int row = 0; stores && row < 8; ++row) {
      move_line(true, 4, rows[row], reinterpret_cast<std::byte*>(elements + 8 * row), 4);
    }
  }
  return true;
}

/// The address that `op` names for one lane, in its own space.
std::uint64_t Warp::base_address(const Op& op, const Frame& frame, int lane) const {
  const auto offset = static_cast<std::uint64_t>(op.imm);
  if (!(op.flags & kAddressed)) return offset;
  if (op.e == 8) return lanes<std::uint64_t>(op.r[4], frame)[lane] + offset;
  return static_cast<std::uint32_t>(lanes<std::uint32_t>(op.r[4], frame)[lane] + offset);
}

/// The host address of bytes that lie one behind the other; 0 after a fault. Local memory has no
/// such bytes, and no matrix.
std::uint64_t Warp::wide_address(const Op& op, const Split& split, std::uint64_t address,
                                 std::uint32_t bytes, Access access, std::uint32_t align,
                                 int lane) {
  if (address % align != 0) {
    bad_access(split, 1u << lane, address, bytes, "misaligned", ErrorCode::kMisalignedAddress);
    return 0;
  }
  const auto space = static_cast<Space>(op.a);
  const bool local = space == Space::kLocal ||
                     (space == Space::kGeneric && (address & ~(kWindowBytes - 1)) == kLocalWindow);
  const std::uint64_t host = local ? 0 : host_address(space, address, bytes, access, lane);
  if (host == 0) {
    bad_access(split, 1u << lane, address, bytes, "not mapped", ErrorCode::kIllegalAddress);
  }
  return host;
}

}  // namespace slate::sim
