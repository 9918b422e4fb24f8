#include "client/cudart/copy.h"

#include <cstring>
#include <vector>

#include "client/cudart/capture.h"

namespace slate::cudart {
namespace {

/// cudaDevAttrMaxPitch
constexpr int kMaxPitch = 11;

/// One side of a copy or fill: on the device, or memory of the program.
struct Side {
  bool device = false;
  client::DeviceRows rows;  // on the device
  bool shared = false;      // host memory that the device reaches: who reads it has to wait
};

struct Sides {
  Side to, from;
};

/// Bytes from the first to the last; nothing when they do not end within the address space.
std::optional<std::uint64_t> extent_of(const void* address, std::size_t pitch,
                                       client::Shape shape) {
  const auto extent = client::extent_of(pitch, shape.width, shape.height);
  std::uint64_t end = 0;
  if (!extent || __builtin_add_overflow(address_of(address), *extent, &end)) return std::nullopt;
  return extent;
}

/// Where pinned memory is on the device, if all of these rows are in one block of it.
std::optional<client::DeviceRows> pinned_rows(Session& session, const void* address,
                                              std::size_t pitch, std::uint64_t extent) {
  const std::uint64_t at = address_of(address);
  const auto block = session.host_blocks().find(at);
  if (!block || extent > block->bytes - (at - block->address)) return std::nullopt;
  return client::DeviceRows{block->device_address + (at - block->address), pitch};
}

/// A side that is on the device, or must be there; nothing if it cannot be. Pinned memory may be
/// meant by either, and where the device cannot reach it the host does the work.
std::optional<Side> device_side(Session& session, const void* address, std::size_t pitch,
                                client::Shape shape) {
  const auto extent = extent_of(address, pitch, shape);
  if (!extent) return std::nullopt;
  const bool shared = session.host_blocks().touching(address_of(address), *extent).has_value();
  if (on_device(session, address, pitch, shape))
    return Side{true, {address_of(address), pitch}, shared};
  if (const auto rows = pinned_rows(session, address, pitch, *extent))
    return Side{true, *rows, true};
  if (Process::get().pinned().covers(address_of(address), *extent)) return Side{false, {}, shared};
  return std::nullopt;
}

/// Where both sides are, which may lie in different numbers of rows. As CUDA with unified
/// addressing does it: the kind says which side must be on the device, and the addresses say the
/// rest.
Maybe<Sides> sides_of(Session& session, const CopyCall& call, std::size_t to_rows,
                      std::size_t from_rows) {
  const auto is_there = [&](const void* address) {
    return call.kind == cudaMemcpyDefault ? is_device_address(session, address)
                                          : session.memory().find(address_of(address)).has_value();
  };
  bool must_to = is_there(call.to);
  bool must_from = is_there(call.from);
  switch (call.kind) {
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      break;
    case cudaMemcpyHostToDevice:
      must_to = true;
      break;
    case cudaMemcpyDeviceToHost:
      must_from = true;
      break;
    case cudaMemcpyDeviceToDevice:
      must_to = must_from = true;
      break;
    default:
      return deny(cudaErrorInvalidMemcpyDirection);
  }
  if (call.to == nullptr || call.from == nullptr) return deny(cudaErrorInvalidValue);
  const auto side = [&](bool must, const void* address, std::size_t pitch,
                        std::size_t rows) -> std::optional<Side> {
    if (must) return device_side(session, address, pitch, {call.width, rows});
    const auto extent = extent_of(address, pitch, {call.width, rows});
    if (!extent) return std::nullopt;
    return Side{
        false, {}, session.host_blocks().touching(address_of(address), *extent).has_value()};
  };
  const auto to = side(must_to, call.to, call.to_pitch, to_rows);
  const auto from = side(must_from, call.from, call.from_pitch, from_rows);
  if (!to || !from) return deny(cudaErrorInvalidValue);
  return Sides{*to, *from};
}

Maybe<Sides> checked_sides(Session& session, const CopyCall& call) {
  if (call.height > 1) {
    if (call.width > call.to_pitch || call.width > call.from_pitch) {
      return deny(cudaErrorInvalidPitchValue);
    }
    const auto most = static_cast<std::size_t>(session.device().attributes[kMaxPitch]);
    if (call.to_pitch > most || call.from_pitch > most) return deny(cudaErrorInvalidValue);
  }
  return sides_of(session, call, call.height, call.height);
}

/// Copies that return at once become a node of what `stream` captures; those that wait cannot.
std::optional<Answer> capture_copy(Session& session, const CopyCall& call, std::uint64_t stream) {
  if (!is_capturing(session, stream)) return std::nullopt;
  if (!call.asynchronous) return refuse_capture(session, stream);
  cudaMemcpy3DParms parms{};
  parms.srcPtr = {const_cast<void*>(call.from), call.from_pitch, call.width, call.height};
  parms.dstPtr = {call.to, call.to_pitch, call.width, call.height};
  parms.extent = {call.width, call.height, 1};
  parms.kind = static_cast<cudaMemcpyKind>(call.kind);
  return capture(session, stream, CopyNode{parms});
}

/// Whether the last byte of the box has an address at all. Requires: the box is not empty.
bool ends_in_memory(const cudaPitchedPtr& pointer, const cudaPos& position,
                    const cudaExtent& extent) {
  std::size_t at = 0;
  return !__builtin_add_overflow(position.z, extent.depth - 1, &at) &&
         !__builtin_mul_overflow(at, pointer.ysize, &at) &&
         !__builtin_add_overflow(at, position.y, &at) &&
         !__builtin_add_overflow(at, extent.height - 1, &at) &&
         !__builtin_mul_overflow(at, pointer.pitch, &at) &&
         !__builtin_add_overflow(at, position.x, &at) &&
         !__builtin_add_overflow(at, extent.width, &at) &&
         !__builtin_add_overflow(at, address_of(pointer.ptr), &at);
}

Answer copy_on_host(Session& session, const CopyCall& call, std::uint64_t stream) {
  if (auto ok = session.wait_for_turn(stream); !ok) {
    return std::unexpected<Failure>(ok.error());
  }
  auto* to = static_cast<std::byte*>(call.to);
  const auto* from = static_cast<const std::byte*>(call.from);
  for (std::size_t row = 0; row < call.height; ++row) {
    std::memmove(to + row * call.to_pitch, from + row * call.from_pitch, call.width);
  }
  return {};
}

/// True when every byte of the elements is the same, as fills are made of bytes.
bool is_uniform(const FillCall& call) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned>(call.value) >> 8 * i & 0xff;
  };
  for (std::size_t i = 1; i < call.element; ++i) {
    if (byte(i) != byte(0)) return false;
  }
  return true;
}

