// Textures and surfaces in kernels: what instructions name is looked up for every lane (lanes with
// one number at once), then sampler.h and texel.h do the work. A surface is an array: bytes for the
// plain accesses, elements for formatted stores.
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "device/sim/sampler.h"
#include "device/sim/warp.h"

namespace slate::sim {
namespace {

using Coordinates = std::array<std::uint32_t, 4>;

Coordinates coordinates_at(const std::byte* lanes, int lane) {
  Coordinates found{};
  std::memcpy(found.data(), lanes + sizeof(found) * static_cast<unsigned>(lane), sizeof(found));
  return found;
}

SampleRequest request_of(const Op& op, const Coordinates& at) {
  SampleRequest request;
  request.geometry = static_cast<Geometry>(op.a);
  request.type = static_cast<SampleType>(op.b);
  request.texels = (op.c & kByTexel) != 0;
  const auto count = static_cast<std::size_t>(coordinates_of(request.geometry));
  for (std::size_t i = 0; i < count; ++i) {
    request.at[i] = std::bit_cast<float>(at[i]);
    request.index[i] = static_cast<std::int32_t>(at[i]);
  }
  if (has_layer(request.geometry)) request.layer = at[count];
  request.has_level = (op.c & kAtLevel) != 0;
  if (request.has_level) {
    request.level = request.texels ? static_cast<float>(static_cast<std::int32_t>(at[3]))
                                   : std::bit_cast<float>(at[3]);
  }
  return request;
}

/// True when [first, first + count) is inside [0, size), after what the boundary mode does to it.
bool bound(std::int64_t& first, std::int64_t count, std::uint64_t size, SurfaceBoundary boundary) {
  const std::int64_t last = static_cast<std::int64_t>(size) - count;
  if (boundary == SurfaceBoundary::kClamp && last >= 0)
    first = std::min(std::max<std::int64_t>(first, 0), last);
  return first >= 0 && first <= last;
}

bool has_dimensions(const ArraySpec& spec, Geometry geometry) {
  const bool layered = geometry == Geometry::kLayered1D || geometry == Geometry::kLayered2D;
  const int dimensions = spec.extent.height == 0                   ? 1
                         : spec.extent.depth == 0 || spec.layers() ? 2
                                                                   : 3;
  return spec.layers() == layered && dimensions == coordinates_of(geometry);
}

/// Where an access of `bytes` goes; `outside` when the boundary mode makes it nothing.
struct SurfacePlace {
  std::byte* at = nullptr;
  bool outside = false;
};

SurfacePlace place_of(const Op& op, const SurfaceObject& surface, const Coordinates& given,
                      std::uint32_t bytes, std::uint32_t unit) {
  const auto geometry = static_cast<Geometry>(op.a);
  const auto boundary = static_cast<SurfaceBoundary>(op.e);
  const Level& level = surface.level;
  const int count = coordinates_of(geometry);
  const auto coordinate = [&](int i) -> std::int64_t {
    return static_cast<std::int32_t>(given[static_cast<std::size_t>(i)]);
  };
  std::int64_t x = coordinate(0) * unit;
  std::int64_t y = count > 1 ? coordinate(1) : 0;
  std::int64_t z = count > 2 || has_layer(geometry) ? coordinate(count > 2 ? 2 : count) : 0;
  const bool inside = bound(x, bytes, level.pitch, boundary) &&
                      bound(y, 1, level.box.height, boundary) &&
                      bound(z, 1, level.box.depth, boundary);
  if (!inside) return {nullptr, true};
  return {level.elements + static_cast<std::uint64_t>(z) * level.slice +
              static_cast<std::uint64_t>(y) * level.pitch + static_cast<std::uint64_t>(x),
          false};
}

/// What a register of `width` bytes holds, or gets.
std::uint64_t value_at(const std::byte* lanes, std::uint32_t width, int lane) {
  std::uint64_t value = 0;
  std::memcpy(&value, lanes + std::size_t{width} * static_cast<unsigned>(lane), width);
  return value;
}
void set_value(std::byte* lanes, std::uint32_t width, int lane, std::uint64_t value) {
  std::memcpy(lanes + std::size_t{width} * static_cast<unsigned>(lane), &value, width);
}

}  // namespace

bool Warp::bad_object(const Split& split, int lane, std::uint64_t handle, std::string_view why,
                      ErrorCode code) {
  fault(code, 1u << lane, split.pc,
        fmt::format("{} of object {:#x}: {}", block_->code->opcode_text(split.pc), handle, why));
  return false;
}

/// Calls `visit(object, lane)` for every active lane; stops where that, or the look-up, fails.
template <typename Find, typename Visit>
bool Warp::each_object(const Op& op, const Split& split, Mask exec, const Find& find,
                       const Visit& visit) {
  const auto* const handles = lanes<std::uint64_t>(op.r[4], *split.frame);
  const Objects* const objects = block_->launch->objects;
  decltype(find(*objects, 0)) object;
  std::uint64_t known = 0;
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t handle = handles[lane];
    if (!object || handle != known) {
      if (objects != nullptr) object = find(*objects, handle);
      if (objects == nullptr || !object) {
        return bad_object(split, lane, handle, "there is no such object",
                          ErrorCode::kIllegalAddress);
      }
      known = handle;
    }
    if (!visit(*object, lane)) return false;
  }
  return true;
}

