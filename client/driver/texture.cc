// Texture and surface objects. Their numbers are the device's own, as kernels take them; what they
// were made of is kept here, to be told again.
#include <cstring>
#include <optional>

#include "client/driver/array.h"
#include "client/session/object_records.h"
#include "client/session/texture_use.h"

namespace slate::driver {
namespace {

static_assert(static_cast<int>(ResourceKind::kArray) == CU_RESOURCE_TYPE_ARRAY &&
              static_cast<int>(ResourceKind::kMipmappedArray) == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY &&
              static_cast<int>(ResourceKind::kLinear) == CU_RESOURCE_TYPE_LINEAR &&
              static_cast<int>(ResourceKind::kPitch2D) == CU_RESOURCE_TYPE_PITCH2D &&
              static_cast<int>(AddressMode::kBorder) == CU_TR_ADDRESS_MODE_BORDER &&
              static_cast<int>(FilterMode::kLinear) == CU_TR_FILTER_MODE_LINEAR);

struct TextureRecord {
  std::uint64_t session = 0;  // serial
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC texture{};
  std::optional<CUDA_RESOURCE_VIEW_DESC> view;
};
struct SurfaceRecord {
  std::uint64_t session = 0;
  CUDA_RESOURCE_DESC resource{};
};
using Textures = client::ObjectRecords<TextureRecord>;
using Surfaces = client::ObjectRecords<SurfaceRecord>;

/// An enum's value, which a program may have made up.
template <typename To, typename Enum>
To number_of(const Enum& value) {
  std::uint32_t number = 0;
  static_assert(sizeof(number) == sizeof(value));
  std::memcpy(&number, &value, sizeof(number));
  return static_cast<To>(number);
}

/// The resource, and its elements.
Maybe<TextureResource> resource_of(Session& session, const CUDA_RESOURCE_DESC& description) {
  TextureResource resource;
  resource.kind = number_of<ResourceKind>(description.resType);
  switch (resource.kind) {
    case ResourceKind::kArray:
    case ResourceKind::kMipmappedArray: {
      const bool mipmapped = resource.kind == ResourceKind::kMipmappedArray;
      const auto entry =
          mipmapped ? mipmapped_of(session, description.res.mipmap.hMipmappedArray,
                                   CUDA_ERROR_INVALID_VALUE)
                    : array_of(session, description.res.array.hArray, CUDA_ERROR_INVALID_VALUE);
      if (!entry) return std::unexpected(entry.error());
      resource.array = entry->array;
      resource.level = entry->level;
      resource.format = entry->spec.format;
      return resource;
    }
    case ResourceKind::kLinear: {
      const auto& linear = description.res.linear;
      const auto format = format_of(linear.format, linear.numChannels);
      if (!format) return std::unexpected(format.error());
      resource.format = *format;
      resource.address = linear.devPtr;
      resource.bytes = linear.sizeInBytes;
      return resource;
    }
    case ResourceKind::kPitch2D: {
      const auto& pitched = description.res.pitch2D;
      const auto format = format_of(pitched.format, pitched.numChannels);
      if (!format) return std::unexpected(format.error());
      resource.format = *format;
      resource.address = pitched.devPtr;
      resource.width = pitched.width;
      resource.height = pitched.height;
      resource.pitch = pitched.pitchInBytes;
      return resource;
    }
  }
  return deny(CUDA_ERROR_INVALID_VALUE);
}

/// `format`: of the elements that are read.
Sampler sampler_of(const CUDA_TEXTURE_DESC& description, const ArrayFormat& format) {
  const auto has = [&](unsigned flag) { return (description.flags & flag) != 0 ? 1u : 0u; };
  Sampler sampler;
  for (std::size_t i = 0; i < 3; ++i)
    sampler.address_mode[i] = number_of<AddressMode>(description.addressMode[i]);
  for (std::size_t i = 0; i < 4; ++i) sampler.border[i] = description.borderColor[i];
  sampler.filter = number_of<FilterMode>(description.filterMode);
  sampler.mipmap_filter = number_of<FilterMode>(description.mipmapFilterMode);
  sampler.max_anisotropy = description.maxAnisotropy;
  sampler.mipmap_bias = description.mipmapLevelBias;
  sampler.mipmap_min = description.minMipmapLevelClamp;
  sampler.mipmap_max = description.maxMipmapLevelClamp;
  // Integers of 8 and 16 bits are read as fractions unless the program says otherwise.
  const bool may_be_fraction = format.kind != ChannelKind::kFloat && format.bits != 32;
  sampler.reads_normalized_float = may_be_fraction && has(CU_TRSF_READ_AS_INTEGER) == 0 ? 1 : 0;
  sampler.srgb = has(CU_TRSF_SRGB);
  sampler.normalized_coordinates = has(CU_TRSF_NORMALIZED_COORDINATES);
  sampler.disable_trilinear_optimization = has(CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION);
  sampler.seamless_cubemap = has(CU_TRSF_SEAMLESS_CUBEMAP);
  return sampler;
}

ResourceView view_of(const CUDA_RESOURCE_VIEW_DESC& description) {
  return {number_of<std::uint32_t>(description.format),
          description.firstMipmapLevel,
          description.lastMipmapLevel,
          description.firstLayer,
          description.lastLayer,
          0,
          {description.width, description.height, description.depth}};
}

Maybe<TextureSpec> spec_of(Session& session, const TextureRecord& record) {
  const auto resource = resource_of(session, record.resource);
  if (!resource) return std::unexpected(resource.error());
  TextureSpec spec{*resource, {}, {}};
  if (record.view) spec.view = view_of(*record.view);
  const ArrayFormat viewed = view_format(spec.view.format);
  spec.sampler = sampler_of(record.texture, viewed.channels == 0 ? resource->format : viewed);
  const auto ok = client::check_texture_use(spec, record.view.has_value(), session.device());
  if (!ok) return std::unexpected<Failure>(ok.error());
  return spec;
}

/// Calls `body` with the record of a texture.
template <typename Body>
CUresult about_texture(CUtexObject texture, const Body& body) {
  return with_session([&](Session& session) -> Answer {
    const auto record = Textures::get().find(session, texture);
    if (!record) return deny(CUDA_ERROR_INVALID_VALUE);
    return body(*record);
  });
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuTexObjectCreate(CUtexObject* texture, const CUDA_RESOURCE_DESC* resource,
                           const CUDA_TEXTURE_DESC* description,
                           const CUDA_RESOURCE_VIEW_DESC* view) {
  return with_session([&](Session& session) -> Answer {
    if (texture == nullptr || resource == nullptr || description == nullptr)
      return deny(CUDA_ERROR_INVALID_VALUE);
    TextureRecord record{session.serial(), *resource, *description, {}};
    if (view != nullptr) record.view = *view;
    const auto spec = spec_of(session, record);
    if (!spec) return std::unexpected(spec.error());
    const auto made = session.arrays().create_texture(*spec);
    if (!made) return std::unexpected<Failure>(made.error());
    Textures::get().add(*made, record);
    *texture = *made;
    return {};
  });
}
// An object that is gone may be destroyed again, as on an H200.
CUresult cuTexObjectDestroy(CUtexObject texture) {
  return with_session([&](Session& session) -> Answer {
    if (!Textures::get().remove(session, texture)) return {};
    return session.arrays().destroy_texture(texture);
  });
}
CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUtexObject texture) {
  return about_texture(
      texture, [&](const TextureRecord& record) { return give(resource, record.resource); });
}
CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* description, CUtexObject texture) {
  return about_texture(
      texture, [&](const TextureRecord& record) { return give(description, record.texture); });
}
CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* view, CUtexObject texture) {
  return about_texture(texture, [&](const TextureRecord& record) {
    return give(view, record.view.value_or(CUDA_RESOURCE_VIEW_DESC{}));
  });
}

