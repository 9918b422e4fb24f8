// ObjectTable: one session's arrays, by the client's ids, and its textures and surfaces, by the
// device's numbers. Like memory they are retired first, and destroyed when no work uses them any
// more.
// An array also waits for its last texture or surface, and freed memory for its last texture: so no
// kernel reads memory that another session has by then.
//
// Thread: the session's, but for finish() and count().
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <variant>

#include "base/mutex.h"
#include "daemon/engine/memory_manager.h"
#include "device/device.h"
#include "ipc/commands.h"

namespace slate::daemon {

class ObjectTable {
 public:
  static constexpr std::size_t kMostArrays = 65536;
  static constexpr std::size_t kMostObjects = 65536;  // textures and surfaces
  /// A retired object.
  using Ticket = std::uint64_t;

  /// An array; destroyed and no longer charged with its last reference.
  class Array {
   public:
    Array(device::Device& device, MemoryManager& memory, const ArraySpec& made_of,
          device::Array made)
        : device_(device), memory_(memory), spec(made_of), handle(made) {}
    ~Array();
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;

   private:
    device::Device& device_;
    MemoryManager& memory_;

   public:
    const ArraySpec spec;
    const device::Array handle;
    // Guarded by the table's mutex.
    std::size_t users = 0;  // textures and surfaces that are not retired
    bool freed = false;     // freed by the client
    bool retired = false;   // needed by running work at most
  };

  /// Both outlive it.
  ObjectTable(device::Device& device, MemoryManager& memory) : device_(device), memory_(memory) {}
  /// Requires: release() was called.
  ~ObjectTable();
  ObjectTable(const ObjectTable&) = delete;
  ObjectTable& operator=(const ObjectTable&) = delete;

  /// Errors: kProtocol for an id that is 0 or taken; kInvalidValue, kLimit, kOutOfMemory.
  Result<void> create_array(std::uint64_t id, const ArraySpec& spec);
  /// kInvalidHandle when there is none.
  Result<std::shared_ptr<Array>> find_array(std::uint64_t id) const;
  /// The resource names an array by the client's id. Requires: its memory is the session's.
  Result<std::uint64_t> create_texture(const TextureSpec& spec);
  Result<std::uint64_t> create_surface(std::uint64_t array, std::uint32_t level);

  /// First half of destroying. kInvalidHandle when there is none.
  Result<Ticket> retire_array(std::uint64_t id);
  Result<Ticket> retire_texture(std::uint64_t handle);
  Result<Ticket> retire_surface(std::uint64_t handle);
  /// Second half. Any thread. Requires: no unfinished work uses the object.
  void finish(Ticket ticket);

  /// Destroys everything, retired or not. Requires: no unfinished work uses it.
  void release();
  /// Number of live arrays, textures and surfaces. Any thread.
  std::size_t count() const;

 private:
  struct Texture {
    device::Texture handle{};
    std::shared_ptr<Array> array;  // null: the texture is of memory
    device::Address memory = 0;    // kept allocation; 0: an array, or a module's variable
  };
  struct Surface {
    device::Surface handle{};
    std::shared_ptr<Array> array;
  };
  using Object = std::variant<std::shared_ptr<Array>, Texture, Surface>;

  Ticket retire(Object object) SLATE_REQUIRES(mutex_);
  void note_unused(Array& array) SLATE_REQUIRES(mutex_);
  void destroy(Object object);

  device::Device& device_;
  MemoryManager& memory_;
  mutable Mutex mutex_;
  Ticket next_ticket_ SLATE_GUARDED_BY(mutex_) = 1;
  // Changed under the mutex by the session's thread only, which reads them without.
  std::unordered_map<std::uint64_t, std::shared_ptr<Array>> arrays_;
  std::unordered_map<std::uint64_t, Texture> textures_;
  std::unordered_map<std::uint64_t, Surface> surfaces_;
  std::unordered_map<Ticket, Object> retired_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::daemon
