// Commands on arrays, textures and surfaces. The numbers that kernels take are the device's, so
// making one has a reply. What is destroyed is gone for the client at once, but stays until all
// work submitted before has finished.
#include "daemon/engine/session.h"

namespace slate::daemon {

using ipc::CommandType;

Result<void> Session::on(const Call<CommandType::kArrayCreate>& call) {
  return checked(
      when_there_is_room([&] { return objects_->create_array(call.body.id, call.body.spec); }));
}

Result<void> Session::finish_later(Result<ObjectTable::Ticket> ticket) {
  if (!ticket) return std::unexpected(ticket.error());
  return checked(
      retirement_.after_present_work([this, ticket = *ticket] { objects_->finish(ticket); }));
}

Result<void> Session::on(const Call<CommandType::kArrayDestroy>& call) {
  return finish_later(objects_->retire_array(call.body.id));
}

Result<void> Session::on(const Call<CommandType::kTextureCreate>& call) {
  const TextureSpec& spec = call.body.spec;
  if (const auto valid = check_texture(spec); !valid) return valid;
  const ResourceKind kind = spec.resource.kind;
  if (kind == ResourceKind::kLinear || kind == ResourceKind::kPitch2D) {
    const auto bytes = linear_bytes(spec.resource, device_.info());
    if (!bytes) return std::unexpected(bytes.error());
    if (const auto ok = check_range(spec.resource.address, *bytes, *bytes, 1); !ok) return ok;
  }
  const auto handle = objects_->create_texture(spec);
  if (!handle) return checked(std::unexpected(handle.error()));
  call.reply.set(ipc::HandleReply{*handle});
  return {};
}

Result<void> Session::on(const Call<CommandType::kTextureDestroy>& call) {
  return finish_later(objects_->retire_texture(call.body.id));
}

Result<void> Session::on(const Call<CommandType::kSurfaceCreate>& call) {
  const auto handle = objects_->create_surface(call.body.array, call.body.level);
  if (!handle) return checked(std::unexpected(handle.error()));
  call.reply.set(ipc::HandleReply{*handle});
  return {};
}

Result<void> Session::on(const Call<CommandType::kSurfaceDestroy>& call) {
  return finish_later(objects_->retire_surface(call.body.id));
}

}  // namespace slate::daemon
