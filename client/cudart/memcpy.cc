// The copy and fill functions of one and two dimensions, each also in the form for programs with
// per-thread default streams.
#include "client/cudart/box.h"
#include "client/session/address_copy.h"

namespace slate::cudart {
namespace {

using client::CopyCall;
using client::FillCall;

cudaError_t run_copy(const CopyCall& call, cudaStream_t stream, DefaultStream zero) {
  // Nothing to copy is no error, whatever else is wrong.
  if (call.width == 0 || call.height == 0) return cudaSuccess;
  const auto kind = static_cast<int>(call.direction);
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return remember(cudaErrorInvalidMemcpyDirection);
  }
  return with_session([&](Session& session) -> Answer {
    auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    return client::copy_rows(session, call, *id);
  });
}

cudaError_t run_fill(const FillCall& call, cudaStream_t stream, DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    return client::fill_rows(session, call, *id);
  });
}

CopyCall line(void* to, const void* from, std::size_t count, int kind) {
  return {to, count, from, count, count, 1, direction_of(kind)};
}

CopyCall asynchronous(CopyCall call) {
  call.asynchronous = true;
  return call;
}

/// The pitch is checked even for a single row, as CUDA does, which then has another name for it,
/// and takes 0 for none.
cudaError_t run_copy_2d(CopyCall call, cudaStream_t stream, DefaultStream zero) {
  if (call.height == 1) {
    if (call.to_pitch == 0) call.to_pitch = call.width;
    if (call.from_pitch == 0) call.from_pitch = call.width;
  }
  if (call.width > 0 && call.height > 0 &&
      (call.width > call.to_pitch || call.width > call.from_pitch)) {
    return remember(call.height == 1 ? cudaErrorInvalidValue : cudaErrorInvalidPitchValue);
  }
  return run_copy(call, stream, zero);
}

/// There is one device. Nevertheless a copy between devices, which CUDA does not capture.
cudaError_t run_peer(int to_device, int from_device, const CopyCall& call, cudaStream_t stream) {
  if (to_device != 0 || from_device != 0) return remember(cudaErrorInvalidDevice);
  if (call.width == 0) return cudaSuccess;
  return with_session([&](Session& session) -> Answer {
    auto id = stream_id(session, stream, DefaultStream::kLegacy);
    if (!id) return std::unexpected(id.error());
    if (auto refused = refuse_capture(session, *id)) return *refused;
    return client::copy_rows(session, call, *id);
  });
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;

extern "C" {

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t count, cudaMemcpyKind kind) {
  return run_copy(line(to, from, count, kind), nullptr, kLegacy);
}
cudaError_t cudaMemcpy_ptds(void* to, const void* from, std::size_t count, cudaMemcpyKind kind) {
  return run_copy(line(to, from, count, kind), nullptr, kPerThread);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t count, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return run_copy(asynchronous(line(to, from, count, kind)), stream, kLegacy);
}
cudaError_t cudaMemcpyAsync_ptsz(void* to, const void* from, std::size_t count, cudaMemcpyKind kind,
                                 cudaStream_t stream) {
  return run_copy(asynchronous(line(to, from, count, kind)), stream, kPerThread);
}

cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  return run_copy_2d({to, to_pitch, from, from_pitch, width, height, direction_of(kind)}, nullptr,
                     kLegacy);
}
cudaError_t cudaMemcpy2D_ptds(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind) {
  return run_copy_2d({to, to_pitch, from, from_pitch, width, height, direction_of(kind)}, nullptr,
                     kPerThread);
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return run_copy_2d(
      asynchronous({to, to_pitch, from, from_pitch, width, height, direction_of(kind)}), stream,
      kLegacy);
}
cudaError_t cudaMemcpy2DAsync_ptsz(void* to, std::size_t to_pitch, const void* from,
                                   std::size_t from_pitch, std::size_t width, std::size_t height,
                                   cudaMemcpyKind kind, cudaStream_t stream) {
  return run_copy_2d(
      asynchronous({to, to_pitch, from, from_pitch, width, height, direction_of(kind)}), stream,
      kPerThread);
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           std::size_t count) {
  return run_peer(to_device, from_device, line(to, from, count, cudaMemcpyDeviceToDevice), nullptr);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                std::size_t count, cudaStream_t stream) {
  return run_peer(to_device, from_device,
                  asynchronous(line(to, from, count, cudaMemcpyDeviceToDevice)), stream);
}

cudaError_t cudaMemset(void* to, int value, std::size_t count) {
  return run_fill({to, count, value, count, 1, false}, nullptr, kLegacy);
}
cudaError_t cudaMemset_ptds(void* to, int value, std::size_t count) {
  return run_fill({to, count, value, count, 1, false}, nullptr, kPerThread);
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t count, cudaStream_t stream) {
  return run_fill({to, count, value, count, 1}, stream, kLegacy);
}
cudaError_t cudaMemsetAsync_ptsz(void* to, int value, std::size_t count, cudaStream_t stream) {
  return run_fill({to, count, value, count, 1}, stream, kPerThread);
}
cudaError_t cudaMemset2D(void* to, std::size_t pitch, int value, std::size_t width,
                         std::size_t height) {
  return run_fill({to, pitch, value, width, height, false}, nullptr, kLegacy);
}
cudaError_t cudaMemset2D_ptds(void* to, std::size_t pitch, int value, std::size_t width,
                              std::size_t height) {
  return run_fill({to, pitch, value, width, height, false}, nullptr, kPerThread);
}
cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream) {
  return run_fill({to, pitch, value, width, height}, stream, kLegacy);
}
cudaError_t cudaMemset2DAsync_ptsz(void* to, std::size_t pitch, int value, std::size_t width,
                                   std::size_t height, cudaStream_t stream) {
  return run_fill({to, pitch, value, width, height}, stream, kPerThread);
}

}  // extern "C"
