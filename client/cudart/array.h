// CUDA arrays behind cudaArray_t and cudaMipmappedArray_t, which are ids of Session::arrays().
#pragma once

#include "base/array.h"
#include "client/cudart/front.h"

namespace slate::cudart {

using ArrayEntry = client::ArrayTable::Entry;

/// The format of `description`. kBadElements for those that no array has.
Allowed<ArrayFormat> format_of(const cudaChannelFormatDesc& description);
cudaChannelFormatDesc description_of(const ArrayFormat& format);

/// The array behind a handle, or the level of a mipmapped one; `otherwise` when there is none.
Maybe<ArrayEntry> array_of(Session& session, cudaArray_const_t handle,
                           cudaError_t otherwise = cudaErrorInvalidValue);
/// The whole mipmapped array behind a handle.
Maybe<ArrayEntry> mipmapped_of(Session& session, cudaMipmappedArray_const_t handle,
                               cudaError_t otherwise = cudaErrorInvalidValue);

}  // namespace slate::cudart
