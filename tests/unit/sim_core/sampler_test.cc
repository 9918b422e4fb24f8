// What textures give, against the formulas of the CUDA programming guide written out anew in the
// plainest way, over every format, address mode and filter.
#include "device/sim/sampler.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

namespace slate::sim {
namespace {

const MemoryView kNoMemory;

ArraySpec spec_of(ArrayFormat format, ArrayExtent extent, std::uint32_t flags = 0,
                  std::uint32_t levels = 0) {
  return {format, extent, flags, levels};
}

constexpr ArrayFormat kFloat{ChannelKind::kFloat, 32, 1, 0};

/// A texture of a whole array, whose bytes are random.
TextureObject texture_of(const ArraySpec& spec, const Sampler& sampler, unsigned seed = 1) {
  auto storage = std::make_shared<ArrayStorage>(spec);
  std::mt19937 random(seed);
  for (const Level& level : storage->levels) {
    const std::uint64_t bytes = level.slice * level.box.depth;
    for (std::uint64_t i = 0; i < bytes; ++i) level.elements[i] = static_cast<std::byte>(random());
    if (spec.format.kind != ChannelKind::kFloat) continue;
    for (std::uint64_t i = 0; i < bytes; i += spec.format.bits / 8) {
      const auto value = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 8;
      __extension__ const auto half = static_cast<_Float16>(value);
      std::memcpy(level.elements + i,
                  spec.format.bits == 32 ? static_cast<const void*>(&value) : &half,
                  spec.format.bits / 8);
    }
  }
  TextureObject texture;
  texture.format = spec.format;
  texture.levels = storage->levels;
  texture.dimensions = spec.extent.height == 0                   ? 1
                       : spec.extent.depth == 0 || spec.layers() ? 2
                                                                 : 3;
  texture.layers = spec.layers() ? spec.extent.depth : 0;
  texture.is_cubemap = spec.has(kArrayCubemap);
  texture.sampler = sampler;
  texture.array = std::move(storage);
  return texture;
}

/// Channel `c` of an element as the guide reads it, with doubles all the way.
double element(const TextureObject& texture, const Level& level, std::int64_t x, std::int64_t y,
               std::int64_t z, unsigned c) {
  const ArrayFormat& format = texture.format;
  const std::byte* at = level.elements + static_cast<std::uint64_t>(z) * level.slice +
                        static_cast<std::uint64_t>(y) * level.pitch +
                        static_cast<std::uint64_t>(x) * format.bytes() + c * format.bits / 8;
  const auto read = [&]<typename T>(T value) {
    std::memcpy(&value, at, sizeof(value));
    return value;
  };
  __extension__ using Half = _Float16;
  if (format.kind == ChannelKind::kFloat) {
    return format.bits == 32 ? static_cast<double>(read(float{}))
                             : static_cast<double>(static_cast<float>(read(Half{})));
  }
  const bool is_signed = format.kind == ChannelKind::kSigned;
  const auto integer = [&]() -> std::int64_t {
    if (format.bits == 8) return is_signed ? read(std::int8_t{}) : read(std::uint8_t{});
    if (format.bits == 16) return is_signed ? read(std::int16_t{}) : read(std::uint16_t{});
    if (is_signed) return read(std::int32_t{});
    return read(std::uint32_t{});
  };
  const auto value = static_cast<double>(integer());
  if (texture.sampler.reads_normalized_float == 0) return value;
  const double most = std::ldexp(1, static_cast<int>(format.bits) - (is_signed ? 1 : 0)) - 1;
  return static_cast<double>(std::max(-1.0f, static_cast<float>(value / most)));
}

/// An index outside as the address mode has it; -1 for the border.
std::int64_t brought_inside(std::int64_t i, std::int64_t n, AddressMode mode) {
  switch (mode) {
    case AddressMode::kWrap:
      while (i < 0) i += n;
      return i % n;
    case AddressMode::kMirror: {
      while (i < 0) i += 2 * n;
      const std::int64_t within = i % (2 * n);
      return within < n ? within : 2 * n - 1 - within;
    }
    case AddressMode::kBorder:
      return i < 0 || i >= n ? -1 : i;
    case AddressMode::kClamp:
      break;
  }
  return std::min(std::max<std::int64_t>(i, 0), n - 1);
}

/// The guide's sum over 2 to the power of dimensions texels.
double reference(const TextureObject& texture, const Level& level, const std::array<float, 3>& at,
                 std::uint64_t layer, unsigned c) {
  const Sampler& sampler = texture.sampler;
  const bool linear = sampler.filter == FilterMode::kLinear;
  const auto sizes = std::array{level.box.width, level.box.height, level.box.depth};
  std::array<std::int64_t, 3> low{};
  std::array<double, 3> alpha{};
  std::array<AddressMode, 3> modes = sampler.address_mode;
  for (std::size_t d = 0; d < static_cast<std::size_t>(texture.dimensions); ++d) {
    double x = static_cast<double>(at[d]);
    const double part = x - std::floor(x);
    // The guide's own words; on the edge of a texel they differ from counting texels.
    if (!linear && sampler.normalized_coordinates != 0 && modes[d] == AddressMode::kMirror) {
      x = std::fmod(std::fabs(std::floor(x)), 2) == 0 ? part : 1 - part;
      x = std::min(x, 1 - 1e-9);
    }
    if (sampler.normalized_coordinates != 0) {
      x *= static_cast<double>(sizes[d]);
    } else if (modes[d] != AddressMode::kBorder) {
      modes[d] = AddressMode::kClamp;
    }
    if (linear) x -= 0.5;
    low[d] = static_cast<std::int64_t>(std::floor(x));
    if (linear) alpha[d] = std::round((x - std::floor(x)) * 256) / 256;
  }
  double sum = 0;
  for (unsigned corner = 0; corner < (1u << texture.dimensions); ++corner) {
    double weight = 1;
    std::array<std::int64_t, 3> i{};
    bool border = false;
    for (std::size_t d = 0; d < static_cast<std::size_t>(texture.dimensions); ++d) {
      const bool high = (corner >> d & 1) != 0;
      weight *= high ? alpha[d] : 1 - alpha[d];
      i[d] = brought_inside(low[d] + (high ? 1 : 0), static_cast<std::int64_t>(sizes[d]), modes[d]);
      border |= i[d] < 0;
    }
    const auto z = texture.layers > 0 ? static_cast<std::int64_t>(layer) : i[2];
    const double value =
        border ? static_cast<double>(sampler.border[c]) : element(texture, level, i[0], i[1], z, c);
    sum += weight * value;
  }
  return sum;
}

SampleRequest request_of(Geometry geometry, std::array<float, 3> at, std::uint32_t layer = 0) {
  SampleRequest request;
  request.geometry = geometry;
  request.at = at;
  request.layer = layer;
  return request;
}

void expect_all(const TextureObject& texture, Geometry geometry, const std::string& name) {
  std::mt19937 random(7);
  const bool normalized = texture.sampler.normalized_coordinates != 0;
  for (int point = 0; point < 200; ++point) {
    std::array<float, 3> at{};
    for (std::size_t d = 0; d < 3; ++d) {
      // Sixteenths of a texel: the edges of texels and their middles are among them.
      const auto sixteenths = static_cast<float>(static_cast<int>(random() % 800) - 400);
      at[d] = normalized ? sixteenths / 16 / 8 : sixteenths / 16;
    }
    const auto layer =
        static_cast<std::uint32_t>(random() % std::max<std::uint64_t>(1, texture.layers));
    const auto found = sample(texture, request_of(geometry, at, layer), kNoMemory);
    ASSERT_TRUE(found) << name << ": " << found.error().why;
    for (unsigned c = 0; c < texture.format.channels; ++c) {
      const double wanted = reference(texture, texture.levels[0], at, layer, c);
      ASSERT_EQ(std::bit_cast<float>((*found)[c]), static_cast<float>(wanted))
          << name << " channel " << c << " at " << at[0] << ", " << at[1] << ", " << at[2];
    }
  }
}

TEST(SamplerTest, EveryFilterAndAddressModeIsTheGuides) {
  struct Shape {
    Geometry geometry;
    ArrayExtent extent;
    std::uint32_t flags;
  };
  const Shape shapes[] = {{Geometry::k1D, {8, 0, 0}, 0},
                          {Geometry::k2D, {8, 4, 0}, 0},
                          {Geometry::k3D, {8, 4, 2}, 0},
                          {Geometry::kLayered1D, {8, 0, 3}, kArrayLayered},
                          {Geometry::kLayered2D, {8, 8, 3}, kArrayLayered}};
  for (const Shape& shape : shapes) {
    for (const bool normalized : {false, true}) {
      for (const FilterMode filter : {FilterMode::kPoint, FilterMode::kLinear}) {
        for (std::uint32_t mode = 0; mode < 4; ++mode) {
          Sampler sampler;
          sampler.address_mode.fill(static_cast<AddressMode>(mode));
          sampler.filter = filter;
          sampler.normalized_coordinates = normalized ? 1 : 0;
          sampler.border = {3, 5, 7, 9};
          const auto name = "dimensions " + std::to_string(coordinates_of(shape.geometry)) +
                            " normalized " + std::to_string(normalized) + " mode " +
                            std::to_string(mode) + " linear " +
                            std::to_string(static_cast<int>(filter));
          // The guide says nothing of the second mode of one dimension; what it does has a test.
          if (coordinates_of(shape.geometry) == 1) sampler.address_mode[1] = AddressMode::kClamp;
          expect_all(texture_of(spec_of(kFloat, shape.extent, shape.flags), sampler),
                     shape.geometry, name);
        }
      }
    }
  }
}

/// A texture of floats 1, 2, 4, 8, ... whose outside is 1024, filtered.
TextureObject powers_of_two(const ArrayExtent& extent, std::uint32_t flags = 0) {
  Sampler sampler;
  sampler.address_mode.fill(AddressMode::kBorder);
  sampler.filter = FilterMode::kLinear;
  sampler.border.fill(1024);
  TextureObject texture = texture_of(spec_of(kFloat, extent, flags), sampler);
  float value = 1;
  for (std::uint64_t i = 0; i < texture.levels[0].slice * texture.levels[0].box.depth; i += 4) {
    std::memcpy(texture.levels[0].elements + i, &value, sizeof(value));
    value *= 2;
  }
  return texture;
}

float filtered(const TextureObject& texture, Geometry geometry, std::array<float, 3> at) {
  const auto found = sample(texture, request_of(geometry, at), kNoMemory);
  return found ? std::bit_cast<float>((*found)[0]) : -1;
}

TEST(SamplerTest, TheBorderCountsByItsWeight) {
  TextureObject line = powers_of_two({4, 0, 0});
  line.sampler.address_mode[1] = AddressMode::kClamp;
  EXPECT_EQ(filtered(line, Geometry::k1D, {-1.0f}), 1024);
  EXPECT_EQ(filtered(line, Geometry::k1D, {0.25f}), 0.25f * 1024 + 0.75f * 1);
  EXPECT_EQ(filtered(line, Geometry::k1D, {1.75f}), 0.75f * 2 + 0.25f * 4);
  EXPECT_EQ(filtered(line, Geometry::k1D, {4.0f}), 0.5f * 8 + 0.5f * 1024);
  const TextureObject plane = powers_of_two({2, 2, 0});  // 1 2, 4 8
  EXPECT_EQ(filtered(plane, Geometry::k2D, {0.0f, 0.0f}), 0.75f * 1024 + 0.25f * 1);
  EXPECT_EQ(filtered(plane, Geometry::k2D, {1.0f, 0.0f}), 0.5f * 1024 + 0.25f * (1 + 2));
  EXPECT_EQ(filtered(plane, Geometry::k2D, {2.0f, 1.75f}), 0.625f * 1024 + 0.375f * 8);
  const TextureObject volume = powers_of_two({2, 2, 2});  // 1 2, 4 8; 16 32, 64 128
  EXPECT_EQ(filtered(volume, Geometry::k3D, {0.0f, 0.0f, 0.0f}), 0.875f * 1024 + 0.125f * 1);
  EXPECT_EQ(filtered(volume, Geometry::k3D, {1.0f, 1.0f, 2.0f}),
            0.5f * 1024 + 0.125f * (16 + 32 + 64 + 128));
}

TEST(SamplerTest, OneDimensionIsFilteredAtTheUpperEdgeOfItsRow) {
  TextureObject line = powers_of_two({4, 0, 0});
  const TextureObject layers = powers_of_two({4, 0, 2}, kArrayLayered);
  EXPECT_EQ(filtered(line, Geometry::k1D, {1.5f}), 0.5f * 2 + 0.5f * 1024);
  EXPECT_EQ(filtered(layers, Geometry::kLayered1D, {1.5f}), 0.5f * 2 + 0.5f * 1024);
  line.sampler.filter = FilterMode::kPoint;
  EXPECT_EQ(filtered(line, Geometry::k1D, {1.5f}), 2);
}

TEST(SamplerTest, EveryFormatIsReadAsNumbers) {
  for (const ChannelKind kind :
       {ChannelKind::kSigned, ChannelKind::kUnsigned, ChannelKind::kFloat}) {
    for (const std::uint32_t bits : {8u, 16u, 32u}) {
      for (const std::uint32_t channels : {1u, 2u, 4u}) {
        const ArrayFormat format{kind, bits, channels, 0};
        if (!is_valid(format) || (kind != ChannelKind::kFloat && bits == 32)) continue;
        Sampler sampler;
        sampler.reads_normalized_float = 1;
        sampler.address_mode.fill(AddressMode::kClamp);
        expect_all(texture_of(spec_of(format, {8, 4, 0}), sampler), Geometry::k2D,
                   std::to_string(bits) + " bits x " + std::to_string(channels));
      }
    }
  }
}

TEST(SamplerTest, IntegersComeUnchangedAndExtendedByTheirSign) {
  for (const ChannelKind kind : {ChannelKind::kSigned, ChannelKind::kUnsigned}) {
    for (const std::uint32_t bits : {8u, 16u, 32u}) {
      Sampler sampler;
      sampler.address_mode.fill(AddressMode::kClamp);
      const TextureObject texture = texture_of(spec_of({kind, bits, 2, 0}, {8, 0, 0}), sampler);
      for (int i = 0; i < 8; ++i) {
        auto request = request_of(Geometry::k1D, {static_cast<float>(i) + 0.5f, 0, 0});
        request.type = SampleType::kSigned;
        const auto found = sample(texture, request, kNoMemory);
        ASSERT_TRUE(found);
        for (unsigned c = 0; c < 2; ++c) {
          const double wanted = element(texture, texture.levels[0], i, 0, 0, c);
          EXPECT_EQ((*found)[c], static_cast<std::uint32_t>(static_cast<std::int64_t>(wanted)));
        }
      }
    }
  }
}

TEST(SamplerTest, LevelsAreChosenByRoundingOrBlended) {
  Sampler sampler;
  sampler.normalized_coordinates = 1;
  sampler.mipmap_max = 10;
  const auto spec = spec_of(kFloat, {16, 8, 0}, 0, 4);
  const TextureObject nearest = texture_of(spec, sampler);
  sampler.mipmap_filter = FilterMode::kLinear;
  const TextureObject blended = texture_of(spec, sampler);
  for (const float level : {-1.0f, 0.0f, 0.25f, 0.75f, 1.0f, 1.6875f, 2.25f, 3.0f, 9.0f}) {
    auto request = request_of(Geometry::k2D, {0.3f, 0.6f, 0});
    request.has_level = true;
    request.level = level;
    const auto reference_at = [&](std::size_t i) {
      return reference(nearest, nearest.levels[i], request.at, 0, 0);
    };
    const double clamped = std::clamp(static_cast<double>(level), 0.0, 3.0);
    const auto one = sample(nearest, request, kNoMemory);
    ASSERT_TRUE(one);
    EXPECT_EQ(std::bit_cast<float>((*one)[0]),
              static_cast<float>(reference_at(static_cast<std::size_t>(std::lround(clamped)))));
    const auto low = static_cast<std::size_t>(clamped);
    const double part = clamped - static_cast<double>(low);
    const double wanted =
        (1 - part) * reference_at(low) + part * reference_at(std::min<std::size_t>(low + 1, 3));
    const auto both = sample(blended, request, kNoMemory);
    ASSERT_TRUE(both);
    EXPECT_EQ(std::bit_cast<float>((*both)[0]), static_cast<float>(wanted)) << level;
  }
}

TEST(SamplerTest, LayersOutsideAreTheNearest) {
  Sampler sampler;
  const TextureObject texture = texture_of(spec_of(kFloat, {4, 4, 3}, kArrayLayered), sampler);
  const auto last = sample(texture, request_of(Geometry::kLayered2D, {1, 1, 0}, 2), kNoMemory);
  const auto beyond = sample(texture, request_of(Geometry::kLayered2D, {1, 1, 0}, 77), kNoMemory);
  ASSERT_TRUE(last && beyond);
  EXPECT_EQ(*last, *beyond);
}

TEST(SamplerTest, ADirectionFindsItsFaceOfACube) {
  const TextureObject texture = texture_of(spec_of(kFloat, {4, 4, 6}, kArrayCubemap), {});
  const std::array<float, 3> directions[6] = {{2, 0.2f, 0.2f},  {-2, 0.2f, 0.2f}, {0.2f, 2, 0.2f},
                                              {0.2f, -2, 0.2f}, {0.2f, 0.2f, 2},  {0.2f, 0.2f, -2}};
  // (s, t) of the guide's table, in texels of four.
  const std::array<std::int64_t, 2> places[6] = {{1, 1}, {2, 1}, {2, 2}, {2, 1}, {2, 1}, {1, 1}};
  for (std::size_t face = 0; face < 6; ++face) {
    const auto found = sample(texture, request_of(Geometry::kCubemap, directions[face]), kNoMemory);
    ASSERT_TRUE(found);
    EXPECT_EQ(std::bit_cast<float>((*found)[0]),
              static_cast<float>(element(texture, texture.levels[0], places[face][0],
                                         places[face][1], static_cast<std::int64_t>(face), 0)))
        << face;
  }
}

TEST(SamplerTest, GatheringTakesFourTexelsCounterClockwise) {
  Sampler sampler;
  sampler.address_mode.fill(AddressMode::kClamp);
  const TextureObject texture = texture_of(spec_of(kFloat, {4, 4, 0}), sampler);
  const auto found = gather(texture, request_of(Geometry::k2D, {2, 2, 0}), 0, kNoMemory);
  ASSERT_TRUE(found);
  const std::array<std::int64_t, 2> order[4] = {{1, 2}, {2, 2}, {2, 1}, {1, 1}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(
        std::bit_cast<float>((*found)[i]),
        static_cast<float>(element(texture, texture.levels[0], order[i][0], order[i][1], 0, 0)));
  }
}

TEST(SamplerTest, ColoursBecomeLinearButAlphaStays) {
  Sampler sampler;
  sampler.reads_normalized_float = 1;
  sampler.srgb = 1;
  const TextureObject texture =
      texture_of(spec_of({ChannelKind::kUnsigned, 8, 4, 0}, {2, 0, 0}), sampler);
  const std::uint8_t colour[4] = {0, 10, 188, 188};
  std::memcpy(texture.levels[0].elements, colour, 4);
  const auto found = sample(texture, request_of(Geometry::k1D, {0.5f, 0, 0}), kNoMemory);
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)[0], 0u);
  EXPECT_FLOAT_EQ(std::bit_cast<float>((*found)[1]), 10 / 255.0f / 12.92f);
  EXPECT_NEAR(std::bit_cast<float>((*found)[2]), 0.5029f, 1e-4f);
  EXPECT_EQ(std::bit_cast<float>((*found)[3]), 188 / 255.0f);
}

