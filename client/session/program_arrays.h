// CUDA arrays as programs ask for them, in all of CUDA's APIs. Any thread.
#pragma once

#include <cstdint>

#include "base/array.h"
#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

/// Flags of arrays whose memory comes later, which are not supported.
inline constexpr std::uint32_t kArrayMemoryLater = 0x40 | 0x80;  // CUDA_ARRAY3D_SPARSE and others

/// An array that a program asks for. `format`: its elements, or why there are no such.
struct ArrayWish {
  Allowed<ArrayFormat> format;
  ArrayExtent extent;
  std::uint32_t flags = 0;
};
/// Makes an array, and returns its id. kNotSupported for memory that comes later; kInvalidValue
/// for what the device does not have.
Allowed<std::uint64_t> create_program_array(Session& session, const ArrayWish& wish);
/// As above, mipmapped. `levels` is clamped to what the extent has.
Allowed<std::uint64_t> create_mipmapped_array(Session& session, const ArrayWish& wish,
                                              std::uint32_t levels);

}  // namespace slate::client
