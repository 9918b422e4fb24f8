// Where the driver keeps the code that it compiles itself: a directory of slate's own, so that an
// engine finds code again that ptxas has not compiled. Set through the environment, which is the
// only way. Not the cache of forms, which is injector/cache.
#pragma once

#include <cstdint>
#include <filesystem>

namespace slate::cuda {

/// Sets CUDA_CACHE_PATH and CUDA_CACHE_MAXSIZE (at most 4 GiB, the driver's limit) and makes the
/// directory (0700). A CUDA_CACHE_MAXSIZE that is set stays. Requires: the driver has not been
/// started, and no other thread uses the environment. Nothing is changed where
/// - `directory` is empty or `most_bytes` is 0;
/// - an administrator has set CUDA_CACHE_PATH or CUDA_CACHE_DISABLE;
/// - another user may write to the directory or its parent.
void set_driver_cache(const std::filesystem::path& directory, std::uint64_t most_bytes);

}  // namespace slate::cuda
