#include "device/sim/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace slate::sim {
namespace {

std::unexpected<SampleFault> refuse(std::string_view why) {
  return std::unexpected(SampleFault{ErrorCode::kIllegalInstruction, why});
}

constexpr std::int64_t kBorder = -1;  // as the index of a texel

/// The texels of one dimension that a coordinate falls on: one, or two with the second one's
/// weight.
struct Footprint {
  std::int64_t first = 0, second = 0;
  double weight = 0;  // of the second; a multiple of 1/256
};

/// Where a fetch goes besides its dimensions.
struct Plane {
  const Level* level = nullptr;
  std::uint64_t z = 0;  // of the layer or face
};

bool matches(const TextureObject& texture, Geometry geometry) {
  switch (geometry) {
    case Geometry::k1D:
    case Geometry::kLayered1D:
      return texture.dimensions == 1 && (texture.layers > 0) == has_layer(geometry);
    case Geometry::k2D:
    case Geometry::kLayered2D:
      return texture.dimensions == 2 && !texture.is_cubemap &&
             (texture.layers > 0) == has_layer(geometry);
    case Geometry::k3D:
      return texture.dimensions == 3;
    case Geometry::kCubemap:
      return texture.is_cubemap && texture.layers == 6;
    case Geometry::kLayeredCubemap:
      return texture.is_cubemap;
  }
  return false;
}

bool gives_numbers(const TextureObject& texture) {
  return texture.format.kind == ChannelKind::kFloat || texture.sampler.reads_normalized_float != 0;
}

/// Wrapping and mirroring are for normalized coordinates only; the driver clamps others.
AddressMode mode_of(const Sampler& sampler, int dimension) {
  const AddressMode mode = sampler.address_mode[static_cast<std::size_t>(dimension)];
  if (sampler.normalized_coordinates != 0 || mode == AddressMode::kBorder) return mode;
  return AddressMode::kClamp;
}

std::int64_t placed(std::int64_t index, std::int64_t size, AddressMode mode) {
  if (index >= 0 && index < size) return index;
  if (mode == AddressMode::kBorder) return kBorder;
  if (mode == AddressMode::kWrap) return ((index % size) + size) % size;
  return std::clamp<std::int64_t>(index, 0, size - 1);
}

/// Integers far outside stay far outside: no more than the sizes of textures matter.
std::int64_t floor_of(double value) {
  constexpr double kFar = 1e15;
  return static_cast<std::int64_t>(std::floor(std::clamp(value, -kFar, kFar)));
}

/// The coordinate in texels, after what wrapping and mirroring do to it.
double in_texels(double x, std::int64_t size, const Sampler& sampler, AddressMode mode) {
  if (sampler.normalized_coordinates == 0) return x;
  const double whole = std::floor(x);
  if (mode == AddressMode::kWrap) x -= whole;
  if (mode == AddressMode::kMirror) {
    const bool odd = std::fmod(whole, 2.0) != 0;
    x = odd ? 1 - (x - whole) : x - whole;
  }
  return x * static_cast<double>(size);
}

Footprint footprint(float coordinate, std::uint64_t texels, const Sampler& sampler, int dimension,
                    bool linear) {
  const auto size = static_cast<std::int64_t>(texels);
  const AddressMode mode = mode_of(sampler, dimension);
  const double x = in_texels(coordinate, size, sampler, mode);
  if (!linear) {
    const std::int64_t index = placed(floor_of(x), size, mode);
    return {index, index, 0};
  }
  const double low = x - 0.5;
  // 9 bits of fixed point with 8 of fraction: a weight of 1 is possible.
  const double weight = std::round((low - std::floor(low)) * 256) / 256;
  const std::int64_t index = floor_of(low);
  return {placed(index, size, mode), placed(index + 1, size, mode), weight};
}

/// Element (x, y) of a plane; the border when one of them says so. For memory, 0 address: refused.
std::expected<Texel, SampleFault> texel_at(const TextureObject& texture, const Plane& plane,
                                           std::int64_t x, std::int64_t y, std::int64_t z,
                                           const MemoryView& memory) {
  const Level& level = *plane.level;
  const std::byte* const at = level.elements +
                              (static_cast<std::uint64_t>(z) + plane.z) * level.slice +
                              static_cast<std::uint64_t>(y) * level.pitch +
                              static_cast<std::uint64_t>(x) * texture.format.bytes();
  const auto address = reinterpret_cast<std::uint64_t>(at);
  if (!texture.array && !memory.allows(address, texture.format.bytes())) {
    return std::unexpected(
        SampleFault{ErrorCode::kIllegalAddress, "the texture's memory is not mapped"});
  }
  return read_texel(texture.format, at);
}

using Numbers = std::array<double, 4>;

class Filter {
 public:
  Filter(const TextureObject& texture, const MemoryView& memory)
      : texture_(texture), memory_(memory) {}

