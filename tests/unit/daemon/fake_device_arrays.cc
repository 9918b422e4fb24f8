// Arrays, textures and surfaces of FakeDevice. Arrays hold their elements; textures and surfaces
// are numbers that keep what they read from being destroyed before them.
#include <cstring>

#include "base/check.h"
#include "tests/unit/daemon/fake_device.h"

namespace slate::daemon {

struct FakeDevice::FakeArray {
  ArraySpec spec;
  std::vector<std::vector<char>> levels;
};

void FakeDevice::set_array_limits(DeviceInfo& info) {
  for (const int width : {21, 22, 23, 24, 25, 26, 27, 28, 29, 42, 43, 56, 57, 70, 71}) {
    info.attributes[width] = 4096;
  }
  info.attributes[72] = 1 << 20;
  info.attributes[14] = 512;
  info.attributes[51] = 32;
}

Result<device::Array> FakeDevice::create_array(const ArraySpec& spec) {
  auto array = std::make_shared<FakeArray>(FakeArray{spec, {}});
  for (std::uint32_t i = 0; i < std::max(1u, spec.levels); ++i) {
    const ArrayExtent box = level_box(spec, i);
    array->levels.emplace_back(box.width * box.height * box.depth * spec.format.bytes());
  }
  const std::lock_guard lock(mutex_);
  arrays_.emplace(next_, std::move(array));
  return device::Array{next_++};
}

void FakeDevice::destroy_array(device::Array array) {
  const std::lock_guard lock(mutex_);
  const auto number = static_cast<std::uint64_t>(array);
  for (const auto& [object, its] : objects_) SLATE_CHECK(lost_ || its != number);
  SLATE_CHECK(arrays_.erase(number) == 1);
}

Result<std::uint64_t> FakeDevice::add_object(std::uint64_t array) {
  const std::lock_guard lock(mutex_);
  SLATE_CHECK(array == 0 || arrays_.contains(array));
  objects_.emplace(next_, array);
  return next_++;
}

void FakeDevice::remove_object(std::uint64_t object) {
  const std::lock_guard lock(mutex_);
  SLATE_CHECK(objects_.erase(object) == 1);
}

Result<device::Texture> FakeDevice::create_texture(const TextureSpec& spec, device::AddressRange) {
  const bool is_memory =
      spec.resource.kind == ResourceKind::kLinear || spec.resource.kind == ResourceKind::kPitch2D;
  return static_cast<device::Texture>(*add_object(is_memory ? 0 : spec.resource.array));
}
void FakeDevice::destroy_texture(device::Texture texture) {
  remove_object(static_cast<std::uint64_t>(texture));
}
Result<device::Surface> FakeDevice::create_surface(device::Array array, std::uint32_t,
                                                   device::AddressRange) {
  return static_cast<device::Surface>(*add_object(static_cast<std::uint64_t>(array)));
}
void FakeDevice::destroy_surface(device::Surface surface) {
  remove_object(static_cast<std::uint64_t>(surface));
}

/// Where a row of a place is; keeps arrays alive as long.
std::function<char*(std::uint64_t, std::uint64_t)> FakeDevice::rows_of(const Place& place) {
  if (!place.is(PlaceKind::kArray)) {
    return [place](std::uint64_t y, std::uint64_t z) {
      return reinterpret_cast<char*>(place.at(0, y, z).memory());
    };
  }
  const std::lock_guard lock(mutex_);
  return [in = place, array = arrays_.at(place.object)](std::uint64_t y, std::uint64_t z) {
    const ArrayExtent box = level_box(array->spec, in.part);
    const std::uint64_t pitch = box.width * array->spec.format.bytes();
    return array->levels[in.part].data() + ((in.z + z) * box.height + in.y + y) * pitch + in.x;
  };
}

Result<void> FakeDevice::copy(const Place& to, const Place& from, const Box& box,
                              device::Stream stream) {
  const auto work = [box, target = rows_of(to), source = rows_of(from)]() -> Result<void> {
    for (std::uint64_t z = 0; z < box.depth; ++z) {
      for (std::uint64_t y = 0; y < box.height; ++y) {
        std::memcpy(target(y, z), source(y, z), box.width);
      }
    }
    return {};
  };
  const bool array = to.is(PlaceKind::kArray) || from.is(PlaceKind::kArray);
  const char* const name = array                       ? "box"
                           : from.is(PlaceKind::kHost) ? "to_device"
                           : to.is(PlaceKind::kHost)   ? "to_host"
                                                       : "on_device";
  return push(stream, {Piece::Kind::kWork, name, work, {}});
}

}  // namespace slate::daemon
