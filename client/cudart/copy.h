// Linear and two-dimensional copies and fills, for every entry point that ends in one: the CUDA
// rules about directions, pitches and addresses are here, once.
#pragma once

#include "client/cudart/front.h"

namespace slate::cudart {

/// `height` rows of `width` bytes, each side with its own pitch.
struct CopyCall {
  void* to;
  std::size_t to_pitch;
  const void* from;
  std::size_t from_pitch;
  std::size_t width;
  std::size_t height;
  int kind;  // a cudaMemcpyKind, or what the program takes for one
  bool asynchronous = false;
};

/// Does the copy on `stream` (an id). Returns when CUDA's cudaMemcpy may, or at once when it is
/// asynchronous and the host's side is pinned or there is none. As in CUDA, an asynchronous copy
/// from pageable memory returns when that may be changed, and one to it when the data is there.
Answer copy(Session& session, const CopyCall& call, std::uint64_t stream);
/// Whether copy() would take it.
Answer check_copy(Session& session, const CopyCall& call);
/// Whether the memory on both sides reaches as far as the slices of a copy, of which `first` is the
/// first: as many rows from its first to the last one's last.
Answer check_slices(Session& session, const CopyCall& first, std::size_t to_rows,
                    std::size_t from_rows);

/// Where the slice `z` begins of a box of plain memory that begins at `position`.
inline std::byte* slice_of(const cudaPitchedPtr& pointer, const cudaPos& position, std::size_t z) {
  return static_cast<std::byte*>(pointer.ptr) +
         ((position.z + z) * pointer.ysize + position.y) * pointer.pitch + position.x;
}
/// Whether the box lies within the rows and slices of the memory, as far as it says how long they
/// are: cudaErrorInvalidPitchValue when they are too short for any such box, cudaErrorInvalidValue
/// when they are for one at this position, or too short for the box's only row or slice, or when
/// the box does not end within the address space. Requires: the box is not empty.
Answer check_box(const cudaPitchedPtr& pointer, const cudaPos& position, const cudaExtent& extent);

struct FillCall {
  void* to;
  std::size_t pitch;
  int value;
  std::size_t width;  // bytes
  std::size_t height;
  bool asynchronous = true;  // returns at once, also where the host may look
  std::size_t element = 1;   // bytes of the value, of which there are whole ones in a row
};
Answer fill(Session& session, const FillCall& call, std::uint64_t stream);
/// Whether the device or, of pinned memory, the host can fill all of these rows.
bool is_fillable(Session& session, const void* address, std::size_t pitch, client::Shape shape);

/// A copy from or to these bytes of the host returns when it is done: those of memory that is not
/// pinned have done all that the caller may wait for before they return.
Answer wait_for_pinned(Session& session, const void* host, std::size_t extent,
                       std::uint64_t stream);

/// True for addresses in the session's memory on the device; what it is not is the host's.
bool is_device_address(Session& session, const void* address);
/// True when all of these device rows are in the session's memory.
bool on_device(Session& session, const void* address, std::size_t pitch, client::Shape shape);

}  // namespace slate::cudart
