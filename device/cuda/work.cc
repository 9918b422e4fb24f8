// Launches, copies and fills of CudaDevice. Nothing here waits, but for copies of pageable memory.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>

#include "device/cuda/cuda_device_impl.h"

namespace slate::cuda {
namespace {

using device::Address;
using device::Stream;

std::string describe_launch(const device::LaunchSpec& spec) {
  return fmt::format("grid ({}, {}, {}), block ({}, {}, {}), {} bytes of dynamic shared memory",
                     spec.grid.x, spec.grid.y, spec.grid.z, spec.block.x, spec.block.y,
                     spec.block.z, spec.dynamic_shared_bytes);
}

bool product_fits(std::uint64_t a, std::uint64_t b) {
  return b == 0 || a <= std::numeric_limits<std::uint64_t>::max() / b;
}

/// Does a box of one plane with as few driver calls as its pitches allow: `line(to offset, from
/// offset, bytes)` when it is contiguous, `rectangle()` when the driver takes such pitches, else a
/// line a row.
template <typename Line, typename Rectangle>
Result<void> split(std::uint64_t to_pitch, std::uint64_t from_pitch, const Box& box,
                   std::uint64_t max_pitch, Line line, Rectangle rectangle) {
  if (box.width == 0 || box.height == 0) return {};
  if (box.height == 1) return line(0, 0, box.width);
  if (to_pitch < box.width || from_pitch < box.width ||
      !product_fits(std::max(to_pitch, from_pitch), box.height)) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("{} rows of {} bytes with pitches of {} and {} bytes", box.height,
                            box.width, to_pitch, from_pitch));
  }
  if (to_pitch == box.width && from_pitch == box.width) {
    return line(0, 0, box.width * box.height);
  }
  if (to_pitch <= max_pitch && from_pitch <= max_pitch) return rectangle();
  for (std::uint64_t row = 0; row < box.height; ++row) {
    if (auto done = line(row * to_pitch, row * from_pitch, box.width); !done) return done;
  }
  return {};
}

/// Whether its blocks depend on being there together.
bool is_bound(const device::LaunchSpec& spec) {
  return spec.cooperative || spec.cluster.count() > 0;
}

/// What no graph of launches has.
bool stands_alone(const device::LaunchSpec& spec) {
  return is_bound(spec) || spec.overlaps;
}

/// More than cuLaunchKernel is told; mere wishes are dropped where the driver knows no other call.
bool is_extended(const device::LaunchSpec& spec, const Driver& driver) {
  const bool wishes = spec.ahead || spec.carveout != 0 || spec.overlaps;
  return is_bound(spec) || (wishes && driver.cuLaunchKernelEx);
}

/// Of a launch, as many as one can have.
class Attributes {
 public:
  CUlaunchAttributeValue& add(CUlaunchAttributeID id) {
    CUlaunchAttribute& attribute = all_[count_++];
    attribute.id = id;
    return attribute.value;
  }
  void give(CUlaunchConfig& config) {
    config.attrs = all_.data();
    config.numAttrs = count_;
  }

 private:
  std::array<CUlaunchAttribute, 5> all_{};
  unsigned int count_ = 0;
};

CUDA_MEMCPY2D rectangle_of(const Place& to, const Place& from, const Box& box) {
  CUDA_MEMCPY2D copy{};
  copy.srcPitch = from.pitch;
  copy.dstPitch = to.pitch;
  copy.WidthInBytes = box.width;
  copy.Height = box.height;
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  if (from.is(PlaceKind::kHost)) {
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = from.memory();
  } else {
    copy.srcDevice = from.address;
  }
  if (to.is(PlaceKind::kHost)) {
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = to.memory();
  } else {
    copy.dstDevice = to.address;
  }
  return copy;
}

}  // namespace

std::uint64_t CudaDevice::max_pitch() const {
  return static_cast<std::uint64_t>(context_->attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH));
}

/// What the driver would call an invalid value, but CUDA's runtime an invalid configuration.
Result<void> CudaDevice::check_configuration(const device::LaunchSpec& spec) const {
  const auto allows = [this](std::uint64_t value, CUdevice_attribute limit) {
    return value >= 1 && value <= static_cast<std::uint64_t>(context_->attribute(limit));
  };
  if (allows(spec.block.x, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) &&
      allows(spec.block.y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y) &&
      allows(spec.block.z, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z) &&
      allows(spec.block.count(), CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) &&
      allows(spec.grid.x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) &&
      allows(spec.grid.y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) &&
      allows(spec.grid.z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)) [[likely]] {
    return {};
  }
  return fail(ErrorCode::kInvalidConfiguration,
              "beyond the limits of " + std::string(info().name) + ": " + describe_launch(spec));
}

