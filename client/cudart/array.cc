// Making CUDA arrays and telling of them. Elements of planes (NV12), normalized and block
// compressed ones are not supported, nor are sparse arrays and those whose memory comes later.
#include "client/cudart/array.h"

#include <algorithm>

#include "client/session/program_arrays.h"

namespace slate::cudart {
namespace {

static_assert(client::kArrayMemoryLater == (cudaArraySparse | cudaArrayDeferredMapping));

client::ArrayWish wish_of(const cudaChannelFormatDesc& description, const cudaExtent& extent,
                          unsigned flags) {
  return {format_of(description), {extent.width, extent.height, extent.depth}, flags};
}

cudaError_t make_array(cudaArray_t* array, const cudaChannelFormatDesc* description,
                       const cudaExtent& extent, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    if (array == nullptr || description == nullptr) return deny(cudaErrorInvalidValue);
    return give_address(
        array, client::create_program_array(session, wish_of(*description, extent, flags)));
  });
}

cudaError_t free_array(std::uint64_t id, bool mipmapped) {
  return with_session([&](Session& session) -> Answer {
    if (id == 0) return {};
    if (!session.arrays().table().has(id, mipmapped)) return deny(cudaErrorInvalidValue);
    return session.arrays().destroy(id);
  });
}

/// Only arrays that are not made here have such properties, whatever the device.
template <typename Find>
cudaError_t tell_nothing(const void* properties, const Find& find) {
  return with_session([&](Session& session) -> Answer {
    if (properties == nullptr) return deny(cudaErrorInvalidValue);
    if (auto entry = find(session); !entry) return std::unexpected(entry.error());
    return deny(cudaErrorInvalidValue);
  });
}

}  // namespace

Allowed<ArrayFormat> format_of(const cudaChannelFormatDesc& description) {
  const int bits[4] = {description.x, description.y, description.z, description.w};
  switch (description.f) {
    case cudaChannelFormatKindSigned:
    case cudaChannelFormatKindUnsigned:
    case cudaChannelFormatKindFloat:
      break;
    default:
      if (description.f > cudaChannelFormatKindNone) {
        return std::unexpected<client::Refused>(
            Error{ErrorCode::kNotSupported, "elements of this kind of array are not supported"});
      }
      return client::refuse(client::Refusal::kBadElements);
  }
  const auto channels = std::ranges::find(bits, 0) - std::begin(bits);
  const bool uneven =
      std::any_of(bits, bits + channels, [&](int each) { return each != bits[0]; }) ||
      std::any_of(bits + channels, bits + 4, [](int each) { return each != 0; });
  const ArrayFormat format{static_cast<ChannelKind>(description.f),
                           static_cast<std::uint32_t>(bits[0]),
                           static_cast<std::uint32_t>(channels), 0};
  if (uneven || !is_valid(format)) return client::refuse(client::Refusal::kBadElements);
  return format;
}

cudaChannelFormatDesc description_of(const ArrayFormat& format) {
  const auto bits = [&](std::uint32_t channel) {
    return channel < format.channels ? static_cast<int>(format.bits) : 0;
  };
  return {bits(0), bits(1), bits(2), bits(3), static_cast<cudaChannelFormatKind>(format.kind)};
}

Maybe<ArrayEntry> array_of(Session& session, cudaArray_const_t handle, cudaError_t otherwise) {
  const auto entry = session.arrays().table().find_flat(address_of(handle));
  if (!entry) return deny(otherwise);
  return *entry;
}

Maybe<ArrayEntry> mipmapped_of(Session& session, cudaMipmappedArray_const_t handle,
                               cudaError_t otherwise) {
  const auto entry = session.arrays().table().find_mipmapped(address_of(handle));
  if (!entry) return deny(otherwise);
  return *entry;
}

}  // namespace slate::cudart

using namespace slate::cudart;
using namespace slate;

