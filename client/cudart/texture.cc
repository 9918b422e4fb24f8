// Texture and surface objects. Their numbers are the device's own, as kernels take them; what they
// were made of is kept here, to be told again.
#include <optional>

#include "client/cudart/array.h"
#include "client/session/object_records.h"
#include "client/session/texture_parts.h"
#include "client/session/texture_use.h"

namespace slate::cudart {
namespace {

struct TextureRecord {
  cudaResourceDesc resource{};
  cudaTextureDesc texture{};
  std::optional<cudaResourceViewDesc> view;
};
using Textures = client::ObjectRecords<TextureRecord>;
using Surfaces = client::ObjectRecords<cudaResourceDesc>;

/// What only cudart calls so in the parts of textures.
struct Names {
  static auto array(const auto& resource) { return resource.array.array; }
  static auto mipmapped(const auto& resource) { return resource.mipmap.mipmap; }
  static auto format(const auto& memory) { return format_of(memory.desc); }
};

Sampler sampler_of(const cudaTextureDesc& description) {
  Sampler sampler = client::sampler_of(description);
  sampler.reads_normalized_float = description.readMode == cudaReadModeNormalizedFloat ? 1 : 0;
  sampler.srgb = description.sRGB != 0 ? 1 : 0;
  sampler.normalized_coordinates = description.normalizedCoords != 0 ? 1 : 0;
  sampler.disable_trilinear_optimization = description.disableTrilinearOptimization != 0 ? 1 : 0;
  sampler.seamless_cubemap = description.seamlessCubemap != 0 ? 1 : 0;
  return sampler;
}

Allowed<std::uint64_t> create(Session& session, const TextureRecord& record) {
  const int mode = record.texture.readMode;
  if (mode != cudaReadModeElementType && mode != cudaReadModeNormalizedFloat)
    return client::refuse(client::Refusal::kInvalidValue);
  const auto resource = client::resource_of<Names>(session, record.resource);
  if (!resource) return std::unexpected(resource.error());
  TextureSpec spec{*resource, sampler_of(record.texture), {}};
  if (record.view) spec.view = client::view_of(*record.view);
  return client::create_texture(session, spec, record.view.has_value());
}

/// Calls `body` with the record of a texture.
template <typename Body>
cudaError_t about_texture(cudaTextureObject_t texture, const Body& body) {
  return with_session([&](Session& session) -> Answer {
    const auto record = Textures::get().find(session, texture);
    if (!record) return std::unexpected<Failure>(record.error());
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
    TextureRecord record{*resource, *description, {}};
    if (view != nullptr) record.view = *view;
    const auto made = create(session, record);
    if (made) Textures::get().add(session, *made, record);
    return give<cudaTextureObject_t>(texture, made);
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
    if (auto its = client::resource_of<Names>(session, *resource); !its)
      return std::unexpected<Failure>(its.error());
    if (resource->resType != cudaResourceTypeArray) return deny(cudaErrorInvalidValue);
    auto array = array_of(session, resource->res.array.array);
    if (!array) return std::unexpected(array.error());
    auto made = session.arrays().create_surface(*array);
    if (!made) return std::unexpected<Failure>(made.error());
    Surfaces::get().add(session, *made, *resource);
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
    return give(resource, Surfaces::get().find(session, surface));
  });
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(std::size_t* elements,
                                                 const cudaChannelFormatDesc* description,
                                                 int device) {
  return with_device([&](Session& session) -> Answer {
    if (elements == nullptr || description == nullptr) return deny(cudaErrorInvalidValue);
    if (device != 0) return deny(cudaErrorInvalidDevice);
    const auto format = format_of(*description);
    if (!format) return std::unexpected<Failure>(format.error());
    *elements = most_linear_elements(*format, session.device());
    return {};
  });
}

}  // extern "C"
