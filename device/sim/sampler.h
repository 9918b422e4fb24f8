// What a texture gives at some coordinates, as the CUDA programming guide's appendix on texture
// fetching has it: address modes, filters with weights of 8 fractional bits, mipmap levels, layers,
// faces. Pure functions on TextureObject; memory is checked against the launch's view. What the
// guide leaves open is refused with the reason, never guessed.
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
/// Coordinates that a geometry has besides the layer.
int coordinates_of(Geometry geometry);
bool has_layer(Geometry geometry);

enum class SampleType : std::uint8_t { kFloat, kSigned, kUnsigned };

struct SampleRequest {
  Geometry geometry = Geometry::k1D;
  SampleType type = SampleType::kFloat;  // of the result
  bool texels = false;                   // the coordinates are numbers of texels, in `index`
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

/// tex. `memory`: of the launch; only for textures of memory.
Sample sample(const TextureObject& texture, const SampleRequest& request, const MemoryView& memory);
/// tld4: channel `channel` of the four texels that linear filtering would take, counter-clockwise
/// from the lower left one.
Sample gather(const TextureObject& texture, const SampleRequest& request, int channel,
              const MemoryView& memory);

}  // namespace slate::sim