extern "C" {

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* description,
                            std::size_t width, std::size_t height, unsigned flags) {
  constexpr unsigned kFlat =
      cudaArraySurfaceLoadStore | cudaArrayTextureGather | client::kArrayMemoryLater;
  if ((flags & ~kFlat) != 0) return remember(cudaErrorInvalidValue);
  return make_array(array, description, {width, height, 0}, flags);
}
cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* description,
                              cudaExtent extent, unsigned flags) {
  return make_array(array, description, extent, flags);
}
cudaError_t cudaFreeArray(cudaArray_t array) {
  return free_array(address_of(array), false);
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array,
                                     const cudaChannelFormatDesc* description, cudaExtent extent,
                                     unsigned levels, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    if (array == nullptr || description == nullptr) return deny(cudaErrorInvalidValue);
    return give_address(array, client::create_mipmapped_array(
                                   session, wish_of(*description, extent, flags), levels));
  });
}
cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* level, cudaMipmappedArray_const_t array,
                                       unsigned number) {
  return with_session([&](Session& session) -> Answer {
    if (level == nullptr) return deny(cudaErrorInvalidValue);
    auto entry = mipmapped_of(session, array, cudaErrorInvalidResourceHandle);
    if (!entry) return std::unexpected(entry.error());
    const std::uint64_t id = session.arrays().table().level(entry->array, number);
    if (id == 0) return deny(cudaErrorInvalidValue);
    *level = client::address_as<cudaArray_t>(id);
    return {};
  });
}
cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array) {
  return free_array(address_of(array), true);
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* description, cudaExtent* extent,
                             unsigned* flags, cudaArray_t array) {
  return with_session([&](Session& session) -> Answer {
    if (flags != nullptr) *flags = 0;
    if (description != nullptr) *description = {};
    if (extent != nullptr) *extent = {};
    auto entry = array_of(session, array, cudaErrorInvalidResourceHandle);
    if (!entry) return std::unexpected(entry.error());
    const ArrayExtent its = entry->extent();
    if (flags != nullptr) *flags = entry->spec.flags;
    if (description != nullptr) *description = description_of(entry->spec.format);
    if (extent != nullptr) *extent = {its.width, its.height, its.depth};
    return {};
  });
}
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* description, cudaArray_const_t array) {
  return with_session([&](Session& session) -> Answer {
    if (description == nullptr) return deny(cudaErrorInvalidValue);
    auto entry = array_of(session, array, cudaErrorInvalidResourceHandle);
    if (!entry) return std::unexpected(entry.error());
    *description = description_of(entry->spec.format);
    return {};
  });
}
cudaError_t cudaArrayGetPlane(cudaArray_t* plane, cudaArray_t array, unsigned) {
  return with_session([&](Session& session) -> Answer {
    if (plane == nullptr) return deny(cudaErrorInvalidValue);
    auto entry = array_of(session, array, cudaErrorInvalidResourceHandle);
    if (!entry) return std::unexpected(entry.error());
    return deny(cudaErrorInvalidValue);  // none has planes
  });
}

cudaError_t cudaArrayGetMemoryRequirements(cudaArrayMemoryRequirements* requirements,
                                           cudaArray_t array, int) {
  return tell_nothing(requirements, [&](Session& session) { return array_of(session, array); });
}
cudaError_t cudaMipmappedArrayGetMemoryRequirements(cudaArrayMemoryRequirements* requirements,
                                                    cudaMipmappedArray_t array, int) {
  return tell_nothing(requirements, [&](Session& session) { return mipmapped_of(session, array); });
}
cudaError_t cudaArrayGetSparseProperties(cudaArraySparseProperties* properties, cudaArray_t array) {
  return tell_nothing(properties, [&](Session& session) { return array_of(session, array); });
}
cudaError_t cudaMipmappedArrayGetSparseProperties(cudaArraySparseProperties* properties,
                                                  cudaMipmappedArray_t array) {
  return tell_nothing(properties, [&](Session& session) { return mipmapped_of(session, array); });
}

}  // extern "C"
