// Arrays, textures and surfaces of CudaDevice. A new array is filled with zeros, and the call waits
// for that: the driver hands out memory as its last owner, perhaps another client, left it. Copies
// between arrays are here; other copies are work.cc. Thread: any.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "device/cuda/context.h"
#include "device/cuda/memory.h"
#include "device/device.h"

namespace slate::cuda {

/// What a device::Array points to.
struct CudaArray {
  ArraySpec spec;
  CUmipmappedArray mipmapped = nullptr;  // null unless spec.levels > 0
  std::vector<CUarray> levels;           // at least one; owned by `mipmapped` if that is not null
};

class Arrays {
 public:
  /// Requires: `context` and `space` outlive it.
  Arrays(Context& context, AddressSpace& space) : context_(context), space_(space) {}
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;
  ~Arrays();

  // As the methods of device::Device of the same names.
  Result<device::Array> create(const ArraySpec& spec);
  void destroy(device::Array array);
  Result<device::Texture> create_texture(const TextureSpec& spec);
  void destroy_texture(device::Texture texture);
  Result<device::Surface> create_surface(device::Array array, std::uint32_t level);
  void destroy_surface(device::Surface surface);
  Result<void> copy(const Place& to, const Place& from, const Box& box, CUstream stream);

 private:
  /// Device memory that holds zeros, from which arrays are cleared.
  struct Zeros {
    device::AddressRange range;
    CUstream stream = nullptr;
  };

  const Driver& driver() const { return context_.driver(); }
  /// Allocates the array's levels.
  Result<void> make(CudaArray& array);
  void unmake(const CudaArray& array);
  /// Fills all levels with zeros and waits for that.
  Result<void> clear(const CudaArray& array);
  Result<void> clear_level(const CudaArray& array, std::uint32_t level) SLATE_REQUIRES(mutex_);
  Result<void> make_zeros() SLATE_REQUIRES(mutex_);
  /// What the driver is told of a texture's resource.
  Result<CUDA_RESOURCE_DESC> resource_of(const TextureResource& resource) const;

  Context& context_;
  AddressSpace& space_;
  Mutex mutex_;  // one array is cleared at a time
  std::optional<Zeros> zeros_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::cuda
