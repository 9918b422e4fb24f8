// Shared memory without a name: segments, and what is behind cudaMallocHost. The daemon makes it,
// the client gets its descriptor. Nobody can find it by a name, and nobody can cut it off under the
// other side. Thread: any.
#pragma once

#include <boost/interprocess/mapped_region.hpp>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slate::ipc {

/// Sizes of shared memory are multiples of it, in bytes.
inline constexpr std::uint64_t kMemoryGrain = 4096;

/// Makes `bytes` of zeros, sealed: the size is for ever. Pages come when they are touched. `name`
/// is for display in /proc. Errors: kIo.
Result<UniqueFd> make_shared_memory(const char* name, std::uint64_t bytes);

/// Takes the pages of these bytes now. Errors: kOutOfMemory when there are not so many.
Result<void> populate(int fd, std::uint64_t offset, std::uint64_t bytes);

/// Maps all of it for reading and writing. `what` names it in messages. Errors: kProtocol when it
/// is not of `bytes`; kIo.
Result<boost::interprocess::mapped_region> map_shared_memory(int fd, std::uint64_t bytes,
                                                             std::string_view what);

}  // namespace slate::ipc
