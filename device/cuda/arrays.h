// Arrays, textures and surfaces of CudaDevice. New arrays are filled with zeros, and waited for:
// the driver hands out memory as the last owner, perhaps another client, left it. Any thread.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "device/cuda/context.h"
#include "device/cuda/memory.h"
#include "device/device.h"

namespace slate::cuda {

/// What a device::Array points to.
struct CudaArray {
  ArraySpec spec;
  CUmipmappedArray mipmapped = nullptr;  // null unless spec.levels > 0
  std::vector<CUarray> levels;           // one at least; of `mipmapped`, if there is that
};

class Arrays {
 public:
  /// Requires: both outlive it.
  Arrays(Context& context, AddressSpace& space) : context_(context), space_(space) {}
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;
  ~Arrays();

  // As in device::Device.
  Result<device::Array> create(const ArraySpec& spec);
  void destroy(device::Array array);
  Result<device::Texture> create_texture(const TextureSpec& spec);
  void destroy_texture(device::Texture texture);
  Result<device::Surface> create_surface(device::Array array, std::uint32_t level);
  void destroy_surface(device::Surface surface);
  Result<void> copy(const device::Place& to, const device::Place& from, device::Box box,
                    CUstream stream);

 private:
  /// Where zeros are copied from.
  struct Zeros {
    device::AddressRange range;
    CUstream stream = nullptr;
  };

  const Driver& driver() const { return context_.driver(); }
  Result<void> make(CudaArray& array);
  void unmake(const CudaArray& array);
  Result<void> clear(const CudaArray& array);
  Result<void> clear_level(const CudaArray& array, std::uint32_t level);
  Result<void> make_zeros();
  Result<CUDA_RESOURCE_DESC> resource_of(const TextureResource& resource) const;

  Context& context_;
  AddressSpace& space_;
  std::mutex mutex_;  // one array is cleared at a time
  std::optional<Zeros> zeros_;
};

}  // namespace slate::cuda
