#include "daemon/engine/commands/array_commands.h"

namespace slate::daemon {

using ipc::CommandType;

void ArrayCommands::start() {
  objects_.emplace(context_.device, memory_.manager());
}

void ArrayCommands::release() {
  if (objects_) objects_->release();
}

Result<void> ArrayCommands::on(const Call<CommandType::kArrayCreate>& call) {
  return context_.checked(memory_.with_device_room(
      [&] { return objects_->create_array(call.body.id, call.body.spec); }));
}

Result<void> ArrayCommands::finish_later(Result<ObjectTable::Ticket> ticket) {
  if (!ticket) return std::unexpected(ticket.error());
  return context_.checked(context_.retirement.after_present_work(
      [this, ticket = *ticket] { objects_->finish(ticket); }));
}

Result<void> ArrayCommands::take_away(Result<ObjectTable::Ticket> ticket, std::uint64_t handle) {
  if (!ticket) return std::unexpected(ticket.error());
  return context_.take_away([this, handle] { context_.fence.remove_handle(handle); },
                            [this, ticket = *ticket] { objects_->finish(ticket); });
}

Result<void> ArrayCommands::on(const Call<CommandType::kArrayDestroy>& call) {
  return finish_later(objects_->retire_array(call.body.id));
}

/// Whether a texture that begins in an allocation may end behind it, as the driver allows. Within
/// the arena there is only memory of this session.
bool ArrayCommands::may_go_beyond(device::Address address, std::uint64_t bytes) const {
  const MemoryManager& manager = memory_.manager();
  return manager.owns(address, 1) && manager.arena().contains(address, bytes);
}

Result<void> ArrayCommands::on(const Call<CommandType::kTextureCreate>& call) {
  const TextureSpec& spec = call.body.spec;
  if (const auto valid = check_texture(spec); !valid) return valid;
  const ResourceKind kind = spec.resource.kind;
  device::AddressRange memory;  // none of an array
  if (kind == ResourceKind::kLinear || kind == ResourceKind::kPitch2D) {
    const auto bytes = linear_bytes(spec.resource, context_.device.info());
    if (!bytes) return std::unexpected(bytes.error());
    const device::Address address = spec.resource.address;
    const auto owned = ranges_.check(address, *bytes);
    if (!owned && !may_go_beyond(address, *bytes)) return owned;
    memory = {address, *bytes};
  }
  const auto handle = objects_->create_texture(spec);
  if (!handle) return context_.checked(std::unexpected(handle.error()));
  memory_.manager().lock_in_place(memory);
  context_.fence.add_handle(*handle);
  call.reply.set(ipc::HandleReply{*handle});
  return {};
}

Result<void> ArrayCommands::on(const Call<CommandType::kTextureDestroy>& call) {
  return take_away(objects_->retire_texture(call.body.id), call.body.id);
}

Result<void> ArrayCommands::on(const Call<CommandType::kSurfaceCreate>& call) {
  const auto handle = objects_->create_surface(call.body.array, call.body.level);
  if (!handle) return context_.checked(std::unexpected(handle.error()));
  context_.fence.add_handle(*handle);
  call.reply.set(ipc::HandleReply{*handle});
  return {};
}

Result<void> ArrayCommands::on(const Call<CommandType::kSurfaceDestroy>& call) {
  return take_away(objects_->retire_surface(call.body.id), call.body.id);
}

}  // namespace slate::daemon