/// The launch's configuration for the driver, with what `attributes` has already; good as long as
/// that is.
CUlaunchConfig config_of(const device::LaunchSpec& spec, CUstream stream, Attributes& attributes) {
  CUlaunchConfig config{};
  config.gridDimX = spec.grid.x;
  config.gridDimY = spec.grid.y;
  config.gridDimZ = spec.grid.z;
  config.blockDimX = spec.block.x;
  config.blockDimY = spec.block.y;
  config.blockDimZ = spec.block.z;
  config.sharedMemBytes = spec.dynamic_shared_bytes;
  config.hStream = stream;
  if (spec.cooperative) attributes.add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
  if (spec.cluster.count() > 0) {
    attributes.add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim = {
        spec.cluster.x, spec.cluster.y, spec.cluster.z};
  }
  attributes.give(config);
  return config;
}

CUresult CudaDevice::launch_extended(const device::LaunchSpec& spec, Stream stream, void** extra) {
  Attributes attributes;
  if (spec.ahead) {
    attributes.add(CU_LAUNCH_ATTRIBUTE_PRIORITY).priority =
        context_->priority_ahead_of(state(stream).priority);
  }
  if (spec.carveout != 0 && context_->has_launch_carveouts()) {
    attributes.add(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT).sharedMemCarveout =
        spec.carveout;
  }
  if (spec.overlaps) {
    attributes.add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
        .programmaticStreamSerializationAllowed = 1;
  }
  const CUlaunchConfig config = config_of(spec, raw(stream), attributes);
  return context_->attempt(driver().cuLaunchKernelEx, &config, raw(spec.function), nullptr, extra);
}

Result<std::uint32_t> CudaDevice::max_active_clusters(const device::LaunchSpec& spec) {
  if (auto there = check_present(driver().cuOccupancyMaxActiveClusters); !there)
    return std::unexpected(there.error());
  Attributes attributes;
  const CUlaunchConfig config = config_of(spec, nullptr, attributes);
  int count = 0;
  auto asked =
      context_->call(driver().cuOccupancyMaxActiveClusters, &count, raw(spec.function), &config);
  if (!asked) return std::unexpected(asked.error());
  return static_cast<std::uint32_t>(count);
}

Result<std::uint32_t> CudaDevice::max_cluster_size(const device::LaunchSpec& spec) {
  if (auto there = check_present(driver().cuOccupancyMaxPotentialClusterSize); !there)
    return std::unexpected(there.error());
  Attributes attributes;
  const CUlaunchConfig config = config_of(spec, nullptr, attributes);
  int size = 0;
  auto asked = context_->call(driver().cuOccupancyMaxPotentialClusterSize, &size,
                              raw(spec.function), &config);
  if (!asked) return std::unexpected(asked.error());
  return static_cast<std::uint32_t>(size);
}

Result<void> CudaDevice::launch(const device::LaunchSpec& spec, Stream stream) {
  if (auto checked = check_configuration(spec); !checked) return checked;
  StreamGraphs* const graphs = state(stream).graphs.get();
  if (graphs != nullptr && !stands_alone(spec)) {
    const std::uint64_t hash = StreamGraphs::shape_hash(spec);
    if (graphs->launch(std::span(&spec, 1), std::span(&hash, 1), 0) == 1) return {};
  }
  return launch_plain(spec, stream);
}

Result<void> CudaDevice::launch_row(std::span<const device::LaunchSpec> specs, Stream stream) {
  StreamGraphs* const graphs = state(stream).graphs.get();
  const bool in_graphs =
      graphs != nullptr && std::ranges::all_of(specs, [this](const device::LaunchSpec& spec) {
        return !stands_alone(spec) && check_configuration(spec);
      });
  if (!in_graphs) return Device::launch_row(specs, stream);
  std::array<std::uint64_t, StreamGraphs::kSizes.front()> hashes;
  Result<void> outcome;
  while (!specs.empty()) {
    const auto some = specs.first(std::min(specs.size(), hashes.size()));
    std::ranges::transform(some, hashes.begin(), StreamGraphs::shape_hash);
    for (std::size_t at = 0; at < some.size();) {
      const auto rest = std::span(hashes).first(some.size()).subspan(at);
      const std::size_t launched = graphs->launch(some.subspan(at), rest, at);
      if (launched == 0) {
        if (const auto done = launch_plain(some[at], stream); !done && outcome) outcome = done;
      }
      at += std::max<std::size_t>(launched, 1);
    }
    specs = specs.subspan(some.size());
  }
  return outcome;
}

