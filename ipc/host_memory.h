// Shared memory behind cudaMallocHost and its kind: made by the engine, opened once by the client
// of the session, by the path that the engine tells it. Not the session's segment (segment.h), and
// no mapping: both sides map the descriptor themselves.
//
// Where engine and client are the same user it is a memfd, sealed against shrinking, that never has
// a name; otherwise a file of that user's in /dev/shm, to be unlinked by whoever comes first.
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
  static constexpr std::uint64_t kGrain = 4096;

  /// Engine. Whether memory for `owner` is a file in /dev/shm, which its user can cut off, and not
  /// a memfd.
  static bool is_named(uid_t owner);
  /// Engine. `bytes` that read as 0, for `owner`. `number` makes the path unique within this
  /// process. kOutOfMemory when there are not so many. Requires: a multiple of kGrain, not 0.
  static Result<HostMemory> create(std::uint64_t number, uid_t owner, std::uint64_t bytes);
  /// Client. Takes its name away, so that it goes with its last mapping.
  static Result<UniqueFd> open(std::string_view path, std::uint64_t bytes);
  /// Takes away the names that engines of this machine left when they were killed.
  static void remove_stale();

  HostMemory(HostMemory&& other) noexcept;
  HostMemory& operator=(HostMemory&&) = delete;
  /// Takes the name away, if it is still there; mappings stay.
  ~HostMemory();

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

 private:
  HostMemory(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  UniqueFd fd_;
  std::string path_;
};

}  // namespace slate::ipc
