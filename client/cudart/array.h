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

/// What the width of a copy and the x of its positions in arrays count. The functions that count
/// bytes copy parts of elements, and between arrays whose elements are of different sizes.
enum class CopyUnit { kElement, kByte };

struct ArrayCopy {
  cudaMemcpy3DParms parms;  // an array on one side or both
  CopyUnit unit = CopyUnit::kElement;
};

inline bool has_array(const cudaMemcpy3DParms& parms) {
  return parms.srcArray != nullptr || parms.dstArray != nullptr;
}
/// Whether a graph can have the copy: what a copy at once is refused for, all of it
/// cudaErrorInvalidValue but the direction.
Answer check_array_node(Session& session, const ArrayCopy& copy);
/// Does it on `stream` (an id), or captures it. Returns as copy() does.
Answer copy_array(Session& session, const ArrayCopy& copy, bool asynchronous, std::uint64_t stream);

}  // namespace slate::cudart