Result<void> CudaDevice::launch_plain(const device::LaunchSpec& spec, Stream stream) {
  std::size_t bytes = spec.parameters.size();
  void* parameters = const_cast<std::byte*>(spec.parameters.data());
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  void** const given = bytes == 0 ? nullptr : extra;
  const bool extended = is_extended(spec, driver());
  if (extended) {
    if (auto there = check_present(driver().cuLaunchKernelEx); !there) return there;
  }
  const CUresult result =
      extended
          ? launch_extended(spec, stream, given)
          : context_->attempt(driver().cuLaunchKernel, raw(spec.function), spec.grid.x, spec.grid.y,
                              spec.grid.z, spec.block.x, spec.block.y, spec.block.z,
                              spec.dynamic_shared_bytes, raw(stream), nullptr, given);
  if (result == CUDA_SUCCESS) [[likely]]
    return {};
  Error error = context_->failure(result, driver().cuLaunchKernel.name);
  error.message += " for " + describe_launch(spec);
  return std::unexpected<Error>(std::move(error));
}

/// One call of the driver, which a line needs.
Result<void> CudaDevice::copy_line(const Place& to, const Place& from, std::uint64_t bytes,
                                   Stream stream) {
  if (from.is(PlaceKind::kHost)) {
    return context_->call(driver().cuMemcpyHtoDAsync, to.address, from.memory(), bytes,
                          raw(stream));
  }
  if (to.is(PlaceKind::kHost)) {
    return context_->call(driver().cuMemcpyDtoHAsync, to.memory(), from.address, bytes,
                          raw(stream));
  }
  StreamGraphs* const graphs = state(stream).graphs.get();
  if (graphs != nullptr && bytes <= StreamGraphs::kMostCopied &&
      graphs->copy(to.address, from.address, bytes)) {
    return {};
  }
  return context_->call(driver().cuMemcpyDtoDAsync, to.address, from.address, bytes, raw(stream));
}

Result<void> CudaDevice::copy_plane(const Place& to, const Place& from, const Box& box,
                                    Stream stream) {
  return split(
      to.pitch, from.pitch, box, max_pitch(),
      [&](std::uint64_t to_offset, std::uint64_t from_offset, std::uint64_t count) {
        return copy_line(to.at(to_offset, 0, 0), from.at(from_offset, 0, 0), count, stream);
      },
      [&] {
        const CUDA_MEMCPY2D copy = rectangle_of(to, from, box);
        return context_->call(driver().cuMemcpy2DAsync, &copy, raw(stream));
      });
}

Result<void> CudaDevice::copy(const Place& to, const Place& from, const Box& box, Stream stream) {
  if (box.empty()) return {};
  if (to.is(PlaceKind::kHost) && from.is(PlaceKind::kHost))
    return fail(ErrorCode::kInvalidValue, "a copy without a side on the device");
  if (to.is(PlaceKind::kArray) || from.is(PlaceKind::kArray))
    return arrays_.copy(to, from, box, raw(stream));
  if (box.is_line()) return copy_line(to, from, box.width, stream);
  const auto in_rows = [](const Place& side) {
    return side.pitch != 0 && side.slice % side.pitch == 0;
  };
  if (box.depth > 1 && in_rows(to) && in_rows(from))
    return arrays_.copy(to, from, box, raw(stream));
  for (std::uint64_t z = 0; z < box.depth; ++z) {
    const auto done =
        copy_plane(to.at(0, 0, z), from.at(0, 0, z), {box.width, box.height, 1}, stream);
    if (!done) return done;
  }
  return {};
}

Result<void> CudaDevice::fill(Address to, std::uint64_t to_pitch, FillValue value, const Box& box,
                              Stream stream) {
  const Driver& its = driver();
  const CUstream on = raw(stream);
  return split(
      to_pitch, to_pitch, box, max_pitch(),
      [&](std::uint64_t offset, std::uint64_t, std::uint64_t count) {
        const Address at = to + offset;
        if (at % 4 == 0 && count % 4 == 0)
          return context_->call(its.cuMemsetD32Async, at, value.word(), count / 4, on);
        const std::uint32_t word = value.word();
        if (value.bytes == 2) {
          return context_->call(its.cuMemsetD16Async, at, static_cast<std::uint16_t>(word),
                                count / 2, on);
        }
        return context_->call(its.cuMemsetD8Async, at, static_cast<std::uint8_t>(word), count, on);
      },
      [&] {
        const std::uint32_t word = value.word();
        if (to % 4 == 0 && to_pitch % 4 == 0 && box.width % 4 == 0) {
          return context_->call(its.cuMemsetD2D32Async, to, to_pitch, word, box.width / 4,
                                box.height, on);
        }
        if (value.bytes == 2) {
          return context_->call(its.cuMemsetD2D16Async, to, to_pitch,
                                static_cast<std::uint16_t>(word), box.width / 2, box.height, on);
        }
        return context_->call(its.cuMemsetD2D8Async, to, to_pitch, static_cast<std::uint8_t>(word),
                              box.width, box.height, on);
      });
}

}  // namespace slate::cuda
