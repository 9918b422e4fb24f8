#include "device/cuda/arrays.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace slate::cuda {
namespace {

CUarray_format format_of(const ArrayFormat& format) {
  if (format.kind == ChannelKind::kFloat) {
    return format.bits == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
  }
  const bool is_signed = format.kind == ChannelKind::kSigned;
  switch (format.bits) {
    case 8:
      return is_signed ? CU_AD_FORMAT_SIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT8;
    case 16:
      return is_signed ? CU_AD_FORMAT_SIGNED_INT16 : CU_AD_FORMAT_UNSIGNED_INT16;
    default:
      return is_signed ? CU_AD_FORMAT_SIGNED_INT32 : CU_AD_FORMAT_UNSIGNED_INT32;
  }
}

// The runtime's flags of arrays are the driver's; those of textures are single settings there.
static_assert(kArrayLayered == CUDA_ARRAY3D_LAYERED && kArraySurface == CUDA_ARRAY3D_SURFACE_LDST &&
              kArrayCubemap == CUDA_ARRAY3D_CUBEMAP && kArrayGather == CUDA_ARRAY3D_TEXTURE_GATHER);
static_assert(static_cast<int>(AddressMode::kBorder) == CU_TR_ADDRESS_MODE_BORDER &&
              static_cast<int>(FilterMode::kLinear) == CU_TR_FILTER_MODE_LINEAR &&
              kLastViewFormat == CU_RES_VIEW_FORMAT_UNSIGNED_BC7);

CUDA_ARRAY3D_DESCRIPTOR description_of(const ArraySpec& spec) {
  CUDA_ARRAY3D_DESCRIPTOR description{};
  description.Width = spec.extent.width;
  description.Height = spec.extent.height;
  description.Depth = spec.extent.depth;
  description.Format = format_of(spec.format);
  description.NumChannels = spec.format.channels;
  description.Flags = spec.flags;
  return description;
}

const CudaArray& array_of(device::Array array) {
  return *reinterpret_cast<const CudaArray*>(array);
}

unsigned int flags_of(const Sampler& sampler) {
  unsigned int flags = 0;
  if (sampler.reads_normalized_float == 0) flags |= CU_TRSF_READ_AS_INTEGER;
  if (sampler.normalized_coordinates != 0) flags |= CU_TRSF_NORMALIZED_COORDINATES;
  if (sampler.srgb != 0) flags |= CU_TRSF_SRGB;
  if (sampler.disable_trilinear_optimization != 0) flags |= CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
  if (sampler.seamless_cubemap != 0) flags |= CU_TRSF_SEAMLESS_CUBEMAP;
  return flags;
}

CUDA_TEXTURE_DESC description_of(const Sampler& sampler) {
  CUDA_TEXTURE_DESC description{};
  for (std::size_t i = 0; i < 3; ++i) {
    description.addressMode[i] = static_cast<CUaddress_mode>(sampler.address_mode[i]);
  }
  description.filterMode = static_cast<CUfilter_mode>(sampler.filter);
  description.flags = flags_of(sampler);
  description.maxAnisotropy = sampler.max_anisotropy;
  description.mipmapFilterMode = static_cast<CUfilter_mode>(sampler.mipmap_filter);
  description.mipmapLevelBias = sampler.mipmap_bias;
  description.minMipmapLevelClamp = sampler.mipmap_min;
  description.maxMipmapLevelClamp = sampler.mipmap_max;
  std::ranges::copy(sampler.border, description.borderColor);
  return description;
}

CUDA_RESOURCE_VIEW_DESC description_of(const ResourceView& view) {
  CUDA_RESOURCE_VIEW_DESC description{};
  description.format = static_cast<CUresourceViewFormat>(view.format);
  description.width = view.extent.width;
  description.height = view.extent.height;
  description.depth = view.extent.depth;
  description.firstMipmapLevel = view.first_level;
  description.lastMipmapLevel = view.last_level;
  description.firstLayer = view.first_layer;
  description.lastLayer = view.last_layer;
  return description;
}

/// Rows of a plane; 0 where a copy of one plane needs none.
std::size_t rows_of(std::uint64_t pitch, std::uint64_t slice) {
  return pitch == 0 ? 0 : slice / pitch;
}

void set_source(CUDA_MEMCPY3D& copy, const Place& place) {
  if (place.is(PlaceKind::kArray)) {
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = array_of(device::Array{place.object}).levels[place.part];
    copy.srcXInBytes = place.x;
    copy.srcY = place.y;
    copy.srcZ = place.z;
    return;
  }
  copy.srcPitch = place.pitch;
  copy.srcHeight = rows_of(place.pitch, place.slice);
  if (place.is(PlaceKind::kDevice)) {
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = place.address;
  } else {
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = place.memory();
  }
}

void set_target(CUDA_MEMCPY3D& copy, const Place& place) {
  CUDA_MEMCPY3D from{};
  set_source(from, place);
  copy.dstMemoryType = from.srcMemoryType;
  copy.dstArray = from.srcArray;
  copy.dstXInBytes = from.srcXInBytes;
  copy.dstY = from.srcY;
  copy.dstZ = from.srcZ;
  copy.dstDevice = from.srcDevice;
  copy.dstHost = const_cast<void*>(from.srcHost);
  copy.dstPitch = from.srcPitch;
  copy.dstHeight = from.srcHeight;
}

bool has_level(const Place& place) {
  return !place.is(PlaceKind::kArray) ||
         place.part < array_of(device::Array{place.object}).levels.size();
}

}  // namespace