std::vector<std::byte> row_of(const FillCall& call) {
  std::vector<std::byte> row(call.width);
  for (std::size_t at = 0; at < call.width; at += call.element) {
    std::memcpy(row.data() + at, &call.value, call.element);
  }
  return row;
}

Answer fill_on_device(Session& session, const client::DeviceRows& rows, const FillCall& call,
                      std::uint64_t stream) {
  if (is_uniform(call)) {
    return session.fill(rows, static_cast<std::uint8_t>(call.value), {call.width, call.height},
                        stream);
  }
  const std::vector<std::byte> row = row_of(call);
  for (std::size_t y = 0; y < call.height; ++y) {
    auto ok = session.write(rows.address + y * rows.pitch, row, stream);
    if (!ok) return std::unexpected<Failure>(ok.error());
  }
  return {};
}

}  // namespace

bool is_device_address(Session& session, const void* address) {
  if (session.memory().find(address_of(address))) return true;
  // Maybe a variable whose address came from a kernel, so that this side never asked for it.
  Process::get().code().place_all(session);
  return session.memory().find(address_of(address)).has_value();
}

bool on_device(Session& session, const void* address, std::size_t pitch, client::Shape shape) {
  const client::DeviceRows rows{address_of(address), pitch};
  if (session.covers(rows, shape)) return true;
  return is_device_address(session, address) && session.covers(rows, shape);
}

Answer wait_for_pinned(Session& session, const void* host, std::size_t extent,
                       std::uint64_t stream) {
  if (!session.host_blocks().touching(address_of(host), extent)) return {};
  return session.synchronize(ipc::TargetKind::kStream, stream);
}

Answer check_box(const cudaPitchedPtr& pointer, const cudaPos& position, const cudaExtent& extent) {
  const bool rows = extent.height > 1 || extent.depth > 1;
  const bool slices = extent.depth > 1;
  if ((rows && extent.width > pointer.pitch) || (slices && extent.height > pointer.ysize)) {
    return deny(cudaErrorInvalidPitchValue);
  }
  const auto ends_within = [](std::size_t begin, std::size_t length, std::size_t whole) {
    return whole == 0 || (begin <= whole && length <= whole - begin);
  };
  if (!ends_within(position.x, extent.width, pointer.pitch) ||
      !ends_within(position.y, extent.height, pointer.ysize) ||
      !ends_in_memory(pointer, position, extent)) {
    return deny(cudaErrorInvalidValue);
  }
  return {};
}

