// CUDA arrays behind cudaArray_t and cudaMipmappedArray_t, which are ids of Session::arrays(), and
// the copies that have one on either side.
#pragma once

#include "base/array.h"
#include "client/cudart/front.h"

namespace slate::cudart {

using ArrayEntry = client::ArrayTable::Entry;

/// cudaErrorInvalidChannelDescriptor for elements that no array has.
Maybe<ArrayFormat> format_of(const cudaChannelFormatDesc& description);
cudaChannelFormatDesc description_of(const ArrayFormat& format);

/// The array behind a handle, or the level of a mipmapped one; `otherwise` when there is none.
Maybe<ArrayEntry> array_of(Session& session, cudaArray_const_t handle,
                           cudaError_t otherwise = cudaErrorInvalidValue);
/// The whole mipmapped array.
Maybe<ArrayEntry> mipmapped_of(Session& session, cudaMipmappedArray_const_t handle,
                               cudaError_t otherwise = cudaErrorInvalidValue);

inline bool has_array(const cudaMemcpy3DParms& parms) {
  return parms.srcArray != nullptr || parms.dstArray != nullptr;
}
/// Whether such a copy is one that CUDA allows. Requires: has_array().
Answer check_array_copy(Session& session, const cudaMemcpy3DParms& parms);
/// Does it on `stream` (an id), or captures it. Returns as copy() does. Requires: has_array().
Answer copy_array(Session& session, const cudaMemcpy3DParms& parms, bool asynchronous,
                  std::uint64_t stream);

}  // namespace slate::cudart
