// Arrays, textures and surfaces: made and destroyed. Copies of arrays are in boxes.cc.
#include "client/session/session.h"
#include "client/session/session_calls.h"

namespace slate::client {

using ipc::CommandType;

Result<std::uint64_t> Session::create_array(const ArraySpec& spec) {
  const std::uint64_t id = arrays_.next_id();
  auto made = call<Nothing>(CommandType::kArrayCreate, ipc::ArrayCreate{id, spec});
  if (!made) return std::unexpected(made.error());
  arrays_.add(id, spec);
  return id;
}

Result<void> Session::destroy_array(std::uint64_t id) {
  if (!arrays_.remove(id)) return fail(ErrorCode::kInvalidHandle, "no such array");
  return post(CommandType::kArrayDestroy, ipc::IdCommand{id});
}

Result<std::uint64_t> Session::create_texture(const TextureSpec& spec) {
  auto made = call<ipc::HandleReply>(CommandType::kTextureCreate, ipc::TextureCreate{spec});
  if (!made) return std::unexpected(made.error());
  return made->handle;
}

Result<void> Session::destroy_texture(std::uint64_t handle) {
  return post(CommandType::kTextureDestroy, ipc::IdCommand{handle});
}

Result<std::uint64_t> Session::create_surface(const ArrayTable::Entry& array) {
  auto made = call<ipc::HandleReply>(CommandType::kSurfaceCreate,
                                     ipc::SurfaceCreate{array.array, array.level, 0});
  if (!made) return std::unexpected(made.error());
  return made->handle;
}

Result<void> Session::destroy_surface(std::uint64_t handle) {
  return post(CommandType::kSurfaceDestroy, ipc::IdCommand{handle});
}

}  // namespace slate::client
