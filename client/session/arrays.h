// Arrays: makes and destroys the CUDA arrays, textures and surfaces of a session. Thread-safe.
#pragma once

#include <cstdint>

#include "base/array.h"
#include "client/session/array_table.h"
#include "client/session/wire.h"

namespace slate::client {

class Arrays {
 public:
  explicit Arrays(Wire& wire) : wire_(wire), table_(wire.handle_counter()) {}

  ArrayTable& table() { return table_; }

  Result<std::uint64_t> create(const ArraySpec& spec);
  /// kInvalidHandle when there is no array with this id, or it is a level of one.
  Result<void> destroy(std::uint64_t id);
  /// Returns the number that kernels take. Arrays are named by ArrayTable::Entry::array.
  Result<std::uint64_t> create_texture(const TextureSpec& spec);
  Result<void> destroy_texture(std::uint64_t handle);
  Result<std::uint64_t> create_surface(const ArrayTable::Entry& array);
  Result<void> destroy_surface(std::uint64_t handle);

 private:
  Wire& wire_;
  ArrayTable table_;
};

}  // namespace slate::client
