#include "client/session/address_copy.h"

#include <cstring>
#include <vector>

#include "client/session/captures.h"
#include "client/session/process.h"

namespace slate::client {
namespace {

constexpr int kMaxPitch = 11;  // CU_DEVICE_ATTRIBUTE_*

/// One side of a copy or fill: on the device, or memory of the program.
struct Side {
  bool device = false;
  Place place;          // on the device
  bool shared = false;  // host memory that the device reaches: the reader has to wait
};

struct Sides {
  Side to, from;
};

/// Bytes from the first to the last; nothing when they do not end within the address space.
std::optional<std::uint64_t> extent_of(const void* address, std::size_t pitch, Box shape) {
  const auto extent = client::extent_of(pitch, shape.width, shape.height);
  std::uint64_t end = 0;
  if (!extent || __builtin_add_overflow(address_of(address), *extent, &end)) return std::nullopt;
  return extent;
}

/// Where pinned memory is on the device, if all of these rows are in one block of it.
std::optional<Place> pinned_rows(Session& session, const void* address, std::size_t pitch,
                                 std::uint64_t extent) {
  const std::uint64_t at = address_of(address);
  const auto block = session.host_memory().blocks().find(at);
  if (!block || extent > block->bytes - (at - block->address)) return std::nullopt;
  return Place::on_device(block->device_address + (at - block->address), pitch);
}

/// A side that is on the device, or must be there; nothing if it cannot be. Pinned memory may be
/// meant by either, and where the device cannot reach it the host does the work.
std::optional<Side> device_side(Session& session, const void* address, std::size_t pitch,
                                Box shape) {
  const auto extent = extent_of(address, pitch, shape);
  if (!extent) return std::nullopt;
  const bool shared =
      session.host_memory().blocks().touching(address_of(address), *extent).has_value();
  if (on_device(session, address, pitch, shape))
    return Side{true, Place::on_device(address_of(address), pitch), shared};
  if (const auto place = pinned_rows(session, address, pitch, *extent))
    return Side{true, *place, true};
  if (Process::get().pinned().covers(address_of(address), *extent)) return Side{false, {}, shared};
  return std::nullopt;
}

/// Where both sides are, which may lie in different numbers of rows. As CUDA with unified
/// addressing does it: the direction says which side must be on the device, and the addresses say
/// the rest.
Allowed<Sides> sides_of(Session& session, const CopyCall& call, std::size_t to_rows,
                        std::size_t from_rows) {
  const auto is_there = [&](const void* address) {
    return call.direction == Direction::kByAddress
               ? is_device_address(session, address)
               : session.memory().table().find(address_of(address)).has_value();
  };
  bool must_to = is_there(call.to);
  bool must_from = is_there(call.from);
  switch (call.direction) {
    case Direction::kHostToHost:
    case Direction::kByAddress:
      break;
    case Direction::kHostToDevice:
      must_to = true;
      break;
    case Direction::kDeviceToHost:
      must_from = true;
      break;
    case Direction::kDeviceToDevice:
      must_to = must_from = true;
      break;
    default:
      return refuse(Refusal::kInvalidDirection);
  }
  if (call.to == nullptr || call.from == nullptr) return refuse(Refusal::kInvalidValue);
  const auto side = [&](bool must, const void* address, std::size_t pitch,
                        std::size_t rows) -> std::optional<Side> {
    if (must) return device_side(session, address, pitch, {call.width, rows});
    const auto extent = extent_of(address, pitch, {call.width, rows});
    if (!extent) return std::nullopt;
    return Side{false,
                {},
                session.host_memory().blocks().touching(address_of(address), *extent).has_value()};
  };
  const auto to = side(must_to, call.to, call.to_pitch, to_rows);
  const auto from = side(must_from, call.from, call.from_pitch, from_rows);
  if (!to || !from) return refuse(Refusal::kInvalidValue);
  return Sides{*to, *from};
}

Allowed<Sides> checked_sides(Session& session, const CopyCall& call) {
  if (call.height > 1) {
    if (call.width > call.to_pitch || call.width > call.from_pitch) {
      return refuse(Refusal::kInvalidPitch);
    }
    const auto most = static_cast<std::size_t>(session.device().attributes[kMaxPitch]);
    if (call.to_pitch > most || call.from_pitch > most) return refuse(Refusal::kInvalidValue);
  }
  return sides_of(session, call, call.height, call.height);
}

/// Copies that return at once become a node of what `stream` captures; those that wait cannot.
std::optional<Allowed<void>> capture_copy(Session& session, const CopyCall& call,
                                          std::uint64_t stream) {
  if (!session.captures().takes(stream)) return std::nullopt;
  if (!call.asynchronous) return session.captures().refuse_work(stream);
  BoxCopy copy;
  copy.from = {0, const_cast<void*>(call.from), call.from_pitch, call.width, call.height};
  copy.to = {0, call.to, call.to_pitch, call.width, call.height};
  copy.extent = {call.width, call.height, 1};
  copy.direction = call.direction;
  return session.captures().add(stream, CopyNode{copy});
}

Allowed<void> copy_on_host(Session& session, const CopyCall& call, std::uint64_t stream) {
  if (auto ok = session.waiting().wait_for_turn(stream); !ok) return ok;
  auto* to = static_cast<std::byte*>(call.to);
  const auto* from = static_cast<const std::byte*>(call.from);
  for (std::size_t row = 0; row < call.height; ++row) {
    std::memmove(to + row * call.to_pitch, from + row * call.from_pitch, call.width);
  }
  return {};
}

CopyCall call_of_slice(const BoxCopy& copy, std::size_t slice, std::size_t rows,
                       bool asynchronous) {
  return {copy.to.slice_at(slice), copy.to.pitch,     copy.from.slice_at(slice),
          copy.from.pitch,         copy.extent.width, rows,
          copy.direction,          asynchronous};
}

FillValue value_of(const FillCall& call) {
  return {static_cast<std::uint32_t>(call.value), static_cast<std::uint32_t>(call.element)};
}

std::vector<std::byte> row_of(const FillCall& call) {
  std::vector<std::byte> row(call.width);
  for (std::size_t at = 0; at < call.width; at += call.element) {
    std::memcpy(row.data() + at, &call.value, call.element);
  }
  return row;
}

}  // namespace

bool is_device_address(Session& session, const void* address) {
  if (session.memory().table().find(address_of(address))) return true;
  // Maybe a variable whose address came from a kernel, so that this side never asked for it.
  Process::get().code().place_all(session);
  return session.memory().table().find(address_of(address)).has_value();
}

bool on_device(Session& session, const void* address, std::size_t pitch, Box shape) {
  const Place place = Place::on_device(address_of(address), pitch);
  if (session.copies().covers(place, shape)) return true;
  return is_device_address(session, address) && session.copies().covers(place, shape);
}

Allowed<void> wait_for_pinned(Session& session, const void* host, std::size_t extent,
                              std::uint64_t stream) {
  if (!session.host_memory().blocks().touching(address_of(host), extent)) return {};
  return session.waiting().synchronize(ipc::TargetKind::kStream, stream);
}

Allowed<void> copy_rows(Session& session, const CopyCall& call, std::uint64_t stream) {
  if (call.width == 0 || call.height == 0) return {};
  auto sides = checked_sides(session, call);
  if (!sides) return std::unexpected(sides.error());
  if (auto taken = capture_copy(session, call, stream)) return *taken;
  const Box shape{call.width, call.height};
  // Copies of other memory have done all that the caller may wait for when they return.
  const bool must_wait = !call.asynchronous && (sides->to.shared || sides->from.shared) &&
                         (sides->to.device || sides->from.device);
  const auto wait = [&]() -> Allowed<void> {
    if (!must_wait) return {};
    return session.waiting().synchronize(ipc::TargetKind::kStream, stream);
  };
  if (sides->to.device && sides->from.device) {
    auto sent = session.copies().copy(sides->to.place, sides->from.place, shape, stream);
    if (!sent) return sent;
    return wait();
  }
  if (sides->to.device) {
    const auto* from = static_cast<const std::byte*>(call.from);
    if (must_wait && !sides->to.shared && call.height == 1) {
      auto taken =
          session.copies().take_to_device(sides->to.place.address, {from, call.width}, stream);
      if (!taken) return std::unexpected<Refused>(std::move(taken.error()));
      if (*taken) return {};
    }
    auto sent = session.copies().copy(sides->to.place, Place::on_host(from, call.from_pitch), shape,
                                      stream);
    if (!sent) return sent;
    return wait();
  }
  Allowed<void> outcome;
  if (sides->from.device) {
    outcome = session.copies().copy(Place::on_host(call.to, call.to_pitch), sides->from.place,
                                    shape, stream);
    if (outcome) outcome = wait();
    // What went wrong before the copy, in commands that have no reply, is known by now.
    if (outcome) outcome = session.check();
  } else {
    outcome = copy_on_host(session, call, stream);
  }
  session.printing().write();
  return outcome;
}

bool is_fillable(Session& session, const void* address, std::size_t pitch, Box shape) {
  return device_side(session, address, pitch, shape).has_value();
}

Allowed<void> fill_rows(Session& session, const FillCall& call, std::uint64_t stream) {
  if (call.width == 0 || call.height == 0) return {};
  if (call.height > 1 && call.width > call.pitch) return refuse(Refusal::kInvalidValue);
  const Box shape{call.width, call.height};
  const FillValue value = value_of(call);
  if (!value.fits(address_of(call.to), call.pitch, shape)) return refuse(Refusal::kInvalidValue);
  const auto side = device_side(session, call.to, call.pitch, shape);
  if (!side) return refuse(Refusal::kInvalidValue);
  if (session.captures().takes(stream)) {
    FillNode node;
    node.to = call.to;
    node.pitch = call.pitch;
    node.value = static_cast<unsigned>(call.value) & (~0u >> (32 - 8 * call.element));
    node.element = static_cast<unsigned>(call.element);
    node.width = call.width / call.element;
    node.height = call.height;
    if (auto taken = session.captures().add(stream, node)) return *taken;
  }
  if (!side->device) {
    if (auto ok = session.waiting().wait_for_turn(stream); !ok) return ok;
    const bool bytes = value.bytes == 1;
    const std::vector<std::byte> row = bytes ? std::vector<std::byte>() : row_of(call);
    for (std::size_t y = 0; y < call.height; ++y) {
      auto* const to = static_cast<std::byte*>(call.to) + y * call.pitch;
      if (bytes) {
        std::memset(to, call.value, call.width);
      } else {
        std::memcpy(to, row.data(), call.width);
      }
    }
    return {};
  }
  if (auto sent = session.copies().fill(side->place, value, shape, stream); !sent) return sent;
  // Of memory that the host may look at, CUDA's fill returns when it is done.
  if (!side->shared || call.asynchronous) return {};
  return session.waiting().synchronize(ipc::TargetKind::kStream, stream);
}

Allowed<void> copy_slices(Session& session, const BoxCopy& copy, bool asynchronous,
                          std::uint64_t stream) {
  const BoxExtent& extent = copy.extent;
  // Slices without rows between them, on either side, are one copy.
  const bool dense = copy.to.rows == extent.height && copy.from.rows == extent.height;
  const std::size_t slices = dense ? 1 : extent.depth;
  const std::size_t rows = dense ? extent.height * extent.depth : extent.height;
  const bool captured = asynchronous && session.captures().takes(stream);
  const auto call_of = [&](std::size_t z) {
    return call_of_slice(copy, z, rows, asynchronous || z + 1 < slices);
  };
  if (slices > 1) {
    // Before the first slice is copied, as the others may be refused.
    const std::size_t before = slices - 1;
    const auto sides =
        sides_of(session, call_of(0), before * copy.to.rows + rows, before * copy.from.rows + rows);
    if (!sides) return std::unexpected(sides.error());
  }
  for (std::size_t z = 0; z < slices; ++z) {
    const CopyCall call = call_of(z);
    if (!captured) {
      if (auto ok = copy_rows(session, call, stream); !ok) return ok;
    } else if (const auto sides = checked_sides(session, call); !sides) {
      return std::unexpected(sides.error());
    }
  }
  // However many slices it has, it is one node.
  if (captured) return session.captures().add(stream, CopyNode{copy}).value_or(Allowed<void>());
  return {};
}

Allowed<void> check_slices_node(const BoxCopy& copy) {
  if (copy.direction < Direction::kHostToHost || copy.direction > Direction::kByAddress) {
    return refuse(Refusal::kInvalidDirection);
  }
  // No error of its own for pitches: only the runtime's own copies have one.
  if (copy.from.memory == nullptr || copy.to.memory == nullptr || copy.extent.empty() ||
      !check_box(copy.from, copy.extent) || !check_box(copy.to, copy.extent)) {
    return refuse(Refusal::kInvalidValue);
  }
  return {};
}

Allowed<void> run_slices_node(Session& session, const BoxCopy& copy, std::uint64_t stream) {
  for (std::size_t z = 0; z < copy.extent.depth; ++z) {
    auto ok = copy_rows(session, call_of_slice(copy, z, copy.extent.height, true), stream);
    if (!ok) return ok;
  }
  return {};
}

Allowed<void> fill_slices(Session& session, const BoxSide& side, int value, const BoxExtent& extent,
                          bool asynchronous, std::uint64_t stream) {
  if (extent.width > side.pitch || extent.height > side.rows) {
    return refuse(Refusal::kInvalidValue);
  }
  if (extent.empty()) return {};
  // Before the first slice is filled, as the others may be refused.
  if (!check_box(side, extent) ||
      !is_fillable(session, side.memory, side.pitch,
                   {extent.width, (extent.depth - 1) * side.rows + extent.height})) {
    return refuse(Refusal::kInvalidValue);
  }
  for (std::size_t z = 0; z < extent.depth; ++z) {
    const bool at_once = asynchronous || z + 1 < extent.depth;
    auto ok = fill_rows(session,
                        {side.slice_at(z), side.pitch, value, extent.width, extent.height, at_once},
                        stream);
    if (!ok) return ok;
  }
  return {};
}

}  // namespace slate::client
