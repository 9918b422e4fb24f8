// Copies and fills of rows by address, for every entry point that ends in one: which side is on the
// device, which is pinned, who waits, and what a capturing stream makes of it. The session's own
// copies take over where that is known.
#pragma once

#include "client/session/box_copy.h"
#include "client/session/session.h"

namespace slate::client {

/// `height` rows of `width` bytes, each side with its own pitch.
struct CopyCall {
  void* to;
  std::size_t to_pitch;
  const void* from;
  std::size_t from_pitch;
  std::size_t width;
  std::size_t height;
  Direction direction;
  bool asynchronous = false;
};

/// Does the copy on `stream`. Returns when a copy of CUDA's may, or at once when it is
/// asynchronous and the host's side is pinned or there is none. As in CUDA, an asynchronous copy
/// from pageable memory returns when that may be changed, and one to it when the data is there.
Allowed<void> copy_rows(Session& session, const CopyCall& call, std::uint64_t stream);
/// The same in three dimensions, of memory on both sides. Captured, it is one node. Requires:
/// check_box() of both sides.
Allowed<void> copy_slices(Session& session, const BoxCopy& copy, bool asynchronous,
                          std::uint64_t stream);
/// Whether a graph can have the copy, which is of memory on both sides: what a copy at once is
/// refused for, all of it kInvalidValue but the direction.
Allowed<void> check_slices_node(const BoxCopy& copy);
/// What a node with such a copy does.
Allowed<void> run_slices_node(Session& session, const BoxCopy& copy, std::uint64_t stream);

struct FillCall {
  void* to;
  std::size_t pitch;
  int value;
  std::size_t width;  // bytes
  std::size_t height;
  bool asynchronous = true;  // returns at once, also where the host may look
  std::size_t element = 1;   // bytes of the value, of which there are whole ones in a row
};
Allowed<void> fill_rows(Session& session, const FillCall& call, std::uint64_t stream);
/// The same in three dimensions; `side` has no position.
Allowed<void> fill_slices(Session& session, const BoxSide& side, int value, const BoxExtent& extent,
                          bool asynchronous, std::uint64_t stream);
/// Whether the device or, of pinned memory, the host can fill all of these rows.
bool is_fillable(Session& session, const void* address, std::size_t pitch, Box shape);

/// A copy from or to these bytes of the host returns when it is done: those of memory that is not
/// pinned have done all that the caller may wait for before they return.
Allowed<void> wait_for_pinned(Session& session, const void* host, std::size_t extent,
                              std::uint64_t stream);

/// True for addresses in the session's memory on the device; what it is not is the host's.
bool is_device_address(Session& session, const void* address);
/// True when all of these device rows are in the session's memory.
bool on_device(Session& session, const void* address, std::size_t pitch, Box shape);

}  // namespace slate::client
