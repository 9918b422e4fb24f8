// Instructions on textures and surfaces. Their coordinates travel in one register of 16 bytes, made
// by an operation before: x, y and z where the geometry has them, the layer behind those, and the
// level of a mipmapped array last.
#include <array>
#include <optional>
#include <utility>

#include "device/sim/decode.h"
#include "device/sim/sampler.h"

namespace slate::sim {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

constexpr std::size_t kLanes = 4;  // of the register of coordinates

std::optional<Geometry> geometry_of(const Instruction& instruction) {
  constexpr std::pair<std::string_view, Geometry> kNames[] = {{"1d", Geometry::k1D},
                                                              {"2d", Geometry::k2D},
                                                              {"3d", Geometry::k3D},
                                                              {"a1d", Geometry::kLayered1D},
                                                              {"a2d", Geometry::kLayered2D},
                                                              {"cube", Geometry::kCubemap},
                                                              {"acube", Geometry::kLayeredCubemap}};
  for (const auto& [name, geometry] : kNames) {
    if (instruction.has(name)) return geometry;
  }
  return std::nullopt;
}

std::optional<SampleType> sample_type(Type type) {
  if (type == Type::kF32) return SampleType::kFloat;
  if (type == Type::kS32) return SampleType::kSigned;
  if (type == Type::kU32) return SampleType::kUnsigned;
  return std::nullopt;
}

}  // namespace

/// The number of a texture or surface. References by name, as old code has them, are not known.
Ref FunctionDecoder::object_handle(const Operand& address) {
  if (address.kind != Operand::Kind::kAddress || address.integer != 0 || address.parts.empty()) {
    return bad_ = true, kNoRef;
  }
  const Operand& handle = address.parts[0];
  if (handle.kind == Operand::Kind::kInteger)
    return context_.constant(static_cast<std::uint64_t>(handle.integer), 8);
  const Ref ref = register_of(handle);
  if (ref == kNoRef || width_of(ref) != 8) bad_ = true;
  return ref;
}

/// The register of coordinates. `level` may be null.
Ref FunctionDecoder::object_coordinates(const Operand& address, Geometry geometry, Type type,
                                        const Operand* level) {
  const auto count = static_cast<std::size_t>(coordinates_of(geometry));
  const bool layered = has_layer(geometry);
  if (address.parts.size() != 2) return bad_ = true, kNoRef;
  const std::vector<Operand> given = parts_of(address.parts[1]);
  const std::size_t wanted = count + (layered ? 1 : 0);
  // Vectors of three are written as four.
  if (given.size() < wanted || given.size() > (wanted == 3 ? 4 : wanted)) {
    return bad_ = true, kNoRef;
  }
  std::array<Ref, kLanes> lanes{};
  lanes.fill(context_.constant(0, 4));
  const auto put = [&](std::size_t lane, const Operand& operand, Type its) {
    const Ref ref = source(operand, its);
    if (!bad_) lanes[lane] = fit_source(ref, 4);
  };
  for (std::size_t i = 0; i < count; ++i) put(i, given[i + (layered ? 1 : 0)], type);
  if (layered) put(count, given[0], Type::kU32);
  if (level != nullptr && count + (layered ? 1 : 0) == kLanes) bad_ = true;
  if (level != nullptr && !bad_) put(kLanes - 1, *level, type);
  if (bad_) return kNoRef;
  const Ref packed = new_register(16);
  Op& op = emit(Kind::kPack);
  op.r[0] = packed;
  op.defs = 1;
  for (std::size_t i = 0; i < kLanes; ++i) {
    op.r[1 + i] = lanes[i];
    op.uses = static_cast<std::uint8_t>(op.uses | 2u << i);
  }
  op.a = 16;
  op.b = kLanes;
  op.c = 4;
  return packed;
}

