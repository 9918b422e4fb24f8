#include "client/session/texture_use.h"

namespace slate::client {
namespace {

Allowed<void> check_reading(const TextureSpec& spec) {
  ArrayFormat format = spec.resource.format;
  if (spec.view.format != 0) format = view_format(spec.view.format);
  if (format.channels == 0) return {};
  const bool as_fractions = spec.sampler.reads_normalized_float != 0;
  const bool filtered =
      spec.resource.kind != ResourceKind::kLinear && spec.sampler.filter == FilterMode::kLinear;
  const bool becomes_float =
      format.kind == ChannelKind::kFloat || (as_fractions && format.bits != 32);
  if (filtered && !becomes_float) return refuse(Refusal::kBadFilter);
  if (as_fractions && format.bits == 32) return refuse(Refusal::kBadNormalization);
  return {};
}

Allowed<void> check(const TextureSpec& spec, bool has_view, const DeviceInfo& device) {
  if (auto ok = check_texture(spec); !ok) return std::unexpected<Refused>(std::move(ok.error()));
  if (auto ok = check_reading(spec); !ok) return ok;
  const ResourceKind kind = spec.resource.kind;
  if (kind != ResourceKind::kLinear && kind != ResourceKind::kPitch2D) return {};
  if (has_view) return refuse(Refusal::kInvalidValue);
  auto bytes = linear_bytes(spec.resource, device);
  if (!bytes) return std::unexpected<Refused>(std::move(bytes.error()));
  return {};
}

}  // namespace

Allowed<std::uint64_t> create_texture(Session& session, const TextureSpec& spec, bool has_view) {
  if (auto ok = check(spec, has_view, session.device()); !ok) return std::unexpected(ok.error());
  return session.arrays().create_texture(spec);
}

}  // namespace slate::client
