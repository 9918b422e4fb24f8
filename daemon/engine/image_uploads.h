// ImageUploads: the images that one session is sending, chunk by chunk. Session thread only.
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

/// A module's image, complete.
struct ModuleImage {
  std::uint32_t kind = 0;  // ipc::kImagePtx or ipc::kImageElf
  std::vector<std::byte> bytes;
  /// Of an ELF image: the PTX that the forms of its kernels are made from; empty without.
  std::string source;
};

class ImageUploads {
 public:
  static constexpr std::uint64_t kMostBytes = 256 << 20;  // of all images being sent

  /// `may_begin` says whether a module of this id may come. Returns the image with the chunk that
  /// completes it. kProtocol for chunks out of order, kLimit beyond kMostBytes.
  Result<std::optional<ModuleImage>> add(const ipc::ModuleLoad& chunk,
                                         std::span<const std::byte> bytes,
                                         const Result<void>& may_begin);
  std::size_t count() const { return uploads_.size(); }
  void clear();

 private:
  struct Upload {
    std::uint64_t total = 0;
    std::uint64_t announced = 0;  // with the source
    std::uint32_t kind = 0;
    std::vector<std::byte> bytes;
    std::string source;  // complete, before the image itself
  };
  Result<Upload*> find_or_begin(const ipc::ModuleLoad& chunk, const Result<void>& may_begin);
  Result<Upload*> begin(const ipc::ModuleLoad& chunk, const Result<void>& may_begin);
  void drop(std::uint64_t module);

  std::unordered_map<std::uint64_t, Upload> uploads_;  // by module
  std::uint64_t bytes_ = 0;                            // announced by all of them
};

}  // namespace slate::daemon
