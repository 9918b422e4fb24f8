// CUDA arrays, textures and surfaces as plain values: what a client asks for, what crosses to the
// engine and what a device makes. Numbers are CUDA's own, so that no table translates them. Sizes
// are in elements (texels) unless they say bytes. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "base/device_info.h"
#include "base/result.h"

namespace slate {

/// As cudaChannelFormatKind.
enum class ChannelKind : std::uint32_t { kSigned = 0, kUnsigned = 1, kFloat = 2 };

/// Elements of 1, 2 or 4 channels of 8, 16 or 32 bits each; floats of 16 or 32.
struct ArrayFormat {
  ChannelKind kind = ChannelKind::kFloat;
  std::uint32_t bits = 0;  // of a channel
  std::uint32_t channels = 0;
  std::uint32_t reserved = 0;

  std::uint32_t bytes() const { return bits / 8 * channels; }
  bool operator==(const ArrayFormat&) const = default;
};
bool is_valid(const ArrayFormat& format);

/// ArraySpec::flags, as cudaArrayLayered and so on.
inline constexpr std::uint32_t kArrayLayered = 1;
inline constexpr std::uint32_t kArraySurface = 2;
inline constexpr std::uint32_t kArrayCubemap = 4;
inline constexpr std::uint32_t kArrayGather = 8;
inline constexpr std::uint32_t kArrayFlags = 15;

struct ArrayExtent {
  std::uint64_t width = 0, height = 0, depth = 0;
  bool operator==(const ArrayExtent&) const = default;
};

/// `extent` as in cudaMalloc3DArray: a height or depth of 0 is a dimension that the array does not
/// have; with kArrayLayered the depth counts layers (faces, with kArrayCubemap).
struct ArraySpec {
  ArrayFormat format;
  ArrayExtent extent;
  std::uint32_t flags = 0;
  std::uint32_t levels = 0;  // 0: not mipmapped

  bool has(std::uint32_t flag) const { return (flags & flag) != 0; }
  /// True when the depth counts layers, which all levels have.
  bool layers() const { return has(kArrayLayered | kArrayCubemap); }
};

/// kInvalidValue, with the reason, for what no array can be on this device.
Result<void> check_array(const ArraySpec& spec, const DeviceInfo& device);
/// The most levels that arrays of this extent have.
std::uint32_t most_levels(const ArraySpec& spec);
/// As the spec's extent, of one level.
ArrayExtent level_extent(const ArraySpec& spec, std::uint32_t level);
/// The same with dimensions that are not there counted as 1: what can be copied.
ArrayExtent level_box(const ArraySpec& spec, std::uint32_t level);
/// Bytes of device memory that an array is charged with: its elements, in the tiles of 64 bytes by
/// 8 rows that GPUs keep them in. Requires: check_array().
std::uint64_t array_bytes(const ArraySpec& spec);

/// As cudaResourceType.
enum class ResourceKind : std::uint32_t {
  kArray = 0,
  kMipmappedArray = 1,
  kLinear = 2,
  kPitch2D = 3
};

/// What a texture or surface reads. `array` is an id on the wire and a handle for a device.
struct TextureResource {
  ResourceKind kind = ResourceKind::kArray;
  std::uint32_t level = 0;                         // kArray, of a mipmapped one
  std::uint64_t array = 0;                         // kArray, kMipmappedArray
  std::uint64_t address = 0;                       // kLinear, kPitch2D
  std::uint64_t bytes = 0;                         // kLinear
  std::uint64_t width = 0, height = 0, pitch = 0;  // kPitch2D; the pitch in bytes
  ArrayFormat format;                              // kLinear, kPitch2D
};

/// As cudaTextureAddressMode and cudaTextureFilterMode.
enum class AddressMode : std::uint32_t { kWrap = 0, kClamp = 1, kMirror = 2, kBorder = 3 };
enum class FilterMode : std::uint32_t { kPoint = 0, kLinear = 1 };

/// As cudaTextureDesc; the last fields are 0 or 1.
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

/// As cudaResourceViewDesc; a format of 0 means no view.
struct ResourceView {
  std::uint32_t format = 0;
  std::uint32_t first_level = 0, last_level = 0, first_layer = 0, last_layer = 0;
  std::uint32_t reserved = 0;
  ArrayExtent extent;
};
inline constexpr std::uint32_t kLastViewFormat = 0x22;  // cudaResViewFormatUnsignedBlockCompressed7
/// The elements of views that are not block compressed; no channels for the others.
ArrayFormat view_format(std::uint32_t format);

struct TextureSpec {
  TextureResource resource;
  Sampler sampler;
  ResourceView view;
};
static_assert(std::is_trivially_copyable_v<TextureSpec> && std::is_trivially_copyable_v<ArraySpec>);

/// kInvalidValue, with the reason, for numbers that no texture has, whatever its resource is.
Result<void> check_texture(const TextureSpec& spec);
/// Elements of linear memory that a texture can have: what the device's attribute says of the
/// largest ones, of 16 bytes, and as many bytes of smaller ones.
/// Requires: is_valid(format).
std::uint64_t most_linear_elements(const ArrayFormat& format, const DeviceInfo& device);
/// Bytes from the first to the last one of a linear or pitched resource. kInvalidValue where the
/// device cannot make a texture of such memory.
Result<std::uint64_t> linear_bytes(const TextureResource& resource, const DeviceInfo& device);

}  // namespace slate
