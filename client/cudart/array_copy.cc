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

Maybe<Side> array_side(const ArrayEntry& entry, const cudaPos& position, const cudaExtent& extent) {
  const ArrayExtent box = entry.box();
  if (!is_inside(position.x, extent.width, box.width) ||
      !is_inside(position.y, extent.height, box.height) ||
      !is_inside(position.z, extent.depth, box.depth)) {
    return deny(cudaErrorInvalidValue);
  }
  return client::ArrayPlace{entry, position.x * entry.spec.format.bytes(), position.y, position.z};
}

Maybe<Side> memory_side(Session& session, const cudaPitchedPtr& pointer, const cudaPos& position,
                        const client::Box& box, bool must_be_device) {
  if (pointer.ptr == nullptr) return deny(cudaErrorInvalidValue);
  if (box.width > pointer.pitch) return deny(cudaErrorInvalidPitchValue);
  if (box.depth > 1 && box.height > pointer.ysize) return deny(cudaErrorInvalidValue);
  auto* const first = static_cast<std::byte*>(pointer.ptr) +
                      (position.z * pointer.ysize + position.y) * pointer.pitch + position.x;
  const std::size_t slice = pointer.pitch * pointer.ysize;
  if (!must_be_device && !session.memory().find(address_of(first))) {
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
Maybe<std::optional<Plan>> plan_of(Session& session, const cudaMemcpy3DParms& parms) {
  auto from = side_of(session, parms.srcArray, parms.srcPtr);
  if (!from) return std::unexpected(from.error());
  auto to = side_of(session, parms.dstArray, parms.dstPtr);
  if (!to) return std::unexpected(to.error());
  if (auto ok = check_kind(parms); !ok) return std::unexpected(ok.error());
  const std::uint32_t element = (*from ? **from : **to).spec.format.bytes();
  if (*from && *to && (*to)->spec.format.bytes() != element) return deny(cudaErrorInvalidValue);
  const cudaExtent& extent = parms.extent;
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return std::nullopt;
  const client::Box box{extent.width * element, extent.height, extent.depth};
  const bool on_device = parms.kind == cudaMemcpyDeviceToDevice;
  auto source = *from ? array_side(**from, parms.srcPos, extent)
                      : memory_side(session, parms.srcPtr, parms.srcPos, box, on_device);
  if (!source) return std::unexpected(source.error());
  auto target = *to ? array_side(**to, parms.dstPos, extent)
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

Answer check_array_copy(Session& session, const cudaMemcpy3DParms& parms) {
  auto plan = plan_of(session, parms);
  if (!plan) return std::unexpected(plan.error());
  return {};
}

Answer copy_array(Session& session, const cudaMemcpy3DParms& parms, bool asynchronous,
                  std::uint64_t stream) {
  auto plan = plan_of(session, parms);
  if (!plan) return std::unexpected(plan.error());
  if (!*plan) return {};
  if (is_capturing(session, stream)) {
    if (!asynchronous) return refuse_capture(session, stream);
    if (auto taken = capture(session, stream, CopyNode{parms})) return *taken;
  }
  const auto* const source = std::get_if<client::HostPlanes>(&(*plan)->from);
  const auto* const target = std::get_if<client::HostPlanes>(&(*plan)->to);
  if (source != nullptr) {
    if (auto ok = wait_for_host_functions(session, stream); !ok) return ok;
  }
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
