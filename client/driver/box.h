// The driver's struct for copies in three dimensions, and the core's.
#pragma once

#include "client/driver/front.h"

namespace slate::driver {

/// The copy that `params` describes, in bytes. CUDA_ERROR_INVALID_VALUE for sides that do not
/// exist.
Maybe<client::BoxCopy> box_copy_of(const CUDA_MEMCPY3D& params);
/// The driver's struct for `copy`.
Maybe<CUDA_MEMCPY3D> params_of(Session& session, client::BoxCopy copy);

}  // namespace slate::driver