TEST(SamplerTest, WhatIsNotDocumentedIsRefusedWithItsReason) {
  const TextureObject flat = texture_of(spec_of(kFloat, {8, 8, 0}), {});
  const auto why = [](const Sample& sample) {
    return sample ? std::string_view{} : sample.error().why;
  };
  EXPECT_NE(why(sample(flat, request_of(Geometry::k1D, {}), kNoMemory)).find("dimensions"),
            std::string_view::npos);
  auto integers = request_of(Geometry::k2D, {});
  integers.type = SampleType::kUnsigned;
  EXPECT_NE(why(sample(flat, integers, kNoMemory)).find("another type"), std::string_view::npos);
  EXPECT_NE(why(sample(flat, request_of(Geometry::k2D, {NAN, 0, 0}), kNoMemory)).find("no number"),
            std::string_view::npos);
  auto texel = request_of(Geometry::k2D, {});
  texel.texels = true;
  texel.index = {8, 0, 0};
  EXPECT_NE(why(sample(flat, texel, kNoMemory)).find("outside"), std::string_view::npos);
}

TEST(TexelTest, FormattedStoresTakeOnlyValuesOfTheFormat) {
  std::byte bytes[16]{};
  EXPECT_TRUE(write_texel({ChannelKind::kUnsigned, 8, 2, 0}, bytes, {255, 3, 0, 0}));
  EXPECT_EQ(read_bytes(bytes, 2), 0x03ffu);
  EXPECT_FALSE(write_texel({ChannelKind::kUnsigned, 8, 2, 0}, bytes, {256, 0, 0, 0}));
  EXPECT_EQ(read_bytes(bytes, 2), 0x03ffu);
  EXPECT_TRUE(write_texel({ChannelKind::kSigned, 16, 1, 0}, bytes, {0xffff8000u, 0, 0, 0}));
  EXPECT_FALSE(write_texel({ChannelKind::kSigned, 16, 1, 0}, bytes, {0x8000u, 0, 0, 0}));
  EXPECT_TRUE(write_texel({ChannelKind::kFloat, 16, 1, 0}, bytes,
                          {std::bit_cast<std::uint32_t>(1.5f), 0, 0, 0}));
  EXPECT_EQ(read_bytes(bytes, 2), 0x3e00u);
  EXPECT_FALSE(write_texel({ChannelKind::kFloat, 16, 1, 0}, bytes,
                           {std::bit_cast<std::uint32_t>(0.1f), 0, 0, 0}));
}

}  // namespace
}  // namespace slate::sim
