// Commands on arrays, textures and surfaces. The numbers that kernels take are the device's, so
// making one has a reply. What is destroyed is gone for the client at once, but stays until all
// work submitted before has finished.
#include "daemon/engine/session.h"

namespace slate::daemon {

Result<void> Session::array_create(const ipc::Command& command, Reply&) {
  const auto request = command.as<ipc::ArrayCreate>();
  if (!request) return std::unexpected(request.error());
  return checked(
      when_there_is_room([&] { return objects_->create_array(request->id, request->spec); }));
}

Result<void> Session::finish_later(Result<ObjectTable::Ticket> ticket) {
  if (!ticket) return std::unexpected(ticket.error());
  return checked(
      retirement_.after_present_work([this, ticket = *ticket] { objects_->finish(ticket); }));
}

Result<void> Session::array_destroy(const ipc::Command& command, Reply&) {
  const auto request = command.as<ipc::IdCommand>();
  if (!request) return std::unexpected(request.error());
  return finish_later(objects_->retire_array(request->id));
}

Result<void> Session::texture_create(const ipc::Command& command, Reply& reply) {
  const auto request = command.as<ipc::TextureCreate>();
  if (!request) return std::unexpected(request.error());
  const TextureSpec& spec = request->spec;
  if (const auto valid = check_texture(spec); !valid) return valid;
  const ResourceKind kind = spec.resource.kind;
  if (kind == ResourceKind::kLinear || kind == ResourceKind::kPitch2D) {
    const auto bytes = linear_bytes(spec.resource, device_.info());
    if (!bytes) return std::unexpected(bytes.error());
    if (const auto ok = check_range(spec.resource.address, *bytes, *bytes, 1); !ok) return ok;
  }
  const auto handle = objects_->create_texture(spec);
  if (!handle) return checked(std::unexpected(handle.error()));
  reply.set(ipc::HandleReply{*handle});
  return {};
}

Result<void> Session::texture_destroy(const ipc::Command& command, Reply&) {
  const auto request = command.as<ipc::IdCommand>();
  if (!request) return std::unexpected(request.error());
  return finish_later(objects_->retire_texture(request->id));
}

Result<void> Session::surface_create(const ipc::Command& command, Reply& reply) {
  const auto request = command.as<ipc::SurfaceCreate>();
  if (!request) return std::unexpected(request.error());
  const auto handle = objects_->create_surface(request->array, request->level);
  if (!handle) return checked(std::unexpected(handle.error()));
  reply.set(ipc::HandleReply{*handle});
  return {};
}

Result<void> Session::surface_destroy(const ipc::Command& command, Reply&) {
  const auto request = command.as<ipc::IdCommand>();
  if (!request) return std::unexpected(request.error());
  return finish_later(objects_->retire_surface(request->id));
}

}  // namespace slate::daemon
