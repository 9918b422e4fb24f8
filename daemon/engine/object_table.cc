#include "daemon/engine/object_table.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"

namespace slate::daemon {
namespace {

std::unexpected<Error> no_such(const char* what) {
  return fail(ErrorCode::kInvalidHandle, fmt::format("no such {}", what));
}

}  // namespace

ObjectTable::Array::~Array() {
  device_.destroy_array(handle);
  memory_.finish_charge(array_bytes(spec), retired);
}

ObjectTable::~ObjectTable() {
  SLATE_CHECK(count() == 0 && retired_.empty());
}

Result<void> ObjectTable::create_array(std::uint64_t id, const ArraySpec& spec) {
  if (id == 0 || arrays_.contains(id)) {
    return fail(ErrorCode::kProtocol, fmt::format("array id {} is not a new one", id));
  }
  if (const auto valid = check_array(spec, device_.info()); !valid) return valid;
  if (arrays_.size() >= kMostArrays) return fail(ErrorCode::kLimit, "too many arrays");
  const std::uint64_t bytes = array_bytes(spec);
  if (const auto charged = memory_.charge(bytes); !charged) return charged;
  const auto made = device_.create_array(spec);
  if (!made) {
    memory_.finish_charge(bytes, false);
    return std::unexpected(made.error());
  }
  const MutexLock lock(mutex_);
  arrays_.emplace(id, std::make_shared<Array>(device_, memory_, spec, *made));
  return {};
}

Result<std::shared_ptr<ObjectTable::Array>> ObjectTable::find_array(std::uint64_t id) const {
  const auto found = arrays_.find(id);
  if (found == arrays_.end()) return no_such("array");
  return found->second;
}

Result<std::uint64_t> ObjectTable::create_texture(const TextureSpec& spec) {
  if (textures_.size() + surfaces_.size() >= kMostObjects) {
    return fail(ErrorCode::kLimit, "too many textures and surfaces");
  }
  Texture texture;
  TextureSpec on_device = spec;
  const ResourceKind kind = spec.resource.kind;
  if (kind == ResourceKind::kArray || kind == ResourceKind::kMipmappedArray) {
    auto array = find_array(spec.resource.array);
    if (!array) return std::unexpected(array.error());
    texture.array = std::move(*array);
    on_device.resource.array = static_cast<std::uint64_t>(texture.array->handle);
  } else {
    texture.memory =
        memory_.allocation_of(spec.resource.address).value_or(device::AddressRange{}).base;
  }
  const auto made = device_.create_texture(on_device, memory_.arena());
  if (!made) return std::unexpected(made.error());
  texture.handle = *made;
  const auto handle = static_cast<std::uint64_t>(*made);
  const MutexLock lock(mutex_);
  if (texture.array) ++texture.array->users;
  if (texture.memory != 0) SLATE_CHECK(memory_.keep(texture.memory));
  textures_.insert_or_assign(handle, std::move(texture));
  return handle;
}

Result<std::uint64_t> ObjectTable::create_surface(std::uint64_t array, std::uint32_t level) {
  if (textures_.size() + surfaces_.size() >= kMostObjects) {
    return fail(ErrorCode::kLimit, "too many textures and surfaces");
  }
  auto its = find_array(array);
  if (!its) return std::unexpected(its.error());
  const auto made = device_.create_surface((*its)->handle, level, memory_.arena());
  if (!made) return std::unexpected(made.error());
  const auto handle = static_cast<std::uint64_t>(*made);
  const MutexLock lock(mutex_);
  ++(*its)->users;
  surfaces_.insert_or_assign(handle, Surface{*made, std::move(*its)});
  return handle;
}

ObjectTable::Ticket ObjectTable::retire(Object object) {
  const Ticket ticket = next_ticket_++;
  retired_.emplace(ticket, std::move(object));
  return ticket;
}

/// If only running work needs the array, a thread that asks for memory may wait for its end from
/// now on.
void ObjectTable::note_unused(Array& array) {
  if (!array.freed || array.users > 0) return;
  array.retired = true;
  memory_.retire_charge();
}

Result<ObjectTable::Ticket> ObjectTable::retire_array(std::uint64_t id) {
  const MutexLock lock(mutex_);
  const auto found = arrays_.find(id);
  if (found == arrays_.end()) return no_such("array");
  auto array = std::move(found->second);
  arrays_.erase(found);
  array->freed = true;
  note_unused(*array);
  return retire(std::move(array));
}

Result<ObjectTable::Ticket> ObjectTable::retire_texture(std::uint64_t handle) {
  const MutexLock lock(mutex_);
  auto node = textures_.extract(handle);
  if (node.empty()) return no_such("texture");
  if (Array* const array = node.mapped().array.get()) {
    --array->users;
    note_unused(*array);
  }
  return retire(std::move(node.mapped()));
}

Result<ObjectTable::Ticket> ObjectTable::retire_surface(std::uint64_t handle) {
  const MutexLock lock(mutex_);
  auto node = surfaces_.extract(handle);
  if (node.empty()) return no_such("surface");
  --node.mapped().array->users;
  note_unused(*node.mapped().array);
  return retire(std::move(node.mapped()));
}

void ObjectTable::finish(Ticket ticket) {
  Object object;
  {
    const MutexLock lock(mutex_);
    auto node = retired_.extract(ticket);
    SLATE_CHECK(!node.empty());
    object = std::move(node.mapped());
  }
  destroy(std::move(object));
}

/// Arrays are destroyed with their last reference, here or later.
void ObjectTable::destroy(Object object) {
  if (const auto* const surface = std::get_if<Surface>(&object)) {
    device_.destroy_surface(surface->handle);
  }
  if (const auto* const texture = std::get_if<Texture>(&object)) {
    device_.destroy_texture(texture->handle);
    if (texture->memory != 0) memory_.let_go(texture->memory);
  }
}

void ObjectTable::release() {
  std::vector<Object> left;
  {
    const MutexLock lock(mutex_);
    // What has arrays goes before them.
    for (auto& [handle, texture] : textures_) left.push_back(std::move(texture));
    for (auto& [handle, surface] : surfaces_) left.push_back(std::move(surface));
    for (auto& [ticket, object] : retired_) left.push_back(std::move(object));
    textures_.clear();
    surfaces_.clear();
    retired_.clear();
  }
  for (Object& object : left) destroy(std::move(object));
  left.clear();
  const MutexLock lock(mutex_);
  arrays_.clear();
}

std::size_t ObjectTable::count() const {
  const MutexLock lock(mutex_);
  return arrays_.size() + textures_.size() + surfaces_.size();
}

}  // namespace slate::daemon
