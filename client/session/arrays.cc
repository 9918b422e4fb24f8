#include "client/session/arrays.h"

namespace slate::client {

using ipc::CommandType;

Result<std::uint64_t> Arrays::create(const ArraySpec& spec) {
  const std::uint64_t id = table_.next_id();
  auto made = wire_.call<Nothing>(CommandType::kArrayCreate, ipc::ArrayCreate{id, spec});
  if (!made) return std::unexpected(made.error());
  table_.add(id, spec);
  return id;
}

Result<void> Arrays::destroy(std::uint64_t id) {
  if (!table_.remove(id)) return fail(ErrorCode::kInvalidHandle, "no such array");
  return wire_.post(CommandType::kArrayDestroy, ipc::IdCommand{id});
}

Result<std::uint64_t> Arrays::create_texture(const TextureSpec& spec) {
  auto made = wire_.call<ipc::HandleReply>(CommandType::kTextureCreate, ipc::TextureCreate{spec});
  if (!made) return std::unexpected(made.error());
  return made->handle;
}

Result<void> Arrays::destroy_texture(std::uint64_t handle) {
  return wire_.post(CommandType::kTextureDestroy, ipc::IdCommand{handle});
}

Result<std::uint64_t> Arrays::create_surface(const ArrayTable::Entry& array) {
  auto made = wire_.call<ipc::HandleReply>(CommandType::kSurfaceCreate,
                                           ipc::SurfaceCreate{array.array, array.level, 0});
  if (!made) return std::unexpected(made.error());
  return made->handle;
}

Result<void> Arrays::destroy_surface(std::uint64_t handle) {
  return wire_.post(CommandType::kSurfaceDestroy, ipc::IdCommand{handle});
}

}  // namespace slate::client
