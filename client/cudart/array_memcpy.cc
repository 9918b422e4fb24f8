// The copy functions that name arrays, each also in the form for programs with per-thread default
// streams: rows of two dimensions, and counts of bytes that run from row to row. Both become copies
// of boxes.
#include "client/cudart/array.h"
#include "client/cudart/box.h"
#include "client/session/array_copy.h"

namespace slate::cudart {
namespace {

/// A place of an array, x in bytes; or memory, if `array` is null.
struct Place {
  cudaArray_const_t array = nullptr;
  const void* memory = nullptr;
  std::size_t x = 0, y = 0;  // of an array
  std::size_t pitch = 0;     // of memory
};
Place in_array(cudaArray_const_t array, std::size_t x, std::size_t y) {
  return {array, nullptr, x, y, 0};
}
Place in_memory(const void* memory, std::size_t pitch) {
  return {nullptr, memory, 0, 0, pitch};
}

struct Call {
  Place to, from;
  std::size_t width;   // bytes; of a linear copy all of them
  std::size_t height;  // 0: a linear copy
  cudaMemcpyKind kind;
  bool asynchronous = false;
};

client::BoxSide side_of(const Place& place, std::size_t width, std::size_t height) {
  client::BoxSide side;
  if (place.array != nullptr) {
    side.array = address_of(place.array);
    side.x = place.x;
    side.y = place.y;
  } else {
    side.memory = const_cast<void*>(place.memory);
    side.pitch = place.pitch;
    side.width = width;
    side.rows = height;
  }
  return side;
}

cudaError_t run(const Call& call, cudaStream_t stream, DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    const client::BoxCopy bytes{side_of(call.to, call.width, call.height),
                                side_of(call.from, call.width, call.height),
                                {call.width, call.height, 1},
                                direction_of(call.kind),
                                client::CopyUnit::kByte};
    const auto copy = client::in_elements(session, bytes);
    if (!copy) return std::unexpected<Failure>(copy.error());
    if (call.height == 0) return client::copy_array_bytes(session, bytes, call.asynchronous, *id);
    for (const Place* place : {&call.to, &call.from}) {
      if (place->array == nullptr && call.width > place->pitch) {
        return deny(cudaErrorInvalidPitchValue);
      }
    }
    return client::copy_array(session, *copy, call.asynchronous, *id);
  });
}

/// Rows: none is nothing to do, not a count of bytes.
cudaError_t run_2d(const Call& call, cudaStream_t stream, DefaultStream zero) {
  return call.height == 0 ? cudaSuccess : run(call, stream, zero);
}

Call asynchronous(Call call) {
  call.asynchronous = true;
  return call;
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;

extern "C" {

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                                std::size_t pitch, std::size_t width, std::size_t height,
                                cudaMemcpyKind kind) {
  return run_2d({in_array(to, x, y), in_memory(from, pitch), width, height, kind}, nullptr,
                kLegacy);
}
cudaError_t cudaMemcpy2DToArray_ptds(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                                     std::size_t pitch, std::size_t width, std::size_t height,
                                     cudaMemcpyKind kind) {
  return run_2d({in_array(to, x, y), in_memory(from, pitch), width, height, kind}, nullptr,
                kPerThread);
}
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                                     std::size_t pitch, std::size_t width, std::size_t height,
                                     cudaMemcpyKind kind, cudaStream_t stream) {
  return run_2d(asynchronous({in_array(to, x, y), in_memory(from, pitch), width, height, kind}),
                stream, kLegacy);
}
cudaError_t cudaMemcpy2DToArrayAsync_ptsz(cudaArray_t to, std::size_t x, std::size_t y,
                                          const void* from, std::size_t pitch, std::size_t width,
                                          std::size_t height, cudaMemcpyKind kind,
                                          cudaStream_t stream) {
  return run_2d(asynchronous({in_array(to, x, y), in_memory(from, pitch), width, height, kind}),
                stream, kPerThread);
}