  /// The weighted sum over up to eight texels. An odd bit of `corner` takes the second texel.
  std::expected<Numbers, SampleFault> numbers(const Plane& plane,
                                              const std::array<Footprint, 3>& places) const {
    Numbers sum{};
    for (unsigned corner = 0; corner < 8; ++corner) {
      double weight = 1;
      std::array<std::int64_t, 3> at{};
      for (unsigned d = 0; d < 3; ++d) {
        const bool second = (corner >> d & 1) != 0;
        weight *= second ? places[d].weight : 1 - places[d].weight;
        at[d] = second ? places[d].second : places[d].first;
      }
      if (weight == 0) continue;
      const auto texel = number_at(plane, at);
      if (!texel) return std::unexpected(texel.error());
      for (std::size_t i = 0; i < 4; ++i) sum[i] += weight * static_cast<double>((*texel)[i]);
    }
    return sum;
  }

  std::expected<std::array<float, 4>, SampleFault> number_at(
      const Plane& plane, const std::array<std::int64_t, 3>& at) const {
    if (std::ranges::find(at, kBorder) != at.end()) return texture_.sampler.border;
    const auto texel = texel_at(texture_, plane, at[0], at[1], at[2], memory_);
    if (!texel) return std::unexpected(texel.error());
    const bool srgb = texture_.sampler.srgb != 0 && texture_.format.bits == 8;
    return texel_numbers(texture_.format, *texel, srgb);
  }

  Sample integers(const Plane& plane, const std::array<Footprint, 3>& places) const {
    for (const Footprint& each : places) {
      if (each.first == kBorder) return border_integers();
    }
    return texel_at(texture_, plane, places[0].first, places[1].first, places[2].first, memory_);
  }

  Sample border_integers() const {
    const auto& border = texture_.sampler.border;
    if (std::ranges::any_of(border, [](float each) { return each != 0; })) {
      return refuse("what an integer texture gives for a border that is not 0");
    }
    return Texel{};
  }

 private:
  const TextureObject& texture_;
  const MemoryView& memory_;
};

Texel texel_of(const Numbers& numbers) {
  Texel texel{};
  for (std::size_t i = 0; i < 4; ++i) {
    texel[i] = std::bit_cast<std::uint32_t>(static_cast<float>(numbers[i]));
  }
  return texel;
}

/// One or two levels and the second one's weight.
struct Levels {
  std::size_t first = 0, second = 0;
  double weight = 0;
};

std::expected<Levels, SampleFault> levels_of(const TextureObject& texture,
                                             const SampleRequest& request) {
  const auto last = static_cast<double>(texture.levels.size() - 1);
  if (last == 0) return Levels{};
  const Sampler& sampler = texture.sampler;
  if (!request.has_level && (sampler.mipmap_bias != 0 || sampler.mipmap_min != 0)) {
    return refuse("the level that a fetch without one takes when levels are biased");
  }
  if (std::isnan(request.level)) return refuse("a level that is no number");
  double level = static_cast<double>(request.level) + static_cast<double>(sampler.mipmap_bias);
  level = std::min(std::max(level, static_cast<double>(sampler.mipmap_min)),
                   static_cast<double>(sampler.mipmap_max));
  level = std::clamp(level, 0.0, last);
  if (sampler.mipmap_filter == FilterMode::kPoint) {
    const auto nearest = static_cast<std::size_t>(std::floor(level + 0.5));
    return Levels{nearest, nearest, 0};
  }
  const double low = std::floor(level);
  const auto first = static_cast<std::size_t>(low);
  return Levels{first, std::min(first + 1, texture.levels.size() - 1),
                std::round((level - low) * 256) / 256};
}

/// The face and the two coordinates on it, 0 to 1.
struct FacePlace {
  std::uint64_t face;
  float s, t;
};

FacePlace face_of(const std::array<float, 3>& at) {
  const float x = at[0], y = at[1], z = at[2];
  const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  const auto place = [](std::uint64_t face, float m, float s, float t) {
    return FacePlace{face, (s / m + 1) / 2, (t / m + 1) / 2};
  };
  if (ax >= ay && ax >= az) return x >= 0 ? place(0, ax, -z, -y) : place(1, ax, z, -y);
  if (ay >= az) return y >= 0 ? place(2, ay, x, z) : place(3, ay, x, -z);
  return z >= 0 ? place(4, az, x, -y) : place(5, az, -x, -y);
}

/// A texture, a request that suits it, and what both say together.
struct Fetch {
  const TextureObject& texture;
  std::array<float, 3> at;
  int dimensions;
  std::uint64_t z = 0;  // layer, face, or both
  Sampler sampler;      // of cubemaps: clamped, normalized

