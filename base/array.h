// CUDA arrays, textures and surfaces as plain values: what a client asks for, what crosses to the
// engine and what a device makes. Not the objects themselves (device/device.h). Numbers are CUDA's
// own, so that no table translates them. Sizes are in elements (texels) unless they say bytes.
// Thread: any.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "base/device_info.h"
#include "base/result.h"

namespace slate {

/// Kind of a channel's values, as cudaChannelFormatKind.
enum class ChannelKind : std::uint32_t { kSigned = 0, kUnsigned = 1, kFloat = 2 };

/// An element: 1, 2 or 4 channels of 8, 16 or 32 bits each; floats of 16 or 32.
struct ArrayFormat {
  ChannelKind kind = ChannelKind::kFloat;
  std::uint32_t bits = 0;  // bits of one channel
  std::uint32_t channels = 0;
  std::uint32_t reserved = 0;

  std::uint32_t bytes() const { return bits / 8 * channels; }
  bool operator==(const ArrayFormat&) const = default;
};
/// Whether an array can have such elements.
bool is_valid(const ArrayFormat& format);

/// ArraySpec::flags, as cudaArrayLayered and its kind.
inline constexpr std::uint32_t kArrayLayered = 1;
inline constexpr std::uint32_t kArraySurface = 2;
inline constexpr std::uint32_t kArrayCubemap = 4;
inline constexpr std::uint32_t kArrayGather = 8;
inline constexpr std::uint32_t kArrayFlags = 15;

/// Size in elements; 0: no such dimension.
struct ArrayExtent {
  std::uint64_t width = 0, height = 0, depth = 0;
  bool operator==(const ArrayExtent&) const = default;
};

/// What an array is made of. `extent` is as in cudaMalloc3DArray: a height or depth of 0 is a
/// dimension that the array does not have. With kArrayLayered the depth counts layers; with
/// kArrayCubemap it counts faces.
struct ArraySpec {
  ArrayFormat format;
  ArrayExtent extent;
  std::uint32_t flags = 0;
  std::uint32_t levels = 0;  // 0: not mipmapped

  bool has(std::uint32_t flag) const { return (flags & flag) != 0; }
  /// Whether the depth counts layers, which all levels have.
  bool layers() const { return has(kArrayLayered | kArrayCubemap); }
};

/// Errors: kInvalidValue, with the reason, for a spec that no array on this device has.
Result<void> check_array(const ArraySpec& spec, const DeviceInfo& device);
/// The most levels that an array of this extent has.
std::uint32_t most_levels(const ArraySpec& spec);
/// Extent of one level, with the same meaning as the spec's.
ArrayExtent level_extent(const ArraySpec& spec, std::uint32_t level);
/// Extent of one level with missing dimensions counted as 1: what can be copied.
ArrayExtent level_box(const ArraySpec& spec, std::uint32_t level);
/// Bytes of device memory that an array is charged with: its elements in tiles of 64 bytes by 8
/// rows, as GPUs keep them. Requires: check_array() succeeds.
std::uint64_t array_bytes(const ArraySpec& spec);

/// Kind of a resource, as cudaResourceType.
enum class ResourceKind : std::uint32_t {
  kArray = 0,
  kMipmappedArray = 1,
  kLinear = 2,
  kPitch2D = 3
};

/// What a texture or surface reads. `array` is an id in a message and a handle for a device.
struct TextureResource {
  ResourceKind kind = ResourceKind::kArray;
  std::uint32_t level = 0;                         // kArray: level of a mipmapped array
  std::uint64_t array = 0;                         // kArray, kMipmappedArray
  std::uint64_t address = 0;                       // kLinear, kPitch2D
  std::uint64_t bytes = 0;                         // kLinear
  std::uint64_t width = 0, height = 0, pitch = 0;  // kPitch2D; the pitch in bytes
  ArrayFormat format;                              // kLinear, kPitch2D
};

/// As cudaTextureAddressMode and cudaTextureFilterMode.
enum class AddressMode : std::uint32_t { kWrap = 0, kClamp = 1, kMirror = 2, kBorder = 3 };
enum class FilterMode : std::uint32_t { kPoint = 0, kLinear = 1 };

/// How a texture is read, as cudaTextureDesc. The last fields are 0 or 1.
struct Sampler {
  std::array<AddressMode, 3> address_mode{AddressMode::kWrap, AddressMode::kWrap,
                                          AddressMode::kWrap};
  FilterMode filter = FilterMode::kPoint;
  FilterMode mipmap_filter = FilterMode::kPoint;
  std::uint32_t max_anisotropy = 0;
  float mipmap_bias = 0, mipmap_min = 0, mipmap_max = 0;
  std::array<float, 4> border{};
  std::uint32_t reads_normalized_float = 0;
  std::uint32_t srgb = 0;
  std::uint32_t normalized_coordinates = 0;
  std::uint32_t disable_trilinear_optimization = 0;
  std::uint32_t seamless_cubemap = 0;
};

/// Part of a resource that a texture reads, as cudaResourceViewDesc. A format of 0 is no view.
struct ResourceView {
  std::uint32_t format = 0;
  std::uint32_t first_level = 0, last_level = 0, first_layer = 0, last_layer = 0;
  std::uint32_t reserved = 0;
  ArrayExtent extent;
};
inline constexpr std::uint32_t kLastViewFormat = 0x22;  // cudaResViewFormatUnsignedBlockCompressed7
/// The elements of a view that is not block compressed; 0 channels for the other views.
ArrayFormat view_format(std::uint32_t format);

/// What a texture is made of.
struct TextureSpec {
  TextureResource resource;
  Sampler sampler;
  ResourceView view;
};
static_assert(std::is_trivially_copyable_v<TextureSpec> && std::is_trivially_copyable_v<ArraySpec>);

/// Errors: kInvalidValue, with the reason, for numbers that no texture has, whatever its resource
/// is.
Result<void> check_texture(const TextureSpec& spec);
/// Most elements of linear memory that a texture can have. The device's attribute counts elements
/// of 16 bytes; of smaller ones as many bytes fit. Requires: is_valid(format).
std::uint64_t most_linear_elements(const ArrayFormat& format, const DeviceInfo& device);
/// Bytes from the first to the last byte of a linear or pitched resource. Errors: kInvalidValue
/// where the device cannot make a texture of such memory.
Result<std::uint64_t> linear_bytes(const TextureResource& resource, const DeviceInfo& device);

}  // namespace slate
