// CUDA arrays behind CUarray and CUmipmappedArray, which are ids of Session::arrays().
#pragma once

#include "base/array.h"
#include "client/driver/front.h"

namespace slate::driver {

using ArrayEntry = client::ArrayTable::Entry;

/// The elements that the driver names so. kBadElements for those that no array has.
Allowed<ArrayFormat> format_of(const CUarray_format& format, unsigned channels);
/// The driver's name of a channel.
CUarray_format name_of(const ArrayFormat& format);

/// The array behind a handle, or the level of a mipmapped one; `otherwise` when there is none.
Maybe<ArrayEntry> array_of(Session& session, CUarray handle,
                           CUresult otherwise = CUDA_ERROR_INVALID_HANDLE);
/// The whole mipmapped array behind a handle.
Maybe<ArrayEntry> mipmapped_of(Session& session, CUmipmappedArray handle,
                               CUresult otherwise = CUDA_ERROR_INVALID_HANDLE);

}  // namespace slate::driver
