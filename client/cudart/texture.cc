// Texture and surface objects. Their numbers are the device's own, as kernels take them; what they
// were made of is kept here, to be told again.
#include <optional>

#include "client/cudart/array.h"
#include "client/session/object_records.h"
#include "client/session/texture_use.h"

namespace slate::cudart {
namespace {

struct TextureRecord {
  std::uint64_t session = 0;  // serial
  cudaResourceDesc resource{};
  cudaTextureDesc texture{};
  std::optional<cudaResourceViewDesc> view;
};
struct SurfaceRecord {
  std::uint64_t session = 0;
  cudaResourceDesc resource{};
};

using Textures = client::ObjectRecords<TextureRecord>;
using Surfaces = client::ObjectRecords<SurfaceRecord>;

/// The resource, and its elements.
Maybe<TextureResource> resource_of(Session& session, const cudaResourceDesc& description) {
  TextureResource resource;
  resource.kind = static_cast<ResourceKind>(description.resType);
  switch (description.resType) {
    case cudaResourceTypeArray:
    case cudaResourceTypeMipmappedArray: {
      const bool mipmapped = description.resType == cudaResourceTypeMipmappedArray;
      auto entry = mipmapped ? mipmapped_of(session, description.res.mipmap.mipmap)
                             : array_of(session, description.res.array.array);
      if (!entry) return std::unexpected(entry.error());
      resource.array = entry->array;
      resource.level = entry->level;
      resource.format = entry->spec.format;
      return resource;
    }
    case cudaResourceTypeLinear: {
      auto format = format_of(description.res.linear.desc);
      if (!format) return std::unexpected(format.error());
      resource.format = *format;
      resource.address = address_of(description.res.linear.devPtr);
      resource.bytes = description.res.linear.sizeInBytes;
      return resource;
    }
    case cudaResourceTypePitch2D: {
      auto format = format_of(description.res.pitch2D.desc);
      if (!format) return std::unexpected(format.error());
      resource.format = *format;
      resource.address = address_of(description.res.pitch2D.devPtr);
      resource.width = description.res.pitch2D.width;
      resource.height = description.res.pitch2D.height;
      resource.pitch = description.res.pitch2D.pitchInBytes;
      return resource;
    }
    default:
      return deny(cudaErrorInvalidValue);
  }
}

Sampler sampler_of(const cudaTextureDesc& description) {
  Sampler sampler;
  for (std::size_t i = 0; i < 3; ++i) {
    sampler.address_mode[i] = static_cast<AddressMode>(description.addressMode[i]);
    sampler.border[i] = description.borderColor[i];
  }
  sampler.border[3] = description.borderColor[3];
  sampler.filter = static_cast<FilterMode>(description.filterMode);
  sampler.mipmap_filter = static_cast<FilterMode>(description.mipmapFilterMode);
  sampler.max_anisotropy = description.maxAnisotropy;
  sampler.mipmap_bias = description.mipmapLevelBias;
  sampler.mipmap_min = description.minMipmapLevelClamp;
  sampler.mipmap_max = description.maxMipmapLevelClamp;
  sampler.reads_normalized_float = description.readMode == cudaReadModeNormalizedFloat ? 1 : 0;
  sampler.srgb = description.sRGB != 0 ? 1 : 0;
  sampler.normalized_coordinates = description.normalizedCoords != 0 ? 1 : 0;
  sampler.disable_trilinear_optimization = description.disableTrilinearOptimization != 0 ? 1 : 0;
  sampler.seamless_cubemap = description.seamlessCubemap != 0 ? 1 : 0;
  return sampler;
}

ResourceView view_of(const cudaResourceViewDesc& description) {
  return {static_cast<std::uint32_t>(description.format),
          description.firstMipmapLevel,
          description.lastMipmapLevel,
          description.firstLayer,
          description.lastLayer,
          0,
          {description.width, description.height, description.depth}};
}

Maybe<TextureSpec> spec_of(Session& session, const TextureRecord& record) {
  const int mode = record.texture.readMode;
  if (mode != cudaReadModeElementType && mode != cudaReadModeNormalizedFloat) {
    return deny(cudaErrorInvalidValue);
  }
  auto resource = resource_of(session, record.resource);
  if (!resource) return std::unexpected(resource.error());
  TextureSpec spec{*resource, sampler_of(record.texture), {}};
  if (record.view) spec.view = view_of(*record.view);
  const auto ok = client::check_texture_use(spec, record.view.has_value(), session.device());
  if (!ok) return std::unexpected<Failure>(ok.error());
  return spec;
}

/// Calls `body` with the record of a texture.
template <typename Body>
cudaError_t about_texture(cudaTextureObject_t texture, const Body& body) {
  return with_session([&](Session& session) -> Answer {
    const auto record = Textures::get().find(session, texture);
    if (!record) return deny(cudaErrorInvalidValue);
    return body(*record);
  });
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;
using namespace slate;

extern "C" {

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* description,
                                    const cudaResourceViewDesc* view) {
  return with_session([&](Session& session) -> Answer {
    if (texture == nullptr || resource == nullptr) return deny(cudaErrorInvalidValue);
    if (description == nullptr) return deny(cudaErrorInvalidResourceHandle);
    TextureRecord record{session.serial(), *resource, *description, {}};
    if (view != nullptr) record.view = *view;
    auto spec = spec_of(session, record);
    if (!spec) return std::unexpected(spec.error());
    auto made = session.arrays().create_texture(*spec);
    if (!made) return std::unexpected<Failure>(made.error());
    Textures::get().add(*made, record);
    *texture = *made;
    return {};
  });
}
// An object that is gone may be destroyed again, as on an H200.
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture) {
  return with_session([&](Session& session) -> Answer {
    if (!Textures::get().remove(session, texture)) return {};
    return session.arrays().destroy_texture(texture);
  });
}
cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource,
                                             cudaTextureObject_t texture) {
  return about_texture(
      texture, [&](const TextureRecord& record) { return give(resource, record.resource); });
}
cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* description,
                                            cudaTextureObject_t texture) {
  return about_texture(
      texture, [&](const TextureRecord& record) { return give(description, record.texture); });
}
cudaError_t cudaGetTextureObjectResourceViewDesc(cudaResourceViewDesc* view,
                                                 cudaTextureObject_t texture) {
  return about_texture(texture, [&](const TextureRecord& record) {
    return give(view, record.view.value_or(cudaResourceViewDesc{}));
  });
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* surface,
                                    const cudaResourceDesc* resource) {
  return with_session([&](Session& session) -> Answer {
    if (surface == nullptr || resource == nullptr) return deny(cudaErrorInvalidValue);
    // The elements are looked at before it counts that only arrays have surfaces.
    if (auto its = resource_of(session, *resource); !its) return std::unexpected(its.error());
    if (resource->resType != cudaResourceTypeArray) return deny(cudaErrorInvalidValue);
    auto array = array_of(session, resource->res.array.array);
    if (!array) return std::unexpected(array.error());
    auto made = session.arrays().create_surface(*array);
    if (!made) return std::unexpected<Failure>(made.error());
    Surfaces::get().add(*made, {session.serial(), *resource});
    *surface = *made;
    return {};
  });
}
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface) {
  return with_session([&](Session& session) -> Answer {
    if (!Surfaces::get().remove(session, surface)) return {};
    return session.arrays().destroy_surface(surface);
  });
}
cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource,
                                             cudaSurfaceObject_t surface) {
  return with_session([&](Session& session) -> Answer {
    const auto record = Surfaces::get().find(session, surface);
    if (!record) return deny(cudaErrorInvalidValue);
    return give(resource, record->resource);
  });
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(std::size_t* elements,
                                                 const cudaChannelFormatDesc* description,
                                                 int device) {
  return with_device([&](Session& session) -> Answer {
    if (elements == nullptr || description == nullptr) return deny(cudaErrorInvalidValue);
    if (device != 0) return deny(cudaErrorInvalidDevice);
    auto format = format_of(*description);
    if (!format) return std::unexpected(format.error());
    *elements = most_linear_elements(*format, session.device());
    return {};
  });
}

}  // extern "C"
