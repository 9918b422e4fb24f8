// Copies. The functions without Async in their names wait as CUDA's do, on the default stream that
// the call means. All contexts have the one device, so copies between them are plain ones.
#include <cstring>

#include "client/driver/box.h"
#include "client/driver/front.h"
#include "client/driver/pointer.h"
#include "client/session/address_copy.h"
#include "client/session/array_copy.h"

namespace slate::driver {
namespace {

using client::BoxCopy;
using client::BoxExtent;
using client::BoxSide;
using client::CopyCall;
using client::CopyUnit;
using client::Direction;

enum class Returns { kWhenDone, kAtOnce };

/// The outcome of a copy, and the end of one for which the program asked to wait.
Answer ended(Session& session, const client::Allowed<void>& outcome, Returns returns,
             std::uint64_t stream) {
  if (!outcome) return std::unexpected<Failure>(outcome.error());
  if (returns == Returns::kAtOnce || !synchronous_calls_wait()) [[likely]]
    return {};
  return session.waiting().synchronize(ipc::TargetKind::kStream, stream);
}

/// Runs `body`, a (Session&, stream's id) -> Allowed<void>, which does the copy.
template <typename Body>
CUresult on_stream(CUstream stream, Returns returns, const Body& body) {
  return with_session([&](Session& session) -> Answer {
    const auto id = stream_id(session, stream);
    if (!id) return std::unexpected(id.error());
    return ended(session, body(session, *id), returns, *id);
  });
}

CUresult copy_line(void* to, const void* from, std::size_t bytes, Direction direction,
                   CUstream stream, Returns returns) {
  return on_stream(stream, returns, [&](Session& session, std::uint64_t id) {
    const CopyCall call{to, bytes, from, bytes, bytes, 1, direction, returns == Returns::kAtOnce};
    return client::copy_rows(session, call, id);
  });
}

void* device(CUdeviceptr address) {
  return pointer_to(address);
}

/// A copy of bytes between arrays, or an array and memory.
CUresult copy_bytes(const BoxSide& to, const BoxSide& from, std::size_t bytes, Direction direction,
                    CUstream stream, Returns returns) {
  return on_stream(
      stream, returns, [&](Session& session, std::uint64_t id) -> client::Allowed<void> {
        for (const BoxSide* side : {&to, &from}) {
          if (side->array == 0 && side->memory == nullptr)
            return client::refuse(client::Refusal::kInvalidValue);
        }
        return client::copy_array_bytes(session,
                                        {to, from, {bytes, 1, 1}, direction, CopyUnit::kByte},
                                        returns == Returns::kAtOnce, id);
      });
}
BoxSide in_array(CUarray array, std::size_t offset) {
  BoxSide side;
  side.array = address_of(array);
  side.x = offset;
  return side;
}
BoxSide in_memory(const void* memory) {
  BoxSide side;
  side.memory = const_cast<void*>(memory);
  return side;
}

/// A copy in boxes of bytes.
client::Allowed<void> copy_box(Session& session, const BoxCopy& copy, Returns returns,
                               std::uint64_t stream) {
  const bool at_once = returns == Returns::kAtOnce;
  if (copy.has_array()) {
    const auto counted = client::in_elements(session, copy);
    if (!counted) return std::unexpected(counted.error());
    return client::copy_array(session, *counted, at_once, stream);
  }
  if (copy.extent.empty()) return {};
  if (auto ok = client::check_box(copy.to, copy.extent); !ok) return ok;
  if (auto ok = client::check_box(copy.from, copy.extent); !ok) return ok;
  return client::copy_slices(session, copy, at_once, stream);
}

CUresult copy_3d(const CUDA_MEMCPY3D* params, CUstream stream, Returns returns) {
  return with_session([&](Session& session) -> Answer {
    if (params == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto copy = box_copy_of(*params);
    if (!copy) return std::unexpected(copy.error());
    const auto id = stream_id(session, stream);
    if (!id) return std::unexpected(id.error());
    return ended(session, copy_box(session, *copy, returns, *id), returns, *id);
  });
}

CUDA_MEMCPY3D in_three_dimensions(const CUDA_MEMCPY2D& flat) {
  CUDA_MEMCPY3D params{};
  params.srcXInBytes = flat.srcXInBytes;
  params.srcY = flat.srcY;
  params.srcMemoryType = flat.srcMemoryType;
  params.srcHost = flat.srcHost;
  params.srcDevice = flat.srcDevice;
  params.srcArray = flat.srcArray;
  params.srcPitch = flat.srcPitch;
  params.dstXInBytes = flat.dstXInBytes;
  params.dstY = flat.dstY;
  params.dstMemoryType = flat.dstMemoryType;
  params.dstHost = flat.dstHost;
  params.dstDevice = flat.dstDevice;
  params.dstArray = flat.dstArray;
  params.dstPitch = flat.dstPitch;
  params.WidthInBytes = flat.WidthInBytes;
  params.Height = flat.Height;
  params.Depth = 1;
  return params;
}
CUresult copy_2d(const CUDA_MEMCPY2D* params, CUstream stream, Returns returns) {
  if (params == nullptr) return copy_3d(nullptr, stream, returns);
  const CUDA_MEMCPY3D box = in_three_dimensions(*params);
  return copy_3d(&box, stream, returns);
}

/// The two structs differ in what the reserved members are.
CUDA_MEMCPY3D without_contexts(const CUDA_MEMCPY3D_PEER& peer) {
  CUDA_MEMCPY3D params;
  static_assert(sizeof(params) == sizeof(peer) &&
                offsetof(CUDA_MEMCPY3D, reserved0) == offsetof(CUDA_MEMCPY3D_PEER, srcContext) &&
                offsetof(CUDA_MEMCPY3D, reserved1) == offsetof(CUDA_MEMCPY3D_PEER, dstContext));
  std::memcpy(&params, &peer, sizeof(params));
  params.reserved0 = params.reserved1 = nullptr;
  return params;
}

Answer check_context(CUcontext context) {
  if (Contexts::get().find(context) == nullptr) return deny(CUDA_ERROR_INVALID_CONTEXT);
  return {};
}

/// Runs `body` as on_stream(), if both contexts exist. CUDA does not capture copies between
/// devices, and this is one, though there is only one device.
template <typename Body>
CUresult between_contexts(CUcontext to, CUcontext from, CUstream stream, Returns returns,
                          const Body& body) {
  return with_session([&](Session& session) -> Answer {
    if (auto ok = check_context(to); !ok) return ok;
    if (auto ok = check_context(from); !ok) return ok;
    const auto id = stream_id(session, stream);
    if (!id) return std::unexpected(id.error());
    if (auto refused = refuse_capture(session, *id)) return *refused;
    return ended(session, body(session, *id), returns, *id);
  });
}

CUresult copy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                   std::size_t bytes, CUstream stream, Returns returns) {
  return between_contexts(to_context, from_context, stream, returns,
                          [&](Session& session, std::uint64_t id) {
                            const CopyCall call{device(to),
                                                bytes,
                                                device(from),
                                                bytes,
                                                bytes,
                                                1,
                                                Direction::kDeviceToDevice,
                                                returns == Returns::kAtOnce};
                            return client::copy_rows(session, call, id);
                          });
}

CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER* params, CUstream stream, Returns returns) {
  if (params == nullptr) return copy_3d(nullptr, stream, returns);
  const auto context_of = [](CUmemorytype type, CUcontext context) {
    return type == CU_MEMORYTYPE_ARRAY ? Contexts::get().primary().handle() : context;
  };
  return between_contexts(context_of(params->dstMemoryType, params->dstContext),
                          context_of(params->srcMemoryType, params->srcContext), stream, returns,
                          [&](Session& session, std::uint64_t id) -> client::Allowed<void> {
                            const auto copy = box_copy_of(without_contexts(*params));
                            if (!copy) return client::refuse(client::Refusal::kInvalidValue);
                            return copy_box(session, *copy, returns, id);
                          });
}

/// How a copy of a batch reads its source. Before the call returns is not before it is done, but
/// done is surely enough.
Maybe<Returns> returns_of(const CUmemcpySrcAccessOrder& order) {
  switch (number_of(order)) {
    case CU_MEMCPY_SRC_ACCESS_ORDER_STREAM:
    case CU_MEMCPY_SRC_ACCESS_ORDER_ANY:
      return Returns::kAtOnce;
    case CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL:
      return Returns::kWhenDone;
    default:
      return deny(CUDA_ERROR_INVALID_VALUE);
  }
}

constexpr std::size_t kNoneFailed = ~std::size_t{0};

/// Runs `body`, a (Session&, stream's id, index) -> Answer, for `count` copies. `failed` may be
/// null; it tells the first one that failed. The default stream that all threads share is refused.
template <typename Body>
CUresult run_batch(std::size_t count, CUstream stream, std::size_t* failed, const Body& body) {
  if (failed != nullptr) *failed = kNoneFailed;
  return with_session([&](Session& session) -> Answer {
    const auto id = stream_id(session, stream);
    if (!id) return std::unexpected(id.error());
    if (count == 0 || *id == ipc::kDefaultStream) return deny(CUDA_ERROR_INVALID_VALUE);
    for (std::size_t i = 0; i < count; ++i) {
      if (auto ok = body(session, *id, i); !ok) {
        if (failed != nullptr) *failed = i;
        return ok;
      }
    }
    return {};
  });
}

struct Batch {
  const CUdeviceptr *to, *from;
  const std::size_t* bytes;
  std::size_t count;
  const CUmemcpyAttributes* attributes;
  const std::size_t* first;  // which copy each of the attributes begins with
  std::size_t attribute_count;
};

bool is_complete(const Batch& batch) {
  if (batch.to == nullptr || batch.from == nullptr || batch.bytes == nullptr ||
      batch.attributes == nullptr || batch.first == nullptr || batch.attribute_count == 0 ||
      batch.attribute_count > batch.count || batch.first[0] != 0) {
    return false;
  }
  for (std::size_t k = 1; k < batch.attribute_count; ++k) {
    if (batch.first[k] <= batch.first[k - 1] || batch.first[k] >= batch.count) return false;
  }
  return true;
}

CUresult copy_batch(const Batch& batch, CUstream stream, std::size_t* failed) {
  const bool complete = is_complete(batch);
  std::size_t attribute = 0;
  return run_batch(complete ? batch.count : 0, stream, failed,
                   [&](Session& session, std::uint64_t id, std::size_t i) -> Answer {
                     if (attribute + 1 < batch.attribute_count && batch.first[attribute + 1] == i)
                       ++attribute;
                     const auto returns = returns_of(batch.attributes[attribute].srcAccessOrder);
                     if (!returns) return std::unexpected(returns.error());
                     const std::size_t bytes = batch.bytes[i];
                     return client::copy_rows(
                         session,
                         {device(batch.to[i]), bytes, device(batch.from[i]), bytes, bytes, 1,
                          Direction::kByAddress, *returns == Returns::kAtOnce},
                         id);
                   });
}

/// `element`: bytes of the copy's elements.
Maybe<BoxSide> side_of(const CUmemcpy3DOperand& operand, const CUextent3D& extent,
                       std::size_t element) {
  BoxSide side;
  const int type = number_of(operand.type);
  if (type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    const auto& array = operand.op.array;
    side.array = address_of(array.array);
    side.x = array.offset.x;
    side.y = array.offset.y;
    side.z = array.offset.z;
    return side;
  }
  const auto& memory = operand.op.ptr;
  const std::size_t row = memory.rowLength == 0 ? extent.width : memory.rowLength;
  side.rows = memory.layerHeight == 0 ? extent.height : memory.layerHeight;
  side.memory = device(memory.ptr);
  if (type != CU_MEMCPY_OPERAND_TYPE_POINTER || row < extent.width || side.rows < extent.height ||
      __builtin_mul_overflow(row, element, &side.pitch)) {
    return deny(CUDA_ERROR_INVALID_VALUE);
  }
  side.width = side.pitch;
  return side;
}

/// Bytes of the elements that the copy counts.
Maybe<std::size_t> element_of(Session& session, const CUDA_MEMCPY3D_BATCH_OP& copy) {
  for (const CUmemcpy3DOperand* operand : {&copy.src, &copy.dst}) {
    if (operand->type != CU_MEMCPY_OPERAND_TYPE_ARRAY) continue;
    const auto entry = session.arrays().table().find_flat(address_of(operand->op.array.array));
    if (!entry) return deny(CUDA_ERROR_INVALID_VALUE);
    return entry->spec.format.bytes();
  }
  return 1;
}

CUresult copy_3d_batch(std::size_t count, const CUDA_MEMCPY3D_BATCH_OP* copies,
                       unsigned long long flags, CUstream stream, std::size_t* failed) {
  const bool fine = copies != nullptr && flags == 0;
  return run_batch(
      fine ? count : 0, stream, failed,
      [&](Session& session, std::uint64_t id, std::size_t i) -> Answer {
        const CUDA_MEMCPY3D_BATCH_OP& its = copies[i];
        const BoxExtent extent{its.extent.width, its.extent.height, its.extent.depth};
        const auto returns = returns_of(its.srcAccessOrder);
        if (!returns || extent.empty()) return deny(CUDA_ERROR_INVALID_VALUE);
        const auto element = element_of(session, its);
        if (!element) return std::unexpected(element.error());
        const auto to = side_of(its.dst, its.extent, *element);
        const auto from = side_of(its.src, its.extent, *element);
        if (!to || !from) return deny(CUDA_ERROR_INVALID_VALUE);
        const BoxCopy copy{*to, *from, extent, Direction::kByAddress, CopyUnit::kElement};
        if (!copy.has_array()) return copy_box(session, copy, *returns, id);
        return client::copy_array(session, copy, *returns == Returns::kAtOnce, id);
      });
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;

extern "C" {

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copy_line(device(to), device(from), bytes, Direction::kByAddress, nullptr,
                   Returns::kWhenDone);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy_line(device(to), device(from), bytes, Direction::kByAddress, stream,
                   Returns::kAtOnce);
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  return copy_line(device(to), from, bytes, Direction::kHostToDevice, nullptr, Returns::kWhenDone);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes,
                              CUstream stream) {
  return copy_line(device(to), from, bytes, Direction::kHostToDevice, stream, Returns::kAtOnce);
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return copy_line(to, device(from), bytes, Direction::kDeviceToHost, nullptr, Returns::kWhenDone);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy_line(to, device(from), bytes, Direction::kDeviceToHost, stream, Returns::kAtOnce);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copy_line(device(to), device(from), bytes, Direction::kDeviceToDevice, nullptr,
                   Returns::kWhenDone);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                              CUstream stream) {
  return copy_line(device(to), device(from), bytes, Direction::kDeviceToDevice, stream,
                   Returns::kAtOnce);
}

CUresult cuMemcpyDtoA_v2(CUarray to, std::size_t offset, CUdeviceptr from, std::size_t bytes) {
  return copy_bytes(in_array(to, offset), in_memory(device(from)), bytes,
                    Direction::kDeviceToDevice, nullptr, Returns::kWhenDone);
}
CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, std::size_t offset, std::size_t bytes) {
  return copy_bytes(in_memory(device(to)), in_array(from, offset), bytes,
                    Direction::kDeviceToDevice, nullptr, Returns::kWhenDone);
}
CUresult cuMemcpyHtoA_v2(CUarray to, std::size_t offset, const void* from, std::size_t bytes) {
  return copy_bytes(in_array(to, offset), in_memory(from), bytes, Direction::kHostToDevice, nullptr,
                    Returns::kWhenDone);
}
CUresult cuMemcpyHtoAAsync_v2(CUarray to, std::size_t offset, const void* from, std::size_t bytes,
                              CUstream stream) {
  return copy_bytes(in_array(to, offset), in_memory(from), bytes, Direction::kHostToDevice, stream,
                    Returns::kAtOnce);
}
CUresult cuMemcpyAtoH_v2(void* to, CUarray from, std::size_t offset, std::size_t bytes) {
  return copy_bytes(in_memory(to), in_array(from, offset), bytes, Direction::kDeviceToHost, nullptr,
                    Returns::kWhenDone);
}
CUresult cuMemcpyAtoHAsync_v2(void* to, CUarray from, std::size_t offset, std::size_t bytes,
                              CUstream stream) {
  return copy_bytes(in_memory(to), in_array(from, offset), bytes, Direction::kDeviceToHost, stream,
                    Returns::kAtOnce);
}
CUresult cuMemcpyAtoA_v2(CUarray to, std::size_t to_offset, CUarray from, std::size_t from_offset,
                         std::size_t bytes) {
  return copy_bytes(in_array(to, to_offset), in_array(from, from_offset), bytes,
                    Direction::kDeviceToDevice, nullptr, Returns::kWhenDone);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* params) {
  return copy_2d(params, nullptr, Returns::kWhenDone);
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* params) {
  return copy_2d(params, nullptr, Returns::kWhenDone);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* params, CUstream stream) {
  return copy_2d(params, stream, Returns::kAtOnce);
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* params) {
  return copy_3d(params, nullptr, Returns::kWhenDone);
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* params, CUstream stream) {
  return copy_3d(params, stream, Returns::kAtOnce);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                      CUcontext from_context, std::size_t bytes) {
  return copy_peer(to, to_context, from, from_context, bytes, nullptr, Returns::kWhenDone);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, std::size_t bytes, CUstream stream) {
  return copy_peer(to, to_context, from, from_context, bytes, stream, Returns::kAtOnce);
}
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* params) {
  return copy_3d_peer(params, nullptr, Returns::kWhenDone);
}
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* params, CUstream stream) {
  return copy_3d_peer(params, stream, Returns::kAtOnce);
}

CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, std::size_t* bytes,
                            std::size_t count, CUmemcpyAttributes* attributes, std::size_t* first,
                            std::size_t attribute_count, std::size_t* failed, CUstream stream) {
  return copy_batch({to, from, bytes, count, attributes, first, attribute_count}, stream, failed);
}
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, std::size_t* bytes,
                               std::size_t count, CUmemcpyAttributes* attributes,
                               std::size_t* first, std::size_t attribute_count, CUstream stream) {
  return copy_batch({to, from, bytes, count, attributes, first, attribute_count}, stream, nullptr);
}
CUresult cuMemcpy3DBatchAsync(std::size_t count, CUDA_MEMCPY3D_BATCH_OP* copies,
                              std::size_t* failed, unsigned long long flags, CUstream stream) {
  return copy_3d_batch(count, copies, flags, stream, failed);
}
CUresult cuMemcpy3DBatchAsync_v2(std::size_t count, CUDA_MEMCPY3D_BATCH_OP* copies,
                                 unsigned long long flags, CUstream stream) {
  return copy_3d_batch(count, copies, flags, stream, nullptr);
}

}  // extern "C"