CUresult cuSurfObjectCreate(CUsurfObject* surface, const CUDA_RESOURCE_DESC* resource) {
  return with_session([&](Session& session) -> Answer {
    if (surface == nullptr || resource == nullptr ||
        number_of<ResourceKind>(resource->resType) != ResourceKind::kArray) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    const auto array = array_of(session, resource->res.array.hArray, CUDA_ERROR_INVALID_VALUE);
    if (!array) return std::unexpected(array.error());
    const auto made = session.arrays().create_surface(*array);
    if (!made) return std::unexpected<Failure>(made.error());
    Surfaces::get().add(*made, {session.serial(), *resource});
    *surface = *made;
    return {};
  });
}
CUresult cuSurfObjectDestroy(CUsurfObject surface) {
  return with_session([&](Session& session) -> Answer {
    if (!Surfaces::get().remove(session, surface)) return {};
    return session.arrays().destroy_surface(surface);
  });
}
CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUsurfObject surface) {
  return with_session([&](Session& session) -> Answer {
    const auto record = Surfaces::get().find(session, surface);
    if (!record) return deny(CUDA_ERROR_INVALID_VALUE);
    return give(resource, record->resource);
  });
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(std::size_t* elements, CUarray_format format,
                                            unsigned channels, CUdevice device) {
  return with_device([&](Session& session) -> Answer {
    if (elements == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto ok = need_device(device); !ok) return ok;
    const auto known = format_of(format, channels);
    if (!known) return std::unexpected(known.error());
    return give(elements, most_linear_elements(*known, session.device()));
  });
}

}  // extern "C"
