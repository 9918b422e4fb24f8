// Copies with a CUDA array on one side or both: what CUDA allows, and which of the session's copies
// it is.
#include <variant>

#include "client/cudart/array.h"
#include "client/cudart/capture.h"
#include "client/cudart/copy.h"

namespace slate::cudart {
namespace {

using Side = std::variant<client::ArrayPlace, client::DevicePlanes, client::HostPlanes>;

struct Plan {
  Side to, from;
  client::Box box;
};

bool is_inside(std::size_t first, std::size_t count, std::uint64_t size) {
  return first <= size && count <= size - first;
}

/// The kinds that say nothing else than what the sides are.
Answer check_kind(const cudaMemcpy3DParms& parms) {
  const bool both = parms.srcArray != nullptr && parms.dstArray != nullptr;
  switch (static_cast<int>(parms.kind)) {
    case cudaMemcpyDefault:
    case cudaMemcpyDeviceToDevice:
      return {};
    case cudaMemcpyHostToDevice:
      if (!both && parms.dstArray != nullptr) return {};
      break;
    case cudaMemcpyDeviceToHost:
      if (!both && parms.srcArray != nullptr) return {};
      break;
    default:
      break;
  }
  return deny(cudaErrorInvalidMemcpyDirection);
}

/// `unit`: bytes that position.x counts.
Maybe<Side> array_side(const ArrayEntry& entry, const cudaPos& position, std::size_t unit,
                       const client::Box& box) {
  const ArrayExtent whole = entry.box();
  const std::uint64_t row = whole.width * entry.spec.format.bytes();
  if (position.x > row / unit || !is_inside(position.x * unit, box.width, row) ||
      !is_inside(position.y, box.height, whole.height) ||
      !is_inside(position.z, box.depth, whole.depth)) {
    return deny(cudaErrorInvalidValue);
  }
  return client::ArrayPlace{entry, position.x * unit, position.y, position.z};
}

Maybe<Side> memory_side(Session& session, const cudaPitchedPtr& pointer, const cudaPos& position,
                        const client::Box& box, bool must_be_device) {
  if (pointer.ptr == nullptr) return deny(cudaErrorInvalidValue);
  if (box.width > pointer.pitch) return deny(cudaErrorInvalidPitchValue);
  if (!check_box(pointer, position, {box.width, box.height, box.depth})) {
    return deny(cudaErrorInvalidValue);
  }
  auto* const first = slice_of(pointer, position, 0);
  const std::size_t slice = pointer.pitch * pointer.ysize;
  if (!must_be_device && !is_device_address(session, first)) {
    return client::HostPlanes{first, pointer.pitch, slice};
  }
  const std::size_t rows = (box.depth - 1) * pointer.ysize + box.height;
  if (!on_device(session, first, pointer.pitch, {box.width, rows})) {
    return deny(cudaErrorInvalidValue);
  }
  return client::DevicePlanes{address_of(first), pointer.pitch, slice};
}

/// What one side says that it is: an array or memory, not both.
Maybe<std::optional<ArrayEntry>> side_of(Session& session, cudaArray_t array,
                                         const cudaPitchedPtr& pointer) {
  if ((array != nullptr) == (pointer.ptr != nullptr)) return deny(cudaErrorInvalidValue);
  if (array == nullptr) return std::nullopt;
  auto entry = array_of(session, array);
  if (!entry) return std::unexpected(entry.error());
  return *entry;
}

/// Nothing when there is nothing to copy.
Maybe<std::optional<Plan>> plan_of(Session& session, const ArrayCopy& copy) {
  const cudaMemcpy3DParms& parms = copy.parms;
  auto from = side_of(session, parms.srcArray, parms.srcPtr);
  if (!from) return std::unexpected(from.error());
  auto to = side_of(session, parms.dstArray, parms.dstPtr);
  if (!to) return std::unexpected(to.error());
  if (auto ok = check_kind(parms); !ok) return std::unexpected(ok.error());
  const std::size_t element = (*from ? **from : **to).spec.format.bytes();
  const std::size_t unit = copy.unit == CopyUnit::kByte ? 1 : element;
  if (copy.unit == CopyUnit::kElement && *from && *to && (*to)->spec.format.bytes() != element) {
    return deny(cudaErrorInvalidValue);
  }
  const cudaExtent& extent = parms.extent;
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return std::nullopt;
  client::Box box{0, extent.height, extent.depth};
  if (__builtin_mul_overflow(extent.width, unit, &box.width)) return deny(cudaErrorInvalidValue);
  const bool on_device = parms.kind == cudaMemcpyDeviceToDevice;
  auto source = *from ? array_side(**from, parms.srcPos, unit, box)
                      : memory_side(session, parms.srcPtr, parms.srcPos, box, on_device);
  if (!source) return std::unexpected(source.error());
  auto target = *to ? array_side(**to, parms.dstPos, unit, box)
                    : memory_side(session, parms.dstPtr, parms.dstPos, box, on_device);
  if (!target) return std::unexpected(target.error());
  return Plan{*target, *source, box};
}

std::size_t extent_of(const client::HostPlanes& planes, const client::Box& box) {
  return (box.depth - 1) * planes.slice + (box.height - 1) * planes.pitch + box.width;
}

/// One of the two sides is an array: plan_of().
Answer run(Session& session, const Plan& plan, std::uint64_t stream) {
  const auto& [to, from, box] = plan;
  if (const auto* const target = std::get_if<client::ArrayPlace>(&to)) {
    return std::visit(
        [&](const auto& source) -> Answer {
          return Answer(session.copy_box(*target, source, box, stream));
        },
        from);
  }
  const auto& source = std::get<client::ArrayPlace>(from);
  if (const auto* const planes = std::get_if<client::DevicePlanes>(&to)) {
    return session.copy_box(*planes, source, box, stream);
  }
  return session.copy_box(std::get<client::HostPlanes>(to), source, box, stream);
}

}  // namespace

Answer check_array_node(Session& session, const ArrayCopy& copy) {
  auto plan = plan_of(session, copy);
  if (plan) return {};
  // The driver checks the nodes of graphs, and knows no error of its own for pitches.
  if (plan.error().code == cudaErrorInvalidPitchValue) return deny(cudaErrorInvalidValue);
  return std::unexpected(plan.error());
}

Answer copy_array(Session& session, const ArrayCopy& copy, bool asynchronous,
                  std::uint64_t stream) {
  auto plan = plan_of(session, copy);
  if (!plan) return std::unexpected(plan.error());
  if (!*plan) return {};
  if (is_capturing(session, stream)) {
    if (!asynchronous) return refuse_capture(session, stream);
    if (auto taken = capture(session, stream, CopyNode{copy.parms, copy.unit})) return *taken;
  }
  const auto* const source = std::get_if<client::HostPlanes>(&(*plan)->from);
  const auto* const target = std::get_if<client::HostPlanes>(&(*plan)->to);
  if (auto ok = run(session, **plan, stream); !ok) return ok;
  const auto* const host = source != nullptr ? source : target;
  if (host == nullptr) return {};
  if (!asynchronous) {
    if (auto ok = wait_for_pinned(session, host->memory, extent_of(*host, (*plan)->box), stream);
        !ok) {
      return ok;
    }
  }
  if (target == nullptr) return {};
  write_printed(session);
  // What went wrong before the copy, in commands that have no reply, is known by now.
  return session.check();
}

}  // namespace slate::cudart