cudaError_t cudaMemcpy2DFromArray(void* to, std::size_t pitch, cudaArray_const_t from,
                                  std::size_t x, std::size_t y, std::size_t width,
                                  std::size_t height, cudaMemcpyKind kind) {
  return run_2d({in_memory(to, pitch), in_array(from, x, y), width, height, kind}, nullptr,
                kLegacy);
}
cudaError_t cudaMemcpy2DFromArray_ptds(void* to, std::size_t pitch, cudaArray_const_t from,
                                       std::size_t x, std::size_t y, std::size_t width,
                                       std::size_t height, cudaMemcpyKind kind) {
  return run_2d({in_memory(to, pitch), in_array(from, x, y), width, height, kind}, nullptr,
                kPerThread);
}
cudaError_t cudaMemcpy2DFromArrayAsync(void* to, std::size_t pitch, cudaArray_const_t from,
                                       std::size_t x, std::size_t y, std::size_t width,
                                       std::size_t height, cudaMemcpyKind kind,
                                       cudaStream_t stream) {
  return run_2d(asynchronous({in_memory(to, pitch), in_array(from, x, y), width, height, kind}),
                stream, kLegacy);
}
cudaError_t cudaMemcpy2DFromArrayAsync_ptsz(void* to, std::size_t pitch, cudaArray_const_t from,
                                            std::size_t x, std::size_t y, std::size_t width,
                                            std::size_t height, cudaMemcpyKind kind,
                                            cudaStream_t stream) {
  return run_2d(asynchronous({in_memory(to, pitch), in_array(from, x, y), width, height, kind}),
                stream, kPerThread);
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, std::size_t to_x, std::size_t to_y,
                                     cudaArray_const_t from, std::size_t from_x, std::size_t from_y,
                                     std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  return run_2d({in_array(to, to_x, to_y), in_array(from, from_x, from_y), width, height, kind},
                nullptr, kLegacy);
}
cudaError_t cudaMemcpy2DArrayToArray_ptds(cudaArray_t to, std::size_t to_x, std::size_t to_y,
                                          cudaArray_const_t from, std::size_t from_x,
                                          std::size_t from_y, std::size_t width, std::size_t height,
                                          cudaMemcpyKind kind) {
  return run_2d({in_array(to, to_x, to_y), in_array(from, from_x, from_y), width, height, kind},
                nullptr, kPerThread);
}

cudaError_t cudaMemcpyToArray(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                              std::size_t count, cudaMemcpyKind kind) {
  return run({in_array(to, x, y), in_memory(from, 0), count, 0, kind}, nullptr, kLegacy);
}
cudaError_t cudaMemcpyToArray_ptds(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                                   std::size_t count, cudaMemcpyKind kind) {
  return run({in_array(to, x, y), in_memory(from, 0), count, 0, kind}, nullptr, kPerThread);
}
cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                                   std::size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  return run(asynchronous({in_array(to, x, y), in_memory(from, 0), count, 0, kind}), stream,
             kLegacy);
}
cudaError_t cudaMemcpyToArrayAsync_ptsz(cudaArray_t to, std::size_t x, std::size_t y,
                                        const void* from, std::size_t count, cudaMemcpyKind kind,
                                        cudaStream_t stream) {
  return run(asynchronous({in_array(to, x, y), in_memory(from, 0), count, 0, kind}), stream,
             kPerThread);
}

cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, std::size_t x, std::size_t y,
                                std::size_t count, cudaMemcpyKind kind) {
  return run({in_memory(to, 0), in_array(from, x, y), count, 0, kind}, nullptr, kLegacy);
}
cudaError_t cudaMemcpyFromArray_ptds(void* to, cudaArray_const_t from, std::size_t x, std::size_t y,
                                     std::size_t count, cudaMemcpyKind kind) {
  return run({in_memory(to, 0), in_array(from, x, y), count, 0, kind}, nullptr, kPerThread);
}
cudaError_t cudaMemcpyFromArrayAsync(void* to, cudaArray_const_t from, std::size_t x, std::size_t y,
                                     std::size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  return run(asynchronous({in_memory(to, 0), in_array(from, x, y), count, 0, kind}), stream,
             kLegacy);
}
cudaError_t cudaMemcpyFromArrayAsync_ptsz(void* to, cudaArray_const_t from, std::size_t x,
                                          std::size_t y, std::size_t count, cudaMemcpyKind kind,
                                          cudaStream_t stream) {
  return run(asynchronous({in_memory(to, 0), in_array(from, x, y), count, 0, kind}), stream,
             kPerThread);
}

cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, std::size_t to_x, std::size_t to_y,
                                   cudaArray_const_t from, std::size_t from_x, std::size_t from_y,
                                   std::size_t count, cudaMemcpyKind kind) {
  return run({in_array(to, to_x, to_y), in_array(from, from_x, from_y), count, 0, kind}, nullptr,
             kLegacy);
}
cudaError_t cudaMemcpyArrayToArray_ptds(cudaArray_t to, std::size_t to_x, std::size_t to_y,
                                        cudaArray_const_t from, std::size_t from_x,
                                        std::size_t from_y, std::size_t count,
                                        cudaMemcpyKind kind) {
  return run({in_array(to, to_x, to_y), in_array(from, from_x, from_y), count, 0, kind}, nullptr,
             kPerThread);
}

}  // extern "C"
