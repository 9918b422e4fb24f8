// What CUDA allows a texture object to be made of. Any thread.
#pragma once

#include <cstdint>

#include "base/array.h"
#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

/// Makes a texture, and returns the number that kernels take. Refused:
/// - kBadFilter: integers that are filtered,
/// - kBadNormalization: elements of 32 bits that are read as fractions,
/// - kInvalidValue: a view of plain memory, and all else that is wrong.
Allowed<std::uint64_t> create_texture(Session& session, const TextureSpec& spec, bool has_view);

}  // namespace slate::client
