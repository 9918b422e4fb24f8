// ImageUploads: the images that a session sends in chunks. Session thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ipc/commands.h"

namespace slate::daemon {

/// The complete image of a module.
struct ModuleImage {
  std::uint32_t kind = 0;  // ipc::kImagePtx or ipc::kImageElf
  std::vector<std::byte> bytes;
  /// ELF images: the PTX for their kernels' forms; empty without.
  std::string source;
};

class ImageUploads {
 public:
  static constexpr std::uint64_t kMostBytes = 256 << 20;  // bytes of all unfinished images

  /// Adds a chunk. Returns the image with its last chunk. `may_begin`: whether a module of this id
  /// may come. kProtocol for chunks out of order, kLimit beyond kMostBytes, kInvalidHandle for a
  /// refused module.
  Result<std::optional<ModuleImage>> add(const ipc::ModuleLoad& chunk,
                                         std::span<const std::byte> bytes,
                                         const Result<void>& may_begin);
  bool has(std::uint64_t module) const { return uploads_.contains(module); }
  std::size_t count() const { return uploads_.size(); }
  void clear();

 private:
  struct Upload {
    std::uint64_t total = 0;
    std::uint64_t announced = 0;  // bytes that will come, with the source
    std::uint32_t kind = 0;
    std::vector<std::byte> bytes;
    std::string source;  // complete before the image begins
  };
  Result<Upload*> find_or_begin(const ipc::ModuleLoad& chunk, const Result<void>& may_begin);
  Result<Upload*> begin(const ipc::ModuleLoad& chunk, const Result<void>& may_begin);
  void drop(std::uint64_t module);

  std::unordered_map<std::uint64_t, Upload> uploads_;  // by module
  std::uint64_t bytes_ = 0;                            // bytes announced by all of them
};

}  // namespace slate::daemon
