// Making CUDA arrays and telling of them. Elements of planes (NV12), normalized and block
// compressed ones are not supported, nor are sparse arrays and those whose memory comes later.
#include "client/driver/array.h"

#include <algorithm>

#include "client/session/program_arrays.h"

namespace slate::driver {
namespace {

static_assert(kArrayLayered == CUDA_ARRAY3D_LAYERED && kArraySurface == CUDA_ARRAY3D_SURFACE_LDST &&
              kArrayCubemap == CUDA_ARRAY3D_CUBEMAP && kArrayGather == CUDA_ARRAY3D_TEXTURE_GATHER);
static_assert(client::kArrayMemoryLater == (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING));

struct FormatName {
  CUarray_format name;
  ChannelKind kind;
  std::uint32_t bits;
};
constexpr FormatName kFormats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, ChannelKind::kUnsigned, 8},
    {CU_AD_FORMAT_UNSIGNED_INT16, ChannelKind::kUnsigned, 16},
    {CU_AD_FORMAT_UNSIGNED_INT32, ChannelKind::kUnsigned, 32},
    {CU_AD_FORMAT_SIGNED_INT8, ChannelKind::kSigned, 8},
    {CU_AD_FORMAT_SIGNED_INT16, ChannelKind::kSigned, 16},
    {CU_AD_FORMAT_SIGNED_INT32, ChannelKind::kSigned, 32},
    {CU_AD_FORMAT_HALF, ChannelKind::kFloat, 16},
    {CU_AD_FORMAT_FLOAT, ChannelKind::kFloat, 32},
};

client::ArrayWish wish_of(const CUDA_ARRAY3D_DESCRIPTOR& its) {
  return {format_of(its.Format, its.NumChannels), {its.Width, its.Height, its.Depth}, its.Flags};
}

CUresult make_array(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* description) {
  return with_session([&](Session& session) -> Answer {
    if (array == nullptr || description == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return give_address(array, client::create_program_array(session, wish_of(*description)));
  });
}

CUresult destroy(std::uint64_t id, bool mipmapped) {
  return with_session([&](Session& session) -> Answer {
    if (!session.arrays().table().has(id, mipmapped)) return deny(CUDA_ERROR_INVALID_HANDLE);
    return session.arrays().destroy(id);
  });
}

/// Only arrays that are not made here have such properties, whatever the device.
template <typename Find>
CUresult tell_nothing(const void* properties, const Find& find) noexcept {
  return with_session([&](Session& session) -> Answer {
    if (properties == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto entry = find(session); !entry) return std::unexpected(entry.error());
    return deny(CUDA_ERROR_INVALID_VALUE);
  });
}

}  // namespace

Allowed<ArrayFormat> format_of(const CUarray_format& format, unsigned channels) {
  const int number = number_of(format);
  const auto known = std::ranges::find_if(
      kFormats, [&](const FormatName& each) { return static_cast<int>(each.name) == number; });
  if (known == std::end(kFormats)) {
    if (number <= CU_AD_FORMAT_FLOAT) return client::refuse(client::Refusal::kBadElements);
    return std::unexpected<client::Refused>(
        Error{ErrorCode::kNotSupported, "elements of this kind of array are not supported"});
  }
  const ArrayFormat made{known->kind, known->bits, channels, 0};
  if (!is_valid(made)) return client::refuse(client::Refusal::kBadElements);
  return made;
}

CUarray_format name_of(const ArrayFormat& format) {
  const auto known = std::ranges::find_if(kFormats, [&](const FormatName& each) {
    return each.kind == format.kind && each.bits == format.bits;
  });
  return known == std::end(kFormats) ? CUarray_format{} : known->name;
}

Maybe<ArrayEntry> array_of(Session& session, CUarray handle, CUresult otherwise) {
  const auto entry = session.arrays().table().find_flat(address_of(handle));
  if (!entry) return deny(otherwise);
  return *entry;
}

Maybe<ArrayEntry> mipmapped_of(Session& session, CUmipmappedArray handle, CUresult otherwise) {
  const auto entry = session.arrays().table().find_mipmapped(address_of(handle));
  if (!entry) return deny(otherwise);
  return *entry;
}

}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* description) {
  if (description == nullptr) return make_array(array, nullptr);
  const CUDA_ARRAY3D_DESCRIPTOR flat{description->Width,  description->Height,      0,
                                     description->Format, description->NumChannels, 0};
  return make_array(array, &flat);
}
CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* description) {
  return make_array(array, description);
}
CUresult cuArrayDestroy(CUarray array) {
  return destroy(address_of(array), false);
}
CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* description, CUarray array) {
  return with_session([&](Session& session) -> Answer {
    if (description == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto entry = array_of(session, array);
    if (!entry) return std::unexpected(entry.error());
    const ArrayExtent extent = entry->extent();
    *description = {extent.width, extent.height, name_of(entry->spec.format),
                    entry->spec.format.channels};
    return {};
  });
}
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* description, CUarray array) {
  return with_session([&](Session& session) -> Answer {
    if (description == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto entry = array_of(session, array);
    if (!entry) return std::unexpected(entry.error());
    const ArrayExtent extent = entry->extent();
    *description = {extent.width,
                    extent.height,
                    extent.depth,
                    name_of(entry->spec.format),
                    entry->spec.format.channels,
                    entry->spec.flags};
    return {};
  });
}
CUresult cuArrayGetPlane(CUarray* plane, CUarray array, unsigned) {
  return with_session([&](Session& session) -> Answer {
    if (plane == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto entry = array_of(session, array); !entry) return std::unexpected(entry.error());
    return deny(CUDA_ERROR_INVALID_VALUE);  // none has planes
  });
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* description,
                                unsigned levels) {
  return with_session([&](Session& session) -> Answer {
    if (array == nullptr || description == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return give_address(array,
                        client::create_mipmapped_array(session, wish_of(*description), levels));
  });
}
CUresult cuMipmappedArrayGetLevel(CUarray* level, CUmipmappedArray array, unsigned number) {
  return with_session([&](Session& session) -> Answer {
    if (level == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto entry = mipmapped_of(session, array);
    if (!entry) return std::unexpected(entry.error());
    const std::uint64_t id = session.arrays().table().level(entry->array, number);
    if (id == 0) return deny(CUDA_ERROR_INVALID_VALUE);
    *level = client::address_as<CUarray>(id);
    return {};
  });
}
CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return destroy(address_of(array), true);
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* requirements, CUarray array,
                                      CUdevice) {
  return tell_nothing(requirements, [&](Session& session) { return array_of(session, array); });
}
CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* requirements,
                                               CUmipmappedArray array, CUdevice) {
  return tell_nothing(requirements, [&](Session& session) { return mipmapped_of(session, array); });
}
CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES* properties, CUarray array) {
  return tell_nothing(properties, [&](Session& session) { return array_of(session, array); });
}
CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES* properties,
                                             CUmipmappedArray array) {
  return tell_nothing(properties, [&](Session& session) { return mipmapped_of(session, array); });
}

}  // extern "C"
