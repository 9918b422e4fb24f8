// UsedMemory: how much of a GPU's memory is in use, by all processes, as the driver's management
// library (NVML) has it. It needs no context, so it tells what a context takes. Thread: one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace slate::cuda {

inline constexpr const char* kManagementLibrary = "libnvidia-ml.so.1";

class UsedMemory {
 public:
  using Uuid = std::span<const unsigned char, 16>;

  /// Without the library, or for a part of a GPU (MIG), nothing is known.
  explicit UsedMemory(Uuid uuid, const char* library = kManagementLibrary);
  ~UsedMemory();
  UsedMemory(const UsedMemory&) = delete;
  UsedMemory& operator=(const UsedMemory&) = delete;

  /// Bytes.
  std::optional<std::uint64_t> now() const;

 private:
  void* library_ = nullptr;
  void* device_ = nullptr;  // null: nothing is known
};

}  // namespace slate::cuda