bool Warp::sample_texture(const Op& op, const Split& split, Mask exec) {
  const Frame& frame = *split.frame;
  const MemoryView& memory = block_->launch->memory;
  const std::byte* const coordinates = at(op.r[5], frame);
  const auto find = [&](const Objects& objects, std::uint64_t handle) {
    return objects.texture(handle, memory.space_base);
  };
  return each_object(op, split, exec, find, [&](const TextureObject& texture, int lane) {
    const SampleRequest request = request_of(op, coordinates_at(coordinates, lane));
    const Sample found = (op.c & kGathers) != 0 ? slate::sim::gather(texture, request, op.e, memory)
                                                : sample(texture, request, memory);
    if (!found) {
      const std::uint64_t handle = lanes<std::uint64_t>(op.r[4], frame)[lane];
      return bad_object(split, lane, handle, found.error().why, found.error().code);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      lanes<std::uint32_t>(op.r[i], frame)[lane] = (*found)[i];
    }
    return true;
  });
}

bool Warp::query_texture(const Op& op, const Split& split, Mask exec) {
  const Frame& frame = *split.frame;
  const std::uint64_t owner = block_->launch->memory.space_base;
  auto* const d = lanes<std::uint32_t>(op.r[0], frame);
  const auto answer = [&](const Level& level, std::uint64_t layers, std::uint64_t levels,
                          bool normalized) -> std::uint32_t {
    switch (static_cast<TextureQuery>(op.b)) {
      case TextureQuery::kWidth:
        return static_cast<std::uint32_t>(level.box.width);
      case TextureQuery::kHeight:
        return static_cast<std::uint32_t>(level.box.height);
      case TextureQuery::kDepth:
        return static_cast<std::uint32_t>(level.box.depth);
      case TextureQuery::kLayers:
        return static_cast<std::uint32_t>(layers);
      case TextureQuery::kLevels:
        return static_cast<std::uint32_t>(levels);
      case TextureQuery::kNormalized:
        return normalized ? 1 : 0;
    }
    return 0;
  };
  if (op.a == 1) {
    const auto find = [&](const Objects& objects, std::uint64_t handle) {
      return objects.surface(handle, owner);
    };
    return each_object(op, split, exec, find, [&](const SurfaceObject& surface, int lane) {
      const ArraySpec& spec = surface.array->spec;
      d[lane] = answer(surface.level, spec.layers() ? spec.extent.depth : 0, 1, false);
      return true;
    });
  }
  const auto find = [&](const Objects& objects, std::uint64_t handle) {
    return objects.texture(handle, owner);
  };
  return each_object(op, split, exec, find, [&](const TextureObject& texture, int lane) {
    d[lane] = answer(texture.levels.front(), texture.layers, texture.levels.size(),
                     texture.sampler.normalized_coordinates != 0);
    return true;
  });
}

bool Warp::access_surface(const Op& op, const Split& split, Mask exec) {
  const Frame& frame = *split.frame;
  const bool loads = op.kind == Kind::kSurfaceLoad;
  const bool formatted = (op.flags & kFormatted) != 0;
  const std::uint64_t owner = block_->launch->memory.space_base;
  const std::byte* const coordinates = at(op.r[5], frame);
  const std::uint32_t width = op.b < 2 ? 2 : op.b;
  if (!loads) ++stores_;
  const auto find = [&](const Objects& objects, std::uint64_t handle) {
    return objects.surface(handle, owner);
  };
  return each_object(op, split, exec, find, [&](const SurfaceObject& surface, int lane) {
    const std::uint64_t handle = lanes<std::uint64_t>(op.r[4], frame)[lane];
    const ArrayFormat& format = surface.array->spec.format;
    if (!has_dimensions(surface.array->spec, static_cast<Geometry>(op.a))) {
      return bad_object(split, lane, handle,
                        "the surface has other dimensions than the instruction",
                        ErrorCode::kIllegalInstruction);
    }
    const std::uint32_t element = format.bytes();
    const std::uint32_t bytes = formatted ? element : std::uint32_t{op.b} * op.c;
    const Coordinates given = coordinates_at(coordinates, lane);
    if (!formatted && given[0] % bytes != 0) {
      return bad_object(split, lane, handle, "misaligned", ErrorCode::kMisalignedAddress);
    }
    const SurfacePlace place = place_of(op, surface, given, bytes, formatted ? element : 1);
    if (place.outside && static_cast<SurfaceBoundary>(op.e) == SurfaceBoundary::kTrap) {
      return bad_object(split, lane, handle, "outside of the surface", ErrorCode::kIllegalAddress);
    }
    if (formatted) {
      Texel texel{};
      if (op.c < format.channels) {
        return bad_object(split, lane, handle, "fewer values than the surface has channels",
                          ErrorCode::kIllegalInstruction);
      }
      for (unsigned i = 0; i < op.c; ++i) texel[i] = lanes<std::uint32_t>(op.r[i], frame)[lane];
      if (place.outside || write_texel(format, place.at, texel)) return true;
      return bad_object(split, lane, handle, "a value that the surface's format does not have",
                        ErrorCode::kIllegalInstruction);
    }
    for (unsigned i = 0; i < op.c; ++i) {
      std::byte* const value = at(op.r[i], frame);
      if (loads) {
        set_value(value, width, lane, place.outside ? 0 : read_bytes(place.at + i * op.b, op.b));
      } else if (!place.outside) {
        write_bytes(place.at + i * op.b, op.b, value_at(value, width, lane));
      }
    }
    return true;
  });
}

}  // namespace slate::sim
