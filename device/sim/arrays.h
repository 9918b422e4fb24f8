// The arrays of sim, and the textures and surfaces made of them or of memory. Implements the
// methods of device::Device of the same names, whose contracts hold here. What kernels look up is
// in objects.h. Thread: any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "base/mutex.h"
#include "base/result.h"
#include "device/device.h"
#include "device/sim/memory.h"
#include "device/sim/objects.h"

namespace slate::sim {

class Arrays {
 public:
  /// Requires: `memory` and `info` outlive it. Arrays take their bytes from what `memory` has.
  Arrays(Memory& memory, const DeviceInfo& info) : memory_(memory), info_(info) {}

  Result<device::Array> create(const ArraySpec& spec);
  void destroy(device::Array array);
  Result<device::Texture> create_texture(const TextureSpec& spec, device::AddressRange owner);
  Result<device::Surface> create_surface(device::Array array, std::uint32_t level,
                                         device::AddressRange owner);
  Objects& objects() { return objects_; }

  /// The copy, checked and ready to run. It keeps arrays until then. It checks memory again when it
  /// runs, which may have been unmapped in between. Errors: kInvalidValue; kInvalidHandle.
  Result<std::function<Result<void>()>> copy(const Place& to, const Place& from, const Box& box);

 private:
  /// Planes of rows in memory, and what keeps them there.
  struct Planes {
    device::Address address = 0;
    std::uint64_t pitch = 0, slice = 0;
    enum class Kind { kArray, kDevice, kHost } kind = Kind::kArray;
    std::shared_ptr<const ArrayStorage> array{};
  };

  /// Null if there is no such array.
  std::shared_ptr<const ArrayStorage> find(std::uint64_t array);
  Result<Planes> planes_of(const Place& place, const Box& box);
  /// Checks rows in memory; those of arrays were checked by planes_of(). Errors: `code`.
  Result<void> check(const Planes& planes, const Box& box, ErrorCode code) const;
  Result<TextureObject> of_array(const TextureSpec& spec);
  Result<TextureObject> of_memory(const TextureSpec& spec);

  Memory& memory_;
  const DeviceInfo& info_;
  Objects objects_;
  Mutex mutex_;
  std::uint64_t next_ SLATE_GUARDED_BY(mutex_) = 1;
  std::unordered_map<std::uint64_t, std::shared_ptr<const ArrayStorage>> arrays_
      SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::sim