  std::array<Footprint, 3> places(const Level& level, bool linear) const {
    std::array<Footprint, 3> found{};
    const std::uint64_t sizes[3] = {level.box.width, level.box.height, level.box.depth};
    for (int d = 0; d < dimensions; ++d) {
      const auto i = static_cast<std::size_t>(d);
      found[i] = footprint(at[i], sizes[d], sampler, d, linear);
    }
    // An H200 filters one dimension as a row of two, at the row's upper edge: with a border above
    // it, half of every value is the border's.
    if (dimensions == 1 && linear) found[1] = footprint(0, 1, sampler, 1, linear);
    return found;
  }
};

std::expected<Fetch, SampleFault> fetch_of(const TextureObject& texture,
                                           const SampleRequest& request) {
  if (!matches(texture, request.geometry)) {
    return refuse("the texture has other dimensions than the instruction");
  }
  if (gives_numbers(texture) != (request.type == SampleType::kFloat)) {
    return refuse("the texture gives another type than the instruction wants");
  }
  if (texture.is_line) return refuse("memory of one dimension is read by texel number only");
  const int count = coordinates_of(request.geometry);
  for (int i = 0; i < count; ++i) {
    if (std::isnan(request.at[static_cast<std::size_t>(i)]))
      return refuse("a coordinate that is no number");
  }
  Fetch fetch{texture, request.at, count, texture.first_layer, texture.sampler};
  if (texture.is_cubemap) {
    if (request.at == std::array<float, 3>{}) return refuse("a direction of length 0");
    const FacePlace place = face_of(request.at);
    const std::uint64_t cubes = texture.layers / 6;
    fetch.z += std::min<std::uint64_t>(request.layer, cubes - 1) * 6 + place.face;
    fetch.at = {place.s, place.t, 0};
    fetch.dimensions = 2;
    fetch.sampler.normalized_coordinates = 1;
    fetch.sampler.address_mode.fill(AddressMode::kClamp);
  } else if (texture.layers > 0) {
    fetch.z += std::min<std::uint64_t>(request.layer, texture.layers - 1);
  }
  return fetch;
}

/// By texel number: nothing is filtered.
Sample fetch_texel(const TextureObject& texture, const SampleRequest& request,
                   const MemoryView& memory) {
  if (!matches(texture, request.geometry) || texture.is_cubemap) {
    return refuse("the texture has other dimensions than the instruction");
  }
  if (gives_numbers(texture) != (request.type == SampleType::kFloat)) {
    return refuse("the texture gives another type than the instruction wants");
  }
  const auto levels = levels_of(texture, request);
  if (!levels) return std::unexpected(levels.error());
  if (texture.sampler.normalized_coordinates != 0 && !texture.is_line) {
    return refuse("a texel number for a texture of normalized coordinates");
  }
  const Level& level = texture.levels[levels->first];
  const std::uint64_t sizes[3] = {level.box.width, level.box.height, level.box.depth};
  for (int i = 0; i < coordinates_of(request.geometry); ++i) {
    const std::int64_t index = request.index[static_cast<std::size_t>(i)];
    if (index >= 0 && index < static_cast<std::int64_t>(sizes[i])) continue;
    if (texture.is_line) return Texel{};
    return refuse("a texel number outside of an array");
  }
  Plane plane{&level, texture.first_layer};
  if (texture.layers > 0) plane.z += std::min<std::uint64_t>(request.layer, texture.layers - 1);
  const Filter filter(texture, memory);
  const std::array<std::int64_t, 3> at{request.index[0], request.index[1], request.index[2]};
  if (!gives_numbers(texture)) return texel_at(texture, plane, at[0], at[1], at[2], memory);
  const auto numbers = filter.number_at(plane, at);
  if (!numbers) return std::unexpected(numbers.error());
  return texel_of({(*numbers)[0], (*numbers)[1], (*numbers)[2], (*numbers)[3]});
}

/// Linear filtering over the edges of a cube takes texels of other faces, if it is seamless.
bool needs_other_faces(const TextureObject& texture, bool linear) {
  return linear && texture.is_cubemap && texture.sampler.seamless_cubemap != 0;
}

}  // namespace

