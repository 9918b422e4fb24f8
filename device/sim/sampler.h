// What a texture returns for some coordinates, as the CUDA programming guide's appendix on texture
// fetching defines it: address modes, filters with weights of 8 fractional bits, mipmap levels,
// layers, faces. Pure functions on TextureObject, which check memory against the launch's view.
// Cases that the guide leaves open are refused with the reason, never guessed. Thread: any.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <string_view>

#include "device/sim/memory.h"
#include "device/sim/objects.h"
#include "device/sim/texel.h"

namespace slate::sim {

enum class Geometry : std::uint8_t {
  k1D,
  k2D,
  k3D,
  kLayered1D,
  kLayered2D,
  kCubemap,
  kLayeredCubemap
};
/// Number of coordinates of a geometry besides the layer.
int coordinates_of(Geometry geometry);
bool has_layer(Geometry geometry);

enum class SampleType : std::uint8_t { kFloat, kSigned, kUnsigned };

/// What an instruction asks of a texture.
struct SampleRequest {
  Geometry geometry = Geometry::k1D;
  SampleType type = SampleType::kFloat;  // type of the result
  bool texels = false;  // whether the coordinates are numbers of texels, in `index`
  std::array<float, 3> at{};
  std::array<std::int32_t, 3> index{};
  std::uint32_t layer = 0;
  float level = 0;
  bool has_level = false;
};

struct SampleFault {
  ErrorCode code;
  std::string_view why;
};
using Sample = std::expected<Texel, SampleFault>;

/// The value of tex. `memory`: the launch's; only textures of memory use it.
Sample sample(const TextureObject& texture, const SampleRequest& request, const MemoryView& memory);
/// The value of tld4: channel `channel` of the four texels that linear filtering would take,
/// counter-clockwise from the lower left one.
Sample gather(const TextureObject& texture, const SampleRequest& request, int channel,
              const MemoryView& memory);

}  // namespace slate::sim
