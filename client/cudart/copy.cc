#include "client/cudart/copy.h"

#include <cstring>

#include "client/cudart/capture.h"

namespace slate::cudart {
namespace {

/// cudaDevAttrMaxPitch
constexpr int kMaxPitch = 11;

struct Sides {
  bool to_device;
  bool from_device;
};

/// Where both sides are. As CUDA with unified addressing does it: the kind says which side must be
/// on the device, and the addresses say the rest.
Maybe<Sides> sides_of(Session& session, const CopyCall& call) {
  const client::Shape shape{call.width, call.height};
  Sides sides{session.memory().find(address_of(call.to)).has_value(),
              session.memory().find(address_of(call.from)).has_value()};
  bool must_to = sides.to_device;
  bool must_from = sides.from_device;
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
  if ((must_to && !on_device(session, call.to, call.to_pitch, shape)) ||
      (must_from && !on_device(session, call.from, call.from_pitch, shape))) {
    return deny(cudaErrorInvalidValue);
  }
  return Sides{must_to, must_from};
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

Answer copy_on_host(Session& session, const CopyCall& call, std::uint64_t stream) {
  if (auto ok = session.synchronize(ipc::TargetKind::kStream, stream); !ok) {
    return std::unexpected<Failure>(ok.error());
  }
  auto* to = static_cast<std::byte*>(call.to);
  const auto* from = static_cast<const std::byte*>(call.from);
  for (std::size_t row = 0; row < call.height; ++row) {
    std::memmove(to + row * call.to_pitch, from + row * call.from_pitch, call.width);
  }
  return {};
}

}  // namespace

bool on_device(Session& session, const void* address, std::size_t pitch, client::Shape shape) {
  const client::DeviceRows rows{address_of(address), pitch};
  if (session.covers(rows, shape)) return true;
  if (session.memory().find(rows.address)) return false;
  // Maybe a variable whose address came from a kernel, so that this side never asked for it.
  Process::get().code().place_all(session);
  return session.covers(rows, shape);
}

Answer wait_for_host_functions(Session& session, std::uint64_t stream) {
  if (!session.has_host_functions()) return {};
  return session.synchronize(ipc::TargetKind::kStream, stream);
}

Answer wait_for_pinned(Session& session, const void* host, std::size_t extent,
                       std::uint64_t stream) {
  if (!session.host_blocks().touching(address_of(host), extent)) return {};
  return session.synchronize(ipc::TargetKind::kStream, stream);
}

Answer copy(Session& session, const CopyCall& call, std::uint64_t stream) {
  if (call.width == 0 || call.height == 0) return {};
  if (call.height > 1) {
    if (call.width > call.to_pitch || call.width > call.from_pitch) {
      return deny(cudaErrorInvalidPitchValue);
    }
    const auto most = static_cast<std::size_t>(session.device().attributes[kMaxPitch]);
    if (call.to_pitch > most || call.from_pitch > most) return deny(cudaErrorInvalidValue);
  }
  auto sides = sides_of(session, call);
  if (!sides) return std::unexpected(sides.error());
  if (auto taken = capture_copy(session, call, stream)) return *taken;
  if (!sides->from_device) {
    if (auto ok = wait_for_host_functions(session, stream); !ok) return ok;
  }

  const client::Shape shape{call.width, call.height};
  const client::DeviceRows to{address_of(call.to), call.to_pitch};
  const client::DeviceRows from{address_of(call.from), call.from_pitch};
  if (sides->to_device && sides->from_device) {
    return session.copy_on_device(to, from, shape, stream);
  }
  const void* const host = sides->to_device ? call.from : call.to;
  const std::size_t pitch = sides->to_device ? call.from_pitch : call.to_pitch;
  const auto wait = [&]() -> Answer {
    if (call.asynchronous) return {};
    return wait_for_pinned(session, host, (call.height - 1) * pitch + call.width, stream);
  };
  if (sides->to_device) {
    auto sent = session.copy_to_device(to, static_cast<const std::byte*>(call.from),
                                       call.from_pitch, shape, stream);
    if (!sent) return std::unexpected<Failure>(sent.error());
    return wait();
  }
  Answer outcome;
  if (sides->from_device) {
    outcome =
        session.copy_to_host(static_cast<std::byte*>(call.to), call.to_pitch, from, shape, stream);
    if (outcome) outcome = wait();
    // What went wrong before the copy, in commands that have no reply, is known by now.
    if (outcome) outcome = session.check();
  } else {
    outcome = copy_on_host(session, call, stream);
  }
  write_printed(session);
  return outcome;
}

Answer fill(Session& session, const FillCall& call, std::uint64_t stream) {
  if (call.width == 0 || call.height == 0) return {};
  if (call.height > 1 && call.width > call.pitch) return deny(cudaErrorInvalidValue);
  const client::Shape shape{call.width, call.height};
  if (!on_device(session, call.to, call.pitch, shape)) return deny(cudaErrorInvalidValue);
  if (is_capturing(session, stream)) {
    cudaMemsetParams params{};
    params.dst = call.to;
    params.pitch = call.pitch;
    params.value = static_cast<unsigned>(call.value) & 0xff;
    params.elementSize = 1;
    params.width = call.width;
    params.height = call.height;
    if (auto taken = capture(session, stream, FillNode{params})) return *taken;
  }
  return session.fill({address_of(call.to), call.pitch}, static_cast<std::uint8_t>(call.value),
                      shape, stream);
}

}  // namespace slate::cudart