void FunctionDecoder::decode_tex(const Instruction& instruction) {
  const bool gathers = instruction.opcode == "tld4";
  const bool leveled = instruction.has("level");
  const Operand* d = operand(instruction, 0);
  const Operand* address = operand(instruction, 1);
  const Operand* level = leveled ? operand(instruction, 2) : nullptr;
  const auto geometry = geometry_of(instruction);
  const Type coordinates = instruction.type();
  const auto type = sample_type(instruction.type(1));
  if (bad_ || !geometry || !type || !instruction.has("v4") ||
      instruction.operands.size() != (leveled ? 3u : 2u) || parts_of(*d).size() != 4 ||
      (coordinates != Type::kF32 && (gathers || coordinates != Type::kS32))) {
    return unsupported();
  }
  if (gathers && *geometry != Geometry::k2D && *geometry != Geometry::kLayered2D)
    return unsupported();
  Op op;
  op.r[4] = object_handle(*address);
  if (!bad_) op.r[5] = object_coordinates(*address, *geometry, coordinates, level);
  const std::vector<Operand> parts = parts_of(*d);
  for (std::size_t i = 0; i < 4 && !bad_; ++i) op.r[i] = destination(parts[i], 4);
  if (bad_) return;
  op.defs = 0x0f;
  op.uses = 0x30;
  op.a = static_cast<std::uint8_t>(*geometry);
  op.b = static_cast<std::uint8_t>(*type);
  op.c = static_cast<std::uint8_t>((coordinates == Type::kS32 ? kByTexel : 0) |
                                   (leveled ? kAtLevel : 0) | (gathers ? kGathers : 0));
  constexpr std::string_view kChannels[] = {"r", "g", "b", "a"};
  for (std::uint8_t i = 0; i < 4; ++i) {
    if (instruction.has(kChannels[i])) op.e = i;
  }
  emit_as(Kind::kTexture, op);
}

void FunctionDecoder::decode_txq(const Instruction& instruction) {
  constexpr std::pair<std::string_view, TextureQuery> kQueries[] = {
      {"width", TextureQuery::kWidth},
      {"height", TextureQuery::kHeight},
      {"depth", TextureQuery::kDepth},
      {"array_size", TextureQuery::kLayers},
      {"num_mipmap_levels", TextureQuery::kLevels},
      {"normalized_coords", TextureQuery::kNormalized}};
  const Operand* d = operand(instruction, 0);
  const Operand* address = operand(instruction, 1);
  if (bad_ || address->parts.size() != 1 || instruction.operands.size() != 2) return unsupported();
  Op op;
  bool known = false;
  for (const auto& [name, query] : kQueries) {
    if (!instruction.has(name)) continue;
    known = true;
    op.b = static_cast<std::uint8_t>(query);
  }
  op.r[4] = object_handle(*address);
  if (bad_ || !known) return unsupported();
  op.r[0] = destination(*d, 4);
  op.defs = 1;
  op.uses = 1 << 4;
  op.a = instruction.opcode == "suq" ? 1 : 0;
  if (!bad_) emit_as(Kind::kTextureQuery, op);
}

void FunctionDecoder::decode_surface(const Instruction& instruction) {
  const bool loads = instruction.opcode == "suld";
  const bool formatted = instruction.has("p");
  const Operand* address = operand(instruction, loads ? 1 : 0);
  const Operand* data = operand(instruction, loads ? 0 : 1);
  const auto geometry = geometry_of(instruction);
  const Type type = instruction.type();
  const std::uint32_t bytes = ptx::type_bytes(type);
  const std::uint32_t count = instruction.has("v4") ? 4 : instruction.has("v2") ? 2 : 1;
  const bool cube = geometry == Geometry::kCubemap || geometry == Geometry::kLayeredCubemap;
  if (bad_ || !geometry || cube || instruction.operands.size() != 2 || bytes == 0 || bytes > 8 ||
      formatted == instruction.has("b") || (formatted && (loads || type != Type::kB32))) {
    return unsupported();
  }
  const std::vector<Operand> values = parts_of(*data);
  if (values.size() != count) return unsupported();
  Op op;
  op.r[4] = object_handle(*address);
  if (!bad_) op.r[5] = object_coordinates(*address, *geometry, Type::kS32, nullptr);
  const std::uint32_t width = storage_width(type);
  for (std::uint32_t i = 0; i < count && !bad_; ++i) {
    op.r[i] = loads ? destination(values[i], width) : source(values[i], type);
    if (!loads && !bad_) op.r[i] = fit_source(op.r[i], width);
  }
  if (bad_) return;
  const auto data_bits = static_cast<std::uint8_t>((1u << count) - 1);
  op.defs = loads ? data_bits : 0;
  op.uses = static_cast<std::uint8_t>(0x30 | (loads ? 0 : data_bits));
  op.a = static_cast<std::uint8_t>(*geometry);
  op.b = static_cast<std::uint8_t>(bytes);
  op.c = static_cast<std::uint8_t>(count);
  const auto boundary = instruction.has("clamp")  ? SurfaceBoundary::kClamp
                        : instruction.has("zero") ? SurfaceBoundary::kZero
                                                  : SurfaceBoundary::kTrap;
  op.e = static_cast<std::uint8_t>(boundary);
  if (formatted) op.flags |= kFormatted;
  emit_as(loads ? Kind::kSurfaceLoad : Kind::kSurfaceStore, op);
}

}  // namespace slate::sim
