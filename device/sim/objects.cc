#include "device/sim/objects.h"

#include <algorithm>
#include <utility>

#include "base/mutex.h"

namespace slate::sim {
namespace {

template <typename Map>
typename Map::mapped_type find_owned(const Map& objects, std::uint64_t handle,
                                     device::Address owner) {
  const auto found = objects.find(handle);
  if (found == objects.end() || found->second->owner.base != owner) return nullptr;
  return found->second;
}

}  // namespace

ArrayStorage::ArrayStorage(const ArraySpec& wanted) : spec(wanted) {
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> offsets;
  for (std::uint32_t i = 0; i < std::max(1u, spec.levels); ++i) {
    const ArrayExtent box = level_box(spec, i);
    const std::uint64_t pitch = box.width * spec.format.bytes();
    offsets.push_back(bytes);
    levels.push_back({nullptr, box, pitch, pitch * box.height});
    constexpr std::uint64_t kAlign = 16;
    bytes += (pitch * box.height * box.depth + kAlign - 1) / kAlign * kAlign;
  }
  // The pages of calloc come with their first use, as those of mapped memory do.
  elements.reset(static_cast<std::byte*>(std::calloc(bytes, 1)));
  for (std::size_t i = 0; elements && i < levels.size(); ++i) {
    levels[i].elements = elements.get() + offsets[i];
  }
}

device::Texture Objects::add(TextureObject texture) {
  auto object = std::make_shared<const TextureObject>(std::move(texture));
  const WriteLock lock(mutex_);
  textures_.emplace(next_, std::move(object));
  return static_cast<device::Texture>(next_++);
}

device::Surface Objects::add(SurfaceObject surface) {
  auto object = std::make_shared<const SurfaceObject>(std::move(surface));
  const WriteLock lock(mutex_);
  surfaces_.emplace(next_, std::move(object));
  return static_cast<device::Surface>(next_++);
}

void Objects::remove_texture(std::uint64_t handle) {
  const WriteLock lock(mutex_);
  textures_.erase(handle);
}

void Objects::remove_surface(std::uint64_t handle) {
  const WriteLock lock(mutex_);
  surfaces_.erase(handle);
}

std::shared_ptr<const TextureObject> Objects::texture(std::uint64_t handle,
                                                      device::Address owner) const {
  const ReadLock lock(mutex_);
  return find_owned(textures_, handle, owner);
}

std::shared_ptr<const SurfaceObject> Objects::surface(std::uint64_t handle,
                                                      device::Address owner) const {
  const ReadLock lock(mutex_);
  return find_owned(surfaces_, handle, owner);
}

}  // namespace slate::sim
