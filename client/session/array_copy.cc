#include "client/session/array_copy.h"

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

}  // namespace slate::client
