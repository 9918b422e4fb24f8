// Where the driver keeps the code that it compiles itself: a directory of slate's own, so that
// engines start warm also for what ptxas has not compiled. By way of the environment, which is all
// that the driver listens to.
#pragma once

#include <cstdint>
#include <filesystem>

namespace slate::cuda {

/// Sets CUDA_CACHE_PATH and CUDA_CACHE_MAXSIZE (at most the 4 GiB that the driver knows) and makes
/// the directory (0700). Leaves everything as it is where `directory` is empty, `most_bytes` is 0,
/// an administrator has set one of CUDA_CACHE_PATH and CUDA_CACHE_DISABLE, or somebody else may
/// write to the directory or its parent. A CUDA_CACHE_MAXSIZE that is there stays. Requires: the
/// driver has not been started, and no other thread uses the environment.
void set_driver_cache(const std::filesystem::path& directory, std::uint64_t most_bytes);

}  // namespace slate::cuda
