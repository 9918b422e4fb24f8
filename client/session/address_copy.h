// Copies and fills of rows by address, for all entry points that end in one. They find out which
// side is on the device, which is pinned, whether to wait, and whether the stream captures. Then
// the session's own copies (copies.h) do the rest.
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

/// Does the copy on `stream`. Returns when a copy of CUDA's may. An asynchronous copy without
/// pageable memory returns at once. An asynchronous copy from pageable memory returns when that may
/// be changed; one to it when the data is there.
Allowed<void> copy_rows(Session& session, const CopyCall& call, std::uint64_t stream);
/// As copy_rows() in three dimensions, with memory on both sides. Captured, it is one node.
/// Requires: check_box() of both sides.
Allowed<void> copy_slices(Session& session, const BoxCopy& copy, bool asynchronous,
                          std::uint64_t stream);
/// Whether a graph can have the copy, which is of memory on both sides. The rules are those of an
/// immediate copy. All errors but the direction's are kInvalidValue.
Allowed<void> check_slices_node(const BoxCopy& copy);
/// Does the work of a node with such a copy.
Allowed<void> run_slices_node(Session& session, const BoxCopy& copy, std::uint64_t stream);

struct FillCall {
  void* to;
  std::size_t pitch;
  int value;
  std::size_t width;  // in bytes
  std::size_t height;
  bool asynchronous = true;  // returns at once, also where the host may look
  std::size_t element = 1;   // bytes of the value: 1, 2 or 4; a row has whole values
};
/// kInvalidValue also where values would not begin at multiples of their size.
Allowed<void> fill_rows(Session& session, const FillCall& call, std::uint64_t stream);
/// As fill_rows() in three dimensions; `side` has no position.
Allowed<void> fill_slices(Session& session, const BoxSide& side, int value, const BoxExtent& extent,
                          bool asynchronous, std::uint64_t stream);
/// Whether the device, or for pinned memory the host, can fill all of these rows.
bool is_fillable(Session& session, const void* address, std::size_t pitch, Box shape);

/// Waits for a copy from or to these bytes of the host, if they are pinned. Copies of other memory
/// have waited before they return.
Allowed<void> wait_for_pinned(Session& session, const void* host, std::size_t extent,
                              std::uint64_t stream);

/// Whether an address is in the session's memory on the device; all others are the host's.
bool is_device_address(Session& session, const void* address);
/// Whether all of these device rows are in the session's memory.
bool on_device(Session& session, const void* address, std::size_t pitch, Box shape);

}  // namespace slate::client
