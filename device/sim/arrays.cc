#include "device/sim/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "device/sim/copy.h"

namespace slate::sim {
namespace {

std::unexpected<Error> refuse(std::string why) {
  return fail(ErrorCode::kInvalidValue, std::move(why));
}

int dimensions_of(const ArraySpec& spec) {
  if (spec.extent.height == 0) return 1;
  return spec.extent.depth == 0 || spec.layers() ? 2 : 3;
}

bool is_inside(std::uint64_t first, std::uint64_t count, std::uint64_t size) {
  return first <= size && count <= size - first;
}

/// What the view says instead of the array, if it says something.
Result<void> apply_view(const ResourceView& view, const ArrayStorage& array, TextureObject& texture,
                        std::uint32_t& first_level, std::uint32_t& last_level) {
  if (view.format == 0) return {};
  const ArrayFormat format = view_format(view.format);
  if (format.channels == 0) {
    return fail(ErrorCode::kNotSupported, "sim does not know block compressed textures");
  }
  if (format.bits != array.spec.format.bits || format.channels != array.spec.format.channels) {
    return refuse("a view whose elements are not as large as the array's");
  }
  const ArrayExtent whole = level_box(array.spec, 0);
  const std::uint64_t depth = array.spec.layers() ? 1 : whole.depth;
  const auto or_one = [](std::uint64_t size) { return std::max<std::uint64_t>(1, size); };
  if (view.extent.width != whole.width || or_one(view.extent.height) != whole.height ||
      (!array.spec.layers() && or_one(view.extent.depth) != depth)) {
    return refuse("a view that is not as large as the array");
  }
  if (view.first_level > view.last_level || view.last_level > last_level ||
      view.first_layer > view.last_layer ||
      view.last_layer >= std::max<std::uint64_t>(1, texture.layers)) {
    return refuse("a view of levels or layers that the array does not have");
  }
  texture.format = format;
  first_level = view.first_level;
  last_level = view.last_level;
  if (texture.layers > 0) {
    texture.first_layer = view.first_layer;
    texture.layers = view.last_layer - view.first_layer + 1;
    if (texture.is_cubemap && texture.layers % 6 != 0) return refuse("a view of part of a cube");
  }
  return {};
}

Result<void> check_reading(const TextureObject& texture) {
  const bool is_float = texture.format.kind == ChannelKind::kFloat;
  const Sampler& sampler = texture.sampler;
  if (!is_float && texture.format.bits == 32 && sampler.reads_normalized_float != 0) {
    return refuse("integers of 32 bits cannot be read as normalized floats");
  }
  if (sampler.srgb != 0 && (texture.format.kind != ChannelKind::kUnsigned ||
                            texture.format.bits != 8 || sampler.reads_normalized_float == 0)) {
    return fail(ErrorCode::kNotSupported, "sim knows sRGB of unsigned 8-bit colours only");
  }
  return {};
}

}  // namespace

Result<device::Array> Arrays::create(const ArraySpec& spec) {
  const std::uint64_t bytes = array_bytes(spec);
  if (auto taken = memory_.take(bytes); !taken) return std::unexpected(taken.error());
  auto storage = std::make_shared<const ArrayStorage>(spec);
  if (!storage->elements) {
    memory_.give_back(bytes);
    return fail(ErrorCode::kOutOfMemory, fmt::format("sim: no {} bytes for an array", bytes));
  }
  const MutexLock lock(mutex_);
  arrays_.emplace(next_, std::move(storage));
  return static_cast<device::Array>(next_++);
}

void Arrays::destroy(device::Array array) {
  const MutexLock lock(mutex_);
  const auto found = arrays_.find(static_cast<std::uint64_t>(array));
  if (found == arrays_.end()) return;
  memory_.give_back(array_bytes(found->second->spec));
  arrays_.erase(found);
}

std::shared_ptr<const ArrayStorage> Arrays::find(std::uint64_t array) {
  const MutexLock lock(mutex_);
  const auto found = arrays_.find(array);
  return found == arrays_.end() ? nullptr : found->second;
}

Result<TextureObject> Arrays::of_array(const TextureSpec& spec) {
  TextureObject texture;
  texture.array = find(spec.resource.array);
  if (!texture.array) return fail(ErrorCode::kInvalidHandle, "a texture of no array");
  const ArraySpec& array = texture.array->spec;
  const bool mipmapped = spec.resource.kind == ResourceKind::kMipmappedArray;
  const auto levels = static_cast<std::uint32_t>(texture.array->levels.size());
  if ((mipmapped && array.levels == 0) || spec.resource.level >= levels) {
    return refuse("a texture of levels that the array does not have");
  }
  std::uint32_t first = mipmapped ? 0 : spec.resource.level;
  std::uint32_t last = mipmapped ? levels - 1 : spec.resource.level;
  texture.format = array.format;
  texture.dimensions = dimensions_of(array);
  texture.is_cubemap = array.has(kArrayCubemap);
  texture.layers = array.layers() ? array.extent.depth : 0;
  if (auto ok = apply_view(spec.view, *texture.array, texture, first, last); !ok) {
    return std::unexpected(ok.error());
  }
  for (std::uint32_t i = first; i <= last; ++i) texture.levels.push_back(texture.array->levels[i]);
  return texture;
}

Result<TextureObject> Arrays::of_memory(const TextureSpec& spec) {
  const TextureResource& resource = spec.resource;
  const auto bytes = linear_bytes(resource, info_);
  if (!bytes) return std::unexpected(bytes.error());
  TextureObject texture;
  texture.format = resource.format;
  texture.is_line = resource.kind == ResourceKind::kLinear;
  texture.dimensions = texture.is_line ? 1 : 2;
  Level level;
  level.elements = reinterpret_cast<std::byte*>(resource.address);
  level.box = texture.is_line ? ArrayExtent{*bytes / resource.format.bytes(), 1, 1}
                              : ArrayExtent{resource.width, resource.height, 1};
  level.pitch = texture.is_line ? *bytes : resource.pitch;
  texture.levels.push_back(level);
  return texture;
}

Result<device::Texture> Arrays::create_texture(const TextureSpec& spec,
                                               device::AddressRange owner) {
  const bool is_array = spec.resource.kind == ResourceKind::kArray ||
                        spec.resource.kind == ResourceKind::kMipmappedArray;
  auto texture = is_array ? of_array(spec) : of_memory(spec);
  if (!texture) return std::unexpected(texture.error());
  texture->sampler = spec.sampler;
  texture->owner = owner;
  if (auto ok = check_reading(*texture); !ok) return std::unexpected(ok.error());
  return objects_.add(std::move(*texture));
}

Result<device::Surface> Arrays::create_surface(device::Array array, std::uint32_t level,
                                               device::AddressRange owner) {
  auto storage = find(static_cast<std::uint64_t>(array));
  if (!storage) return fail(ErrorCode::kInvalidHandle, "a surface of no array");
  if (level >= storage->levels.size()) return refuse("a surface of a level that is not there");
  const Level& its = storage->levels[level];
  return objects_.add(SurfaceObject{owner, std::move(storage), its});
}

Result<Arrays::Planes> Arrays::planes_of(const Place& place, const Box& box) {
  if (place.is(PlaceKind::kDevice))
    return Planes{place.address, place.pitch, place.slice, Planes::Kind::kDevice};
  if (place.is(PlaceKind::kHost))
    return Planes{place.address, place.pitch, place.slice, Planes::Kind::kHost};
  auto storage = find(place.object);
  if (!storage || place.part >= storage->levels.size()) {
    return fail(ErrorCode::kInvalidHandle, "a copy of no array");
  }
  const Level& level = storage->levels[place.part];
  if (!is_inside(place.x, box.width, level.pitch) ||
      !is_inside(place.y, box.height, level.box.height) ||
      !is_inside(place.z, box.depth, level.box.depth)) {
    return refuse(fmt::format("a copy of {} bytes x {} x {} at ({}, {}, {}) is not in the array",
                              box.width, box.height, box.depth, place.x, place.y, place.z));
  }
  const auto base = reinterpret_cast<device::Address>(level.elements);
  const std::uint64_t offset = place.z * level.slice + place.y * level.pitch + place.x;
  return Planes{base + offset, level.pitch, level.slice, Planes::Kind::kArray, std::move(storage)};
}

Result<void> Arrays::check(const Planes& planes, const Box& box, ErrorCode code) const {
  if (planes.kind == Planes::Kind::kArray) return {};
  for (std::uint64_t z = 0; z < box.depth; ++z) {
    const Rows rows{planes.address + z * planes.slice, planes.pitch};
    const Box plane{box.width, box.height, 1};
    auto ok = planes.kind == Planes::Kind::kHost ? check_host_rows(rows, plane)
                                                 : check_device_rows(memory_, rows, plane, code);
    if (!ok) return ok;
  }
  return {};
}

Result<std::function<Result<void>()>> Arrays::copy(const Place& to, const Place& from,
                                                   const Box& box) {
  if (to.is(PlaceKind::kHost) && from.is(PlaceKind::kHost))
    return refuse("a copy without a side on the device");
  const auto target = planes_of(to, box);
  if (!target) return std::unexpected(target.error());
  const auto source = planes_of(from, box);
  if (!source) return std::unexpected(source.error());
  const auto check_both = [this, box, target = *target, source = *source](ErrorCode code) {
    Result<void> checked = check(target, box, code);
    if (checked) checked = check(source, box, code);
    return checked;
  };
  if (auto ok = check_both(ErrorCode::kInvalidValue); !ok) return std::unexpected(ok.error());
  return [check_both, box, target = *target, source = *source]() -> Result<void> {
    auto again = check_both(ErrorCode::kIllegalAddress);
    for (std::uint64_t z = 0; again && z < box.depth; ++z) {
      copy_rows({target.address + z * target.slice, target.pitch},
                {source.address + z * source.slice, source.pitch}, {box.width, box.height, 1});
    }
    return again;
  };
}

}  // namespace slate::sim
