// HostMemory: shared memory behind cudaMallocHost and similar calls. The engine makes it; the
// client opens it once by the path that the engine sends. Not the session's segment (segment.h),
// and no mapping: both sides map the descriptor themselves.
//
// Where engine and client are the same user it is a memfd without a name, sealed against shrinking.
// Otherwise it is a file of the client's user in /dev/shm, which the client or the engine unlinks,
// the first that can.
//
// Thread: any; one object, one thread at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slate::ipc {

class HostMemory {
 public:
  /// Bytes; sizes are multiples of it.
  static constexpr std::uint64_t kGrain = 4096;

  /// Engine's side. Whether memory for `owner` is a file in /dev/shm, which its user can shrink,
  /// and not a memfd.
  static bool is_named(uid_t owner);
  /// Engine's side. Makes `bytes` of zeros for `owner`. `number` makes the path unique within this
  /// process. Requires: `bytes` is a multiple of kGrain and not 0. Errors: kOutOfMemory when there
  /// are not so many.
  static Result<HostMemory> create(std::uint64_t number, uid_t owner, std::uint64_t bytes);
  /// Client's side. Opens it and removes its name, so that it ends with its last mapping.
  static Result<UniqueFd> open(std::string_view path, std::uint64_t bytes);
  /// Removes the names that killed engines of this machine left.
  static void remove_stale();

  HostMemory(HostMemory&& other) noexcept;
  HostMemory& operator=(HostMemory&&) = delete;
  /// Removes the name, if it is still there; mappings stay.
  ~HostMemory();

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

 private:
  HostMemory(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  UniqueFd fd_;
  std::string path_;
};

}  // namespace slate::ipc
