#include "client/session/array_copy.h"

#include <algorithm>

#include "client/session/address_copy.h"
#include "client/session/captures.h"

namespace slate::client {
namespace {

struct Plan {
  Place to, from;
  Box box;
};

/// The directions that say nothing else than what the sides are.
Allowed<void> check_direction(const BoxCopy& copy) {
  const bool both = copy.from.array != 0 && copy.to.array != 0;
  switch (copy.direction) {
    case Direction::kByAddress:
    case Direction::kDeviceToDevice:
      return {};
    case Direction::kHostToDevice:
      if (!both && copy.to.array != 0) return {};
      break;
    case Direction::kDeviceToHost:
      if (!both && copy.from.array != 0) return {};
      break;
    default:
      break;
  }
  return refuse(Refusal::kInvalidDirection);
}

/// `unit`: bytes that position.x counts.
Allowed<Place> array_side(const ArrayTable::Entry& entry, const BoxSide& position, std::size_t unit,
                          const Box& box) {
  const ArrayExtent whole = entry.box();
  const std::uint64_t row = whole.width * entry.spec.format.bytes();
  if (position.x > row / unit || !is_inside(position.x * unit, box.width, row) ||
      !is_inside(position.y, box.height, whole.height) ||
      !is_inside(position.z, box.depth, whole.depth)) {
    return refuse(Refusal::kInvalidValue);
  }
  return Place::in_array(entry.array, entry.level, position.x * unit, position.y, position.z);
}

Allowed<Place> memory_side(Session& session, const BoxSide& side, const Box& box,
                           bool must_be_device) {
  if (side.memory == nullptr) return refuse(Refusal::kInvalidValue);
  if (box.width > side.pitch) return refuse(Refusal::kInvalidPitch);
  if (!check_box(side, {box.width, box.height, box.depth})) return refuse(Refusal::kInvalidValue);
  auto* const first = side.slice_at(0);
  const std::size_t slice = side.pitch * side.rows;
  if (!must_be_device && !is_device_address(session, first)) {
    return Place::on_host(first, side.pitch, slice);
  }
  const std::size_t rows = (box.depth - 1) * side.rows + box.height;
  if (!on_device(session, first, side.pitch, {box.width, rows})) {
    return refuse(Refusal::kInvalidValue);
  }
  return Place::on_device(address_of(first), side.pitch, slice);
}

/// What one side says that it is: an array or memory, not both.
Allowed<std::optional<ArrayTable::Entry>> entry_of(Session& session, const BoxSide& side) {
  if ((side.array != 0) == (side.memory != nullptr)) return refuse(Refusal::kInvalidValue);
  if (side.array == 0) return std::nullopt;
  auto entry = session.arrays().table().find_flat(side.array);
  if (!entry) return refuse(Refusal::kInvalidValue);
  return entry;
}

/// Nothing when there is nothing to copy.
Allowed<std::optional<Plan>> plan_of(Session& session, const BoxCopy& copy) {
  auto from = entry_of(session, copy.from);
  if (!from) return std::unexpected(from.error());
  auto to = entry_of(session, copy.to);
  if (!to) return std::unexpected(to.error());
  if (auto ok = check_direction(copy); !ok) return std::unexpected(ok.error());
  const std::size_t element = (*from ? **from : **to).spec.format.bytes();
  const std::size_t unit = copy.unit == CopyUnit::kByte ? 1 : element;
  if (copy.unit == CopyUnit::kElement && *from && *to && (*to)->spec.format.bytes() != element) {
    return refuse(Refusal::kInvalidValue);
  }
  const BoxExtent& extent = copy.extent;
  if (extent.empty()) return std::nullopt;
  Box box{0, extent.height, extent.depth};
  if (__builtin_mul_overflow(extent.width, unit, &box.width)) {
    return refuse(Refusal::kInvalidValue);
  }
  const bool on_device = copy.direction == Direction::kDeviceToDevice;
  auto source = *from ? array_side(**from, copy.from, unit, box)
                      : memory_side(session, copy.from, box, on_device);
  if (!source) return std::unexpected(source.error());
  auto target =
      *to ? array_side(**to, copy.to, unit, box) : memory_side(session, copy.to, box, on_device);
  if (!target) return std::unexpected(target.error());
  return Plan{*target, *source, box};
}

constexpr std::size_t kNoEnd = ~std::size_t{0};

/// Bytes of a row of this side, of which `bytes` are to be copied; kNoEnd in memory.
Allowed<std::size_t> row_of(Session& session, const BoxSide& side, std::size_t bytes) {
  if (side.array == 0) return kNoEnd;
  const auto entry = session.arrays().table().find_flat(side.array);
  if (!entry) return refuse(Refusal::kInvalidValue);
  const ArrayExtent box = entry->box();
  const std::size_t row = box.width * entry->spec.format.bytes();
  const bool inside =
      side.x < row && side.y < box.height && bytes <= (box.height - side.y) * row - side.x;
  if (!inside) return refuse(Refusal::kInvalidValue);
  return row;
}

/// Goes on by `rows` rows of `width` bytes that were copied.
void advance(BoxSide& side, std::size_t width, std::size_t rows, std::size_t row) {
  if (side.array == 0) {
    side.memory = static_cast<std::byte*>(side.memory) + width * rows;
  } else if (side.x + width < row) {
    side.x += width;
  } else {
    side.x = 0;
    side.y += rows;
  }
}

}  // namespace

Allowed<void> check_array_node(Session& session, const BoxCopy& copy) {
  auto plan = plan_of(session, copy);
  if (plan) return {};
  // No error of its own for pitches: only the runtime's own copies have one.
  if (plan.error().why == Refusal::kInvalidPitch) return refuse(Refusal::kInvalidValue);
  return std::unexpected(plan.error());
}

Allowed<void> copy_array(Session& session, const BoxCopy& copy, bool asynchronous,
                         std::uint64_t stream) {
  auto plan = plan_of(session, copy);
  if (!plan) return std::unexpected(plan.error());
  if (!*plan) return {};
  if (session.captures().takes(stream)) {
    if (!asynchronous) return session.captures().refuse_work(stream);
    if (auto taken = session.captures().add(stream, CopyNode{copy})) return *taken;
  }
  const auto& [to, from, box] = **plan;
  if (auto ok = session.copies().copy(to, from, box, stream); !ok) return ok;
  const bool to_host = to.is(PlaceKind::kHost);
  if (!to_host && !from.is(PlaceKind::kHost)) return {};
  if (!asynchronous) {
    const Place& host = to_host ? to : from;
    const auto extent = extent_of(box, host.pitch, host.slice);
    if (auto ok = wait_for_pinned(session, host.memory(), extent.value_or(0), stream); !ok)
      return ok;
  }
  if (!to_host) return {};
  session.printing().write();
  // What went wrong before the copy, in commands that have no reply, is known by now.
  return session.check();
}

Allowed<BoxCopy> in_elements(Session& session, BoxCopy copy) {
  std::size_t bytes = 0;
  bool whole = true;
  for (const BoxSide* side : {&copy.to, &copy.from}) {
    if (side->array == 0) continue;
    const auto entry = session.arrays().table().find_flat(side->array);
    if (!entry) return refuse(Refusal::kInvalidValue);
    const std::size_t element = entry->spec.format.bytes();
    whole = whole && side->x % element == 0 && copy.extent.width % element == 0 &&
            (bytes == 0 || bytes == element);
    bytes = element;
  }
  if (!whole || bytes == 0) return copy;
  for (BoxSide* side : {&copy.to, &copy.from}) {
    if (side->array != 0) side->x /= bytes;
  }
  copy.extent.width /= bytes;
  copy.unit = CopyUnit::kElement;
  return copy;
}

Allowed<void> copy_array_bytes(Session& session, const BoxCopy& copy, bool asynchronous,
                               std::uint64_t stream) {
  BoxSide to = copy.to, from = copy.from;
  std::size_t left = copy.extent.width;
  if (const auto known = in_elements(session, copy); !known) return std::unexpected(known.error());
  if (left == 0) return {};
  const auto to_row = row_of(session, to, left);
  if (!to_row) return std::unexpected(to_row.error());
  const auto from_row = row_of(session, from, left);
  if (!from_row) return std::unexpected(from_row.error());
  const std::size_t row = std::min(*to_row, *from_row);
  const bool even = std::max(*to_row, *from_row) == kNoEnd || *to_row == *from_row;
  // The rest of a row, whole rows at once, the rest.
  while (left > 0) {
    std::size_t width = std::min({left, *to_row - to.x, *from_row - from.x});
    std::size_t rows = 1;
    if (even && to.x == 0 && from.x == 0 && left >= row) {
      width = row;
      rows = left / row;
    }
    BoxCopy piece{to, from, {width, rows, 1}, copy.direction, CopyUnit::kByte};
    for (BoxSide* side : {&piece.to, &piece.from}) {
      if (side->array != 0) continue;
      side->pitch = side->width = width;
      side->rows = rows;
    }
    const auto counted = in_elements(session, piece);
    if (!counted) return std::unexpected(counted.error());
    if (auto ok = copy_array(session, *counted, asynchronous, stream); !ok) return ok;
    advance(to, width, rows, *to_row);
    advance(from, width, rows, *from_row);
    left -= width * rows;
  }
  return {};
}

}  // namespace slate::client
