// Texture and surface objects. Their numbers are the device's own, as kernels take them; what they
// were made of is kept here, to be told again.
#include <optional>

#include "client/driver/array.h"
#include "client/session/object_records.h"
#include "client/session/texture_parts.h"
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
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC texture{};
  std::optional<CUDA_RESOURCE_VIEW_DESC> view;
};
using Textures = client::ObjectRecords<TextureRecord>;
using Surfaces = client::ObjectRecords<CUDA_RESOURCE_DESC>;

/// What only the driver calls so in the parts of textures.
struct Names {
  static auto array(const auto& resource) { return resource.array.hArray; }
  static auto mipmapped(const auto& resource) { return resource.mipmap.hMipmappedArray; }
  static auto format(const auto& memory) { return format_of(memory.format, memory.numChannels); }
};

/// `format`: of the elements that are read.
Sampler sampler_of(const CUDA_TEXTURE_DESC& description, const ArrayFormat& format) {
  const auto has = [&](unsigned flag) { return (description.flags & flag) != 0 ? 1u : 0u; };
  Sampler sampler = client::sampler_of(description);
  // Integers of 8 and 16 bits are read as fractions unless the program says otherwise.
  const bool may_be_fraction = format.kind != ChannelKind::kFloat && format.bits != 32;
  sampler.reads_normalized_float = may_be_fraction && has(CU_TRSF_READ_AS_INTEGER) == 0 ? 1 : 0;
  sampler.srgb = has(CU_TRSF_SRGB);
  sampler.normalized_coordinates = has(CU_TRSF_NORMALIZED_COORDINATES);
  sampler.disable_trilinear_optimization = has(CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION);
  sampler.seamless_cubemap = has(CU_TRSF_SEAMLESS_CUBEMAP);
  return sampler;
}

Allowed<std::uint64_t> create(Session& session, const TextureRecord& record) {
  const auto resource = client::resource_of<Names>(session, record.resource);
  if (!resource) return std::unexpected(resource.error());
  TextureSpec spec{*resource, {}, {}};
  if (record.view) spec.view = client::view_of(*record.view);
  const ArrayFormat viewed = view_format(spec.view.format);
  spec.sampler = sampler_of(record.texture, viewed.channels == 0 ? resource->format : viewed);
  return client::create_texture(session, spec, record.view.has_value());
}

/// Calls `body` with the record of a texture.
template <typename Body>
CUresult about_texture(CUtexObject texture, const Body& body) {
  return with_session([&](Session& session) -> Answer {
    const auto record = Textures::get().find(session, texture);
    if (!record) return std::unexpected<Failure>(record.error());
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
    TextureRecord record{*resource, *description, {}};
    if (view != nullptr) record.view = *view;
    const auto made = create(session, record);
    if (made) Textures::get().add(session, *made, record);
    return give(texture, made);
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
        number_of(resource->resType) != CU_RESOURCE_TYPE_ARRAY) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    const auto array = array_of(session, resource->res.array.hArray, CUDA_ERROR_INVALID_VALUE);
    if (!array) return std::unexpected(array.error());
    const auto made = session.arrays().create_surface(*array);
    if (!made) return std::unexpected<Failure>(made.error());
    Surfaces::get().add(session, *made, *resource);
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
    return give(resource, Surfaces::get().find(session, surface));
  });
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(std::size_t* elements, CUarray_format format,
                                            unsigned channels, CUdevice device) {
  return with_device([&](Session& session) -> Answer {
    if (elements == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto ok = need_device(device); !ok) return ok;
    const auto known = format_of(format, channels);
    if (!known) return std::unexpected<Failure>(known.error());
    return give(elements, most_linear_elements(*known, session.device()));
  });
}

}  // extern "C"
