// CUDA runtime's structs for copies in three dimensions, and the core's.
#pragma once

#include "client/cudart/front.h"

namespace slate::cudart {

inline client::Direction direction_of(int kind) {
  return static_cast<client::Direction>(kind);
}
static_assert(static_cast<int>(client::Direction::kHostToHost) == cudaMemcpyHostToHost &&
              static_cast<int>(client::Direction::kHostToDevice) == cudaMemcpyHostToDevice &&
              static_cast<int>(client::Direction::kDeviceToHost) == cudaMemcpyDeviceToHost &&
              static_cast<int>(client::Direction::kDeviceToDevice) == cudaMemcpyDeviceToDevice &&
              static_cast<int>(client::Direction::kByAddress) == cudaMemcpyDefault);

inline client::BoxExtent extent_of(const cudaExtent& extent) {
  return {extent.width, extent.height, extent.depth};
}
inline client::BoxSide side_of(cudaArray_const_t array, const cudaPitchedPtr& pointer,
                               const cudaPos& position) {
  return {address_of(array), pointer.ptr, pointer.pitch, pointer.xsize,
          pointer.ysize,     position.x,  position.y,    position.z};
}
inline client::BoxCopy box_copy_of(const cudaMemcpy3DParms& parms) {
  return {side_of(parms.dstArray, parms.dstPtr, parms.dstPos),
          side_of(parms.srcArray, parms.srcPtr, parms.srcPos), extent_of(parms.extent),
          direction_of(parms.kind), client::CopyUnit::kElement};
}

/// CUDA's struct for `copy`.
inline cudaMemcpy3DParms parms_of(const client::BoxCopy& copy) {
  const auto array = [](const client::BoxSide& side) {
    return static_cast<cudaArray_t>(pointer_to(side.array));
  };
  const auto position = [](const client::BoxSide& side) -> cudaPos {
    return {side.x, side.y, side.z};
  };
  const auto pointer = [](const client::BoxSide& side) -> cudaPitchedPtr {
    return {side.memory, side.pitch, side.width, side.rows};
  };
  return {array(copy.from),
          position(copy.from),
          pointer(copy.from),
          array(copy.to),
          position(copy.to),
          pointer(copy.to),
          {copy.extent.width, copy.extent.height, copy.extent.depth},
          static_cast<cudaMemcpyKind>(copy.direction)};
}

}  // namespace slate::cudart
