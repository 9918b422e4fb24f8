// The arrays of sim, and the textures and surfaces made of them or of memory: the methods of Device
// of the same names, whose contracts hold here. What kernels look up is in objects.h. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/result.h"
#include "device/device.h"
#include "device/sim/memory.h"
#include "device/sim/objects.h"

namespace slate::sim {

class Arrays {
 public:
  /// `memory` and `info` outlive it; arrays take their bytes from what `memory` has.
  Arrays(Memory& memory, const DeviceInfo& info) : memory_(memory), info_(info) {}

  Result<device::Array> create(const ArraySpec& spec);
  void destroy(device::Array array);
  Result<device::Texture> create_texture(const TextureSpec& spec, device::AddressRange owner);
  Result<device::Surface> create_surface(device::Array array, std::uint32_t level,
                                         device::AddressRange owner);
  Objects& objects() { return objects_; }

  /// The copy, checked and ready to run; it checks memory again when it does, which may be
  /// unmapped in between. Arrays are kept until then.
  Result<std::function<Result<void>()>> copy(const device::Place& to, const device::Place& from,
                                             device::Box box);

 private:
  /// Rows of one plane after the other, and what keeps them there.
  struct Planes {
    device::Address address = 0;
    std::uint64_t pitch = 0, slice = 0;
    enum class Kind { kArray, kDevice, kHost } kind = Kind::kArray;
    std::shared_ptr<const ArrayStorage> array{};
  };

  std::shared_ptr<const ArrayStorage> find(std::uint64_t array);
  Result<Planes> planes_of(const device::Place& place, device::Box box);
  Result<void> check(const Planes& planes, device::Box box, ErrorCode code) const;
  Result<TextureObject> of_array(const TextureSpec& spec);
  Result<TextureObject> of_memory(const TextureSpec& spec);

  Memory& memory_;
  const DeviceInfo& info_;
  Objects objects_;
  std::mutex mutex_;  // guards all below
  std::uint64_t next_ = 1;
  std::unordered_map<std::uint64_t, std::shared_ptr<const ArrayStorage>> arrays_;
};

}  // namespace slate::sim