Answer check_slices(Session& session, const CopyCall& first, std::size_t to_rows,
                    std::size_t from_rows) {
  const auto sides = sides_of(session, first, to_rows, from_rows);
  if (!sides) return std::unexpected(sides.error());
  return {};
}

Answer check_copy(Session& session, const CopyCall& call) {
  const auto sides = checked_sides(session, call);
  if (!sides) return std::unexpected(sides.error());
  return {};
}

Answer copy(Session& session, const CopyCall& call, std::uint64_t stream) {
  if (call.width == 0 || call.height == 0) return {};
  auto sides = checked_sides(session, call);
  if (!sides) return std::unexpected(sides.error());
  if (auto taken = capture_copy(session, call, stream)) return *taken;
  const client::Shape shape{call.width, call.height};
  // Copies of other memory have done all that the caller may wait for when they return.
  const bool must_wait = !call.asynchronous && (sides->to.shared || sides->from.shared) &&
                         (sides->to.device || sides->from.device);
  const auto wait = [&]() -> Answer {
    if (!must_wait) return {};
    return session.synchronize(ipc::TargetKind::kStream, stream);
  };
  if (sides->to.device && sides->from.device) {
    auto sent = session.copy_on_device(sides->to.rows, sides->from.rows, shape, stream);
    if (!sent) return std::unexpected<Failure>(sent.error());
    return wait();
  }
  if (sides->to.device) {
    const auto* from = static_cast<const std::byte*>(call.from);
    if (must_wait && !sides->to.shared && call.height == 1) {
      auto taken = session.take_to_device(sides->to.rows.address, {from, call.width}, stream);
      if (!taken) return std::unexpected<Failure>(taken.error());
      if (*taken) return {};
    }
    auto sent = session.copy_to_device(sides->to.rows, from, call.from_pitch, shape, stream);
    if (!sent) return std::unexpected<Failure>(sent.error());
    return wait();
  }
  Answer outcome;
  if (sides->from.device) {
    outcome = session.copy_to_host(static_cast<std::byte*>(call.to), call.to_pitch,
                                   sides->from.rows, shape, stream);
    if (outcome) outcome = wait();
    // What went wrong before the copy, in commands that have no reply, is known by now.
    if (outcome) outcome = session.check();
  } else {
    outcome = copy_on_host(session, call, stream);
  }
  write_printed(session);
  return outcome;
}

bool is_fillable(Session& session, const void* address, std::size_t pitch, client::Shape shape) {
  return device_side(session, address, pitch, shape).has_value();
}

Answer fill(Session& session, const FillCall& call, std::uint64_t stream) {
  if (call.width == 0 || call.height == 0) return {};
  if (call.height > 1 && call.width > call.pitch) return deny(cudaErrorInvalidValue);
  const client::Shape shape{call.width, call.height};
  const auto side = device_side(session, call.to, call.pitch, shape);
  if (!side) return deny(cudaErrorInvalidValue);
  if (is_capturing(session, stream)) {
    cudaMemsetParams params{};
    params.dst = call.to;
    params.pitch = call.pitch;
    params.value = static_cast<unsigned>(call.value) & (~0u >> (32 - 8 * call.element));
    params.elementSize = static_cast<unsigned>(call.element);
    params.width = call.width / call.element;
    params.height = call.height;
    if (auto taken = capture(session, stream, FillNode{params})) return *taken;
  }
  if (!side->device) {
    if (auto ok = session.wait_for_turn(stream); !ok) return std::unexpected<Failure>(ok.error());
    const bool uniform = is_uniform(call);
    const std::vector<std::byte> row = uniform ? std::vector<std::byte>() : row_of(call);
    for (std::size_t y = 0; y < call.height; ++y) {
      auto* const to = static_cast<std::byte*>(call.to) + y * call.pitch;
      if (uniform) {
        std::memset(to, call.value, call.width);
      } else {
        std::memcpy(to, row.data(), call.width);
      }
    }
    return {};
  }
  if (auto sent = fill_on_device(session, side->rows, call, stream); !sent) return sent;
  // Of memory that the host may look at, CUDA's fill returns when it is done.
  if (!side->shared || call.asynchronous) return {};
  if (auto done = session.synchronize(ipc::TargetKind::kStream, stream); !done)
    return std::unexpected<Failure>(done.error());
  return {};
}

}  // namespace slate::cudart
