// What a texture is made of, from the structs of CUDA's APIs: their members have the same names.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/array.h"
#include "client/session/numbers.h"
#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

/// The resource, and its elements. kInvalidValue for an array that does not exist. `Names` has what
/// the APIs call differently: array() and mipmapped() return the handle in the union of resources,
/// and format() the elements of linear or pitched memory.
template <typename Names, typename Description>
Allowed<TextureResource> resource_of(Session& session, const Description& description) {
  const auto& from = description.res;
  TextureResource resource;
  resource.kind = static_cast<ResourceKind>(number_of(description.resType));
  const auto set_format = [&](const auto& memory) -> Allowed<TextureResource> {
    const Allowed<ArrayFormat> format = Names::format(memory);
    if (!format) return std::unexpected(format.error());
    resource.address = address_of(memory.devPtr);
    resource.format = *format;
    return resource;
  };
  switch (resource.kind) {
    case ResourceKind::kArray:
    case ResourceKind::kMipmappedArray: {
      const auto& table = session.arrays().table();
      const auto entry = resource.kind == ResourceKind::kArray
                             ? table.find_flat(address_of(Names::array(from)))
                             : table.find_mipmapped(address_of(Names::mipmapped(from)));
      if (!entry) return refuse(Refusal::kInvalidValue);
      resource.array = entry->array;
      resource.level = entry->level;
      resource.format = entry->spec.format;
      return resource;
    }
    case ResourceKind::kLinear:
      resource.bytes = from.linear.sizeInBytes;
      return set_format(from.linear);
    case ResourceKind::kPitch2D:
      resource.width = from.pitch2D.width;
      resource.height = from.pitch2D.height;
      resource.pitch = from.pitch2D.pitchInBytes;
      return set_format(from.pitch2D);
  }
  return refuse(Refusal::kInvalidValue);
}

/// How a texture is read, without the members that are 0 or 1.
template <typename Description>
Sampler sampler_of(const Description& description) {
  Sampler sampler;
  for (std::size_t i = 0; i < 3; ++i)
    sampler.address_mode[i] = static_cast<AddressMode>(number_of(description.addressMode[i]));
  for (std::size_t i = 0; i < 4; ++i) sampler.border[i] = description.borderColor[i];
  sampler.filter = static_cast<FilterMode>(number_of(description.filterMode));
  sampler.mipmap_filter = static_cast<FilterMode>(number_of(description.mipmapFilterMode));
  sampler.max_anisotropy = description.maxAnisotropy;
  sampler.mipmap_bias = description.mipmapLevelBias;
  sampler.mipmap_min = description.minMipmapLevelClamp;
  sampler.mipmap_max = description.maxMipmapLevelClamp;
  return sampler;
}

template <typename Description>
ResourceView view_of(const Description& description) {
  return {static_cast<std::uint32_t>(number_of(description.format)),
          description.firstMipmapLevel,
          description.lastMipmapLevel,
          description.firstLayer,
          description.lastLayer,
          0,
          {description.width, description.height, description.depth}};
}

}  // namespace slate::client