Arrays::~Arrays() {
  if (zeros_) std::ignore = context_.call(driver().cuStreamDestroy, zeros_->stream);
}

Result<device::Array> Arrays::create(const ArraySpec& spec) {
  auto array = std::make_unique<CudaArray>(CudaArray{.spec = spec, .levels = {}});
  auto made = make(*array);
  if (made) made = clear(*array);
  if (!made) {
    unmake(*array);
    return std::unexpected(made.error());
  }
  return static_cast<device::Array>(reinterpret_cast<std::uintptr_t>(array.release()));
}

/// What it leaves, unmake() takes, also when it fails.
Result<void> Arrays::make(CudaArray& array) {
  const CUDA_ARRAY3D_DESCRIPTOR description = description_of(array.spec);
  if (array.spec.levels == 0) {
    CUarray plain = nullptr;
    auto made = context_.call(driver().cuArray3DCreate, &plain, &description);
    if (made) array.levels.push_back(plain);
    return made;
  }
  auto made = context_.call(driver().cuMipmappedArrayCreate, &array.mipmapped, &description,
                            array.spec.levels);
  for (std::uint32_t i = 0; made && i < array.spec.levels; ++i) {
    CUarray level = nullptr;
    made = context_.call(driver().cuMipmappedArrayGetLevel, &level, array.mipmapped, i);
    array.levels.push_back(level);
  }
  return made;
}

void Arrays::unmake(const CudaArray& array) {
  if (array.spec.levels > 0) {
    if (array.mipmapped == nullptr) return;
    std::ignore = context_.call(driver().cuMipmappedArrayDestroy, array.mipmapped);
  } else if (!array.levels.empty()) {
    std::ignore = context_.call(driver().cuArrayDestroy, array.levels.front());
  }
}

void Arrays::destroy(device::Array array) {
  const std::unique_ptr<const CudaArray> its(&array_of(array));
  unmake(*its);
}

Result<void> Arrays::make_zeros() {
  if (zeros_) return {};
  Zeros zeros;
  zeros.range.bytes = space_.granularity();
  auto base = space_.reserve(zeros.range.bytes);
  if (!base) return std::unexpected(base.error());
  zeros.range.base = *base;
  auto made = space_.map(zeros.range);
  if (made) {
    made = context_.call(driver().cuStreamCreateWithPriority, &zeros.stream, CU_STREAM_NON_BLOCKING,
                         context_.highest_priority());
    if (!made) std::ignore = space_.unmap(zeros.range);
  }
  if (made) {
    zeros_ = zeros;
  } else {
    space_.unreserve(zeros.range);
  }
  return made;
}

Result<void> Arrays::clear(const CudaArray& array) {
  const MutexLock lock(mutex_);
  if (auto made = make_zeros(); !made) return made;
  Result<void> done;
  for (std::uint32_t i = 0; done && i < array.levels.size(); ++i) done = clear_level(array, i);
  // Also when a copy was refused: nothing of ours may be running when the array goes.
  auto finished = context_.call(driver().cuStreamSynchronize, zeros_->stream);
  return done ? finished : done;
}

