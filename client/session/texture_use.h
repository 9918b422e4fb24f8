// What CUDA allows a texture object to be made of. Values only.
#pragma once

#include "base/array.h"
#include "base/device_info.h"
#include "client/session/refused.h"

namespace slate::client {

/// Checks a texture:
/// - kBadFilter: integers that are filtered,
/// - kBadNormalization: elements of 32 bits that are read as fractions,
/// - kInvalidValue: a view of plain memory, and all else that is wrong.
Allowed<void> check_texture_use(const TextureSpec& spec, bool has_view, const DeviceInfo& device);

}  // namespace slate::client
