#include "base/array.h"

#include <algorithm>
#include <bit>
#include <string>

namespace slate {
namespace {

/// Limits by their CUdevice_attribute numbers.
struct Limits {
  int width, height, depth;  // -1: no such dimension
};
constexpr int kNone = -1;
constexpr int kTextureAlignment = 14;
constexpr int kTexturePitchAlignment = 51;
constexpr int kTexture1DLinearWidth = 69;
constexpr Limits kTexture2DLinear{70, 71, 72};  // the last is the pitch, in bytes
enum class Shape { k1D, k2D, k3D, kLayered1D, kLayered2D, kCubemap, kLayeredCubemap };

Shape shape_of(const ArraySpec& spec) {
  if (spec.has(kArrayCubemap)) {
    return spec.has(kArrayLayered) ? Shape::kLayeredCubemap : Shape::kCubemap;
  }
  const bool flat = spec.extent.height == 0;
  if (spec.has(kArrayLayered)) return flat ? Shape::kLayered1D : Shape::kLayered2D;
  if (spec.extent.depth != 0) return Shape::k3D;
  return flat ? Shape::k1D : Shape::k2D;
}

Limits limits_of(Shape shape, const ArraySpec& spec) {
  const bool surface = spec.has(kArraySurface);
  const bool mipmapped = spec.levels > 0 && !surface;
  switch (shape) {
    case Shape::k1D:
      return {surface ? 55 : mipmapped ? 77 : 21, kNone, kNone};
    case Shape::k2D:
      if (spec.has(kArrayGather)) return {45, 46, kNone};
      return surface     ? Limits{56, 57, kNone}
             : mipmapped ? Limits{73, 74, kNone}
                         : Limits{22, 23, kNone};
    case Shape::k3D:
      return surface ? Limits{58, 59, 60} : Limits{24, 25, 26};
    case Shape::kLayered1D:
      return surface ? Limits{61, kNone, 62} : Limits{42, kNone, 43};
    case Shape::kLayered2D:
      return surface ? Limits{63, 64, 65} : Limits{27, 28, 29};
    case Shape::kCubemap:
      return surface ? Limits{66, 66, kNone} : Limits{52, 52, kNone};
    case Shape::kLayeredCubemap:
      return surface ? Limits{67, 67, 68} : Limits{53, 53, 54};
  }
  return {kNone, kNone, kNone};
}

bool within(std::uint64_t size, int limit, const DeviceInfo& device) {
  return limit == kNone ||
         (size >= 1 && size <= static_cast<std::uint64_t>(device.attributes[limit]));
}

bool fits(const ArrayExtent& extent, Limits limits, const DeviceInfo& device) {
  return within(extent.width, limits.width, device) &&
         within(extent.height, limits.height, device) && within(extent.depth, limits.depth, device);
}

std::unexpected<Error> refuse(const std::string& why) {
  return fail(ErrorCode::kInvalidValue, why);
}

std::string text(const ArrayExtent& extent) {
  return std::to_string(extent.width) + "x" + std::to_string(extent.height) + "x" +
         std::to_string(extent.depth);
}

}  // namespace

bool is_valid(const ArrayFormat& format) {
  const bool channels = format.channels == 1 || format.channels == 2 || format.channels == 4;
  const bool bits = format.bits == 8 || format.bits == 16 || format.bits == 32;
  if (!channels || !bits || format.kind > ChannelKind::kFloat) return false;
  return format.kind != ChannelKind::kFloat || format.bits != 8;
}

Result<void> check_array(const ArraySpec& spec, const DeviceInfo& device) {
  if (!is_valid(spec.format)) return refuse("elements that no array has");
  if ((spec.flags & ~kArrayFlags) != 0) return refuse("unknown flags of an array");
  const ArrayExtent& extent = spec.extent;
  const Shape shape = shape_of(spec);
  if (shape == Shape::k3D && extent.height == 0)
    return refuse("an array with depth, but no height");
  if (spec.has(kArrayGather) && shape != Shape::k2D)
    return refuse("only arrays of two dimensions are gathered");
  if (spec.has(kArrayCubemap)) {
    const bool faces = shape == Shape::kCubemap ? extent.depth == 6 : extent.depth % 6 == 0;
    if (extent.width != extent.height || extent.depth == 0 || !faces) {
      return refuse("a cubemap of " + text(extent));
    }
  }
  bool fine = fits(extent, limits_of(shape, spec), device);
  if (!fine && shape == Shape::k3D && !spec.has(kArraySurface))
    fine = fits(extent, {47, 48, 49}, device);
  if (!fine)
    return refuse("an array of " + text(extent) + " elements is beyond this device's limits");
  if (spec.levels > most_levels(spec)) return refuse("an array with more levels than it can have");
  return {};
}

std::uint32_t most_levels(const ArraySpec& spec) {
  std::uint64_t longest = std::max<std::uint64_t>({1, spec.extent.width, spec.extent.height});
  if (!spec.layers()) longest = std::max(longest, spec.extent.depth);
  return static_cast<std::uint32_t>(std::bit_width(longest));
}

ArrayExtent level_extent(const ArraySpec& spec, std::uint32_t level) {
  const auto part = [level](std::uint64_t size) {
    return size == 0 ? 0 : std::max<std::uint64_t>(1, level < 64 ? size >> level : 0);
  };
  const ArrayExtent& whole = spec.extent;
  return {part(whole.width), part(whole.height), spec.layers() ? whole.depth : part(whole.depth)};
}

ArrayExtent level_box(const ArraySpec& spec, std::uint32_t level) {
  ArrayExtent box = level_extent(spec, level);
  box.height = std::max<std::uint64_t>(1, box.height);
  box.depth = std::max<std::uint64_t>(1, box.depth);
  return box;
}

std::uint64_t array_bytes(const ArraySpec& spec) {
  constexpr std::uint64_t kTileBytes = 64, kTileRows = 8;
  std::uint64_t bytes = 0;
  for (std::uint32_t level = 0; level < std::max(1u, spec.levels); ++level) {
    const ArrayExtent box = level_box(spec, level);
    const std::uint64_t row =
        (box.width * spec.format.bytes() + kTileBytes - 1) / kTileBytes * kTileBytes;
    const std::uint64_t rows = (box.height + kTileRows - 1) / kTileRows * kTileRows;
    bytes += row * rows * box.depth;
  }
  return bytes;
}

ArrayFormat view_format(std::uint32_t format) {
  constexpr std::uint32_t kPlain = 0x18;
  if (format == 0 || format > kPlain) return {};
  constexpr std::uint32_t kChannels[3] = {1, 2, 4};
  struct Row {
    ChannelKind kind;
    std::uint32_t bits;
  };
  constexpr Row kRows[8] = {{ChannelKind::kUnsigned, 8},  {ChannelKind::kSigned, 8},
                            {ChannelKind::kUnsigned, 16}, {ChannelKind::kSigned, 16},
                            {ChannelKind::kUnsigned, 32}, {ChannelKind::kSigned, 32},
                            {ChannelKind::kFloat, 16},    {ChannelKind::kFloat, 32}};
  const Row& row = kRows[(format - 1) / 3];
  return {row.kind, row.bits, kChannels[(format - 1) % 3], 0};
}

Result<void> check_texture(const TextureSpec& spec) {
  const Sampler& sampler = spec.sampler;
  for (const AddressMode mode : sampler.address_mode) {
    if (mode > AddressMode::kBorder) return refuse("an unknown address mode of a texture");
  }
  if (sampler.filter > FilterMode::kLinear || sampler.mipmap_filter > FilterMode::kLinear) {
    return refuse("an unknown filter mode of a texture");
  }
  if (sampler.reads_normalized_float > 1 || sampler.srgb > 1 ||
      sampler.normalized_coordinates > 1 || sampler.disable_trilinear_optimization > 1 ||
      sampler.seamless_cubemap > 1) {
    return refuse("a setting of a texture that is neither 0 nor 1");
  }
  const ResourceKind kind = spec.resource.kind;
  if (kind > ResourceKind::kPitch2D) return refuse("an unknown kind of resource");
  if (spec.view.format > kLastViewFormat) return refuse("an unknown format of a view");
  const bool linear = kind == ResourceKind::kLinear || kind == ResourceKind::kPitch2D;
  if (linear && spec.view.format != 0) return refuse("a view of memory that is no array");
  if (kind == ResourceKind::kMipmappedArray && sampler.normalized_coordinates == 0) {
    return refuse("a mipmapped array is read with normalized coordinates only");
  }
  return {};
}

std::uint64_t most_linear_elements(const ArrayFormat& format, const DeviceInfo& device) {
  constexpr std::uint64_t kLargestElement = 16;
  const auto largest = static_cast<std::uint64_t>(device.attributes[kTexture1DLinearWidth]);
  return largest * kLargestElement / format.bytes();
}

Result<std::uint64_t> linear_bytes(const TextureResource& resource, const DeviceInfo& device) {
  if (!is_valid(resource.format)) return refuse("elements that no texture has");
  const auto alignment = static_cast<std::uint64_t>(device.attributes[kTextureAlignment]);
  if (resource.address == 0 || (alignment != 0 && resource.address % alignment != 0)) {
    return refuse("memory of a texture that is not aligned as textures are");
  }
  const std::uint64_t element = resource.format.bytes();
  if (resource.kind == ResourceKind::kLinear) {
    const std::uint64_t elements = resource.bytes / element;
    if (elements == 0 || elements > most_linear_elements(resource.format, device)) {
      return refuse("a linear texture of " + std::to_string(elements) + " elements");
    }
    return elements * element;
  }
  const auto granule = static_cast<std::uint64_t>(device.attributes[kTexturePitchAlignment]);
  const std::uint64_t pitch = resource.pitch;
  if (!within(resource.width, kTexture2DLinear.width, device) ||
      !within(resource.height, kTexture2DLinear.height, device) ||
      !within(pitch, kTexture2DLinear.depth, device) || (granule != 0 && pitch % granule != 0)) {
    return refuse("a pitched texture of " + std::to_string(resource.width) + "x" +
                  std::to_string(resource.height) + " elements, rows " + std::to_string(pitch) +
                  " bytes apart");
  }
  return pitch * (resource.height - 1) + resource.width * element;
}

}  // namespace slate
