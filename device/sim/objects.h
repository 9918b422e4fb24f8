// Arrays, textures and surfaces of sim as the interpreter reads them, and the table of those that
// kernels name by number. Immutable once made, except for the elements of arrays. Thread: any.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "base/array.h"
#include "base/mutex.h"
#include "device/device.h"

namespace slate::sim {

/// The elements of one level: row after row, plane after plane, without gaps.
struct Level {
  std::byte* elements = nullptr;
  ArrayExtent box;  // level_box()
  std::uint64_t pitch = 0;
  std::uint64_t slice = 0;
};

/// An array with its memory.
struct ArrayStorage {
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };

  /// An array of zeros; `elements` is null when the host has no memory. Requires: check_array()
  /// succeeds.
  explicit ArrayStorage(const ArraySpec& spec);

  ArraySpec spec;
  std::unique_ptr<std::byte, Free> elements;
  std::vector<Level> levels;
};

/// What a texture reads: levels of an array, or memory of a launch.
struct TextureObject {
  device::AddressRange owner;
  std::shared_ptr<const ArrayStorage> array;  // null: memory, one level
  bool is_line = false;                       // whether it is memory of one dimension
  ArrayFormat format;
  std::vector<Level> levels;
  std::uint64_t first_layer = 0;
  std::uint64_t layers = 0;  // 0: not layered
  bool is_cubemap = false;
  int dimensions = 1;  // dimensions of a layer or face
  Sampler sampler;
};

struct SurfaceObject {
  device::AddressRange owner;
  std::shared_ptr<const ArrayStorage> array;
  Level level;
};

class Objects {
 public:
  device::Texture add(TextureObject texture);
  device::Surface add(SurfaceObject surface);
  void remove_texture(std::uint64_t handle);
  void remove_surface(std::uint64_t handle);
  /// Null when there is no object of this number that launches of this arena may use.
  std::shared_ptr<const TextureObject> texture(std::uint64_t handle, device::Address owner) const;
  std::shared_ptr<const SurfaceObject> surface(std::uint64_t handle, device::Address owner) const;

 private:
  mutable SharedMutex mutex_;
  std::uint64_t next_ SLATE_GUARDED_BY(mutex_) = 1;
  std::unordered_map<std::uint64_t, std::shared_ptr<const TextureObject>> textures_
      SLATE_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, std::shared_ptr<const SurfaceObject>> surfaces_
      SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::sim