int coordinates_of(Geometry geometry) {
  switch (geometry) {
    case Geometry::k1D:
    case Geometry::kLayered1D:
      return 1;
    case Geometry::k2D:
    case Geometry::kLayered2D:
      return 2;
    default:
      return 3;
  }
}

bool has_layer(Geometry geometry) {
  return geometry == Geometry::kLayered1D || geometry == Geometry::kLayered2D ||
         geometry == Geometry::kLayeredCubemap;
}

Sample sample(const TextureObject& texture, const SampleRequest& request,
              const MemoryView& memory) {
  if (request.texels) return fetch_texel(texture, request, memory);
  const auto fetch = fetch_of(texture, request);
  if (!fetch) return std::unexpected(fetch.error());
  const auto levels = levels_of(texture, request);
  if (!levels) return std::unexpected(levels.error());
  const bool linear = texture.sampler.filter == FilterMode::kLinear && gives_numbers(texture);
  if (needs_other_faces(texture, linear)) return refuse("linear filtering of a seamless cubemap");
  const Filter filter(texture, memory);
  const Level& first = texture.levels[levels->first];
  if (!gives_numbers(texture)) {
    return filter.integers({&first, fetch->z}, fetch->places(first, false));
  }
  auto numbers = filter.numbers({&first, fetch->z}, fetch->places(first, linear));
  if (!numbers) return std::unexpected(numbers.error());
  if (levels->weight != 0) {
    const Level& second = texture.levels[levels->second];
    const auto more = filter.numbers({&second, fetch->z}, fetch->places(second, linear));
    if (!more) return std::unexpected(more.error());
    for (std::size_t i = 0; i < 4; ++i) {
      (*numbers)[i] = (1 - levels->weight) * (*numbers)[i] + levels->weight * (*more)[i];
    }
  }
  return texel_of(*numbers);
}

Sample gather(const TextureObject& texture, const SampleRequest& request, int channel,
              const MemoryView& memory) {
  const auto fetch = fetch_of(texture, request);
  if (!fetch) return std::unexpected(fetch.error());
  if (texture.is_cubemap) return refuse("texels gathered from a cubemap");
  const Level& level = texture.levels.front();
  const auto places = fetch->places(level, true);
  const Filter filter(texture, memory);
  Texel gathered{};
  constexpr unsigned kCorners[4] = {2, 3, 1, 0};  // bit 0: right, bit 1: lower
  for (std::size_t i = 0; i < 4; ++i) {
    const bool right = (kCorners[i] & 1) != 0, lower = (kCorners[i] & 2) != 0;
    const Footprint x{right ? places[0].second : places[0].first, 0, 0};
    const Footprint y{lower ? places[1].second : places[1].first, 0, 0};
    const Plane plane{&level, fetch->z};
    if (!gives_numbers(texture)) {
      const auto texel = filter.integers(plane, {x, y, Footprint{}});
      if (!texel) return texel;
      gathered[i] = (*texel)[static_cast<std::size_t>(channel)];
      continue;
    }
    const auto numbers = filter.number_at(plane, {x.first, y.first, 0});
    if (!numbers) return std::unexpected(numbers.error());
    gathered[i] = std::bit_cast<std::uint32_t>((*numbers)[static_cast<std::size_t>(channel)]);
  }
  return gathered;
}

}  // namespace slate::sim
