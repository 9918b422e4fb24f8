#include "client/driver/box.h"

namespace slate::driver {
namespace {

using client::BoxCopy;
using client::BoxExtent;
using client::BoxSide;
using client::CopyUnit;
using client::Direction;

/// One side as the driver's struct has it.
struct Side {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  CUarray array;
  std::size_t x, y, z, level, pitch, height;
};

Maybe<BoxSide> side_of(const Side& its, const BoxExtent& extent) {
  if (its.level != 0) return deny(CUDA_ERROR_INVALID_VALUE);
  BoxSide side;
  side.x = its.x;
  side.y = its.y;
  side.z = its.z;
  switch (number_of(its.type)) {
    case CU_MEMORYTYPE_HOST:
      side.memory = const_cast<void*>(its.host);
      break;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
      side.memory = pointer_to(its.device);
      break;
    case CU_MEMORYTYPE_ARRAY:
      if (its.array == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
      side.array = address_of(its.array);
      return side;
    default:
      return deny(CUDA_ERROR_INVALID_VALUE);
  }
  // One row needs no pitch, and one slice no height.
  const bool one_row = extent.height <= 1 && extent.depth <= 1;
  side.pitch = its.pitch == 0 && one_row ? its.x + extent.width : its.pitch;
  side.rows = its.height == 0 && extent.depth <= 1 ? its.y + extent.height : its.height;
  side.width = side.pitch;
  return side;
}

Direction direction_of(CUmemorytype from, CUmemorytype to) {
  if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED) return Direction::kByAddress;
  if (from == CU_MEMORYTYPE_HOST) {
    return to == CU_MEMORYTYPE_HOST ? Direction::kHostToHost : Direction::kHostToDevice;
  }
  return to == CU_MEMORYTYPE_HOST ? Direction::kDeviceToHost : Direction::kDeviceToDevice;
}

/// The type of a side; `is_host`: whether the copy's direction says that it is the host's.
CUmemorytype type_of(const BoxSide& side, Direction direction, bool is_host) {
  if (side.array != 0) return CU_MEMORYTYPE_ARRAY;
  if (direction == Direction::kByAddress) return CU_MEMORYTYPE_UNIFIED;
  return is_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

/// Changes the copy's unit to bytes.
Answer count_bytes(Session& session, BoxCopy& copy) {
  if (copy.unit == CopyUnit::kByte || !copy.has_array()) return {};
  std::size_t element = 0;
  for (BoxSide* side : {&copy.to, &copy.from}) {
    if (side->array == 0) continue;
    const auto entry = session.arrays().table().find_flat(side->array);
    if (!entry) return deny(CUDA_ERROR_INVALID_VALUE);
    element = entry->spec.format.bytes();
    side->x *= element;
  }
  copy.extent.width *= element;
  copy.unit = CopyUnit::kByte;
  return {};
}

}  // namespace

Maybe<BoxCopy> box_copy_of(const CUDA_MEMCPY3D& params) {
  const BoxExtent extent{params.WidthInBytes, params.Height, params.Depth};
  const auto from = side_of(
      {params.srcMemoryType, params.srcHost, params.srcDevice, params.srcArray, params.srcXInBytes,
       params.srcY, params.srcZ, params.srcLOD, params.srcPitch, params.srcHeight},
      extent);
  if (!from) return std::unexpected(from.error());
  const auto to = side_of(
      {params.dstMemoryType, params.dstHost, params.dstDevice, params.dstArray, params.dstXInBytes,
       params.dstY, params.dstZ, params.dstLOD, params.dstPitch, params.dstHeight},
      extent);
  if (!to) return std::unexpected(to.error());
  return BoxCopy{*to, *from, extent, direction_of(params.srcMemoryType, params.dstMemoryType),
                 CopyUnit::kByte};
}

Maybe<CUDA_MEMCPY3D> params_of(Session& session, BoxCopy copy) {
  if (auto ok = count_bytes(session, copy); !ok) return std::unexpected(ok.error());
  const bool from_host =
      copy.direction == Direction::kHostToHost || copy.direction == Direction::kHostToDevice;
  const bool to_host =
      copy.direction == Direction::kHostToHost || copy.direction == Direction::kDeviceToHost;
  CUDA_MEMCPY3D told{};
  told.srcMemoryType = type_of(copy.from, copy.direction, from_host);
  if (told.srcMemoryType == CU_MEMORYTYPE_HOST) {
    told.srcHost = copy.from.memory;
  } else {
    told.srcDevice = address_of(copy.from.memory);
  }
  told.srcArray = static_cast<CUarray>(pointer_to(copy.from.array));
  told.srcXInBytes = copy.from.x;
  told.srcY = copy.from.y;
  told.srcZ = copy.from.z;
  told.srcPitch = copy.from.pitch;
  told.srcHeight = copy.from.rows;
  told.dstMemoryType = type_of(copy.to, copy.direction, to_host);
  if (told.dstMemoryType == CU_MEMORYTYPE_HOST) {
    told.dstHost = copy.to.memory;
  } else {
    told.dstDevice = address_of(copy.to.memory);
  }
  told.dstArray = static_cast<CUarray>(pointer_to(copy.to.array));
  told.dstXInBytes = copy.to.x;
  told.dstY = copy.to.y;
  told.dstZ = copy.to.z;
  told.dstPitch = copy.to.pitch;
  told.dstHeight = copy.to.rows;
  told.WidthInBytes = copy.extent.width;
  told.Height = copy.extent.height;
  told.Depth = copy.extent.depth;
  return told;
}

}  // namespace slate::driver
