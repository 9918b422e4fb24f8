#include "device/cuda/driver_cache.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <system_error>

namespace slate::cuda {
namespace {

constexpr std::uint64_t kMostOfTheDriver = std::uint64_t{4} << 30;

bool is_private(const std::filesystem::path& directory) {
  struct stat found;
  return ::lstat(directory.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
         found.st_uid == ::geteuid() && (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// Whether there is such a directory now, of this user alone.
bool make_private(const std::filesystem::path& directory) {
  const std::filesystem::path parent = directory.parent_path();
  std::error_code ignored;
  std::filesystem::create_directories(parent.parent_path(), ignored);
  for (const auto& each : {parent, directory}) {
    ::mkdir(each.c_str(), 0700);
    if (!is_private(each)) return false;
  }
  return true;
}

}  // namespace

void set_driver_cache(const std::filesystem::path& directory, std::uint64_t most_bytes) {
  if (directory.empty() || most_bytes == 0) return;
  if (::getenv("CUDA_CACHE_PATH") != nullptr || ::getenv("CUDA_CACHE_DISABLE") != nullptr) return;
  if (!make_private(directory)) return;
  ::setenv("CUDA_CACHE_PATH", directory.c_str(), 1);
  const std::string size = std::to_string(std::min(most_bytes, kMostOfTheDriver));
  ::setenv("CUDA_CACHE_MAXSIZE", size.c_str(), 0);
}

}  // namespace slate::cuda
