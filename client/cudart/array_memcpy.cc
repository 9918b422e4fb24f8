// The copy functions that name arrays, each also in the form for programs with per-thread default
// streams: rows of two dimensions, and counts of bytes that run from row to row. Both become copies
// of boxes.
#include <algorithm>

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

/// What the copy is made of: elements, where all of it is whole ones of one size.
struct Unit {
  std::size_t bytes = 0;
  client::CopyUnit kind = client::CopyUnit::kElement;
};

Maybe<Unit> unit_of(Session& session, const Call& call) {
  Unit unit;
  for (const Place* place : {&call.to, &call.from}) {
    if (place->array == nullptr) continue;
    auto entry = array_of(session, place->array);
    if (!entry) return std::unexpected(entry.error());
    const std::size_t element = entry->spec.format.bytes();
    if (unit.bytes == 0) unit.bytes = element;
    const bool whole = place->x % element == 0 && call.width % element == 0;
    if (!whole || unit.bytes != element) unit = {1, client::CopyUnit::kByte};
  }
  return unit;
}

client::BoxSide side_of(const Place& place, std::size_t unit, std::size_t width,
                        std::size_t height) {
  client::BoxSide side;
  if (place.array != nullptr) {
    side.array = address_of(place.array);
    side.x = place.x / unit;
    side.y = place.y;
  } else {
    side.memory = const_cast<void*>(place.memory);
    side.pitch = place.pitch;
    side.width = width;
    side.rows = height;
  }
  return side;
}

/// One box of `width` bytes by `height`.
Answer copy_box(Session& session, const Call& call, Unit unit, std::uint64_t stream) {
  const client::BoxCopy copy{side_of(call.to, unit.bytes, call.width, call.height),
                             side_of(call.from, unit.bytes, call.width, call.height),
                             {call.width / unit.bytes, call.height, 1},
                             direction_of(call.kind),
                             unit.kind};
  return client::copy_array(session, copy, call.asynchronous, stream);
}

/// Bytes of a row of the place, of which `count` bytes are to be copied; no end, in memory.
Maybe<std::size_t> row_of(Session& session, const Place& place, std::size_t count) {
  if (place.array == nullptr) return ~std::size_t{0};
  auto entry = array_of(session, place.array);
  if (!entry) return std::unexpected(entry.error());
  const ArrayExtent box = entry->box();
  const std::size_t row = box.width * entry->spec.format.bytes();
  const bool inside =
      place.x < row && place.y < box.height && count <= (box.height - place.y) * row - place.x;
  if (!inside) return deny(cudaErrorInvalidValue);
  return row;
}

/// Goes on by `rows` rows of `width` bytes that were copied.
void advance(Place& place, std::size_t width, std::size_t rows, std::size_t row) {
  if (place.array == nullptr) {
    place.memory = static_cast<const char*>(place.memory) + width * rows;
  } else if (place.x + width < row) {
    place.x += width;
  } else {
    place.x = 0;
    place.y += rows;
  }
}

/// A count of bytes: the rest of a row, whole rows at once, the rest.
Answer copy_count(Session& session, Call call, Unit unit, std::uint64_t stream) {
  if (call.width == 0) return {};
  auto to_row = row_of(session, call.to, call.width);
  if (!to_row) return std::unexpected(to_row.error());
  auto from_row = row_of(session, call.from, call.width);
  if (!from_row) return std::unexpected(from_row.error());
  const std::size_t row = std::min(*to_row, *from_row);
  const bool even = std::max(*to_row, *from_row) == ~std::size_t{0} || *to_row == *from_row;
  for (std::size_t left = call.width; left > 0;) {
    Call piece = call;
    piece.width = std::min({left, *to_row - call.to.x, *from_row - call.from.x});
    piece.height = 1;
    if (even && call.to.x == 0 && call.from.x == 0 && left >= row) {
      piece.width = row;
      piece.height = left / row;
    }
    if (piece.to.array == nullptr) piece.to.pitch = piece.width;
    if (piece.from.array == nullptr) piece.from.pitch = piece.width;
    const std::size_t bytes = piece.width * piece.height;
    if (auto ok = copy_box(session, piece, unit, stream); !ok) return ok;
    advance(call.to, piece.width, piece.height, *to_row);
    advance(call.from, piece.width, piece.height, *from_row);
    left -= bytes;
  }
  return {};
}

cudaError_t run(const Call& call, cudaStream_t stream, DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    auto unit = unit_of(session, call);
    if (!unit) return std::unexpected(unit.error());
    if (call.height == 0) return copy_count(session, call, *unit, *id);
    for (const Place* place : {&call.to, &call.from}) {
      if (place->array == nullptr && call.width > place->pitch) {
        return deny(cudaErrorInvalidPitchValue);
      }
    }
    return copy_box(session, call, *unit, *id);
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