/// As many planes, or else rows, at a time as there are zeros for.
Result<void> Arrays::clear_level(const CudaArray& array, std::uint32_t level) {
  const ArrayExtent box = level_box(array.spec, level);
  const std::uint64_t width = box.width * array.spec.format.bytes();
  const std::uint64_t rows = std::min(box.height, zeros_->range.bytes / width);
  if (rows == 0) return fail(ErrorCode::kNotSupported, fmt::format("rows of {} bytes", width));
  const std::uint64_t planes =
      rows < box.height ? 1 : std::min(box.depth, zeros_->range.bytes / (width * rows));
  for (std::uint64_t z = 0; z < box.depth; z += planes) {
    for (std::uint64_t y = 0; y < box.height; y += rows) {
      CUDA_MEMCPY3D copy{};
      copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
      copy.srcDevice = zeros_->range.base;
      copy.srcPitch = width;
      copy.srcHeight = rows;
      copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
      copy.dstArray = array.levels[level];
      copy.dstY = y;
      copy.dstZ = z;
      copy.WidthInBytes = width;
      copy.Height = std::min(rows, box.height - y);
      copy.Depth = std::min(planes, box.depth - z);
      auto done = context_.call(driver().cuMemcpy3DAsync, &copy, zeros_->stream);
      if (!done) return done;
    }
  }
  return {};
}

Result<void> Arrays::copy(const Place& to, const Place& from, const Box& box, CUstream stream) {
  if (!has_level(to) || !has_level(from)) {
    return fail(ErrorCode::kInvalidValue, "a copy of a level that the array does not have");
  }
  CUDA_MEMCPY3D copy{};
  set_source(copy, from);
  set_target(copy, to);
  copy.WidthInBytes = box.width;
  copy.Height = box.height;
  copy.Depth = box.depth;
  return context_.call(driver().cuMemcpy3DAsync, &copy, stream);
}

Result<CUDA_RESOURCE_DESC> Arrays::resource_of(const TextureResource& resource) const {
  CUDA_RESOURCE_DESC description{};
  switch (resource.kind) {
    case ResourceKind::kArray: {
      const CudaArray& array = array_of(static_cast<device::Array>(resource.array));
      if (resource.level >= array.levels.size()) break;
      description.resType = CU_RESOURCE_TYPE_ARRAY;
      description.res.array.hArray = array.levels[resource.level];
      return description;
    }
    case ResourceKind::kMipmappedArray: {
      const CudaArray& array = array_of(static_cast<device::Array>(resource.array));
      if (array.spec.levels == 0) break;
      description.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
      description.res.mipmap.hMipmappedArray = array.mipmapped;
      return description;
    }
    case ResourceKind::kLinear:
      description.resType = CU_RESOURCE_TYPE_LINEAR;
      description.res.linear.devPtr = resource.address;
      description.res.linear.format = format_of(resource.format);
      description.res.linear.numChannels = resource.format.channels;
      description.res.linear.sizeInBytes = resource.bytes;
      return description;
    case ResourceKind::kPitch2D:
      description.resType = CU_RESOURCE_TYPE_PITCH2D;
      description.res.pitch2D.devPtr = resource.address;
      description.res.pitch2D.format = format_of(resource.format);
      description.res.pitch2D.numChannels = resource.format.channels;
      description.res.pitch2D.width = resource.width;
      description.res.pitch2D.height = resource.height;
      description.res.pitch2D.pitchInBytes = resource.pitch;
      return description;
  }
  return fail(ErrorCode::kInvalidValue, "a texture of levels that the array does not have");
}

Result<device::Texture> Arrays::create_texture(const TextureSpec& spec) {
  const auto resource = resource_of(spec.resource);
  if (!resource) return std::unexpected(resource.error());
  const CUDA_TEXTURE_DESC sampler = description_of(spec.sampler);
  const CUDA_RESOURCE_VIEW_DESC view = description_of(spec.view);
  CUtexObject texture = 0;
  auto made = context_.call(driver().cuTexObjectCreate, &texture, &*resource, &sampler,
                            spec.view.format == 0 ? nullptr : &view);
  if (!made) return std::unexpected(made.error());
  return static_cast<device::Texture>(texture);
}

void Arrays::destroy_texture(device::Texture texture) {
  std::ignore = context_.call(driver().cuTexObjectDestroy, static_cast<CUtexObject>(texture));
}

Result<device::Surface> Arrays::create_surface(device::Array array, std::uint32_t level) {
  const auto resource = resource_of({.kind = ResourceKind::kArray,
                                     .level = level,
                                     .array = static_cast<std::uint64_t>(array),
                                     .format = {}});
  if (!resource) return std::unexpected(resource.error());
  CUsurfObject surface = 0;
  auto made = context_.call(driver().cuSurfObjectCreate, &surface, &*resource);
  if (!made) return std::unexpected(made.error());
  return static_cast<device::Surface>(surface);
}

void Arrays::destroy_surface(device::Surface surface) {
  std::ignore = context_.call(driver().cuSurfObjectDestroy, static_cast<CUsurfObject>(surface));
}

}  // namespace slate::cuda
